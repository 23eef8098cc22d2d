"""Requests in a line."""

import math

import pytest

from roofbook.theory.queueing import in_flight, rate_allowed_per_s, residence_s, service_s, wait_s


def test_littles_law_both_ways() -> None:
    """0.046 requests a second and 135 inside: each is inside for 49 minutes."""
    assert residence_s(135, 0.046) / 60 == pytest.approx(49, abs=0.1)
    assert in_flight(0.046, 135 / 0.046) == pytest.approx(135)


def test_the_rate_that_a_prefill_allows() -> None:
    """A prefill of 21.7 s: 0.046 requests a second; with 200 tokens at 50 tok/s of all together 4 s more."""
    assert round(rate_allowed_per_s(21.7), 3) == 0.046
    assert rate_allowed_per_s(21.7, 200, 50) == pytest.approx(1 / 25.7)


def test_decode_is_shared_and_prefill_is_not() -> None:
    """2 s of prefill, 100 steps of 50 ms shared by 10: 2.5 s of the machine."""
    assert service_s(2.0, 100, 0.05, batch=10) == pytest.approx(2.5)


def test_wait_of_equal_services() -> None:
    """M/D/1 at half load: S / 2; at 90 %: 4.5 S."""
    assert wait_s(0.25, 2.0) == pytest.approx(1.0)
    assert wait_s(0.45, 2.0) == pytest.approx(9.0)


def test_wait_of_exponential_services_is_twice_that() -> None:
    """M/M/1 at half load: S, as the textbook's load / (rate of service - rate of arrival)."""
    assert wait_s(0.25, 2.0, service_sd_s=2.0) == pytest.approx(0.5 / (0.5 - 0.25))


def test_no_end_of_the_line_from_full_load_on() -> None:
    """As many as can be served, or more: the line grows for ever."""
    assert wait_s(0.5, 2.0) == math.inf
    assert wait_s(3.0, 2.0) == math.inf
