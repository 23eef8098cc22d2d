"""What is doubtful about a run so far: found while nothing is in flight, told once, and summed up at its end."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from collect.schedule import Cell, Unit
from roofbook.facts import Facts
from roofbook.record import Row, RunFacts
from roofbook.validity import Finding, findings, known_of
from roofbook.words import Words
from roofbook.words.doubts import name_of, sentence, way_out

OF_THE_WHOLE: Final = frozenset(
    {
        "cached_prefix_implied",
        "estimated_counts",
        "prompt_not_counted",
        "mixed_conditions",
        "outlier",
        "unreliable",
        "too_few",
        "drifted",
    }
)
"""Kinds that more rows may take back or bring about: not told before the point, or the run, is complete."""

# Looking at thousands of rows takes a while, and the server must not wait for it longer than for a breath.
_SHARE_OF_TIME: Final = 0.02

Find = Callable[[Sequence[Row]], list[Finding]]


def finder(facts: Facts, run: Callable[[], RunFacts]) -> Find:
    """Return what finds doubts in rows of *run*, with what the catalogue and the run itself know."""

    def find(rows: Sequence[Row]) -> list[Finding]:
        return findings(rows, known_of(rows, facts, [run()]))

    return find


@dataclass
class Doubts:
    """The doubts of one run as they are told: each kind once in an experiment, until the end counts them."""

    find: Find
    clock: Callable[[], float] = time.monotonic
    _told: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]])
    _complete: set[tuple[str | None, str]] = field(default_factory=set[tuple[str | None, str]])
    _not_before_s: float = float("-inf")

    def news(self, rows: Sequence[Row], cell: Cell, left: Sequence[Unit]) -> list[Finding]:
        """Return what was not told yet, now that a unit of *cell* is behind us and *left* is still to come."""
        if not any(unit.cell == cell for unit in left):
            self._complete.add((cell.experiment, cell.point))
        elif self.clock() < self._not_before_s:
            return []
        began_s = self.clock()
        found = [one for one in self.find(rows) if self._is_news(one)]
        ended_s = self.clock()
        self._not_before_s = ended_s + (ended_s - began_s) / _SHARE_OF_TIME
        fresh: list[Finding] = []
        for one in found:
            if (one.kind, one.experiment) not in self._told:
                self._told.add((one.kind, one.experiment))
                fresh.append(one)
        return fresh

    def _is_news(self, one: Finding) -> bool:
        if one.kind in OF_THE_WHOLE and (one.experiment, one.point) not in self._complete:
            return False
        return (one.kind, one.experiment) not in self._told


def in_words(one: Finding, words: Words) -> str:
    """Return one doubt as a line: where, what, with its numbers, and the way out."""
    where = one.point or one.experiment
    name = name_of(one.kind, words)
    head = name if where is None else f"{where}, {name}"
    return f"{head}: {sentence(one.kind, one.values, words)} {way_out(one.kind, one.values, words)}"


def summary(found: Collection[Finding], words: Words) -> list[str]:
    """Return every kind of doubt as a line with the number of its rows, what spoils figures first."""
    kinds: dict[str, list[Finding]] = {}
    for one in sorted(found, key=lambda one: not one.doubtful):
        kinds.setdefault(one.kind, []).append(one)
    return [f"{name_of(kind, words)}{_count(cases, words)}: {_told(cases, words)}" for kind, cases in kinds.items()]


def _told(cases: Sequence[Finding], words: Words) -> str:
    first = cases[0]
    return f"{sentence(first.kind, first.values, words)} {way_out(first.kind, first.values, words)}"


def _count(cases: Sequence[Finding], words: Words) -> str:
    rows = {one.order_index for one in cases} - {None}
    points = {(one.experiment, one.point) for one in cases if one.order_index is None and one.point is not None}
    if rows:
        counted = words.say_n("%(n)d row", "%(n)d rows", len(rows))
    elif points:
        counted = words.say_n("%(n)d point", "%(n)d points", len(points))
    else:
        return ""
    return f" ({counted})"
