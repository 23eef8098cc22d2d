"""A quantity as prose and tables write it: rounded to what it is worth, in the unit that people use."""

from collections.abc import Mapping
from typing import Final

from roofbook.analysis.quantities import Quantity, Unit
from roofbook.units import GB, GIB, KIB, MS_PER_S, TFLOP
from roofbook.words import Words, mark

_SECONDS_FROM_MS: Final = 2_000

_IN_MS: Final = (mark("%(value)s ms"), 1, 3)
_IN_S: Final = (mark("%(value)s s"), MS_PER_S, 3)

_FORMS: Final[Mapping[Unit, tuple[str, float, int]]] = {
    "ms_per_token": (mark("%(value)s ms per token"), 1, 3),
    "ms_per_token2": (mark("%(value)s ms per token squared"), 1, 2),
    "tok_per_s": (mark("%(value)s tok/s"), 1, 3),
    "per_min": (mark("%(value)s a minute"), 1, 2),
    "share": (mark("%(value)s %%"), 0.01, 2),
    "factor": (mark("%(value)s times"), 1, 2),
    "bytes": (mark("%(value)s GB"), GB, 3),
    "limit_bytes": (mark("%(value)s GiB"), GIB, 3),
    "kv_bytes": (mark("%(value)s KiB"), KIB, 3),
    "flop": (mark("%(value)s TFLOP"), TFLOP, 3),
    "flops_per_s": (mark("%(value)s TFLOPS"), TFLOP, 2),
    "bytes_per_s": (mark("%(value)s GB/s"), GB, 3),
    "bits": (mark("%(value)s bits"), 1, 3),
    "params": (mark("%(value)sB"), 10**9, 2),
}
"""The unit's sentence, what one of its units is in the quantity's, and how many digits such a figure is worth."""

_WHOLE: Final[Mapping[Unit, str]] = {"tokens": mark("%(value)s tokens"), "count": mark("%(value)s")}
"""Things that are counted."""


def told(quantity: Quantity, words: Words, *, unit: bool = True) -> str:
    """Return *quantity* with its unit (or without): its value, the two ends of a range, or that it is unknown."""
    if not quantity.known:
        return words.say("unknown")
    sentence, size, digits = _form(quantity)

    def written(value: float) -> str:
        scaled = value / size
        if digits is None or scaled.is_integer():
            return words.number(scaled)
        return words.number(scaled, _decimals(scaled)) if quantity.printed else words.significant(scaled, digits)

    if quantity.value is not None:
        value = written(quantity.value)
    elif quantity.low is not None and quantity.high is not None:
        low, high = written(quantity.low), written(quantity.high)
        value = low if low == high else words.say("%(low)s to %(high)s", low=low, high=high)
    else:
        return words.say("unknown")
    return words.say(sentence, value=value) if unit else value


def _decimals(value: float) -> int:
    """Return the decimals that *value* was printed with; the last digits are only the floating point's."""
    return len(f"{value:.6g}".partition(".")[2])


def interval(quantity: Quantity, words: Words) -> str | None:
    """Return between which bounds the value lies; None where it has none."""
    return told(quantity_range(quantity), words) if quantity.value is not None and quantity.bounded else None


def quantity_range(quantity: Quantity) -> Quantity:
    """Return the bounds of *quantity* as a range."""
    return Quantity(quantity.unit, None, quantity.low, quantity.high, quantity.n, quantity.level)


def footing(quantity: Quantity, words: Words) -> str:
    """Return what the number stands on, in a few words: how many, and the interval; empty where neither is known."""
    parts: list[str] = []
    if quantity.n and quantity.counted == "lengths":
        parts.append(words.say_n("%(n)d prompt length", "%(n)d prompt lengths", quantity.n))
    elif quantity.n:
        parts.append(words.say_n("%(n)d request", "%(n)d requests", quantity.n))
    bounds = interval(quantity, words)
    if bounds is not None and quantity.level is not None:
        level = words.significant(100 * quantity.level, 2)
        parts.append(words.say("%(level)s %% interval %(range)s", level=level, range=bounds))
    elif bounds is not None:
        parts.append(words.say("range %(range)s", range=bounds))
    return ", ".join(parts)


def _form(quantity: Quantity) -> tuple[str, float, int | None]:
    """Return the unit's sentence, its size, and the digits; None for a whole number."""
    unit = quantity.unit
    if unit == "ms":
        return _IN_S if (quantity.middle or 0) >= _SECONDS_FROM_MS else _IN_MS
    if unit in _WHOLE:
        return _WHOLE[unit], 1, None
    return _FORMS[unit]
