"""A law without its odd rows, and without tokens that a server may not have read, by the published lengths."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from roofbook.analysis.prefill import prefill_curve
from roofbook.analysis.sensitivity import unread_template, without_noted
from roofbook.analysis.subjects import curve_of, subjects
from roofbook.facts import load_facts
from roofbook.record import Row
from roofbook.theory.shapes import Model
from roofbook.validity import Finding

Frame = Callable[[list[Row]], pd.DataFrame]

LENGTHS = (205, 578, 1096, 2091, 4056, 8016)
TIMES = (891, 2790, 5137, 10741, 21891, 48337)


@pytest.fixture(scope="module")
def qwen() -> Model:
    facts = load_facts(Path(__file__).parents[2] / "data" / "facts")
    return facts.model("qwen2.5:7b").model.quantized("Q4_K_M")


def weighted(tokens: list[float], times: list[float]) -> tuple[float, float]:
    """Return a and b of aT + bT^2 with variances proportional to the squared times, by numpy."""
    t, y = np.array(tokens), np.array(times)
    a, b = np.linalg.lstsq(np.column_stack([t / y, t**2 / y]), np.ones_like(y))[0]
    return float(a), float(b)


def excess(a: float, b: float) -> float:
    """Return b / a over 200,704 / (2 x 6,525,288,448), attention's operations over a token's."""
    return b / a / (200_704 / (2 * 6_525_288_448))


def test_an_odd_row_that_was_fitted_is_left_out_for_a_check(
    frame: Frame, published_curve: list[Row], qwen: Model
) -> None:
    """Without 578 tokens: a 4.46, b 2.12e-4, the excess 3.1 for 2.9."""
    (subject,) = subjects(frame([row | {"order_index": place} for place, row in enumerate(published_curve)]))
    odd = Finding("outlier", "test", order_index=1)
    found = without_noted(subject, [odd], curve_of(subject, [odd]), qwen)
    a, b = weighted([t for t in LENGTHS if t != 578], [y for y in TIMES if y != 2790])

    assert found is not None
    assert found.tokens == (578,)
    assert (found.law.coefficient(1), found.law.coefficient(2)) == pytest.approx((a, b))
    assert found.excess == pytest.approx(excess(a, b))
    assert round(excess(a, b), 1) == 3.1
    assert without_noted(subject, [], curve_of(subject, []), qwen) is None


def test_tokens_that_were_not_read_explain_a_part_of_the_bend(
    frame: Frame, published_curve: list[Row], curve_row: Callable[..., Row], qwen: Model
) -> None:
    """c = -89 and -57 ms over a = 4.76 and 4.67: 19 and 12 tokens; without them the excess is 2.2 to 2.4."""
    more = [curve_row(None, 74, 394, 291), curve_row(None, 3505, 17960, 17846)]
    curve, whole = prefill_curve(frame(published_curve)), prefill_curve(frame([*published_curve, *more]))
    found = unread_template(curve, whole, qwen)

    assert found is not None
    assert (found.tokens.low, found.tokens.high) == pytest.approx((57 / 4.67, 89 / 4.76), abs=0.1)
    by_hand = [excess(*weighted([t - p for t in LENGTHS], list(TIMES))) for p in (found.tokens.high, found.tokens.low)]
    assert (found.excess.low, found.excess.high) == pytest.approx(by_hand, rel=1e-6)
    assert [round(one, 1) for one in by_hand] == [2.2, 2.4]
    assert unread_template(curve, whole, None) is None
