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


def roofs(machine: Machine, quantization: str | None) -> Roofs:
    """Return both denominators of *machine* for weights of *quantization*."""
    return Roofs(datasheet_rates(machine, quantization), measured_rates(machine))


def spokesman(points: Sequence[Point], figure: Callable[[Point], Summary], *, longest: bool) -> Point | None:
    """Return the point that speaks for all: of those with most single requests the shortest or the longest prompt.

    A baseline goes before others of its length. One request at a time, and no point whose every row is in doubt; None
    where none is left.
    """
    known = [
        point
        for point in points
        if figure(point).median is not None
        and point.prompt_tokens is not None
        and (point.concurrency or 1) == 1
        and point.rate_per_s is None
        and not doubtful(point)
    ]
    most = max((figure(point).rows for point in known), default=0)
    kept = [point for point in known if figure(point).rows == most]
    way = -1.0 if longest else 1.0
    return min(kept, key=lambda point: (way * (point.prompt_tokens or 0.0), point.kind != "baseline"), default=None)


def doubtful(point: Point) -> bool:
    """Return whether every finished row of *point* is doubted in one figure or another."""
    return 0 < point.finished <= point.doubtful


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


def _spot(
    phase: Phase, point: Point, figure: Summary, flop_per_byte: float, flops_per_s: float, reached: Reached
) -> Spot:
    share = reached.measured_share if reached.basis == "measured" else reached.datasheet_share
    return Spot(phase, point.prompt_tokens or 0.0, figure.n, flop_per_byte, flops_per_s, share, doubtful(point))


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
