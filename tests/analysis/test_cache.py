"""What a shared front saves by the law."""

import pytest

from roofbook.analysis.cache import expected_gain
from roofbook.analysis.regression import Fit

PUBLISHED = Fit((1, 2), (4.50, 1.96e-4), ((0, 0), (0, 0)), 2, 0, 6, (), None)


@pytest.mark.parametrize(
    ("share", "factor"),
    # 18,180 ms cold; a (T - P) + b (T^2 - P^2) warm: 9,692, 4,022, 2,035, 1,023 ms; at least 47 ms, one step.
    [(0.5, 1.88), (0.8, 4.52), (0.9, 8.93), (0.95, 17.8), (1.0, 387)],
)
def test_the_law_says_what_a_shared_front_saves(share: float, factor: float) -> None:
    """At 3,505 tokens half a front halves the wait; 300 times is only the corner where all of it is shared."""
    gain = expected_gain(PUBLISHED, 3505, share * 3505, overhead_ms=100, step_ms=47)
    assert gain.prefill_factor == pytest.approx(factor, rel=5e-3)


def test_the_first_token_gains_less_than_the_prefill() -> None:
    """The overhead stays: (18,180 + 100) / (47 + 100) = 124, not 387."""
    assert expected_gain(PUBLISHED, 3505, 3505, overhead_ms=100, step_ms=47).ttft_factor == pytest.approx(124, abs=0.5)


def test_a_constant_is_paid_cached_or_not() -> None:
    """c + aT with c = 100, a = 1: 1,100 cold, 600 with half of it cached, not 500."""
    law = Fit((0, 1), (100.0, 1.0), ((0, 0), (0, 0)), 2, 0, 6, (), None)
    assert expected_gain(law, 1000, 500, overhead_ms=0, step_ms=1).prefill_ms == 600
