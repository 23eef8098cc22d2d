"""Figures of a terminal's page: one number, or the two ends of a range."""

import math
from collections.abc import Sequence

from roofbook.theory.shapes import Range
from roofbook.units import GIB, MIB
from roofbook.words import Words


def span(value: Range, words: Words, digits: int = 3) -> str:
    """Return *value* in at least *digits* significant digits, without end as an infinity sign."""
    return _ends([words.significant(end, digits) if math.isfinite(end) else "∞" for end in (value.low, value.high)])


def rate(value: Range | None, words: Words) -> str:
    """Return tokens a second, or that they are not known."""
    return words.say("unknown") if value is None else span(value, words)


def gib(value: Range, words: Words) -> str:
    """Return bytes in GiB, without the unit."""
    return _ends([words.number(end / GIB, 2) for end in (value.low, value.high)])


def size(value: Range, words: Words) -> str:
    """Return a size in MiB, from a GiB on in GiB."""
    if value.high >= GIB:
        return f"{gib(value, words)} GiB"
    return f"{_ends([words.number(end / MIB, 1) for end in (value.low, value.high)])} MiB"


def whole(value: Range, words: Words) -> str:
    """Return whole numbers, their thousands grouped."""
    return _ends([words.number(end) for end in (value.low, value.high)])


def count(value: Range, words: Words, *, up: bool = False) -> str:
    """Return a number of requests: whole ones that fit, or with *up* the first that reaches a bound."""
    rounded = math.ceil if up else math.floor
    return _ends([words.number(rounded(end)) if math.isfinite(end) else "∞" for end in (value.low, value.high)])


def _ends(ends: Sequence[str]) -> str:
    return ends[0] if ends[0] == ends[1] else "–".join(ends)
