"""The prefill curve: the published rows give the values that were worked out by hand, odd rows give no exception."""

import math
from collections.abc import Callable
from dataclasses import astuple, is_dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, optimize, stats

from roofbook.analysis.prefill import Curve, prefill_curve, prompt_budget
from roofbook.record import Row

Frame = Callable[[list[Row]], pd.DataFrame]
MakeRow = Callable[..., Row]


@pytest.fixture
def curve(frame: Frame, published_curve: list[Row]) -> Curve:
    return prefill_curve(frame(published_curve))


def test_the_published_lengths_choose_the_quadratic_law(curve: Curve) -> None:
    """Six lengths: AICc -19.3, -23.4 and 0.7 for aT, aT+bT^2 and c+aT+bT^2; three parameters are too many for six."""
    assert {c.powers: round(c.fit.aicc or 0, 1) for c in curve.candidates} == {
        (1,): -19.3,
        (1, 2): -23.4,
        (0, 1, 2): 0.7,
    }
    assert curve.chosen is not None
    assert curve.chosen.powers == (1, 2)
    assert curve.clock == "server"


def test_the_coefficients_carry_their_intervals(curve: Curve) -> None:
    """a = 4.53 +- 0.29 ms a token, b = 2.0e-4 +- 0.9e-4 (95 %, four degrees of freedom)."""
    assert curve.chosen is not None
    a, b = curve.chosen.fit.coefficient_interval(1), curve.chosen.fit.coefficient_interval(2)
    assert (round(a.mid, 2), round(a.high - a.mid, 2)) == (4.53, 0.29)
    assert (round(b.mid, 5), round(b.high - b.mid, 5)) == (2.0e-4, 0.9e-4)


def test_leaving_each_length_out_shows_what_the_law_is_worth(curve: Curve) -> None:
    """+8.0 -5.1 +1.6 -4.4 -1.4 +7.4 %, rms 5.3; three parameters would have 4.9."""
    assert curve.chosen is not None
    assert curve.chosen.left_out is not None
    assert [round(100 * error, 1) for error in curve.chosen.left_out] == [8.0, -5.1, 1.6, -4.4, -1.4, 7.4]
    assert round(100 * (curve.chosen.left_out_rms or 0), 1) == 5.3
    three = curve.candidate((0, 1, 2))
    assert three is not None
    assert round(100 * (three.left_out_rms or 0), 1) == 4.9
    assert round(three.fit.coefficient(0)) == -89


def test_the_longest_length_is_predicted_from_the_others(curve: Curve) -> None:
    """Five shorter lengths give 51.9 s, 38.9 to 64.9, for 48.3 measured: 7.4 % high, inside the band."""
    held = curve.hold_out()
    assert held is not None
    assert [round(ms / 1000, 1) for ms in astuple(held.predicted_ms)] == [51.9, 38.9, 64.9]
    assert (held.tokens, held.measured_ms, held.fitted_lengths) == (8016, 48337, 5)
    assert round(100 * held.error_share, 1) == 7.4
    assert held.inside


def test_a_constant_makes_the_hold_out_wider(curve: Curve) -> None:
    """With a constant, two degrees of freedom: 48.7 s, 31.5 to 66.0."""
    constant = next(held for held in curve.held_out if held.powers == (0, 1, 2))
    assert [round(ms / 1000, 1) for ms in astuple(constant.predicted_ms)] == [48.7, 31.5, 66.0]


def test_extrapolation_carries_its_band(curve: Curve) -> None:
    """16,384 tokens: 128 +- 25 s; 32,768 tokens: 363 +- 99 s."""
    assert curve.chosen is not None
    seconds = [curve.chosen.fit.prediction(tokens) for tokens in (16384, 32768)]
    assert [(round(s.mid / 1000), round((s.high - s.mid) / 1000)) for s in seconds] == [(128, 25), (363, 99)]


