"""What a subject's prefill page says of its law: how it was chosen, and what its coefficients mean."""

import math
from collections.abc import Mapping
from typing import Final

from roofbook.analysis.coefficients import Compared, compared, implied_flops_per_s, resampled
from roofbook.analysis.differences import Scatter
from roofbook.analysis.prefill import Curve
from roofbook.analysis.regression import Interval
from roofbook.charts.prefill import fitted_growth, measured_growth
from roofbook.pages.concepts.grid import Grid, grid
from roofbook.pages.prefill_tables import signed
from roofbook.pages.row_table import noted
from roofbook.pages.sentence import Sentence
from roofbook.pages.study import Study
from roofbook.theory.shapes import Range
from roofbook.units import TFLOP
from roofbook.words import Words, mark

LAWS: Final[Mapping[tuple[int, ...], str]] = {(1,): "aT", (1, 2): "aT + bT²", (0, 1, 2): "c + aT + bT²"}

_SMALL: Final = 1e-3
"""Numbers below this are told by their power of ten."""

_REJECTED: Final = 0.05
"""Two-sided p value below which an assumption about scatter is ruled out."""


def growth(curve: Curve, words: Words) -> dict[str, str] | None:
    """Return by how much a token's time grows along the curve, as measured and by the law; None without a law."""
    if curve.chosen is None or len(curve.lengths) < 2:
        return None
    return {
        "measured": signed(measured_growth(curve.lengths), words, 0),
        "fitted": signed(fitted_growth(curve.chosen, curve.lengths), words, 0),
    }


def formula(curve: Curve, words: Words) -> Sentence | None:
    """Return the chosen law with its numbers, and what each term stands for; None without a law."""
    if curve.chosen is None:
        return None
    law, powers = curve.chosen.fit, curve.chosen.powers
    terms = {1: " · T", 2: " · T²", 0: ""}
    written = " + ".join(
        words.say("%(ms)s ms", ms=small(law.coefficient(power), words)) + terms[power]
        for power in sorted(powers, key=lambda power: power or max(powers) + 1)
    ).replace("+ -", "− ")
    meant: dict[tuple[int, ...], str] = {
        (1,): mark(
            "The fitted law for a prompt of *T* tokens: %(law)s. Every token costs the same; nothing more was resolved."
        ),
        (1, 2): mark(
            "The fitted law for a prompt of *T* tokens: %(law)s. The first term is the work that every token costs, "
            "the second what comes on top because each token looks at all tokens before it (attention)."
        ),
        (0, 1, 2): mark(
            "The fitted law for a prompt of *T* tokens: %(law)s. The first term is the work that every token costs, "
            "the second what comes on top because each token looks at all tokens before it (attention), the last one "
            "does not depend on the prompt."
        ),
    }
    return Sentence(meant[powers], {"law": f"t = {written}"})


def coefficients(study: Study, words: Words) -> Grid | None:
    """Return the law's coefficients beside what counting operations gives; None without a law.

    Where the single runs allow it, their bootstrap intervals stand beside the fit's own.
    """
    chosen, equipment = study.curve.chosen, study.view.equipment
    if chosen is None:
        return None
    drawn = resampled(study.curve_rows, chosen.powers)
    heads = [
        (words.say("Coefficient"), False),
        (words.say("Fitted"), True),
        (words.say("95 %% interval"), True),
        *([(words.say("95 %%, bootstrap"), True)] if drawn else []),
        (words.say("Counted, at the measured rate"), True),
        (words.say("Counted, at the stated peak"), True),
    ]
    held = compared(chosen.fit, equipment.model, equipment.machine, study.view.subject.quantization)
    return grid(
        heads,
        [_coefficient(one, None if drawn is None else drawn[place], words) for place, one in enumerate(held)],
    )


def _coefficient(one: Compared, drawn: Interval | None, words: Words) -> tuple[str | None, ...]:
    name, unit = {
        0: ("c", words.say("ms")),
        1: ("a", words.say("ms per token")),
        2: ("b", words.say("ms per token squared")),
    }[one.power]
    return (
        noted(name, unit),
        small(one.fitted.mid, words),
        _from_to(one.fitted, words),
        *([] if drawn is None else [_from_to(drawn, words)]),
        _from_to(one.measured, words),
        _from_to(one.datasheet, words),
    )


def _from_to(ends: Interval | Range | None, words: Words) -> str | None:
    if ends is None:
        return None
    low, high = small(ends.low, words), small(ends.high, words)
    return low if low == high else words.say("%(low)s to %(high)s", low=low, high=high)


def excess(study: Study, words: Words) -> dict[str, str] | None:
    """Return how far the fitted bend exceeds attention's operations; None where that cannot be said."""
    chosen, equipment = study.curve.chosen, study.view.equipment
    if chosen is None:
        return None
    held = compared(chosen.fit, equipment.model, equipment.machine, study.view.subject.quantization)
    factor = next((one.factor for one in held if one.factor is not None), None)
    rate = implied_flops_per_s(chosen.fit, equipment.model)
    if factor is None or rate is None:
        return None
    return {
        "factor": words.significant(factor.mid, 2),
        "low": words.significant(factor.low, 2),
        "high": words.significant(factor.high, 2),
        "rate": words.say("%(value)s TFLOPS", value=words.significant(rate / TFLOP)),
        "verdict": "more" if factor.low > 1 else "less" if factor.high < 1 else "alike",
    }


def weighting(scatter: Scatter | None, words: Words) -> Sentence | None:
    """Return why the points count by their relative error, by the repeats' own scatter; None where there is none."""
    if scatter is None:
        return None
    values = {
        "short": words.say("%(ms)s ms", ms=words.significant(scatter.short_sd, 2)),
        "long": words.say("%(ms)s ms", ms=words.significant(scatter.long_sd, 2)),
        "absolute_f": words.significant(scatter.absolute_f, 2),
        "absolute_p": words.significant(scatter.absolute_p, 1),
        "relative_f": words.significant(scatter.relative_f, 2),
        "relative_p": words.significant(scatter.relative_p, 2),
    }
    if scatter.absolute_p < _REJECTED <= scatter.relative_p:
        return Sentence(
            mark(
                "Of the prompts that ran several times the shortest scatters by %(short)s, the longest by %(long)s. "
                "Equal scatter in milliseconds is ruled out (F = %(absolute_f)s, p = %(absolute_p)s), equal scatter "
                "in per cent is not (F = %(relative_f)s, p = %(relative_p)s): each length counts by its relative error."
            ),
            {},
            values,
        )
    return Sentence(
        mark(
            "Of the prompts that ran several times the shortest scatters by %(short)s, the longest by %(long)s "
            "(equal scatter in milliseconds: F = %(absolute_f)s, p = %(absolute_p)s; in per cent: F = %(relative_f)s, "
            "p = %(relative_p)s). These few repeats do not settle it; each length counts by its relative error, as "
            "times usually scatter."
        ),
        {},
        values,
    )


def small(value: float, words: Words) -> str:
    """Return *value* with three digits; a very small one by its power of ten."""
    if value == 0 or abs(value) >= _SMALL:
        return words.significant(value)
    exponent = math.floor(math.log10(abs(float(f"{value:.2e}"))))
    digits = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{words.number(value / 10.0**exponent, 2)} × 10{digits}"
