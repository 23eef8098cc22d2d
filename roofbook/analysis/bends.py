"""How much a prefill bends: the fitted quadratic term against what attention's arithmetic takes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from roofbook.analysis.prefill import Curve
from roofbook.analysis.reference import doubted, setting
from roofbook.analysis.regression import Fit, Interval, fit
from roofbook.errors import EstimateError
from roofbook.facts import PublishedRun
from roofbook.theory.prefill import theoretical_law
from roofbook.theory.shapes import Machine, Model
from roofbook.units import MS_PER_S

LENGTHS_FOR_A_BEND: Final = 4
"""aT+bT^2 through fewer lengths leaves less than two degrees of freedom, and no interval that says anything."""

REACH_FOR_A_BEND: Final = 8
"""The longest prompt over the shortest: within less, a bend of a tenth is lost in the scatter of a per cent or two."""


@dataclass(frozen=True)
class Bend:
    """How much more than its arithmetic the quadratic term of a prefill costs, in units of the linear one."""

    machine: str
    model: str
    quantization: str | None
    source: str | None
    """None for a measured subject."""
    lengths: tuple[int, ...]
    growth: float
    """Of the time for a token, from the shortest to the longest length, as measured."""
    excess: Interval
    """Fitted b/a over the b/a of causal attention at the same rate as the matrices: 1 is what arithmetic explains."""
    worst: float
    """The fit's largest relative residual."""


def bends(runs: Iterable[PublishedRun]) -> tuple[Bend, ...]:
    """Return the bend of each published series of prompt lengths that one card or chip ran, in their order."""
    series: dict[tuple[str, str, str, str, str | None], list[PublishedRun]] = {}
    for run in runs:
        if run.prefill_tok_per_s and run.prompt_tokens and run.shape is not None and run.chip is not None:
            key = (run.source, run.machine, setting(run), run.model, run.quantization)
            series.setdefault(key, []).append(run)
    return tuple(bend for runs in series.values() if (bend := _published_bend(runs)) is not None)


def bend_excess(law: Fit, model: Model) -> Interval | None:
    """Return how many times what attention's operations take the quadratic term of *law* is, both at one rate.

    That is the fitted b/a over the counted b/a, so a machine's speed does not enter. None where the model's operations
    are not known, or the law has no such terms.
    """
    try:
        counted = theoretical_law(model, 1.0)
    except EstimateError:
        return None
    if 2 not in law.powers or law.coefficient(1) <= 0 or counted.a_ms <= 0 or counted.b_ms <= 0:
        return None
    ratio, expected = law.ratio(2, 1), counted.b_ms / counted.a_ms
    return Interval(ratio.mid / expected, ratio.low / expected, ratio.high / expected)


def measured_bend(curve: Curve, model: Model, machine: Machine) -> Bend | None:
    """Return a subject's bend by the same law as the published ones; None where it cannot be fitted or compared."""
    law = curve.candidate((1, 2))
    if law is None or len(curve.lengths) < LENGTHS_FOR_A_BEND:
        return None
    lengths = [round(length.tokens) for length in curve.lengths]
    found = _bend(lengths, [length.prefill_ms for length in curve.lengths], law.fit, model)
    if found is None:
        return None
    growth, excess, _ = found
    worst = max(abs(law.fit.value(one.tokens) / one.prefill_ms - 1) for one in curve.lengths)
    name = machine.name or machine.id
    return Bend(name, model.id, model.tensors.quantization, None, tuple(lengths), growth, excess, worst)


def _published_bend(runs: list[PublishedRun]) -> Bend | None:
    first = runs[0]
    points = sorted(
        (run.prompt_tokens, MS_PER_S * run.prompt_tokens / run.prefill_tok_per_s)
        for run in runs
        if run.prompt_tokens and run.prefill_tok_per_s
    )
    lengths = [tokens for tokens, _ in points]
    in_doubt = any(doubted(run, "prefill") for run in runs)
    if in_doubt or first.shape is None or len(set(lengths)) < LENGTHS_FOR_A_BEND:
        return None
    if lengths[-1] < REACH_FOR_A_BEND * lengths[0]:
        return None
    times = [took for _, took in points]
    found = _bend(lengths, times, fit(lengths, times, (1, 2)), first.shape)
    if found is None:
        return None
    growth, excess, worst = found
    return Bend(first.machine, first.model, first.quantization, first.source, tuple(lengths), growth, excess, worst)


def _bend(
    lengths: Sequence[int], times: Sequence[float], law: Fit | None, model: Model
) -> tuple[float, Interval, float] | None:
    """Return growth, excess and the worst residual of aT+bT^2; None where the model's arithmetic is not known."""
    excess = None if law is None else bend_excess(law, model)
    if law is None or excess is None:
        return None
    growth = (times[-1] / lengths[-1]) / (times[0] / lengths[0]) - 1
    return growth, excess, max(abs(residual) for residual in law.residuals)
