"""A fitted prefill law beside the arithmetic it stands for, beside other fits, and beside a straight line."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from roofbook.analysis.bends import bend_excess
from roofbook.analysis.bootstrap import bootstrap
from roofbook.analysis.differences import Scatter, scatter
from roofbook.analysis.prefill import Curve, Length, prefill_curve
from roofbook.analysis.regression import Fit, Interval
from roofbook.analysis.subjects import UNSEEN_KINDS, Subject
from roofbook.errors import EstimateError
from roofbook.record import Row
from roofbook.theory.prefill import theoretical_law
from roofbook.theory.roofline import datasheet_rates, measured_rates
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.theory.work import prefill_work
from roofbook.units import MS_PER_S
from roofbook.validity import Finding, clean

_TIMES_AS_LONG: Final = 4
"""Scatters are compared between times at least this far apart: nearer ones say nothing about how they grow."""


@dataclass(frozen=True)
class Compared:
    """One coefficient: as fitted, and what counting operations gives at the machine's rates; ms per T^power."""

    power: int
    fitted: Interval
    measured: Range | None
    """At the arithmetic rate that was measured on such a machine without a model; None where nobody did."""
    datasheet: Range | None
    factor: Interval | None
    """Fitted over counted, both at the rate that the fitted linear term implies; None but for the quadratic term."""


@dataclass(frozen=True)
class Beyond:
    """A length that was not measured: by the law, and by its linear term alone; ms."""

    tokens: int
    law: Interval
    straight_ms: float


def compared(law: Fit, model: Model | None, machine: Machine | None, quantization: str | None) -> tuple[Compared, ...]:
    """Return the coefficients of *law* one by one; without a known model nothing stands beside them."""
    return tuple(_compared(power, law, model, machine, quantization) for power in law.powers)


def counted_flops(model: Model, power: int) -> float | None:
    """Return the operations of one token (power 1) or one token squared (power 2); None where they are not known."""
    try:
        counted = theoretical_law(model, 1.0)
    except EstimateError:
        return None
    return {0: counted.c_ms, 1: counted.a_ms, 2: counted.b_ms}[power] / MS_PER_S


def implied_flops_per_s(law: Fit, model: Model | None) -> float | None:
    """Return the rate at which the fitted linear term does its operations; None where they are not known."""
    flops = None if model is None else counted_flops(model, 1)
    a_ms = law.coefficient(1)
    return None if not flops or a_ms <= 0 else flops / a_ms * MS_PER_S


def attention_share(model: Model | None, tokens: float) -> Range | None:
    """Return which share of a prefill's operations attention is; None where they are not known."""
    if model is None:
        return None
    try:
        work = prefill_work(model, round(tokens))
    except EstimateError:
        return None
    if work.attention.high == float("inf"):
        return None
    return Range(work.attention.low / work.total.high, work.attention.high / work.total.low)


def beyond(law: Fit, longest_tokens: float) -> tuple[Beyond, ...]:
    """Return what *law* predicts for twice and four times the longest measured prompt, as powers of two."""
    twice = 2 ** round(math.log2(2 * longest_tokens))
    return tuple(Beyond(tokens, law.prediction(tokens), law.coefficient(1) * tokens) for tokens in (twice, 2 * twice))


def r_squared(law: Fit, lengths: Sequence[Length]) -> float | None:
    """Return the share of the times' variance that *law* explains: near 1 for any law that rises, so it decides none.

    None where the times do not differ.
    """
    times = [length.prefill_ms for length in lengths]
    mean = sum(times) / len(times)
    total = sum((time - mean) ** 2 for time in times)
    left = sum((length.prefill_ms - law.value(length.tokens)) ** 2 for length in lengths)
    return 1 - left / total if total else None


def wider_curve(subject: Subject, found: Iterable[Finding]) -> Curve:
    """Return the curve through every length without a doubt: the curve's own, and the subject's single prefills."""
    kind = subject.rows["kind"].fillna("")
    trusted = clean(subject.rows, list(found))
    return prefill_curve(subject.rows[trusted & kind.isin(("prefill_curve", *UNSEEN_KINDS))])


def resampled(rows: Sequence[Row], powers: tuple[int, ...]) -> tuple[Interval, ...] | None:
    """Return bootstrap intervals of a law's coefficients from the single *rows* of its curve, the same every time.

    None where there are too few lengths or runs of each: then the fit's own intervals are all there is.
    """
    lengths: dict[int, list[Row]] = {}
    for row in rows:
        wanted = row.get("prompt_tokens_wanted") or row.get("prompt_tokens")
        if row.get("aggregate_of") is None and wanted and row.get("server_prefill_ms"):
            lengths.setdefault(wanted, []).append(row)
    runs = [
        (median(float(row["prompt_tokens"]) for row in group), [float(row["server_prefill_ms"]) for row in group])
        for _, group in sorted(lengths.items())
    ]
    return bootstrap(runs, powers, np.random.default_rng(0)) if runs else None


def repeats_scatter(rows: Sequence[Row]) -> Scatter | None:
    """Compare the scatter of the shortest and the longest time that *rows* repeat; None where none is repeated.

    Medians of several requests say nothing about the scatter behind them.
    """
    repeats: dict[int, list[float]] = {}
    for row in rows:
        if row.get("aggregate_of") is None and row.get("prompt_tokens") and row.get("server_prefill_ms"):
            repeats.setdefault(row["prompt_tokens"], []).append(row["server_prefill_ms"])
    told = [repeats[tokens] for tokens in sorted(repeats) if len(repeats[tokens]) > 2]
    if len(told) < 2 or min(told[-1]) < _TIMES_AS_LONG * max(told[0]):
        return None
    return scatter(told[0], told[-1])


def _compared(power: int, law: Fit, model: Model | None, machine: Machine | None, quantization: str | None) -> Compared:
    fitted = law.coefficient_interval(power)
    flops = None if model is None or power == 0 else counted_flops(model, power)
    if not flops or model is None:
        return Compared(power, fitted, None, None, None)
    measured = datasheet = None
    if machine is not None:
        measured = _at(flops, measured_rates(machine).flops_per_s)
        datasheet = _at(flops, datasheet_rates(machine, quantization).flops_per_s)
    return Compared(power, fitted, measured, datasheet, bend_excess(law, model) if power == 2 else None)


def _at(flops: float, rate: Range | None) -> Range | None:
    return None if rate is None else Range(flops / rate.high * MS_PER_S, flops / rate.low * MS_PER_S)
