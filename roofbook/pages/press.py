"""A template and what it shows, pressed into one finished page."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from roofbook.charts.cache import Drawn
from roofbook.charts.figure import Figure
from roofbook.errors import PageError
from roofbook.pages.engine import Engine
from roofbook.pages.escape import plain_title
from roofbook.pages.prose import Written, below_heading, heading_of, read_head
from roofbook.pages.quotes import PageQuotes
from roofbook.pages.settings import Settings
from roofbook.pages.site import Addresses, Page, figure_place

VEGA: Final = "assets/vega.js"

QUOTED: Final = "quoted"
"""The anchor of the list of numbers below a page of prose."""


class Press:
    """Makes the pages of one language."""

    def __init__(self, engine: Engine, settings: Settings, lang: str) -> None:
        self._engine = engine
        self._settings = settings
        self._lang = lang
        self._folder = "" if lang == settings.main.code else lang

    def page(self, uri: str, template: str, context: Mapping[str, Any], title: str, label: str) -> Page:
        """Return the page that *template* makes of *context*; figures in ``context['drawn']`` may be placed in it.

        Raises PageError with the template and its line.
        """
        drawn: list[Drawn] = list(context.get("drawn", ()))
        body = self._engine.render(template, {**self._frame(uri, drawn), **context}, page=uri)
        head = f"---\ntitle: {json.dumps(plain_title(title), ensure_ascii=False)}\n---\n\n"
        return Page(
            uri, plain_title(title), plain_title(label), head + body, self._figures(uri, drawn), lead=_lead(drawn)
        )

    def prose(self, uri: str, template: str, quotes: PageQuotes, context: Mapping[str, Any] | None = None) -> Written:
        """Return a page that is written as prose; what it quotes is listed at its end.

        Raises PageError with the template and its line, also for a number or figure that does not exist.
        """
        frame = {**self._frame(uri, quotes.drawn), **quotes.functions, **(context or {})}
        told = self._engine.render(template, frame, page=uri)
        head = read_head(told, template)
        title = head.title or heading_of(told) or uri
        figures = self._figures(uri, quotes.drawn, quotes.tables)
        if quotes.quoted:
            listed = {**frame, "quoted": list(quotes.quoted.values())}
            figures[QUOTED] = self._engine.render("parts/quoted.html.j2", listed, page=uri)
            told = f"{told.rstrip()}\n\n{figure_place(QUOTED)}\n"
        if quotes.absent:
            absent = {**frame, "absent": list(quotes.absent.values())}
            told = below_heading(told, self._engine.render("parts/absent.md.j2", absent, page=uri))
        label = plain_title(head.label or title)
        page = Page(uri, plain_title(title), label, told, figures, lead=_lead(quotes.drawn))
        return Written(page, head, tuple(quotes.drawn))

    def part(self, uri: str, template: str, context: Mapping[str, Any]) -> str:
        """Return a part of the page *uri* as *template* makes it of *context*."""
        return self._engine.render(template, {**self._frame(uri, []), **context}, page=uri)

    def _frame(self, uri: str, drawn: list[Drawn]) -> dict[str, Any]:
        addresses = Addresses(uri, self._folder)
        anchors = {one.figure.name: one.figure.anchor for one in drawn}

        def place(name: str) -> Markup:
            if name not in anchors:
                raise PageError(
                    "No figure '%(name)s'; there are: %(known)s", name=name, known=", ".join(anchors) or "none"
                )
            return Markup(f"\n{figure_place(anchors[name])}\n")

        return {
            "page": addresses.page,
            "asset": addresses.asset,
            "figure": place,
            "owner": self._settings.owner,
            "site_name": self._settings.language(self._lang).site_name,
            "drawn": drawn,
        }

    def _figures(self, uri: str, drawn: list[Drawn], tables: Mapping[str, str] | None = None) -> dict[str, str]:
        addresses = Addresses(uri, self._folder)
        published = {one.figure.anchor: csv_address(uri, one) for one in drawn} | dict(tables or {})
        return {
            one.figure.anchor: _one_block(
                self._engine.render(
                    "parts/figure.html.j2",
                    {
                        **self._frame(uri, []),
                        "drawn": one,
                        "vega": addresses.asset(VEGA),
                        "csv": addresses.asset(published[one.figure.anchor]),
                    },
                    page=uri,
                )
            )
            for one in drawn
        }


def _lead(drawn: Sequence[Drawn]) -> Figure | None:
    return drawn[0].figure if drawn else None


def csv_address(uri: str, drawn: Drawn) -> str:
    """Return where the table of a page's figure is published."""
    return f"data/{uri.removesuffix('.md').replace('/', '-')}-{drawn.figure.name}.csv"


def _one_block(html: str) -> str:
    """Return the HTML without blank lines: to Markdown one of them ends a block of HTML."""
    return re.sub(r"\n\s*\n", "\n", html).strip()
