"""What a shared front saves: by the law, and arm by arm."""

from collections.abc import Callable

import pandas as pd
import pytest

from roofbook.analysis.cache import cache_arms, expected_gain
from roofbook.analysis.regression import Fit
from roofbook.record import Row
from roofbook.validity import findings, records

Frame = Callable[[list[Row]], pd.DataFrame]

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


def arm_row(index: int, shared: int, prefill_ms: float, **more: object) -> Row:
    cell: Row = {"run_id": "test", "experiment": "cache", "kind": "prefix_cache", "point": f"s{shared}", "status": "ok"}
    times = {"server_prefill_ms": prefill_ms, "ttft_ms": prefill_ms + 100}
    return (
        cell
        | times
        | {"phase": "measured", "order_index": index, "prompt_tokens": 3500, "shared_prefix_tokens": shared}
        | more
    )


def test_the_arms_are_compared_with_the_one_that_shares_nothing(frame: Frame) -> None:
    """18,000 ms without, 9,000 with half, 1,800 with nine tenths: 2 and 10 times; primes are no measurement."""
    medians = {0: 18000.0, 1750: 9000.0, 3150: 1800.0}
    repeats = [(shared, ms + noise) for shared, ms in medians.items() for noise in (-10, 0, 10)]
    rows = [arm_row(index, shared, ms) for index, (shared, ms) in enumerate(repeats)]
    rows.append(arm_row(9, 1750, 20000.0, phase="prime"))
    written = frame(rows)
    arms = cache_arms(written, findings(records(written)))
    assert {arm.shared_tokens: arm.prefill.median for arm in arms} == medians
    assert [arm.prefill.n for arm in arms] == [3, 3, 3]
    assert [arm.prefill_factor for arm in arms] == [1, 2, 10]
    assert arms[2].ttft_factor == pytest.approx(18100 / 1900)
    assert arms[0].cached_tokens.n == 0


def test_without_a_cold_arm_there_is_no_factor(frame: Frame) -> None:
    """Nothing to compare with is no factor of one."""
    written = frame([arm_row(0, 1750, 9000.0)])
    (arm,) = cache_arms(written, findings(records(written)))
    assert (arm.prefill_factor, arm.ttft_factor) == (None, None)
