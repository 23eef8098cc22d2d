"""More operations or bytes a second than the machine has: the measurement is wrong, or the catalogue is.

What is possible and what is ordinary the theory says (``roofbook.theory.plausibility``); here rows are held against it.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from roofbook.errors import EstimateError
from roofbook.record import Row
from roofbook.theory.plausibility import (
    IMPOSSIBLE_ABOVE,
    STEP_OVERHEAD_DISCRETE_S,
    STEP_OVERHEAD_S,
    decode_band,
    prefill_band,
)
from roofbook.theory.roofline import datasheet_rates, implied_flops_per_s, measured_rates, step_bytes
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.units import GIB, MS_PER_S
from roofbook.validity.derived import computed_tokens, decode_tok_per_s, is_ok
from roofbook.validity.finding import Finding, Measure, of_row
from roofbook.validity.known import Known
from roofbook.validity.server import LOAD_KINDS, WHOLE
from roofbook.validity.stream import FASTEST_TOKEN_MS

MEASURED_MARGIN: Final = 2.0
"""Where only a benchmark of the GPU is known, not its datasheet: no benchmark misses half of what is there."""

INTEGER_MARGIN: Final = 4.0
"""A processor's ceiling is measured in float32; its dot-product instructions multiply four 8-bit numbers in the time of
one such, and quantized weights may pass the ceiling by so much."""

TOKENS_FOR_A_RATE: Final = 8
"""Over fewer tokens the jitter of two stamps is as large as the gaps between them."""

HELD_IN_CACHE_BYTES: Final = 1 * GIB
"""A processor's own cache may hold a model up to this size, and then its memory's bandwidth bounds nothing."""


def above_peaks(rows: list[Row], known: Known) -> Iterator[Finding]:
    """Find rows that imply more than the upper end of what the machine can do; a disputed peak convicts nobody.

    Most often the prompt came from a cache of which the server says nothing, in whole or in part. What was merely
    measured of a machine is no limit: to pass it is told, as is a decode far slower or faster than the usual.
    """
    for row in rows:
        model, machine = known.model(row), known.machine(row)
        if model is not None and machine is not None and is_ok(row):
            yield from _compute(row, model, machine)
            yield from _bandwidth(row, model, machine)


def _compute(row: Row, model: Model, machine: Machine) -> Iterator[Finding]:
    # The first token comes after the prefill: where the server tells no time, TTFT bounds it from above.
    prompt, prefill_ms = row.get("prompt_tokens"), row.get("server_prefill_ms") or row.get("ttft_ms")
    if not prompt or not prefill_ms or prefill_ms < 0:
        return
    cached = row.get("cached_tokens")
    if cached is None and row.get("kind") == "prefix_cache":
        cached = row.get("shared_prefix_tokens")
    try:
        implied = implied_flops_per_s(model, prompt, prefill_ms, min(cached or 0, prompt - 1))
    except EstimateError:
        return
    peak, new_tokens = _compute_peak(machine, row.get("quantization")), computed_tokens(row) or prompt
    if peak is not None and prefill_band(implied, peak, new_tokens) == "impossible":
        yield of_row(
            "above_compute_peak", row, ("prefill", "ttft", "e2e"),
            flops_per_s=implied.low, peak_flops_per_s=peak.high, prompt_tokens=prompt, prefill_ms=prefill_ms,
        )  # fmt: skip
        return
    measured = None if machine.ceilings is None else machine.ceilings.flops_per_s
    if measured is None or not _on_processor(machine):
        return
    if implied.low > (INTEGER_MARGIN if _quantized(row.get("quantization")) else 1.0) * measured.high:
        yield of_row(
            "above_measured_compute", row,
            flops_per_s=implied.low, measured_flops_per_s=measured.high, n=measured.n,
            prompt_tokens=prompt, prefill_ms=prefill_ms,
        )  # fmt: skip


def _compute_peak(machine: Machine, quantization: str | None) -> Range | None:
    peak = datasheet_rates(machine, quantization).flops_per_s
    measured = measured_rates(machine).flops_per_s
    if peak is not None or measured is None or _on_processor(machine):
        return peak
    return Range(measured.low, MEASURED_MARGIN * measured.high)


def _bandwidth(row: Row, model: Model, machine: Machine) -> Iterator[Finding]:
    rate, tokens = decode_tok_per_s(row), row.get("output_tokens")
    if rate is None or (tokens is not None and tokens < TOKENS_FOR_A_RATE):
        return
    try:
        # Whoever else is served in the same step, this request's token takes one reading of the weights.
        read = step_bytes(
            model,
            row.get("quantization"),
            context_tokens=row.get("prompt_tokens") or 0,
            kv_type=row.get("kv_cache_type"),
        )
    except EstimateError:
        return
    if _is_processor(machine) and read.low < HELD_IN_CACHE_BYTES:
        return
    steps = _steps_per_s(row) or rate
    peak = datasheet_rates(machine).bandwidth_bytes_per_s
    measured = None if machine.ceilings is None else machine.ceilings.bandwidth_bytes_per_s
    if peak is not None and (kind := _kind(row, read, peak, rate, steps, machine)) is not None:
        spoils: tuple[Measure, ...] = ("tpot", "e2e") if kind == "above_bandwidth" else ()
        yield of_row(
            kind, row, spoils,
            bytes_per_s=(rate if kind == "slow_decode" else steps) * read.low, peak_bytes_per_s=peak.high,
            tok_per_s=rate, ceiling_tok_per_s=peak.high / read.low,
        )  # fmt: skip
    elif measured is not None and _on_processor(machine) and steps * read.low > IMPOSSIBLE_ABOVE * measured.high:
        yield of_row(
            "above_measured_bandwidth", row,
            bytes_per_s=steps * read.low, measured_bytes_per_s=measured.high, n=measured.n, tok_per_s=rate,
        )  # fmt: skip


def _kind(row: Row, read: Range, peak: Range, rate: float, steps: float, machine: Machine) -> str | None:
    discrete = machine.chip is not None and machine.chip.memory_kind == "discrete"
    overhead_s = STEP_OVERHEAD_DISCRETE_S if discrete else STEP_OVERHEAD_S
    band = decode_band(read * steps, peak, 1 / steps, overhead_s)
    if band in ("impossible", "high"):
        return "above_bandwidth" if band == "impossible" else "near_bandwidth"
    # The bands are those of one stream that has a GPU to itself.
    alone = (row.get("concurrency") or 1) == 1 and row.get("rate_per_s") is None and row.get("kind") not in LOAD_KINDS
    fraction = row.get("gpu_fraction")
    if not alone or _is_processor(machine) or (fraction is not None and fraction < WHOLE):
        return None
    return "slow_decode" if decode_band(read * rate, peak, 1 / rate, overhead_s) == "low" else None


def _steps_per_s(row: Row) -> float | None:
    """Return the steps a second by the arrivals; None where those are not known.

    A model that guesses ahead gives several tokens a step, which arrive together; it reads its weights once for them.
    """
    times = row.get("chunk_times_ms")
    if times is None or len(times) < TOKENS_FOR_A_RATE or times[-1] <= times[0]:
        return None
    steps = sum(later - earlier >= FASTEST_TOKEN_MS for earlier, later in pairwise(times))
    return MS_PER_S * steps / (times[-1] - times[0]) if steps else None


def _is_processor(machine: Machine) -> bool:
    """Whether a processor does the work: by the catalogue, or since only its own ceilings are known."""
    return _on_processor(machine) or (machine.chip is not None and machine.chip.memory_kind == "cpu")


def _on_processor(machine: Machine) -> bool:
    return machine.ceilings is not None and machine.ceilings.measured_on == "cpu"


def _quantized(name: str | None) -> bool:
    """Whether the weights have fewer than 16 bits; one that nobody names may."""
    return name is None or not name.strip().upper().endswith(("F16", "F32", "FP16", "FP32", "FLOAT16", "FLOAT32"))
