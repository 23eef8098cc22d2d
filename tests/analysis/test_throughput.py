"""Tokens a second of a level: over all of it, and while as many as wanted were in flight."""

import pytest

from roofbook.analysis.throughput import Throughput, Window, throughput
from roofbook.record import Row


def request(start_s: float, end_s: float, tokens: int = 100, **more: object) -> Row:
    times: Row = {"sent_at_ms": 1000 * start_s, "e2e_ms": 1000 * (end_s - start_s), "output_tokens": tokens}
    return {"phase": "measured", "status": "ok"} | times | more


FOUR = [request(0, 10), request(0, 10), request(10, 20), request(10, 30)]


def test_b30_the_full_run_and_the_window_with_two_in_flight() -> None:
    """400 tokens in 30 s are 13.33 a second; from 0 to 20 s two are in flight: 350 tokens, 17.5 a second."""
    found = throughput(FOUR, 2)
    assert found == Throughput(2, Window(0, 30_000, 400), Window(0, 20_000, 350))
    assert found.full is not None
    assert found.steady is not None
    assert found.full.tok_per_s == pytest.approx(13.33, abs=0.005)
    assert found.steady.tok_per_s == 17.5


def test_a_burst_at_the_start_is_no_steady_state() -> None:
    """The second worker joins after 4 s: the window is 4 to 10 s, 60 tokens of each."""
    assert throughput([request(0, 10), request(4, 14)], 2).steady == Window(4000, 10_000, 120)


def test_a_breath_between_two_requests_does_not_end_the_window() -> None:
    """A worker takes 5 ms between its requests: two are in flight from 0 to 20 s all the same, 395.. tokens of 400."""
    rows = [request(0, 10), request(0, 10.001), request(10.005, 20.005), request(10.002, 20.002)]
    found = throughput(rows, 2).steady
    assert found is not None
    assert (found.start_ms, found.end_ms) == (0, pytest.approx(20_002))
    assert found.tokens == pytest.approx(400 - 100 * 0.003 / 10)


def test_tokens_count_when_they_came() -> None:
    """Ten chunks at 1 to 10 s: five are in the half in which the other one is there too."""
    late = request(0, 10, tokens=10, chunk_times_ms=[1000.0 * n for n in range(1, 11)])
    other = request(0, 5, tokens=0)
    assert throughput([late, other], 2).steady == Window(0, 5000, 5)
    prefilled = request(0, 10, tokens=10, ttft_ms=5000.0, last_token_ms=10_000.0)
    assert throughput([prefilled, other], 2).steady == Window(0, 5000, 0)


@pytest.mark.parametrize(
    ("rows", "full", "steady"),
    [
        ([], None, None),
        ([{"phase": "measured", "status": "ok"}], None, None),  # an import without times
        ([request(0, 10)], Window(0, 10_000, 100), None),  # never two
        ([request(0, 10), request(10, 20)], Window(0, 20_000, 200), None),  # one after the other: touching is not both
        # Nor does a touch open the window: from 15 s on two are there.
        ([request(0, 10), request(10, 20), request(15, 25)], Window(0, 25_000, 300), Window(15_000, 20_000, 100)),
        # A failure was in flight for 10 s and brought nothing.
        ([request(0, 10), request(0, 10, status="timeout")], Window(0, 10_000, 100), Window(0, 10_000, 100)),
        # Warm-ups and anchors are no part of the level.
        ([*FOUR, request(-10, 0, phase="warmup"), request(40, 50, phase="anchor")], Window(0, 30_000, 400),
         Window(0, 20_000, 350)),
    ],
)  # fmt: skip
def test_what_is_no_part_of_a_level(rows: list[Row], full: Window | None, steady: Window | None) -> None:
    """Nothing, one at a time, failures, warm-ups."""
    assert throughput(rows, 2) == Throughput(2, full, steady)