def test_the_quadratic_share_grows_with_the_prompt(curve: Curve) -> None:
    """b T^2 / (aT + bT^2) = 2.0035e-4 x 8016 / (4.5263 + 1.6060) = 26.2 % at 8,016 tokens."""
    assert curve.chosen is not None
    assert curve.chosen.fit.term_share(2, 8016) == pytest.approx(0.262, abs=0.0005)


@pytest.mark.parametrize(
    ("target_ms", "low", "mid", "high"), [(1000, 175, 196, 223), (2000, 367, 411, 467), (5000, 928, 1034, 1167)]
)
def test_a_budget_inverts_the_prediction_band(curve: Curve, target_ms: float, low: int, mid: int, high: int) -> None:
    """A TTFT target less 105 ms of overhead: bounds 175-223, 367-467, 928-1167 tokens."""
    assert curve.chosen is not None
    budget = prompt_budget(curve.chosen.fit, target_ms, 105, 8016)
    assert (budget.low, budget.mid, budget.high) == pytest.approx((low, mid, high), abs=0.6)


def test_a_target_below_the_overhead_leaves_no_tokens(curve: Curve) -> None:
    """100 ms of TTFT with 105 ms of overhead: no prompt at all, and no exception."""
    assert curve.chosen is not None
    budget = prompt_budget(curve.chosen.fit, 100, 105, 8016)
    assert (budget.low, budget.mid, budget.high) == (0, 0, 0)


def test_the_overhead_is_what_ttft_has_beyond_prefill(curve: Curve) -> None:
    """Median of 103, 370, 105, 109, 150, 138 ms: (109 + 138) / 2."""
    assert curve.overhead_ms == 123.5


def test_rows_the_fit_never_saw_are_held_against_it(
    frame: Frame, published_curve: list[Row], curve_row: MakeRow
) -> None:
    """74 tokens took 291 ms; the fit says 4.5263 x 74 + 2.0035e-4 x 74^2 = 336.0, 15.5 % more."""
    other = curve_row(None, 74, 394, 291, kind="baseline")
    unseen = prefill_curve(frame(published_curve), frame([other])).unseen
    assert [(check.length.tokens, round(check.predicted_ms.mid, 1)) for check in unseen] == [(74, 336.0)]
    assert unseen[0].error_share == pytest.approx(0.155, abs=0.0005)


def test_eight_lengths_may_carry_a_constant(frame: Frame, published_curve: list[Row], curve_row: MakeRow) -> None:
    """With 74 and 3,505 tokens added: c+aT+bT^2 with a 4.67, b 1.7e-4, c -57 +- 29; rms 3.7 against 7.7 %."""
    rows = [*published_curve, curve_row(None, 74, 394, 291), curve_row(None, 3505, 17960, 17846)]
    curve = prefill_curve(frame(rows))
    assert curve.chosen is not None
    assert curve.chosen.powers == (0, 1, 2)
    law = curve.chosen.fit
    assert (round(law.coefficient(1), 2), round(law.coefficient(2), 5)) == (4.67, 1.7e-4)
    c = law.coefficient_interval(0)
    assert (round(c.mid), round(c.high - c.mid)) == (-57, 29)
    two = curve.candidate((1, 2))
    assert two is not None
    assert [round(100 * (found.left_out_rms or 0), 1) for found in (curve.chosen, two)] == [3.7, 7.7]


def test_repeats_of_a_length_are_one_point_with_their_scatter(frame: Frame, curve_row: MakeRow) -> None:
    """Five runs of 74 tokens: median 291, from 282 to 302; counted tokens that differ by one stay one length."""
    times = [286, 293, 302, 282, 291]
    rows = [curve_row(64, 74 + index % 2, None, ms, context_limit_tokens=4096) for index, ms in enumerate(times)]
    curve = prefill_curve(frame(rows))
    length = curve.lengths[0]
    assert (length.tokens, length.prefill_ms, length.low_ms, length.high_ms) == (74, 291, 282, 302)
    assert (length.rows, length.runs, length.contexts) == (5, 5, (4096,))
    # Standard deviation 7.59 ms of a mean of 290.8: 2.6 %.
    assert length.spread_share == pytest.approx(0.0261, abs=5e-5)
    assert curve.repeat_spread_share == pytest.approx(0.0261, abs=2e-4)


