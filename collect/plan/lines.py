"""YAML text to a tree that keeps its line numbers and refuses what YAML quietly turns into something else.

PyYAML reads ``1:30`` as 90, ``010`` as 8, ``on`` as true, ``1e3`` as text, and takes the last of two equal keys. Here a
plain scalar is null, true, false, a decimal number or text; each of those spellings is a fault that says what to write.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from roofbook.errors import PlanError

Scalar = None | bool | int | float | str

_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)\.[0-9]+")
_EXPONENT: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+")
_SEXAGESIMAL: Final = re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")
_UNDERSCORED: Final = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]+)?")
_LEADING_ZERO: Final = re.compile(r"[-+]?0[0-9]+(\.[0-9]+)?")
_OTHER_BASE: Final = re.compile(r"[-+]?(0x[0-9a-f]+|0o[0-7]+|0b[01]+)", re.IGNORECASE)
_HALF_DECIMAL: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.)")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
_NULLS: Final = ("", "~", "null", "Null", "NULL")
_TRUE: Final = ("true", "True", "TRUE")
_FALSE: Final = ("false", "False", "FALSE")
_SWITCHES: Final = {"on": "true", "yes": "true", "off": "false", "no": "false"}
_DEEPEST: Final = 12  # a plan needs four levels; an alias that holds itself would have no bottom
_MOST_NODES: Final = 100_000  # aliases of aliases can make a few lines endless

Complain = Callable[[PlanError], None]


@dataclass(frozen=True)
class Leaf:
    """One scalar: *written* as in the file, *value* as understood (None with *broken* where it was refused)."""

    line: int
    value: Scalar
    written: str
    broken: bool = False


@dataclass(frozen=True)
class Items:
    """A list."""

    line: int
    items: "tuple[Node, ...]"


@dataclass(frozen=True)
class Section:
    """A mapping: its keys with the line of each key."""

    line: int
    entries: "dict[str, tuple[int, Node]]"


Node = Leaf | Items | Section


def read_lines(text: str, file: str, complain: Complain) -> Node | None:
    """Return the tree of the one document in *text*, None where there is none; every fault goes to *complain*."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line = 1 if mark is None else mark.line + 1
        said = " ".join(part for part in (problem.context, problem.problem) if part)
        complain(
            PlanError("%(file)s, line %(line)d: this is not YAML: %(problem)s", file=file, line=line, problem=said)
        )
        return None
    except (yaml.YAMLError, RecursionError) as problem:
        said = " ".join(str(problem).split())
        complain(PlanError("%(file)s, line %(line)d: this is not YAML: %(problem)s", file=file, line=1, problem=said))
        return None
    if root is None:
        return None
    if _nodes(root) > _MOST_NODES:
        complain(
            PlanError(
                "%(file)s, line %(line)d: its aliases (*name) make this plan endless: write the values out",
                file=file, line=1,
            )
        )  # fmt: skip
        return None
    return _Reader(file, complain).node(root, key="plan", depth=0)


