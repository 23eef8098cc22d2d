"""A fact file as a list of entries whose values are asked for by type; a mistake names file, entry and key.

Facts are written by hand, so nothing is silently taken for something else: a key that no one asks for, a key that
stands twice, a number in quotes and an entry without its source are errors.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final, cast

import yaml

from roofbook.errors import FactsError
from roofbook.theory.shapes import Range

SCHEMA_VERSION: Final = 1

# The parser of libyaml where PyYAML has it: ten times faster over the published figures.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):
    """YAML whose mappings may not have a key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' stands twice", key_node.start_mark
                )
            seen.add(key)
        return cast("dict[Any, Any]", super().construct_mapping(node, deep))  # pyright: ignore[reportUnknownMemberType]


@dataclass(frozen=True)
class Provenance:
    """Where an entry's figures come from: *sources* by key, *source* the others; nobody checked those *unverified*."""

    source: str
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    unverified: tuple[str, ...] = ()
    note: str | None = None

    def of(self, key: str) -> str:
        """Return where the figure *key* comes from."""
        return self.sources.get(key, self.source)


_PROVENANCE: Final = ("source", "sources", "unverified", "note")


@dataclass(frozen=True)
class Entry:
    """One entry of *file*, called *name* in complaints."""

    file: str
    name: str
    values: Mapping[str, Any]

    def only(self, *known: str, provenance: bool = True) -> None:
        """Raise FactsError for a key that is none of *known* (nor, with *provenance*, one of its own)."""
        allowed = {*known, *(_PROVENANCE if provenance else ())}
        for key in self.values:
            if key not in allowed:
                raise FactsError(
                    "%(file)s, %(entry)s: the key '%(key)s' is not known; those known are %(known)s",
                    **self._at(key),
                    known=", ".join(sorted(allowed)),
                )

    def text(self, key: str) -> str:
        """Return the text *key*, which must be there."""
        value = self.text_or_none(key)
        if value is None:
            raise FactsError("%(file)s, %(entry)s: the key '%(key)s' is missing", **self._at(key))
        return value

    def text_or_none(self, key: str) -> str | None:
        value = self.values.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise FactsError("%(file)s, %(entry)s: '%(key)s' is %(value)s, not text", **self._seen(key))
        return value

    def one_of(self, key: str, known: Collection[str]) -> str:
        value = self.text(key)
        if value not in known:
            raise FactsError(
                "%(file)s, %(entry)s: '%(key)s' is %(value)s, none of %(known)s",
                **self._seen(key),
                known=", ".join(known),
            )
        return value

    def number(self, key: str, *, zero: bool = False) -> float | None:
        """Return the number *key*, above 0 (or from 0 on); None where it is null or left out."""
        value = self.values.get(key)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not (0 < value < inf or (zero and value == 0))
        ):
            raise FactsError("%(file)s, %(entry)s: '%(key)s' is %(value)s, not a number above 0", **self._seen(key))
        return value

    def whole(self, key: str, *, zero: bool = False) -> int | None:
        """Return the whole number *key*, above 0 (or from 0 on); None where it is null or left out."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < (0 if zero else 1):
            raise FactsError("%(file)s, %(entry)s: '%(key)s' is %(value)s, not a whole number", **self._seen(key))
        return value

    def needed(self, key: str) -> int:
        """Return the whole number *key*, which must be there."""
        value = self.whole(key)
        if value is None:
            raise FactsError("%(file)s, %(entry)s: the key '%(key)s' is missing", **self._at(key))
        return value

    def flag(self, key: str) -> bool | None:
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise FactsError("%(file)s, %(entry)s: '%(key)s' is %(value)s, not true or false", **self._seen(key))
        return value

    def range(self, key: str, factor: float = 1.0) -> Range | None:
        """Return the figure *key* times *factor*: one number, or {low: ..., high: ...} where sources dispute it."""
        if not isinstance(self.values.get(key), Mapping):
            value = self.number(key)
            return None if value is None else Range.of(value * factor)
        ends = self.inner(key)
        ends.only("low", "high", provenance=False)
        low, high = ends.number("low"), ends.number("high")
        if low is None or high is None or low > high:
            raise FactsError("%(file)s, %(entry)s: '%(key)s' is no range from low to high", **self._at(key))
        return Range(low * factor, high * factor)

    def inner(self, key: str) -> "Entry":
        """Return the mapping *key* as an entry of its own."""
        value = self.values.get(key)
        if not isinstance(value, Mapping):
            raise FactsError("%(file)s, %(entry)s: '%(key)s' is %(value)s, not a mapping", **self._seen(key))
        return Entry(self.file, f"{self.name}, {key}", cast("Mapping[str, Any]", value))

    def inners(self, key: str) -> Iterator["Entry"]:
        """Yield the mappings of the list *key*."""
        for index, value in enumerate(self._list(key), start=1):
            if not isinstance(value, Mapping):
                raise FactsError(
                    "%(file)s, %(entry)s: '%(key)s' is %(value)s, not a list of mappings", **self._seen(key)
                )
            yield Entry(self.file, f"{self.name}, {key} {index}", cast("Mapping[str, Any]", value))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the list of texts *key*, empty where it is left out."""
        listed = self._list(key)
        if not all(isinstance(one, str) for one in listed):
            raise FactsError("%(file)s, %(entry)s: '%(key)s' is %(value)s, not a list of texts", **self._seen(key))
        return tuple(cast("list[str]", listed))

    def sizes(self, key: str) -> tuple[int, ...]:
        """Return the whole numbers *key*: one, or a list of them."""
        listed = self._list(key) if isinstance(self.values.get(key), list) else [self.values.get(key)]
        if not listed or not all(isinstance(one, int) and not isinstance(one, bool) and one > 0 for one in listed):
            raise FactsError(
                "%(file)s, %(entry)s: '%(key)s' is %(value)s, not a whole number or a list of them", **self._seen(key)
            )
        return tuple(cast("list[int]", listed))

    def provenance(self) -> Provenance:
        """Return where the entry's figures come from; *source* must be there, the others name keys of the entry."""
        source = self.text("source")
        sources = self.inner("sources") if "sources" in self.values else None
        unverified = self.texts("unverified")
        for key in (*(sources.values if sources else ()), *unverified):
            if key.partition(".")[0] not in self.values:
                raise FactsError(
                    "%(file)s, %(entry)s: 'sources' or 'unverified' names '%(key)s', which the entry does not have",
                    **self._at(key),
                )
        by_key = {} if sources is None else {key: sources.text(key) for key in sources.values}
        return Provenance(source, by_key, unverified, self.text_or_none("note"))

    def _list(self, key: str) -> list[Any]:
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise FactsError("%(file)s, %(entry)s: '%(key)s' is %(value)s, not a list", **self._seen(key))
        return cast("list[Any]", value)

    def _at(self, key: str) -> dict[str, str]:
        return {"file": self.file, "entry": self.name, "key": key}

    def _seen(self, key: str) -> dict[str, str]:
        return {**self._at(key), "value": repr(self.values.get(key))[:80]}


