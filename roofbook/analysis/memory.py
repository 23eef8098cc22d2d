"""From usable memory to requests at once, KV type by KV type; and how few of them the arithmetic can serve."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from roofbook.analysis.regression import Fit
from roofbook.theory.kv import cache_bytes, token_bytes
from roofbook.theory.limits import Limit
from roofbook.theory.memory import RESERVE_BYTES, Budget
from roofbook.theory.queueing import rate_allowed_per_s, residence_s
from roofbook.theory.roofline import decode_ceiling
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.theory.weights import weights
from roofbook.units import MS_PER_S

KV_TYPES: Final = ("f16", "q8_0", "q4_0")


@dataclass(frozen=True)
class MemoryLine:
    """One KV type: what a token costs, the tokens and the whole requests that fit; bytes."""

    kv_type: str
    token_bytes: Range
    tokens: Range
    sequences: Range
    """With all the weights counted."""
    sequences_by_device: Range
    """With only the weights that the engine puts on the device."""


@dataclass(frozen=True)
class MemoryTable:
    """The budget of one limit in bytes: limit - weights - reserve = room, shared out in *context_tokens* a request."""

    limit: Limit
    weights_bytes: Range
    device_bytes: Range
    reserve_bytes: Range
    context_tokens: int
    lines: tuple[MemoryLine, ...]

    @property
    def room_bytes(self) -> Range:
        return self.limit.limit_bytes - self.weights_bytes - self.reserve_bytes

    def line(self, kv_type: str) -> MemoryLine | None:
        return next((line for line in self.lines if line.kv_type == kv_type), None)


@dataclass(frozen=True)
class Served:
    """What *in_flight* requests would get if memory alone decided: all their prompts uncached, all of one length."""

    in_flight: float
    prompt_tokens: int
    prefill_s: float
    """Of one prompt, by the measured law."""
    rate_per_s: float
    """The most requests a second that prefill alone allows."""
    residence_s: float
    """How long each would be inside, by Little's law."""
    decode_tok_per_s: Range | None
    """Of all together: from what was measured of such a machine up to what is stated; None where neither is known."""

    @property
    def decode_tok_per_s_each(self) -> Range | None:
        return None if self.decode_tok_per_s is None else self.decode_tok_per_s * (1 / self.in_flight)


def memory_table(
    model: Model,
    limit: Limit,
    context_tokens: int,
    *,
    quantization: str | None = None,
    reserve_bytes: Range = RESERVE_BYTES,
    kv_types: Sequence[str] = KV_TYPES,
) -> MemoryTable:
    """Return the budget of *model* under *limit*, for prompts and answers of *context_tokens* together.

    Raises EstimateError where weights or caches cannot be estimated.
    """
    held = weights(model, quantization)
    device = model.tensors.device_bytes
    on_device = held.device_bytes if device is None else Range.of(device)
    whole = held.total_bytes if model.tensors.file_bytes is None else Range.of(model.tensors.file_bytes)
    full = Budget(limit, whole, reserve_bytes=reserve_bytes)
    part = Budget(limit, on_device, reserve_bytes=reserve_bytes)
    room = limit.limit_bytes - full.fixed_bytes
    lines: list[MemoryLine] = []
    for kv_type in kv_types:
        each = token_bytes(model, kv_type)

        def caches(count: int, kv_type: str = kv_type) -> Range:
            return cache_bytes(model, context_tokens, kv_type, sequences=count)

        tokens = Range(max(0.0, room.low) / each.high, max(0.0, room.high) / each.low) if each.low else Range(0, 0)
        lines.append(MemoryLine(kv_type, each, tokens, full.sequences(caches), part.sequences(caches)))
    return MemoryTable(limit, whole, on_device, reserve_bytes, context_tokens, tuple(lines))


def served(
    in_flight: float,
    prompt_tokens: int,
    law: Fit,
    model: Model,
    machine: Machine,
    *,
    quantization: str | None = None,
    kv_type: str | None = None,
) -> Served:
    """Return what *in_flight* requests of *prompt_tokens* would get: memory's number against arithmetic's rate.

    Raises EstimateError where the model's weights or cache are not known.
    """
    prefill_s = law.value(prompt_tokens) / MS_PER_S
    rate = rate_allowed_per_s(prefill_s)
    bound = decode_ceiling(
        model, machine, quantization, context_tokens=prompt_tokens, kv_type=kv_type, batch=max(1, int(in_flight))
    )
    together = bound.whole
    return Served(in_flight, prompt_tokens, prefill_s, rate, residence_s(in_flight, rate), together)
