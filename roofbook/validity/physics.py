"""More operations or bytes a second than the machine has: the measurement is wrong, or the catalogue is."""

from collections.abc import Iterator
from typing import Final

from roofbook.errors import EstimateError
from roofbook.record import Row
from roofbook.theory.roofline import datasheet_rates, implied_flops_per_s, measured_rates, step_bytes
from roofbook.theory.shapes import Machine, Model
from roofbook.units import GIB
from roofbook.validity.derived import decode_tok_per_s, is_ok
from roofbook.validity.finding import Finding, Measure, of_row
from roofbook.validity.known import Known

MEASURED_MARGIN: Final = 2.0
"""Where only a benchmark of the machine is known, not its datasheet: no benchmark misses half of what is there."""

NEAR_SHARE: Final = 0.92
"""Of the bandwidth. No believable one of some 550 published figures is above 89 %: beyond this band a look is due."""

TOKENS_FOR_A_RATE: Final = 8
"""Over fewer tokens the jitter of two stamps is as large as the gaps between them."""

HELD_IN_CACHE_BYTES: Final = 1 * GIB
"""A processor's own cache may hold a model up to this size, and then its memory's bandwidth bounds nothing."""


def above_peaks(rows: list[Row], known: Known) -> Iterator[Finding]:
    """Find rows that imply more than the upper end of what the machine can do; a disputed peak convicts nobody.

    Most often the prompt came from a cache of which the server says nothing, in whole or in part.
    """
    for row in rows:
        model, machine = known.model(row), known.machine(row)
        if model is not None and machine is not None and is_ok(row):
            yield from _compute(row, model, machine)
            yield from _bandwidth(row, model, machine)


def _compute(row: Row, model: Model, machine: Machine) -> Iterator[Finding]:
    # The first token comes after the prefill: where the server tells no time, TTFT bounds it from above.
    prompt, prefill_ms = row.get("prompt_tokens"), row.get("server_prefill_ms") or row.get("ttft_ms")
    peak = _compute_peak(machine, row.get("quantization"))
    if not prompt or not prefill_ms or prefill_ms < 0 or peak is None:
        return
    cached = row.get("cached_tokens")
    if cached is None and row.get("kind") == "prefix_cache":
        cached = row.get("shared_prefix_tokens")
    try:
        implied = implied_flops_per_s(model, prompt, prefill_ms, min(cached or 0, prompt - 1)).low
    except EstimateError:
        return
    if implied > peak:
        yield of_row(
            "above_compute_peak", row, ("prefill", "ttft", "e2e"),
            flops_per_s=implied, peak_flops_per_s=peak, prompt_tokens=prompt, prefill_ms=prefill_ms,
        )  # fmt: skip


def _compute_peak(machine: Machine, quantization: str | None) -> float | None:
    peak = datasheet_rates(machine, quantization).flops_per_s
    if peak is not None:
        return peak.high
    measured = measured_rates(machine).flops_per_s
    return None if measured is None else MEASURED_MARGIN * measured.high


def _bandwidth(row: Row, model: Model, machine: Machine) -> Iterator[Finding]:
    rate, tokens = decode_tok_per_s(row), row.get("output_tokens")
    peak = datasheet_rates(machine).bandwidth_bytes_per_s
    if rate is None or peak is None or (tokens is not None and tokens < TOKENS_FOR_A_RATE):
        return
    try:
        # Whoever else is served in the same step, this request's token takes one reading of the weights.
        read = step_bytes(
            model,
            row.get("quantization"),
            context_tokens=row.get("prompt_tokens") or 0,
            kv_type=row.get("kv_cache_type"),
        ).low
    except EstimateError:
        return
    if machine.chip is not None and machine.chip.memory_kind == "cpu" and read < HELD_IN_CACHE_BYTES:
        return
    share = rate * read / peak.high
    if share > NEAR_SHARE:
        kind = "above_bandwidth" if share > 1 else "near_bandwidth"
        spoils: tuple[Measure, ...] = ("tpot", "e2e") if share > 1 else ()
        yield of_row(
            kind, row, spoils,
            bytes_per_s=rate * read, peak_bytes_per_s=peak.high, tok_per_s=rate, ceiling_tok_per_s=peak.high / read,
        )  # fmt: skip
