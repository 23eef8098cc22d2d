"""How much of the machine a measured figure reaches: bytes and operations a second against two denominators.

The datasheet's peak is what nobody can pass; what others measured on such a machine without a language model is what
anybody can hope for. Both are given, and the verdict names the one it rests on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from roofbook.analysis.latency import Point
from roofbook.errors import EstimateError
from roofbook.theory.roofline import datasheet_rates, implied_bytes_per_s, implied_flops_per_s, measured_rates
from roofbook.theory.shapes import Machine, Model, Range

Verdict = Literal["at_the_limit", "room_to_tune", "above_the_ceiling", "unknown"]
Basis = Literal["measured", "datasheet"]

MEASURED_LIMIT: Final = 0.85
"""Of what a plain benchmark reaches: the rest is a server's overhead of a step, and no setting brings it back."""

DECODE_LIMIT: Final = 0.7
"""Of the datasheet's bandwidth: published runs on base chips reach 0.72 to 0.89 of it, none more."""

PREFILL_LIMIT: Final = 0.65
"""Of the datasheet's arithmetic peak: published prefills of unquantized weights reach 0.67 to 0.74 on Apple's GPUs."""


@dataclass(frozen=True)
class Reached:
    """One figure against the machine: *used* in bytes/s (decode) or FLOP/s (prefill), shares of 0 to 1."""

    used: Range
    datasheet: Range | None
    measured: Range | None
    datasheet_share: Range | None
    measured_share: Range | None
    verdict: Verdict
    basis: Basis | None

    @property
    def headroom(self) -> Range | None:
        """How much faster the figure could still get, as a share of itself: from the nearer to the farther ceiling."""
        shares = [share for share in (self.measured_share, self.datasheet_share) if share is not None]
        if not shares:
            return None
        nearest, farthest = max(share.high for share in shares), min(share.low for share in shares)
        return Range(max(0.0, 1 / nearest - 1), max(0.0, 1 / farthest - 1))


def share_of(found: Reached, basis: Basis) -> Range | None:
    """Return the share of the ceiling that *basis* names."""
    return found.measured_share if basis == "measured" else found.datasheet_share


def unjudged(found: Reached | None) -> Reached | None:
    """Return *found* without a verdict: its ceilings are those of more than what was used."""
    return None if found is None else replace(found, verdict="unknown", basis=None)


@dataclass(frozen=True)
class PointCeilings:
    """A point's decode rate and prefill time against the machine; None where a side of it is not known."""

    point: Point
    decode: Reached | None
    prefill: Reached | None


def ceilings(
    points: Sequence[Point], model: Model, machine: Machine, quantization: str | None, kv_type: str | None
) -> list[PointCeilings]:
    """Return every point against the machine's ceilings. One request at a time: a batch has another ceiling."""
    return [
        PointCeilings(
            point,
            decode=_decode(point, model, machine, quantization, kv_type),
            prefill=_prefill(point, model, machine, quantization),
        )
        for point in points
        if (point.concurrency or 1) == 1 and point.rate_per_s is None
    ]


def reached(used: Range, datasheet: Range | None, measured: Range | None, datasheet_limit: float) -> Reached:
    """Return the shares and the verdict: on the measured ceiling where there is one, else on the datasheet's."""
    datasheet_share, measured_share = _share(used, datasheet), _share(used, measured)
    verdict: Verdict = "unknown"
    basis: Basis | None = None
    if datasheet_share is not None and datasheet_share.low > 1:
        verdict, basis = "above_the_ceiling", "datasheet"
    elif measured_share is not None:
        verdict, basis = _judged(measured_share, MEASURED_LIMIT), "measured"
    elif datasheet_share is not None:
        verdict, basis = _judged(datasheet_share, datasheet_limit), "datasheet"
    return Reached(used, datasheet, measured, datasheet_share, measured_share, verdict, basis)


def _judged(share: Range, limit: float) -> Verdict:
    """A share that may lie on either side of the limit judges nothing."""
    if share.low >= limit:
        return "at_the_limit"
    return "room_to_tune" if share.high < limit else "unknown"


def _share(used: Range, ceiling: Range | None) -> Range | None:
    return None if ceiling is None else Range(used.low / ceiling.high, used.high / ceiling.low)


def _decode(
    point: Point, model: Model, machine: Machine, quantization: str | None, kv_type: str | None
) -> Reached | None:
    rate, tokens = point.decode.median, point.prompt_tokens
    if rate is None or tokens is None:
        return None
    try:
        used = implied_bytes_per_s(model, rate, quantization, context_tokens=round(tokens), kv_type=kv_type)
    except EstimateError:
        return None
    datasheet, measured = datasheet_rates(machine, quantization), measured_rates(machine)
    return reached(used, datasheet.bandwidth_bytes_per_s, measured.bandwidth_bytes_per_s, DECODE_LIMIT)


def _prefill(point: Point, model: Model, machine: Machine, quantization: str | None) -> Reached | None:
    prefill_ms, tokens = point.prefill.median, point.prompt_tokens
    if not prefill_ms or tokens is None:
        return None
    try:
        used = implied_flops_per_s(model, round(tokens), prefill_ms)
    except EstimateError:
        return None
    datasheet, measured = datasheet_rates(machine, quantization), measured_rates(machine)
    return reached(used, datasheet.flops_per_s, measured.flops_per_s, PREFILL_LIMIT)