def _nodes(root: yaml.Node) -> int:
    """Return how many nodes *root* has with every alias written out; more than _MOST_NODES are not counted on."""
    waiting, seen = [root], 0
    while waiting and seen <= _MOST_NODES:
        node = waiting.pop()
        seen += 1
        if isinstance(node, yaml.MappingNode):
            waiting += [inner for pair in node.value for inner in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
    return seen


@dataclass(frozen=True)
class _Reader:
    file: str
    complain: Complain

    def node(self, node: yaml.Node, *, key: str, depth: int) -> Node:
        line = node.start_mark.line + 1
        if depth > _DEEPEST:
            self.complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s' is nested too deeply for a plan",
                    file=self.file,
                    line=line,
                    key=key,
                )
            )
            return Leaf(line, None, "", broken=True)
        if isinstance(node, yaml.MappingNode):
            return Section(line, dict(self._entries(node, depth)))
        if isinstance(node, yaml.SequenceNode):
            return Items(line, tuple(self.node(child, key=key, depth=depth + 1) for child in node.value))
        return self._leaf(node, line, key)

    def _entries(self, node: yaml.MappingNode, depth: int) -> Iterator[tuple[str, tuple[int, Node]]]:
        first_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.complain(
                    PlanError(
                        "%(file)s, line %(line)d: a key must be one word, not a list or a section",
                        file=self.file,
                        line=line,
                    )
                )
                continue
            key = str(key_node.value)
            if key in first_lines:
                self.complain(
                    PlanError(
                        "%(file)s, line %(line)d: '%(key)s' is written twice (first in line %(first)d): keep one",
                        file=self.file,
                        line=line,
                        key=key,
                        first=first_lines[key],
                    )
                )
                continue
            first_lines[key] = line
            yield key, (line, self.node(value_node, key=key, depth=depth + 1))

    def _leaf(self, node: yaml.Node, line: int, key: str) -> Leaf:
        written = str(node.value)
        plain = isinstance(node, yaml.ScalarNode) and node.style is None
        if not plain:
            return Leaf(line, written, f'"{written}"')
        if written in _NULLS:
            return Leaf(line, None, written)
        if written in _TRUE or written in _FALSE:
            return Leaf(line, written in _TRUE, written)
        if _INTEGER.fullmatch(written) and len(written) <= 18:
            return Leaf(line, int(written), written)
        if _DECIMAL.fullmatch(written) and len(written) <= 32:
            return Leaf(line, float(written), written)
        if self._is_a_trap(written, line, key):
            return Leaf(line, None, written, broken=True)
        return Leaf(line, written, written)

    def _is_a_trap(self, written: str, line: int, key: str) -> bool:
        """Complain about a spelling that other YAML readers take for something else than it looks like."""
        if written.lower() in _SWITCHES:
            self.complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s: %(written)s' is a switch to some readers and a word to others: "
                    "write %(better)s, or put it in quotes if the word is meant",
                    file=self.file,
                    line=line,
                    key=key,
                    written=written,
                    better=_SWITCHES[written.lower()],
                )
            )
            return True
        if _NO_NUMBER.fullmatch(written):
            self.complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s: %(written)s' is no number to measure by: write one in digits, "
                    "or put it in quotes if it is text",
                    file=self.file, line=line, key=key, written=written,
                )
            )  # fmt: skip
            return True
        if _INTEGER.fullmatch(written) or _DECIMAL.fullmatch(written):
            self.complain(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s: %(written)s' has more digits than a number here can have: "
                    "write a smaller one, or put it in quotes if it is text",
                    file=self.file, line=line, key=key, written=written,
                )
            )  # fmt: skip
            return True
        better = _plainly(written)
        if better is None:
            return False
        self.complain(
            PlanError(
                "%(file)s, line %(line)d: '%(key)s: %(written)s' is read differently by different readers: "
                "write %(better)s, or put it in quotes if it is text",
                file=self.file,
                line=line,
                key=key,
                written=written,
                better=better,
            )
        )
        return True


def _plainly(written: str) -> str | None:
    """Return how to write the number that *written* seems to mean, None where it is plain text."""
    digits = written.replace("_", "")
    if _UNDERSCORED.fullmatch(written):
        return _shortest(digits.lstrip("+"))
    if _EXPONENT.fullmatch(written):
        return _shortest(written)
    if _SEXAGESIMAL.fullmatch(written):
        total = 0.0
        for part in written.lstrip("+-").split(":"):
            total = total * 60 + float(part)
        return _shortest(str(total))
    if _LEADING_ZERO.fullmatch(written):
        sign = "-" if written.startswith("-") else ""
        return sign + (written.lstrip("+-").lstrip("0") or "0")
    if _OTHER_BASE.fullmatch(written):
        value = int(written, 0)
        return str(value) if abs(value) < 2**63 else "a smaller number"
    return _shortest(written) if _HALF_DECIMAL.fullmatch(written) else None


def _shortest(written: str) -> str:
    value = float(written)
    if value in (float("inf"), float("-inf")):
        return "a smaller number"
    return str(int(value)) if value == int(value) else str(value)
