"""A published figure beside what comes out of the rows, the catalogue and the theory."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Literal, Self

from roofbook.analysis.latency import Point
from roofbook.analysis.prefill import Candidate, Curve
from roofbook.analysis.regression import Interval
from roofbook.facts import Facts
from roofbook.record import Row
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.units import GB, GIB, KB, KIB

Verdict = Literal["same", "within", "overlaps", "other_unit", "close", "differs", "not_derivable"]

CLOSE_WITHIN: Final = 0.05
"""Rounded roughly, or by a neighbouring definition; beyond it is another number."""

ROUND_WITHIN: Final = 0.025
"""How far a whole number with zeros at its end may have been rounded: 300 may be 293 to 307, and 50 is not 53.7."""

_BINARY: Final[Mapping[str, float]] = {"gb": GIB / GB, "kb": KIB / KB}
"""Units that people print for their binary sisters."""


@dataclass(frozen=True)
class Claim:
    """One line of the table: *key* names the statement, *at* for what (tokens, a type, users x tokens)."""

    key: str
    at: str | None
    claimed: Range
    recomputed: Range | None
    unit: str
    """Of both sides: ms, s, tokens, requests, tok/s, tflop, tflops, gb, kb, bytes, share, factor, ms/token(2)."""
    mid: float | None = None
    """The recomputed figure itself, where *recomputed* is its interval."""
    changes_decision: bool = False
    meant_binary: bool = False
    """Whoever published it computed in GiB or KiB and printed GB or KB."""
    elsewhere: bool = False
    """Held against a condition that the publication did not speak of: another length, KV type or derivation."""

    @property
    def verdict(self) -> Verdict:
        """How the published figure, read as far as it was printed, compares with the recomputed one.

        ``same``: they are one number. ``within``: it lies in the recomputed interval or range. ``overlaps``: it does so
        in part, or only as far as it was rounded. ``other_unit``: one of these in GiB or KiB, printed as GB or KB.
        ``close``: off by less than CLOSE_WITHIN.
        """
        if self.recomputed is None:
            return "not_derivable"
        agreed = self._agreement(1.0)
        if agreed is not None:
            return agreed
        if self.meant_binary and self._agreement(_BINARY[self.unit]) is not None:
            return "other_unit"
        widened = self.recomputed.high * CLOSE_WITHIN
        return "close" if _meet(self.claimed, self.recomputed + Range(-abs(widened), abs(widened))) else "differs"

    def _agreement(self, unit: float) -> Literal["same", "within", "overlaps"] | None:
        low, high = self.claimed.low, self.claimed.high
        printed = Range(low - _rounded_by(low), high + _rounded_by(high)) * unit
        if self.recomputed is None or not _meet(printed, self.recomputed):
            return None
        if self.mid is not None and printed.low <= self.mid <= printed.high:
            return "same"
        inside = self.recomputed.low <= low * unit and high * unit <= self.recomputed.high
        return "within" if inside else "overlaps"

    def decisive(self) -> Self:
        """Return the claim marked as one whose correction changes a decision."""
        return replace(self, changes_decision=True)

    def under_another_condition(self) -> Self:
        """Return the claim marked as one that was not published for what it is held against."""
        return replace(self, elsewhere=True)

    def binary(self) -> Self:
        """Return the claim marked as one that was computed in GiB or KiB."""
        return replace(self, meant_binary=True)


def claim(
    key: str, claimed: float | Range, recomputed: Range | Interval | float | None, unit: str, at: object = None
) -> Claim:
    """Return a line; an interval's middle is kept beside its bounds."""
    said = claimed if isinstance(claimed, Range) else Range.of(claimed)
    where = None if at is None else str(at)
    if isinstance(recomputed, Interval):
        return Claim(key, where, said, Range(recomputed.low, recomputed.high), unit, recomputed.mid)
    if isinstance(recomputed, (int, float)):
        recomputed = Range.of(recomputed)
    mid = recomputed.low if recomputed is not None and recomputed.known else None
    return Claim(key, where, said, recomputed, unit, mid)


def _rounded_by(printed: float) -> float:
    """Return by how much *printed* may have been rounded: half a step of its last digit, zeros at the end left out."""
    if isinstance(printed, int):
        digits = str(abs(printed))
        step = 10 ** (len(digits) - len(digits.rstrip("0")))
        return max(0.5, min(0.5 * step, ROUND_WITHIN * abs(printed)))
    exponent = Decimal(repr(printed)).as_tuple().exponent
    return 0.5 * 10.0**exponent if isinstance(exponent, int) else 0.0


def _meet(one: Range, other: Range) -> bool:
    return one.low <= other.high and one.high >= other.low


@dataclass(frozen=True)
class Evidence:
    """What the claims about one subject are recomputed from: its trusted rows and what is known of it."""

    rows: tuple[Row, ...]
    """As ``records`` gives them, the doubtful ones included."""
    points: tuple[Point, ...]
    curve: Curve
    facts: Facts
    model: Model
    machine: Machine
    quantization: str
    kv_type: str

    @property
    def law(self) -> Candidate | None:
        """The law that the author fitted, aT + bT^2, fitted again."""
        return self.curve.candidate((1, 2))

    def baseline(self, longest: bool) -> Point | None:
        """Return the shortest or the longest baseline prompt."""
        known = [
            (point.prompt_tokens, point)
            for point in self.points
            if point.kind == "baseline" and point.prompt_tokens is not None and point.ttft.median is not None
        ]
        if not known:
            return None
        return (max if longest else min)(known, key=lambda pair: pair[0])[1]
