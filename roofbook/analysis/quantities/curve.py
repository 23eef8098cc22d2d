"""The numbers of a subject's prefill curve: its law, what the law predicts, and what such a prediction is worth."""

from dataclasses import replace
from functools import partial
from typing import Final

from roofbook.analysis.bends import bend_excess
from roofbook.analysis.cache import expected_gain
from roofbook.analysis.prefill import Curve
from roofbook.analysis.quantities.quantity import Asked, Quantities, Quantity, Unit, of_interval, turned
from roofbook.analysis.regression import LEVEL, Fit
from roofbook.theory.shapes import Model
from roofbook.units import MS_PER_S

_MS_PER_MIN: Final = 60 * MS_PER_S

_COEFFICIENTS: Final[dict[int, tuple[str, Unit]]] = {
    0: ("c_ms", "ms"), 1: ("a_ms_per_token", "ms_per_token"), 2: ("b_ms_per_token2", "ms_per_token2"),
}  # fmt: skip


def curve_quantities(curve: Curve, model: Model | None) -> Quantities:
    """Return the numbers of *curve*; what its law would give has no value where it has too few lengths for one."""
    first, last = (curve.lengths[0], curve.lengths[-1]) if curve.lengths else (None, None)
    told = {
        "lengths": Quantity("count", float(len(curve.lengths))),
        "overhead_ms": Quantity("ms", curve.overhead_ms),
        "shortest_tokens": Quantity("tokens", first and first.tokens),
        "shortest_ms_per_token": Quantity("ms_per_token", first and first.ms_per_token, n=first and first.runs),
        "longest_tokens": Quantity("tokens", last and last.tokens),
        "longest_ms": Quantity("ms", last and last.prefill_ms, n=last and last.runs),
        "longest_ms_per_token": Quantity("ms_per_token", last and last.ms_per_token, n=last and last.runs),
        **_two_points(curve),
        **_law(curve, model),
    }
    return Quantities(told, _asked(curve))


def _law(curve: Curve, model: Model | None) -> dict[str, Quantity]:
    told = {name: Quantity(unit) for name, unit in _COEFFICIENTS.values()}
    told |= {"hold_out_ms": Quantity("ms"), "excess_factor": Quantity("factor")}
    told |= {
        name: Quantity("share")
        for name in ("hold_out_error_share", "fitted_error_share", "left_out_share", "left_out_rms_share")
    }
    chosen, held = curve.chosen, curve.hold_out()
    if chosen is None:
        return told
    law, n = chosen.fit, len(curve.lengths)
    for power in chosen.powers:
        name, unit = _COEFFICIENTS[power]
        told[name] = of_interval(unit, law.coefficient_interval(power), n)
    told["fitted_error_share"] = Quantity("share", curve.errors()[-1], n=n, counted="lengths")
    if held is not None:
        told["hold_out_ms"] = of_interval("ms", held.predicted_ms, held.fitted_lengths)
        told["hold_out_error_share"] = Quantity("share", held.error_share, n=held.fitted_lengths, counted="lengths")
    if chosen.left_out:
        told["left_out_share"] = Quantity(
            "share", None, min(chosen.left_out), max(chosen.left_out), n, counted="lengths"
        )
        told["left_out_rms_share"] = Quantity("share", chosen.left_out_rms, n=n, counted="lengths")
    excess = None if model is None else bend_excess(law, model)
    if excess is not None:
        told["excess_factor"] = of_interval("factor", excess, n)
    return told


def _asked(curve: Curve) -> dict[str, Asked]:
    law, n = curve.law, len(curve.lengths)
    overhead_ms = curve.overhead_ms or 0.0

    def prefill_ms(tokens: int) -> Quantity:
        return Quantity("ms") if law is None else of_interval("ms", law.prediction(tokens), n)

    def ttft_ms(tokens: int) -> Quantity:
        found = curve.ttft(tokens)
        return Quantity("ms") if found is None else of_interval("ms", found, n)

    def per_min(tokens: int) -> Quantity:
        return turned("per_min", prefill_ms(tokens), _MS_PER_MIN)

    def quadratic_share(tokens: int) -> Quantity:
        return Quantity("share", law and law.term_share(2, tokens), n=law and n, counted="lengths")

    return {
        "at_ms.TOKENS": prefill_ms,
        "ttft_ms.TOKENS": ttft_ms,
        "per_min.TOKENS": per_min,
        "budget_tokens.MS": partial(_budget, curve),
        "quadratic_share.TOKENS": quadratic_share,
        "cached_ms.TOKENS.PERCENT": partial(_cached_ms, law, n),
        "cached_factor.TOKENS.PERCENT": partial(_cached_factor, law, n),
        "cached_ttft_factor.TOKENS.PERCENT": partial(_cached_ttft_factor, law, n, overhead_ms),
    }


def _two_points(curve: Curve) -> dict[str, Quantity]:
    """Return aT + bT^2 drawn through the shortest length and the last but one, against the longest.

    Two coefficients through two points: nothing is left over from which an error could be known.
    """
    told = {
        "two_points_ms": Quantity("ms"),
        "two_points_error_share": Quantity("share"),
        "two_points_a_ms_per_token": Quantity("ms_per_token"),
        "two_points_b_ms_per_token2": Quantity("ms_per_token2"),
    }
    if len(curve.lengths) < 3:
        return told
    first, last, longest = curve.lengths[0], curve.lengths[-2], curve.lengths[-1]
    b = (last.ms_per_token - first.ms_per_token) / (last.tokens - first.tokens)
    a = first.ms_per_token - b * first.tokens
    predicted = a * longest.tokens + b * longest.tokens**2
    found = (predicted, predicted / longest.prefill_ms - 1, a, b)
    return {
        name: replace(unknown, value=value, n=2, counted="lengths")
        for (name, unknown), value in zip(told.items(), found, strict=True)
    }


def _budget(curve: Curve, target_ms: int) -> Quantity:
    """Return how many prompt tokens fit into *target_ms* of TTFT, the curve's overhead taken off."""
    found = curve.budget(target_ms)
    if found is None:
        return Quantity("tokens")
    return Quantity("tokens", found.mid, found.low, found.high, len(curve.lengths), LEVEL, "lengths")


def _cached_ms(law: Fit | None, n: int, tokens: int, percent: int) -> Quantity:
    """Return the prefill time with that share of the prompt in the cache, the one step it takes at least left out."""
    gain = law and expected_gain(law, tokens, tokens * percent / 100, 0.0, 0.0)
    return Quantity("ms", gain and gain.prefill_ms, n=law and n, counted="lengths")


def _cached_factor(law: Fit | None, n: int, tokens: int, percent: int) -> Quantity:
    gain = law and expected_gain(law, tokens, tokens * percent / 100, 0.0, 0.0)
    return Quantity("factor", gain and gain.prefill_factor, n=law and n, counted="lengths")


def _cached_ttft_factor(law: Fit | None, n: int, overhead_ms: float, tokens: int, percent: int) -> Quantity:
    """Return how much sooner the first token comes: its overhead stays, cached or not."""
    gain = law and expected_gain(law, tokens, tokens * percent / 100, overhead_ms, 0.0)
    return Quantity("factor", gain and gain.ttft_factor, n=law and n, counted="lengths")