def read_document(path: Path) -> Entry:
    """Return the whole of a fact file.

    Raises FactsError where it is missing, no YAML, or of another version than this program knows.
    """
    try:
        with path.open(encoding="utf-8") as file:
            read = yaml.load(file, Loader=_Loader)  # a SafeLoader: plain values only
    except OSError as problem:
        raise FactsError("Cannot read %(file)s: %(problem)s", file=path, problem=problem.strerror) from problem
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise FactsError(
            "%(file)s is not YAML: %(problem)s", file=path.name, problem=" ".join(str(problem).split())
        ) from problem
    if not isinstance(read, Mapping):
        raise FactsError("%(file)s holds no mapping", file=path.name)
    document = Entry(path.name, "the file", cast("Mapping[str, Any]", read))
    if document.values.get("schema_version") != SCHEMA_VERSION:
        raise FactsError(
            "%(file)s has schema_version %(version)s, this program knows %(known)d",
            file=path.name,
            version=document.values.get("schema_version"),
            known=SCHEMA_VERSION,
        )
    return document


def read_entries(path: Path, key: str) -> list[Entry]:
    """Return the entries listed under *key* in the fact file at *path*, each called by its id.

    Raises FactsError where one has no id, or two have the same.
    """
    document = read_document(path)
    document.only("schema_version", key, provenance=False)
    entries: list[Entry] = []
    seen: set[str] = set()
    for entry in document.inners(key):
        name = entry.text("id")
        if name in seen:
            raise FactsError("%(file)s has the id '%(id)s' twice", file=path.name, id=name)
        seen.add(name)
        entries.append(Entry(path.name, name, entry.values))
    return entries
