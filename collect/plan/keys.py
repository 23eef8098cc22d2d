"""One section of a plan, read key by key: each value has a type and a range, and every complaint says what is right."""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from collect.plan.lines import Complain, Items, Leaf, Node, Scalar, Section
from roofbook.errors import PlanError

_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_MOST_ITEMS: Final = 1_000  # points of one list; more is a slip, not a plan

_Number = TypeVar("_Number", int, float)


class Keys:
    """The keys of one section: read each that is known, then let ``finish`` complain about the others.

    A value that is wrong goes to *complain*, and its default is returned, so that all faults are found in one reading.
    """

    def __init__(self, section: Section, *, file: str, place: str, complain: Complain) -> None:
        self._section = section
        self._file = file
        self._place = place
        self._complain = complain
        self._known: list[str] = []

    def has(self, key: str) -> bool:
        """Whether *key* is written, with whatever value."""
        return key in self._section.entries

    def know(self, keys: Iterable[str]) -> None:
        """Count *keys* among the known ones without reading them."""
        self._known.extend(keys)

    def at(self, key: str, **values: object) -> dict[str, Any]:
        """Return the place of *key* as values of an error: file, line, key."""
        line, _ = self._section.entries.get(key, (self._section.line, None))
        return {"file": self._file, "line": line, "key": self._path(key), **values}

    def section(self, key: str) -> "Keys | None":
        """Return the section under *key*; None where it is left out or null."""
        node = self._take(key)
        if node is None:
            return None
        if not isinstance(node, Section):
            self._complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s' must be a section of keys: {name: value, ...}", **self.at(key)
                )
            )
            return None
        return self._inner(node, self._path(key))

    def sections(self, key: str) -> "list[Keys]":
        """Return the list of sections under *key*; at least one must be there."""
        node = self._take(key)
        if not isinstance(node, Items) or not node.items:
            self._complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s' must be a list with at least one entry such as "
                    "- {kind: prefill_curve, prompt_tokens: [128, 512], output_tokens: 32}",
                    **self.at(key),
                )
            )
            return []
        found: list[Keys] = []
        for number, item in enumerate(node.items, start=1):
            place = f"{self._path(key)}[{number}]"
            if isinstance(item, Section):
                found.append(self._inner(item, place))
            else:
                self._complain(
                    PlanError(
                        "%(file)s, line %(line)d: '%(key)s' must be a section of keys: {name: value, ...}",
                        file=self._file, line=item.line, key=place,
                    )
                )  # fmt: skip
        return found

    def options(self, key: str) -> dict[str, Scalar]:
        """Return a section whose keys are free and whose values are single ones."""
        inner = self.section(key)
        return {} if inner is None else inner.free()

    def free(self) -> dict[str, Scalar]:
        """Return all keys of this section, whatever their names; each value must be a single one."""
        values: dict[str, Scalar] = {}
        for key in self._section.entries:
            node = self._take(key)
            if node is not None and not isinstance(node, Leaf):
                self._complain(
                    PlanError(
                        "%(file)s, line %(line)d: '%(key)s' must be one value, not a list or a section", **self.at(key)
                    )
                )
            elif node is None or not node.broken:
                values[key] = None if node is None else node.value
        return values

    def text(self, key: str, default: str | None = None) -> str | None:
        """Return the text under *key*. A number there is a fault: 3.10 would become 3.1."""
        leaf = self._leaf(key)
        if leaf is None:
            return default
        if not isinstance(leaf.value, str):
            self._complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s: %(written)s' must be text, and would lose its spelling as a "
                    'number or a switch: put it in quotes, "%(written)s"',
                    **self.at(key, written=leaf.written),
                )
            )
            return default
        return leaf.value

    def file_name(self, key: str, default: str | None = None) -> str | None:
        """Return a text that is safe as part of a file name."""
        found = self.text(key, default)
        if found is not None and not _SAFE_NAME.fullmatch(found):
            self._complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s' becomes part of a file name: use letters, digits, '.', '_' and "
                    "'-', at most 80, with a letter or a digit first",
                    **self.at(key),
                )
            )
            return default
        return found

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """Return one of *choices*."""
        found = self.text(key)
        if found is None:
            return default
        if found in choices:
            return found
        near = difflib.get_close_matches(found, choices, n=1)
        at = self.at(key, written=found, choices=", ".join(choices))
        if near:
            self._complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s: %(written)s' is not known; did you mean '%(near)s'? It is one "
                    "of: %(choices)s",
                    **at, near=near[0],
                )
            )  # fmt: skip
        else:
            self._complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s: %(written)s' is not known; it is one of: %(choices)s", **at
                )
            )
        return default

    def integer(self, key: str, default: int, *, least: int = 0, most: int = 10**9) -> int:
        """Return a whole number between *least* and *most*."""
        found = self.integer_or_none(key, least=least, most=most)
        return default if found is None else found

    def integer_or_none(self, key: str, *, least: int = 0, most: int = 10**9) -> int | None:
        """Return a whole number between *least* and *most*; None where it is left out or null."""
        leaf = self._leaf(key)
        return None if leaf is None else self._whole(key, leaf, least, most)

    def number(self, key: str, default: float, *, least: float = 0, most: float = 1e9) -> float:
        """Return a number between *least* and *most*."""
        found = self.number_or_none(key, least=least, most=most)
        return default if found is None else found

    def number_or_none(self, key: str, *, least: float = 0, most: float = 1e9) -> float | None:
        """Return a number between *least* and *most*; None where it is left out or null."""
        leaf = self._leaf(key)
        return None if leaf is None else self._decimal(key, leaf, least, most)

    def integers(self, key: str, *, least: int = 0, most: int = 10**9) -> tuple[int, ...]:
        """Return one whole number, or a list of different ones."""
        return self._several(key, lambda leaf: self._whole(key, leaf, least, most))

    def numbers(self, key: str, *, least: float = 0, most: float = 1e9) -> tuple[float, ...]:
        """Return one number, or a list of different ones."""
        return self._several(key, lambda leaf: self._decimal(key, leaf, least, most))

    def finish(self) -> None:
        """Complain about every key that was not read, naming the nearest that is known."""
        for key in self._section.entries:
            if key in self._known:
                continue
            near = difflib.get_close_matches(key, self._known, n=1)
            if near:
                self._complain(
                    PlanError(
                        "%(file)s, line %(line)d: '%(key)s' is not a key here; did you mean '%(near)s'?",
                        **self.at(key, near=near[0]),
                    )
                )
            else:
                self._complain(
                    PlanError(
                        "%(file)s, line %(line)d: '%(key)s' is not a key here; the keys are: %(keys)s",
                        **self.at(key, keys=", ".join(self._known)),
                    )
                )

    def _several(self, key: str, read: Callable[[Leaf], _Number | None]) -> tuple[_Number, ...]:
        node = self._take(key)
        if node is None:
            return ()
        leaves = node.items if isinstance(node, Items) else (node,)
        if not 1 <= len(leaves) <= _MOST_ITEMS:
            self._complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s' must list between 1 and %(most)d numbers",
                    **self.at(key, most=_MOST_ITEMS),
                )
            )
        found: list[_Number] = []
        for leaf in leaves[:_MOST_ITEMS]:
            value = None if isinstance(leaf, Leaf) and leaf.broken else self._checked(key, leaf, read)
            if value is not None and value in found:
                self._complain(
                    PlanError(
                        "%(file)s, line %(line)d: '%(key)s' lists %(value)s twice: raise 'repeats' to measure it more "
                        "often",
                        **self.at(key, value=value),
                    )
                )
            elif value is not None:
                found.append(value)
        return tuple(found)

    def _checked(self, key: str, node: Node, read: Callable[[Leaf], _Number | None]) -> _Number | None:
        if isinstance(node, Leaf):
            return read(node)
        self._not_one_value(key)
        return None

    def _whole(self, key: str, leaf: Leaf, least: int, most: int) -> int | None:
        if isinstance(leaf.value, bool) or not isinstance(leaf.value, int):
            self._complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s: %(written)s' must be a whole number, such as 16",
                    **self.at(key, written=leaf.written),
                )
            )
            return None
        return leaf.value if self._in_range(key, leaf.value, leaf, least, most) else None

    def _decimal(self, key: str, leaf: Leaf, least: float, most: float) -> float | None:
        if isinstance(leaf.value, bool) or not isinstance(leaf.value, int | float):
            self._complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s: %(written)s' must be a number, such as 1.5",
                    **self.at(key, written=leaf.written),
                )
            )
            return None
        return float(leaf.value) if self._in_range(key, leaf.value, leaf, least, most) else None

    def _in_range(self, key: str, value: float, leaf: Leaf, least: float, most: float) -> bool:
        if math.isfinite(value) and least <= value <= most:
            return True
        self._complain(
            PlanError(
                "%(file)s, line %(line)d: '%(key)s: %(written)s' must lie between %(least)s and %(most)s",
                **self.at(key, written=leaf.written, least=f"{least:,.10g}", most=f"{most:,.10g}"),
            )
        )
        return False

    def _leaf(self, key: str) -> Leaf | None:
        """Return the scalar under *key*; None where it is left out, null, or was refused already."""
        node = self._take(key)
        if node is None or (isinstance(node, Leaf) and node.broken):
            return None
        if not isinstance(node, Leaf):
            self._not_one_value(key)
            return None
        return node

    def _not_one_value(self, key: str) -> None:
        self._complain(
            PlanError("%(file)s, line %(line)d: '%(key)s' must be one value, not a list or a section", **self.at(key))
        )

    def _take(self, key: str) -> Node | None:
        """Note *key* as known and return its value; None where it is left out or null."""
        self._known.append(key)
        _, node = self._section.entries.get(key, (0, None))
        null = isinstance(node, Leaf) and node.value is None and not node.broken
        return None if null else node

    def _inner(self, section: Section, place: str) -> "Keys":
        return Keys(section, file=self._file, place=place, complain=self._complain)

    def _path(self, key: str) -> str:
        return f"{self._place}.{key}" if self._place else key
