"""What has not been measured yet, predicted from what has: the fit's interval where it reaches, else theory's two ends.

Every prediction is written down before its measurement, so that it can be wrong. An interval is the fit's 95 %
prediction interval; a range has no level: it is what the known ends of an unknown allow.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Final

from scipy import stats
from scipy.optimize import brentq

from roofbook.analysis.latency import Point
from roofbook.analysis.prefill import Curve
from roofbook.analysis.regression import LEVEL, Fit, Interval
from roofbook.errors import EstimateError
from roofbook.record import Row
from roofbook.theory.prefill import theoretical_law
from roofbook.theory.queueing import service_s
from roofbook.theory.roofline import decode_ceiling, implied_bytes_per_s, implied_flops_per_s, step_bytes
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.theory.work import decode_flops
from roofbook.units import MS_PER_S

SHARED_SHARES: Final = (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)
"""Of a prompt in the cache: those that the plan's prefix-cache experiment measures."""

BATCHES: Final = (1, 2, 4, 8, 16, 32)
"""Requests at once, to beyond the batch at which decode stops gaining on a base chip."""

POWER: Final = 0.8
"""A difference counts as one that would show if four of five such trials find it."""


@dataclass(frozen=True)
class CachedPrompt:
    """A prompt of *tokens* of which *share* is in the cache; times in ms."""

    share: float
    tokens: int
    cached_tokens: int
    prefill_ms: Interval
    ttft_ms: Interval

    def factor(self, cold: "CachedPrompt") -> float:
        """Return how much sooner the first token comes than with nothing cached."""
        return cold.ttft_ms.mid / self.ttft_ms.mid


@dataclass(frozen=True)
class SmallerModel:
    """Another model on the same machine by the measured one's efficiency; its work and bytes as shares."""

    model: str
    tokens: int
    work: float
    bytes: float
    prefill_ms: Interval
    tok_per_s: Range
    """From every step shrinking with its bytes (high) to the usual overhead of a step staying as it is (low)."""


@dataclass(frozen=True)
class Batch:
    """*requests* decoding at once; tokens a second of all together: at the efficiency reached alone, and at best."""

    requests: int
    together: Range

    @property
    def each(self) -> Range:
        return self.together * (1 / self.requests)


@dataclass(frozen=True)
class Queue:
    """The second of two requests that come together; seconds until its first token."""

    prompt_tokens: int
    output_tokens: int
    first_ttft_s: float
    one_slot_ttft_s: float
    """The first is answered whole before the second is read."""
    two_slots_ttft_s: float
    """The prompts are read one after the other; both are answered at once."""


@dataclass(frozen=True)
class Pauses:
    """What pauses would change at the longest length: nothing, or all that arithmetic does not explain."""

    tokens: int
    as_measured_ms: Interval
    by_arithmetic_ms: float | None
    """The fitted linear term, with the quadratic one that attention takes at its rate; None where not known."""
    repeats: int
    detectable_share: float | None
    """Half the 95 % interval of a difference between two arms of so many runs, by the scatter seen; None if unseen."""


def cached_prompts(
    law: Fit, tokens: int, overhead_ms: float, step_ms: float, shares: Sequence[float] = SHARED_SHARES
) -> tuple[CachedPrompt, ...]:
    """Return what *law* predicts for prompts of *tokens*, share by share; one step is always computed."""
    prompts: list[CachedPrompt] = []
    for share in shares:
        cached = min(tokens - 1, round(share * tokens))
        left = {power: float(tokens**power - cached**power) if power else 1.0 for power in law.powers}
        spread = predicted(law, left)
        prefill = Interval(*(max(step_ms, edge) for edge in (spread.mid, spread.low, spread.high)))
        ttft = Interval(*(edge + overhead_ms for edge in (prefill.mid, prefill.low, prefill.high)))
        prompts.append(CachedPrompt(share, tokens, cached, prefill, ttft))
    return tuple(prompts)


def predicted(law: Fit, terms: Mapping[int, float]) -> Interval:
    """Return the 95 % prediction interval of the sum of coefficients x *terms* (by power): the law's own uncertainty,
    and the scatter of one more point of that size.
    """
    row = [terms[power] for power in law.powers]
    mid = sum(c * x for c, x in zip(law.coefficients, row, strict=True))
    own = sum(
        one * covariance * other
        for one, line in zip(row, law.covariance, strict=True)
        for other, covariance in zip(row, line, strict=True)
    )
    noise = law.sigma**2 * abs(mid) ** law.variance_power
    half = float(stats.t.ppf((1 + LEVEL) / 2, law.degrees_of_freedom)) * math.sqrt(max(own, 0.0) + noise)
    return Interval(mid, mid - half, mid + half)


