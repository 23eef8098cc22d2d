"""One number with what it needs to be trusted, and many of them by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from roofbook.analysis.intervals import Summary
from roofbook.analysis.regression import LEVEL, Interval
from roofbook.errors import EstimateError
from roofbook.theory.quantization import known_kv_type
from roofbook.theory.shapes import Range

Unit = Literal[
    "ms", "ms_per_token", "ms_per_token2", "tok_per_s", "tokens", "count", "bits", "params", "per_min", "share",
    "factor", "bytes", "flop", "flops_per_s", "bytes_per_s", "kv_bytes", "limit_bytes",
]  # fmt: skip
"""What a value counts; *kv_bytes* and *limit_bytes* are bytes that people know in powers of two."""


@dataclass(frozen=True)
class Quantity:
    """A value, and between which bounds it lies: an interval of that *level*, or without one the ends of a range.

    A range has no value of its own (*value* None, both bounds known); an unknown quantity has nothing at all. *n* is
    how many requests (behind a fit: prompt lengths) it stands on.
    """

    unit: Unit
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    level: float | None = None
    counted: Literal["requests", "lengths"] = "requests"
    """What *n* counts: behind a fit stand prompt lengths."""
    printed: bool = False
    """True for a figure as somebody published it, whose digits are theirs."""

    @property
    def known(self) -> bool:
        return self.value is not None or self.bounded

    @property
    def bounded(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def middle(self) -> float | None:
        """The value; of a range the value halfway between its ends."""
        if self.value is not None or self.low is None or self.high is None:
            return self.value
        return (self.low + self.high) / 2

    def part(self, name: str) -> "Quantity | None":
        """Return what PARTS calls *name*: a bound, the interval as a range, its level, the number behind it."""
        if name == "n":
            return Quantity("count", None if self.n is None else float(self.n))
        if name == "level":
            return Quantity("share", self.level)
        if name == "interval":
            return replace(self, value=None)
        if name in ("low", "high"):
            return Quantity(self.unit, self.low if name == "low" else self.high, n=self.n)
        return None


PARTS: Final = ("low", "high", "interval", "level", "n")
"""What may follow a name: ``prefill.a.interval``."""

_KV_PLACES: Final = ("KV",)
"""Places of a pattern that take the name of a KV type; the others take a whole number."""


def of_range(unit: Unit, found: Range | None, factor: float = 1.0) -> Quantity:
    """Return *found* as a quantity: one value where its ends agree, else a range."""
    if found is None:
        return Quantity(unit)
    scaled = found * factor
    return Quantity(unit, scaled.low) if scaled.known else Quantity(unit, None, scaled.low, scaled.high)


def of_interval(unit: Unit, found: Interval, n: int) -> Quantity:
    """Return an estimate of a fit over *n* lengths."""
    return Quantity(unit, found.mid, found.low, found.high, n, LEVEL, "lengths")


def of_summary(unit: Unit, found: Summary) -> Quantity:
    """Return a median with its order-statistic interval."""
    interval = found.interval
    if interval is None:
        return Quantity(unit, found.median, n=found.n)
    return Quantity(unit, found.median, interval.low, interval.high, found.n, interval.level)


def turned(unit: Unit, found: Quantity, factor: float) -> Quantity:
    """Return *factor* / *found*: a rate for a time, a time for a rate; the bounds change places."""

    def over(value: float | None) -> float | None:
        return factor / value if value else None

    return replace(found, unit=unit, value=over(found.value), low=over(found.high), high=over(found.low))


def ratio(over: Quantity, under: Quantity) -> Quantity:
    """Return how many times *under* goes into *over*; of ranges, between which bounds."""
    if over.value is not None and under.value is not None:
        return Quantity("factor", over.value / under.value if under.value else None)
    ends = [(one.low, one.high) if one.value is None else (one.value, one.value) for one in (over, under)]
    (low, high), (least, most) = ends
    if low is None or high is None or not least or not most:
        return Quantity("factor")
    return Quantity("factor", None, low / most, high / least)


def change(before: Quantity, after: Quantity) -> Quantity:
    """Return by which share *after* differs from *before*: negative where it fell."""
    if before.value is None or after.value is None or not before.value:
        return Quantity("share")
    return Quantity("share", after.value / before.value - 1)


Asked = Callable[..., Quantity]


@dataclass(frozen=True)
class Quantities:
    """Quantities by name: *fixed* ones, and those *asked* for with values in the name (``prefill.at_ms.TOKENS``)."""

    fixed: Mapping[str, Quantity]
    asked: Mapping[str, Asked] = field(default_factory=dict[str, Asked])

    @property
    def names(self) -> tuple[str, ...]:
        """Every name; where values are asked for, the pattern."""
        return (*self.fixed, *self.asked)

    def find(self, name: str) -> Quantity | None:
        """Return the quantity *name*, or a part of it (``name.low``, see PARTS); None where there is no such name.

        What cannot be estimated for want of facts is a quantity without a value.
        """
        if name in self.fixed:
            return self.fixed[name]
        whole, _, part = name.rpartition(".")
        if part in PARTS:
            found = self.find(whole)
            return None if found is None else found.part(part)
        for pattern, compute in self.asked.items():
            values = _values(pattern, name)
            if values is not None:
                return compute(*values)
        return None

    def under(self, prefix: str) -> "Quantities":
        """Return the same quantities with *prefix* and a dot before every name."""
        return Quantities(
            {f"{prefix}.{name}": one for name, one in self.fixed.items()},
            {f"{prefix}.{name}": one for name, one in self.asked.items()},
        )

    def __or__(self, other: "Quantities") -> "Quantities":
        return Quantities({**self.fixed, **other.fixed}, {**self.asked, **other.asked})


def estimated(unit: Unit, compute: Callable[[], Range | float | None]) -> Quantity:
    """Return what *compute* says, without a value where the facts it needs are missing."""
    try:
        found = compute()
    except EstimateError:
        return Quantity(unit)
    return of_range(unit, found) if isinstance(found, Range) else Quantity(unit, found)


def asked(unit: Unit, compute: Callable[..., Range | float | None]) -> Asked:
    """Return *compute* as a quantity that is asked for with values, unknown where the facts for it are missing."""

    def answer(*values: Any) -> Quantity:
        return estimated(unit, lambda: compute(*values))

    return answer


def _values(pattern: str, name: str) -> list[int | str] | None:
    """Return the values that stand in *name* where *pattern* has capitals; None where it is another name."""
    wanted, given = pattern.split("."), name.split(".")
    if len(wanted) != len(given):
        return None
    values: list[int | str] = []
    for place, text in zip(wanted, given, strict=True):
        if not place.isupper():
            fits = place == text
        elif place in _KV_PLACES:
            fits = known_kv_type(text)
            values.append(text)
        else:
            fits = text.isdecimal()
            values += [int(text)] if fits else []
        if not fits:
            return None
    return values