BENDING = [1, 1.02, 1.1, 1.14, 1.37]
"""A token's time at five lengths, over the shortest's."""


def repeated(curve_row: MakeRow, scatter: tuple[float, ...]) -> list[Row]:
    """Return five lengths of 5 ms a token that bend as BENDING, each repeated with that relative *scatter*."""
    lengths = zip((128, 256, 512, 1024, 1536), BENDING, strict=True)
    return [curve_row(n, n, None, 5.0 * n * bend * (1 + off)) for n, bend in lengths for off in scatter]


def test_the_rows_are_fitted_and_the_lengths_counted(frame: Frame, curve_row: MakeRow) -> None:
    """15 rows of five lengths: weighted least squares of all 15; three parameters are still too many for five."""
    rows = repeated(curve_row, (-0.04, 0.0, 0.05))
    curve = prefill_curve(frame(rows))
    # The same by scipy: y = aT + bT^2, each row's sigma its own time.
    tokens = [float(row["prompt_tokens"]) for row in rows]
    times = [float(row["server_prefill_ms"]) for row in rows]
    (a, b), covariance = optimize.curve_fit(
        lambda t, a, b: a * t + b * t**2, np.array(tokens), np.array(times), p0=(5, 1e-3), sigma=np.array(times)
    )
    half = stats.t.ppf(0.975, 13) * np.sqrt(np.diag(covariance))

    assert curve.chosen is not None
    assert (curve.chosen.powers, curve.chosen.fit.n, len(curve.lengths)) == ((1, 2), 15, 5)
    assert curve.chosen.fit.coefficients == pytest.approx((a, b), rel=1e-6)
    told = [curve.chosen.fit.coefficient_interval(power) for power in (1, 2)]
    assert [one.high - one.mid for one in told] == pytest.approx(half, rel=1e-5)
    assert curve.chosen.left_out is not None
    assert len(curve.chosen.left_out) == 5


def test_repeats_that_scatter_less_than_a_law_misses_rule_it_out(frame: Frame, curve_row: MakeRow) -> None:
    """F = (left over - scatter) / (5 - k) over scatter / 10, all weighted by 1/y^2; aT misses, aT+bT^2 does not."""
    rows = repeated(curve_row, (-0.04, 0.0, 0.05))
    curve = prefill_curve(frame(rows))

    def by_hand(powers: tuple[int, ...]) -> tuple[float, float]:
        t = np.array([row["prompt_tokens"] for row in rows], dtype=float)
        y = np.array([row["server_prefill_ms"] for row in rows], dtype=float)
        design = np.column_stack([t**power / y for power in powers])
        left = float(linalg.lstsq(design, np.ones_like(y))[1])
        cells = np.column_stack([(t == length) / y for length in np.unique(t)])
        scatter = float(linalg.lstsq(cells, np.ones_like(y))[1])
        f = (left - scatter) / (5 - len(powers)) / (scatter / 10)
        return f, float(stats.f.sf(f, 5 - len(powers), 10))

    for powers in ((1,), (1, 2)):
        candidate = curve.candidate(powers)
        assert candidate is not None
        assert candidate.lack_of_fit is not None
        assert (candidate.lack_of_fit.f, candidate.lack_of_fit.p_value) == pytest.approx(by_hand(powers), rel=1e-6)
    assert by_hand((1,))[1] < 0.05 < by_hand((1, 2))[1]
    assert (curve.rejected, curve.law) == (None, curve.chosen and curve.chosen.fit)


def test_a_law_that_its_repeats_rule_out_predicts_nothing(frame: Frame, curve_row: MakeRow) -> None:
    """The same lengths, hardly scattering: no law of the three meets them, so no wait and no budget is told."""
    curve = prefill_curve(frame(repeated(curve_row, (-0.001, 0.0, 0.001))))
    assert curve.chosen is not None
    assert curve.rejected == "lack_of_fit"
    assert (curve.law, curve.ttft(512), curve.budget(2000)) == (None, None, None)


