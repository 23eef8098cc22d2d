"""What a machine can do at best: bytes over bandwidth, operations over their peak, whichever takes longer."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from roofbook.errors import EstimateError
from roofbook.theory.kv import cache_bytes
from roofbook.theory.peaks import arithmetic_peak
from roofbook.theory.shapes import Machine, Model, Range, Spread
from roofbook.theory.weights import weights
from roofbook.theory.work import decode_flops, prefill_work
from roofbook.units import MS_PER_S

ROUNDS: Final = 64
"""More than the crossing needs to settle: it at least halves its error in each."""


@dataclass(frozen=True)
class Rates:
    """One denominator: what a machine reads and computes a second; None where nobody said."""

    bandwidth_bytes_per_s: Range | None = None
    flops_per_s: Range | None = None


@dataclass(frozen=True)
class Bound:
    """The same bound twice: against the datasheet, and against what was measured on such a machine without a model."""

    datasheet: Range | None
    measured: Range | None

    @property
    def whole(self) -> Range | None:
        """From the lower end of both to the higher one; of one alone where the other is not known."""
        known = [one for one in (self.datasheet, self.measured) if one is not None]
        return Range(min(one.low for one in known), max(one.high for one in known)) if known else None


def datasheet_rates(machine: Machine, quantization: str | None = None) -> Rates:
    """Return the datasheet's bandwidth and the arithmetic peak for *quantization*."""
    if machine.chip is None:
        return Rates()
    return Rates(machine.chip.bandwidth_bytes_per_s, arithmetic_peak(machine.chip, quantization))


def measured_rates(machine: Machine) -> Rates:
    """Return the measured ceilings of the machine, else of its chip."""
    found = machine.ceilings
    return Rates() if found is None else Rates(_ends(found.bandwidth_bytes_per_s), _ends(found.flops_per_s))


def step_bytes(
    model: Model,
    quantization: str | None = None,
    *,
    context_tokens: int = 0,
    kv_type: str | None = None,
    batch: int = 1,
) -> Range:
    """Return the bytes that one decode step of *batch* sequences reads: weights, and each one's keys and values.

    Where the model's layers are not known the cache is open, 0 to infinity. Raises EstimateError where the weights are
    not known.
    """
    read = weights(model, quantization).step_bytes(model, batch)
    try:
        return read + cache_bytes(model, context_tokens, kv_type, sequences=batch)
    except EstimateError:
        return read + Range(0, math.inf)


def decode_ceiling(
    model: Model,
    machine: Machine,
    quantization: str | None = None,
    *,
    context_tokens: int = 0,
    kv_type: str | None = None,
    batch: int = 1,
) -> Bound:
    """Return the most tokens a second that *batch* sequences get together (divide by *batch* for one of them).

    min(B x bandwidth / bytes a step, B x peak / FLOPs a step), the roofline of Williams, Waterman and Patterson (2009).
    """
    read = step_bytes(model, quantization, context_tokens=context_tokens, kv_type=kv_type, batch=batch)
    try:
        flops = decode_flops(model, context_tokens, batch)
    except EstimateError:
        flops = None  # the bandwidth alone still bounds it
    name = quantization or model.tensors.quantization
    return Bound(
        _decode_rate(datasheet_rates(machine, name), read, flops, batch),
        _decode_rate(measured_rates(machine), read, flops, batch),
    )


def crossover_batch(
    model: Model,
    machine: Machine,
    quantization: str | None = None,
    *,
    context_tokens: int = 0,
    kv_type: str | None = None,
) -> Bound:
    """Return the batch from which on decode is bound by arithmetic: infinite where the caches' bytes outrun it.

    Where B x bandwidth / bytes(B) meets peak / FLOPs: with no context B = ridge / (2 N / W), the machine's FLOP per
    byte over the model's. Routed experts make the bytes themselves grow with the batch.
    """
    held = weights(model, quantization)
    kept = cache_bytes(model, context_tokens, kv_type)
    flops = decode_flops(model, context_tokens)
    name = quantization or model.tensors.quantization

    def crossing(rates: Rates) -> Range | None:
        if rates.bandwidth_bytes_per_s is None or rates.flops_per_s is None:
            return None
        ridges = (
            rates.flops_per_s.low / rates.bandwidth_bytes_per_s.high,
            rates.flops_per_s.high / rates.bandwidth_bytes_per_s.low,
        )
        return Range(
            _crossing(lambda batch: held.step_bytes(model, batch).low, kept.low, flops.high / ridges[0]),
            _crossing(lambda batch: held.step_bytes(model, batch).high, kept.high, flops.low / ridges[1]),
        )

    return Bound(crossing(datasheet_rates(machine, name)), crossing(measured_rates(machine)))