def smaller_model(
    law: Fit, point: Point, model: Model, other: Model, tokens: int, step_overhead_ms: float, kv_type: str | None
) -> SmallerModel | None:
    """Return what *other* would do where *model* gave *law* and *point*; None where either's arithmetic is not known.

    Each term of the law shrinks with its own FLOPs; *step_overhead_ms* is what a step on such a chip costs besides.
    """
    if point.decode.median is None:
        return None
    try:
        ours, theirs = theoretical_law(model, 1.0), theoretical_law(other, 1.0)
        context = round(point.prompt_tokens or 0)
        read = step_bytes(model, context_tokens=context, kv_type=kv_type)
        other_read = step_bytes(other, context_tokens=context, kv_type=kv_type)
    except EstimateError:
        return None
    scale = {0: 1.0, 1: theirs.a_ms / ours.a_ms, 2: theirs.b_ms / ours.b_ms if ours.b_ms else 0.0}
    fewer = (other_read.low + other_read.high) / (read.low + read.high)
    step_ms = MS_PER_S / point.decode.median
    kept_ms = min(step_overhead_ms, step_ms)
    return SmallerModel(
        model=other.id,
        tokens=tokens,
        work=theirs.time_ms(tokens) / ours.time_ms(tokens),
        bytes=fewer,
        prefill_ms=predicted(law, {power: scale[power] * tokens**power for power in law.powers}),
        tok_per_s=Range(MS_PER_S / (kept_ms + (step_ms - kept_ms) * fewer), MS_PER_S / (step_ms * fewer)),
    )


def batches(
    curve: Curve, point: Point, model: Model, machine: Machine, tokens: int, kv_type: str | None
) -> tuple[Batch, ...]:
    """Return the decode rates of more and more requests, each with *tokens* behind it.

    At least: the bytes a second that one request reached, and the FLOP/s of the longest prefill; at most: the
    datasheet's. None where bytes or FLOPs are not known.
    """
    longest = curve.longest
    if point.decode.median is None or longest is None:
        return ()
    alone = round(point.prompt_tokens or 0)
    try:
        reached = implied_bytes_per_s(model, point.decode.median, context_tokens=alone, kv_type=kv_type).low
        computed = implied_flops_per_s(model, round(longest.tokens), longest.prefill_ms).low
        return tuple(_batch(count, model, machine, tokens, kv_type, reached, computed) for count in BATCHES)
    except EstimateError:
        return ()


def two_at_once(law: Fit, point: Point, tokens: int, output_tokens: int, overhead_ms: float) -> Queue | None:
    """Return when two requests that come together get their first token; None where the decode rate is not known."""
    if point.decode.median is None:
        return None
    prefill_s, overhead_s = law.value(tokens) / MS_PER_S, overhead_ms / MS_PER_S
    whole_s = service_s(prefill_s + overhead_s, output_tokens, 1 / point.decode.median)
    first_s = prefill_s + overhead_s
    return Queue(tokens, output_tokens, first_s, whole_s + first_s, prefill_s + first_s)


def pauses(curve: Curve, spread_share: float | None, model: Model, repeats: int) -> Pauses | None:
    """Return the two outcomes between which pauses decide; None without a law and its longest length."""
    law, longest = curve.law, curve.longest
    if law is None or longest is None:
        return None
    tokens = round(longest.tokens)
    detectable = None
    if spread_share is not None:
        detectable = _seen_with_power(2 * (repeats - 1)) * spread_share * math.sqrt(2 / repeats)
    return Pauses(tokens, law.prediction(tokens), _by_arithmetic(law, model, tokens), repeats, detectable)


def _seen_with_power(degrees_of_freedom: int) -> float:
    """Return the difference, in its own standard errors, that a two-sided t test finds with probability POWER."""
    critical = float(stats.t.ppf((1 + LEVEL) / 2, degrees_of_freedom))
    return brentq(lambda away: float(stats.nct.sf(critical, degrees_of_freedom, away)) - POWER, 0.0, 10 * critical)


def repeat_spread(rows: Sequence[Row]) -> float | None:
    """Return the relative standard deviation of single prefills of the longest prompt that *rows* repeat.

    None where no prompt was sent twice; a published median says nothing about the scatter behind it.
    """
    repeats: dict[int, list[float]] = {}
    for row in rows:
        if row.get("aggregate_of") is None and row.get("prompt_tokens") and row.get("server_prefill_ms"):
            repeats.setdefault(row["prompt_tokens"], []).append(row["server_prefill_ms"])
    longest = max((tokens for tokens, times in repeats.items() if len(times) > 1), default=None)
    return None if longest is None else stdev(repeats[longest]) / mean(repeats[longest])


def _batch(
    count: int, model: Model, machine: Machine, tokens: int, kv_type: str | None, reached: float, computed: float
) -> Batch:
    read = step_bytes(model, context_tokens=tokens, kv_type=kv_type, batch=count)
    flops = decode_flops(model, tokens, count)
    low = count / max(read.high / reached, flops.high / computed)
    best = decode_ceiling(model, machine, context_tokens=tokens, kv_type=kv_type, batch=count).datasheet
    return Batch(count, Range(low, low if best is None else max(low, best.high)))


def _by_arithmetic(law: Fit, model: Model, tokens: int) -> float | None:
    try:
        theory = theoretical_law(model, 1.0)
    except EstimateError:
        return None
    a = law.coefficient(1)
    return law.coefficient(0) + a * tokens + a * theory.b_ms / theory.a_ms * tokens**2