def test_a_law_that_misses_the_longest_prompt_predicts_nothing(frame: Frame, curve_row: MakeRow) -> None:
    """Five lengths of 2 ms a token, off by 0.5 % at most, and a last one of 3 ms: far outside the interval."""
    each = [2.01, 1.99, 2.0, 2.01, 1.99, 3.0]
    lengths = zip((100, 200, 400, 800, 1600, 3200), each, strict=True)
    curve = prefill_curve(frame([curve_row(None, n, None, n * ms) for n, ms in lengths]))
    assert curve.chosen is not None
    assert (curve.rejected, curve.law) == ("hold_out", None)


def test_published_medians_and_single_requests_count_once_a_length(frame: Frame, curve_row: MakeRow) -> None:
    """Five single runs beside medians of three: two lengths, two points."""
    single = [curve_row(64, 74, None, ms) for ms in (286, 293, 302, 282, 291)]
    rows = [*single, curve_row(512, 578, None, 2790, aggregate_of=3), curve_row(1024, 1096, None, 5137, aggregate_of=3)]
    curve = prefill_curve(frame(rows))
    assert {candidate.fit.n for candidate in curve.candidates} == {3}


def test_a_shorter_prompt_that_took_longer_contradicts_a_wait(curve: Curve) -> None:
    """1,096 tokens took 5,137 ms and the overhead of 123.5 ms."""
    shorter = curve.contradicted(1500, 5260)
    assert shorter is not None
    assert shorter.tokens == 1096
    assert curve.contradicted(1500, 5261) is None
    assert curve.contradicted(1000, 5260) is None


@pytest.mark.parametrize(
    ("tokens", "lengths", "candidates", "missing"),
    [([], 0, [], 5), ([100], 1, [], 4), ([100, 200], 2, [(1,)], 3), ([100, 200, 300], 3, [(1,), (1, 2)], 2)],
)
def test_too_few_lengths_is_a_value(
    frame: Frame, curve_row: MakeRow, tokens: list[int], lengths: int, candidates: list[tuple[int, ...]], missing: int
) -> None:
    """No law is chosen below five lengths; what may still be drawn is there, and nothing is NaN."""
    curve = prefill_curve(frame([curve_row(None, n, None, 5.0 * n + n % 7) for n in tokens]))
    assert len(curve.lengths) == lengths
    assert [c.powers for c in curve.candidates] == candidates
    assert (curve.chosen, curve.hold_out(), curve.lengths_missing) == (None, None, missing)
    assert not _not_a_number(curve)


def test_failed_rows_make_an_empty_curve(frame: Frame, curve_row: MakeRow) -> None:
    """Every request failed: no lengths, no fit, no exception."""
    rows = [curve_row(512, 520, None, None, status="timeout"), curve_row(512, 520, None, None, status="http_503")]
    curve = prefill_curve(frame(rows))
    assert (curve.lengths, curve.candidates, curve.chosen, curve.overhead_ms) == ((), (), None, None)


def test_without_the_servers_clock_ttft_stands_for_prefill(frame: Frame, curve_row: MakeRow) -> None:
    """A server that reports no times: the curve is of TTFT, and says whose clock that is."""
    rows = [curve_row(None, n, 5.0 * n, None) for n in (100, 200)]
    curve = prefill_curve(frame(rows))
    assert (curve.clock, [length.prefill_ms for length in curve.lengths]) == ("client", [500, 1000])


def _not_a_number(value: object) -> bool:
    if is_dataclass(value) and not isinstance(value, type):
        return any(_not_a_number(getattr(value, name)) for name in value.__dataclass_fields__)
    if isinstance(value, tuple):
        return any(_not_a_number(item) for item in value)
    return isinstance(value, float) and not math.isfinite(value)
