"""A JSON object whose values are asked for by type: what is absent is None, what is of another type is an error."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from roofbook.errors import ReaderError

_SHOWN_AT_MOST: Final = 60


@dataclass(frozen=True)
class Fields:
    """The keys of one object of *source*; *path* is where in the source it stands."""

    values: Mapping[str, Any]
    source: str
    path: str = ""

    @classmethod
    def of(cls, value: object, source: str, path: str = "") -> Self:
        """Return the fields of *value*.

        Raises ReaderError where it is no JSON object.
        """
        if not isinstance(value, Mapping):
            raise ReaderError("%(source)s: %(key)s is no JSON object", source=source, key=path or "the whole")
        return cls(cast("Mapping[str, Any]", value), source, path)

    def whole(self, *names: str) -> int | None:
        """Return the first of *names* that is there, a whole number from 0 on; None where none is (or it is null)."""
        name, value = self._first(names)
        if value is None:
            return None
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ReaderError(
                "%(source)s: %(key)s is %(value)s, not a whole number from 0 on", **self._seen(name, value)
            )
        return value

    def needed(self, name: str) -> int:
        """Return the whole number *name*, without which the object means nothing."""
        value = self.whole(name)
        if value is None:
            raise ReaderError("%(source)s: the key '%(key)s' is missing", source=self.source, key=self._at(name))
        return value

    def text(self, *names: str) -> str | None:
        name, value = self._first(names)
        if value is not None and not isinstance(value, str):
            raise ReaderError("%(source)s: %(key)s is %(value)s, not text", **self._seen(name, value))
        return value

    def flag(self, *names: str) -> bool | None:
        name, value = self._first(names)
        if value is not None and not isinstance(value, bool):
            raise ReaderError("%(source)s: %(key)s is %(value)s, not true or false", **self._seen(name, value))
        return value

    def inner(self, *names: str) -> Self | None:
        """Return the object *names* holds."""
        name, value = self._first(names)
        return None if value is None else type(self).of(value, self.source, self._at(name))

    def inners(self, name: str) -> list[Self] | None:
        """Return the list of objects *name* holds."""
        value = self.items(name)
        return None if value is None else [
            type(self).of(one, self.source, f"{self._at(name)}[{index}]") for index, one in enumerate(value)
        ]  # fmt: skip

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the list of texts *name* holds, empty where it is absent."""
        found = self.items(name) or ()
        for one in found:
            if not isinstance(one, str):
                raise ReaderError("%(source)s: %(key)s is %(value)s, not text", **self._seen(name, one))
        return tuple(cast("Sequence[str]", found))

    def wholes(self, name: str) -> tuple[int, ...] | None:
        """Return the list of whole numbers *name* holds."""
        found = self.items(name)
        if found is None:
            return None
        kept = [Fields({name: one}, self.source, self.path).whole(name) for one in found]
        if None in kept:
            raise ReaderError(
                "%(source)s: %(key)s is %(value)s, not a whole number from 0 on", **self._seen(name, None)
            )
        return tuple(cast("list[int]", kept))

    def items(self, name: str) -> Sequence[Any] | None:
        """Return the list *name* holds, whatever is in it."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ReaderError("%(source)s: %(key)s is %(value)s, not a list", **self._seen(name, value))
        return cast("Sequence[Any]", value)

    def _first(self, names: Sequence[str]) -> tuple[str, Any]:
        for name in names:
            if self.values.get(name) is not None:
                return name, self.values[name]
        return names[0], None

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _seen(self, name: str, value: object) -> dict[str, str]:
        """Return what a complaint about *name* says: where it stands, and what was found there."""
        shown = repr(value)
        shown = shown if len(shown) <= _SHOWN_AT_MOST else f"{shown[:_SHOWN_AT_MOST]}..."
        return {"source": self.source, "key": self._at(name), "value": shown}
