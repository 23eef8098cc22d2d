"""The pages that exist once for the site: what holds for every subject, computed from the facts and all the rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from roofbook.charts.cache import FigureCache
from roofbook.pages.concepts import claims, hardware, memory, outlook, reference, runtimes
from roofbook.pages.concepts.world import World
from roofbook.pages.press import Press, csv_address
from roofbook.pages.prose import Head, Written
from roofbook.words import Words, mark

__all__ = ["CONCEPTS", "Concept", "World", "concepts", "tables"]

Context = dict[str, Any]


@dataclass(frozen=True)
class Concept:
    """One page: its address and template, its name in the navigation and its place there, and what it shows."""

    name: str
    label: str
    shelf: str
    order: int
    context: Callable[[World, Words, FigureCache], Context]

    @property
    def uri(self) -> str:
        return f"{self.name}.md"


CONCEPTS: Final = (
    Concept("hardware", mark("Hardware"), "basics", 30, hardware.context),
    Concept("memory", mark("Memory"), "basics", 40, memory.context),
    Concept("runtimes", mark("Runtimes"), "basics", 50, runtimes.context),
    Concept("reference", mark("Other machines"), "basics", 70, reference.context),
    Concept("claims", mark("Claimed and recomputed"), "log", 30, claims.context),
    Concept("next", mark("What is next"), "log", 40, outlook.context),
)


def concepts(world: World, words: Words, press: Press, figures: FigureCache) -> list[Written]:
    """Return the concept pages of one language; raises PageError with template and line where one is wrong."""
    return [_written(one, one.context(world, words, figures), words, press) for one in CONCEPTS]


def _written(one: Concept, shown: Context, words: Words, press: Press) -> Written:
    label = words.say(one.label)
    page = press.page(one.uri, f"pages/concepts/{one.name}.md.j2", shown, title=shown["title"], label=label)
    return Written(page, Head(shown["title"], label, one.order, one.shelf), tuple(shown["drawn"]))


def tables(written: Iterable[Written]) -> dict[str, bytes]:
    """Return the tables of the pages' figures, by the address they are published at."""
    return {
        csv_address(one.page.uri, drawn): drawn.figure.table.csv().encode() for one in written for drawn in one.drawn
    }