def prefill_floor_ms(
    model: Model,
    machine: Machine,
    prompt_tokens: int,
    quantization: str | None = None,
    *,
    cached_tokens: int = 0,
    chunk_tokens: int | None = None,
) -> Bound:
    """Return the least time a prefill can take: max(FLOPs / peak, weights read once a chunk / bandwidth).

    Even a prompt that is all in the cache has one token evaluated.
    """
    known = min(cached_tokens, prompt_tokens - 1)
    new = prompt_tokens - known
    chunk = new if chunk_tokens is None else min(new, chunk_tokens)
    work = prefill_work(model, prompt_tokens, known, chunk_tokens=chunk_tokens).total
    read = weights(model, quantization).step_bytes(model, chunk) * math.ceil(new / chunk)
    name = quantization or model.tensors.quantization
    return Bound(
        _longest_ms(datasheet_rates(machine, name), work, read), _longest_ms(measured_rates(machine), work, read)
    )


def implied_flops_per_s(model: Model, prompt_tokens: int, prefill_ms: float, cached_tokens: int = 0) -> Range:
    """Return the FLOP/s that a prefill of *prefill_ms* would take: above the chip's peak something is wrong."""
    return prefill_work(model, prompt_tokens, cached_tokens).total * (MS_PER_S / prefill_ms)


def implied_bytes_per_s(
    model: Model,
    tokens_per_s: float,
    quantization: str | None = None,
    *,
    context_tokens: int = 0,
    kv_type: str | None = None,
    batch: int = 1,
) -> Range:
    """Return the bytes/s that *tokens_per_s* (of all *batch* sequences together) would take."""
    read = step_bytes(model, quantization, context_tokens=context_tokens, kv_type=kv_type, batch=batch)
    return read * (tokens_per_s / batch)


def _ends(spread: Spread | None) -> Range | None:
    return None if spread is None else Range(spread.low, spread.high)


def _decode_rate(rates: Rates, read: Range, flops: Range | None, batch: int) -> Range | None:
    if rates.bandwidth_bytes_per_s is None:
        return None
    low, high = rates.bandwidth_bytes_per_s.low / read.high, rates.bandwidth_bytes_per_s.high / read.low
    if rates.flops_per_s is not None and flops is not None:
        low, high = min(low, rates.flops_per_s.low / flops.high), min(high, rates.flops_per_s.high / flops.low)
    return Range(batch * low, batch * high)


def _longest_ms(rates: Rates, work: Range, read: Range) -> Range | None:
    """Return the longer of computing and reading, in ms; None where the machine's arithmetic rate is not known."""
    if rates.flops_per_s is None:
        return None
    low, high = work.low / rates.flops_per_s.high, work.high / rates.flops_per_s.low
    if rates.bandwidth_bytes_per_s is not None:
        low = max(low, read.low / rates.bandwidth_bytes_per_s.high)
        high = max(high, read.high / rates.bandwidth_bytes_per_s.low)
    return Range(MS_PER_S * low, MS_PER_S * high)


def _crossing(weight_bytes: Callable[[int], float], kept_bytes: float, computed_bytes: float) -> float:
    """Return B where W(B) + B x kept = B x computed: *computed_bytes* could be read while one token is computed."""
    spare = computed_bytes - kept_bytes
    if spare <= 0:
        return math.inf
    batch = weight_bytes(1) / spare
    for _ in range(ROUNDS):  # W grows with B and less and less so: the batch settles from below
        batch, before = weight_bytes(max(1, round(batch))) / spare, batch
        if math.isclose(batch, before, rel_tol=1e-6):
            break
    return batch
