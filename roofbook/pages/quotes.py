"""Numbers and figures by name: prose quotes what is computed from the rows, and cannot go stale or be mistyped."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from markupsafe import Markup

from roofbook.analysis.quantities import Quantity, change, ratio
from roofbook.charts.cache import Drawn
from roofbook.errors import PageError
from roofbook.pages.escape import text
from roofbook.pages.library import Library, Source, near
from roofbook.pages.site import figure_place
from roofbook.pages.values import footing, told
from roofbook.words import Words, mark

_NOT_MORE: Final = mark("The page says that '%(after)s' is more than '%(before)s' (of '%(source)s'), and it is not")
_NOT_LESS: Final = mark("The page says that '%(after)s' is less than '%(before)s' (of '%(source)s'), and it is not")

_ORIGINS: Final[Mapping[str, str]] = {
    "facts": mark("the catalogue of facts, with its sources"),
    "claim": mark("as it was published"),
    "fits_requests": mark("theory, from the catalogue"),
    "together_tok_per_s": mark("theory, from the catalogue"),
    "crossover_requests": mark("theory, from the catalogue"),
    "rows": mark("the rows themselves"),
}
"""Where a number without n and interval comes from, by the first part of its name."""


@dataclass(frozen=True)
class Quoted:
    """One number as a page quotes it."""

    source: Source
    name: str
    quantity: Quantity

    def told(self, words: Words) -> str:
        return told(self.quantity, words)

    def footing(self, words: Words) -> str:
        """Return what the number stands on: its n and interval, else where it comes from."""
        return footing(self.quantity, words) or words.say(self._origin)

    @property
    def _origin(self) -> str:
        first = self.name.partition(".")[0]
        if first in ("machine", "model") or not self.source.topics:
            return _ORIGINS["facts"]
        return _ORIGINS.get(first, _ORIGINS["rows"])


class PageQuotes:
    """What one page quotes: the functions that its prose may call, and afterwards what it called them for."""

    def __init__(self, library: Library, uri: str) -> None:
        self._library = library
        self._uri = uri
        self._words = library.words
        self.quoted: dict[tuple[str, str], Quoted] = {}
        self.drawn: list[Drawn] = []
        self.tables: dict[str, str] = {}
        """Where the tables of the placed figures are published, by their anchors."""
        self.absent: dict[str, Source] = {}
        """Subjects that are quoted and have not been measured in this folder."""

    @property
    def functions(self) -> dict[str, Any]:
        """What the page's template may call, by name."""
        return {
            "quote": self.quote,
            "ratio": self.ratio,
            "grows": self.grows,
            "falls": self.falls,
            "chart": self.chart,
            "where": self.where,
        }

    def quote(self, source: str, name: str, *, unit: bool = True) -> Markup:
        """Return the number *name* of *source* with its unit (or bare).

        Raises PageError, with the near names, for a source or name that does not exist.
        """
        return self._shown(self._get(source, name), unit=unit)

    def ratio(self, source: str, over: str, under: str, other: str | None = None) -> Markup:
        """Return how many times the number *under* (of *other*, else of the same source) goes into *over*."""
        return self._shown(ratio(self._get(source, over), self._get(other or source, under)))

    def grows(self, source: str, before: str, after: str) -> Markup:
        """Return by what share *after* is more than *before*; raises PageError where it is not."""
        return self._changed(source, before, after, 1)

    def falls(self, source: str, before: str, after: str) -> Markup:
        """Return by what share *after* is less than *before*; raises PageError where it is not."""
        return self._changed(source, before, after, -1)

    def chart(self, source: str, name: str) -> Markup:
        """Place the figure *name* of the subject *source*, once a page; raises PageError where there is none."""
        found = self._library.source(source)
        if found.quantities is None:
            self.absent[source] = found
            return Markup("")
        if name not in found.figures:
            raise PageError(
                "'%(source)s' has no figure '%(name)s'; there are: %(known)s",
                source=source, name=name, known=", ".join(found.figures) or "none",
            )  # fmt: skip
        figure = found.figures[name]
        own = replace(figure.drawn, figure=replace(figure.drawn.figure, name=f"{source}-{name}"))
        self.drawn.append(own)
        self.tables[own.figure.anchor] = figure.csv
        return Markup(f"\n{figure_place(own.figure.anchor)}\n")

    def where(self, source: str, topic: str | None = None) -> str:
        """Return the address of a page of the subject *source* for a Markdown link: the one on *topic*, or its first.

        The front page where it has none; raises PageError for a topic that no subject has.
        """
        found = self._library.source(source)
        if found.quantities is None or found.uri is None:
            return self._address("index.md")
        if topic is not None and topic not in found.topics:
            raise PageError(
                "'%(source)s' has no page '%(topic)s'; there are: %(known)s",
                source=source, topic=topic, known=", ".join(found.topics),
            )  # fmt: skip
        return self._address(found.topics[topic] if topic else found.uri)

    def _address(self, uri: str) -> str:
        return posixpath.relpath(uri, posixpath.dirname(self._uri) or ".")

    def _get(self, source: str, name: str) -> Quantity:
        found = self._library.source(source)
        if found.quantities is None:
            self.absent[source] = found
            return Quantity("count")
        quantity = found.quantities.find(name)
        if quantity is None:
            raise PageError(
                "'%(source)s' has no number '%(name)s'. Near ones: %(near)s",
                source=source, name=name, near=near(name, found.quantities.names),
            )  # fmt: skip
        self.quoted[source, name] = Quoted(found, name, quantity)
        return quantity

    def _changed(self, source: str, before: str, after: str, direction: int) -> Markup:
        share = change(self._get(source, before), self._get(source, after))
        if share.value is None:
            return self._shown(share)
        if share.value * direction < 0:
            sentence = _NOT_MORE if direction > 0 else _NOT_LESS
            raise PageError(sentence, after=after, before=before, source=source)
        return self._shown(replace(share, value=abs(share.value)))

    def _shown(self, quantity: Quantity, *, unit: bool = True) -> Markup:
        if not quantity.known:
            return Markup('<span class="rb-unknown" title="{}">–</span>').format(self._words.say("unknown"))
        below = footing(quantity, self._words)
        shown = text(told(quantity, self._words, unit=unit))
        hint = Markup(' title="{}"').format(below) if below else Markup("")
        return Markup('<span class="rb-quote"') + hint + Markup(">") + shown + Markup("</span>")
