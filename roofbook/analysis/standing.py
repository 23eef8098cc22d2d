"""Where measured points stand below the machine's roofs: work for each byte read, and operations a second."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from roofbook.analysis.ceilings import PointCeilings, Reached
from roofbook.analysis.intervals import Summary
from roofbook.analysis.latency import Point
from roofbook.errors import EstimateError
from roofbook.theory.kv import cache_bytes
from roofbook.theory.roofline import Rates, datasheet_rates, measured_rates, step_bytes
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.theory.weights import weights
from roofbook.theory.work import decode_flops, prefill_work

CHUNK_TOKENS: Final = 512
"""Of a prompt that are read at once (llama.cpp's and Ollama's ubatch): for each of them the weights are read again."""

Phase = Literal["decode", "prefill"]


@dataclass(frozen=True)
class Spot:
    """One measured point of the roofline: its phase, its prompt's tokens, and where it stands."""

    phase: Phase
    tokens: float
    n: int | None
    flop_per_byte: float
    flops_per_s: float
    share: Range | None
    """Of the roof that its verdict rests on."""
    doubtful: bool
    """True where every row of the point is doubted in one figure or another."""


@dataclass(frozen=True)
class Roofs:
    """The two denominators of one machine."""

    datasheet: Rates
    measured: Rates

    @property
    def known(self) -> bool:
        """True where at least one of them bounds both bytes and operations."""
        return any(
            rates.bandwidth_bytes_per_s is not None and rates.flops_per_s is not None
            for rates in (self.datasheet, self.measured)
        )


@dataclass(frozen=True)
class Standing:
    """The points that speak for a subject: decode with the shortest prompt, prefill with the longest."""

    decode: PointCeilings | None
    prefill: PointCeilings | None

    @property
    def decode_reached(self) -> Reached | None:
        return None if self.decode is None else self.decode.decode

    @property
    def prefill_reached(self) -> Reached | None:
        return None if self.prefill is None else self.prefill.prefill


def roofs(machine: Machine, quantization: str | None) -> Roofs:
    """Return both denominators of *machine* for weights of *quantization*."""
    return Roofs(datasheet_rates(machine, quantization), measured_rates(machine))


def standing(held: Sequence[PointCeilings]) -> Standing:
    """Return the points that speak for all: of those with most single requests the shortest and the longest prompt."""
    return Standing(
        decode=_chosen(held, lambda point: point.decode, longest=False),
        prefill=_chosen(held, lambda point: point.prefill, longest=True),
    )


def spots(held: Sequence[PointCeilings], model: Model, quantization: str | None, kv_type: str | None) -> list[Spot]:
    """Return every point's place on the roofline; those whose bytes or operations are not known have none."""
    told: list[Spot] = []
    for one in held:
        tokens = one.point.prompt_tokens
        if tokens is None:
            continue
        if one.decode is not None and (found := _decode(model, quantization, kv_type, round(tokens))) is not None:
            bytes_read, flops = found
            steps_per_s = one.point.decode.median or 0.0
            told.append(
                _spot("decode", one.point, one.point.decode, flops / bytes_read, steps_per_s * flops, one.decode)
            )
        if one.prefill is not None and (found := _prefill(model, quantization, kv_type, round(tokens))) is not None:
            bytes_read, flops = found
            told.append(
                _spot(
                    "prefill", one.point, one.point.prefill, flops / bytes_read, _middle(one.prefill.used), one.prefill
                )
            )
    return told


def _chosen(
    held: Sequence[PointCeilings], figure: Callable[[Point], Summary], *, longest: bool
) -> PointCeilings | None:
    known = [
        one
        for one in held
        if figure(one.point).median is not None and one.point.prompt_tokens is not None and not _doubtful(one.point)
    ]
    most = max((figure(one.point).rows for one in known), default=0)
    kept = sorted(
        (one for one in known if figure(one.point).rows == most), key=lambda one: one.point.prompt_tokens or 0.0
    )
    return (kept[-1] if longest else kept[0]) if kept else None


def _spot(
    phase: Phase, point: Point, figure: Summary, flop_per_byte: float, flops_per_s: float, reached: Reached
) -> Spot:
    share = reached.measured_share if reached.basis == "measured" else reached.datasheet_share
    return Spot(phase, point.prompt_tokens or 0.0, figure.n, flop_per_byte, flops_per_s, share, _doubtful(point))


def _doubtful(point: Point) -> bool:
    return 0 < point.finished <= point.doubtful


def _decode(model: Model, quantization: str | None, kv_type: str | None, tokens: int) -> tuple[float, float] | None:
    """Return the bytes and operations of one step."""
    try:
        read = step_bytes(model, quantization, context_tokens=tokens, kv_type=kv_type)
        return _both(read, decode_flops(model, tokens))
    except EstimateError:
        return None


def _prefill(model: Model, quantization: str | None, kv_type: str | None, tokens: int) -> tuple[float, float] | None:
    """Return the bytes and operations of a whole prefill: the weights once a chunk, the cache written once."""
    try:
        chunks = math.ceil(tokens / CHUNK_TOKENS)
        read = weights(model, quantization).step_bytes(model, min(tokens, CHUNK_TOKENS)) * chunks
        return _both(read + cache_bytes(model, tokens, kv_type), prefill_work(model, tokens).total)
    except EstimateError:
        return None


def _both(read: Range, flops: Range) -> tuple[float, float] | None:
    ends = (_middle(read), _middle(flops))
    return ends if all(0 < end < math.inf for end in ends) else None


def _middle(value: Range) -> float:
    return (value.low + value.high) / 2
