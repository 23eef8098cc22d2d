"""A template and what it shows, pressed into one finished page."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import yaml
from markupsafe import Markup

from roofbook.charts.cache import Drawn
from roofbook.errors import PageError
from roofbook.pages.engine import Engine
from roofbook.pages.escape import plain_title
from roofbook.pages.settings import Settings
from roofbook.pages.site import Addresses, Page

VEGA: Final = "assets/vega.js"

_FRONT_MATTER: Final = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_HEADING: Final = re.compile(r"^# +(.+?) *(?:\{[^}]*\})?$", re.MULTILINE)


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
        return Page(uri, plain_title(title), plain_title(label), head + body, self._figures(uri, drawn))

    def prose(self, uri: str, template: str, context: Mapping[str, Any]) -> tuple[Page, int]:
        """Return a page that is written as prose, and its place among the others (``order`` in its front matter)."""
        drawn: list[Drawn] = list(context.get("drawn", ()))
        text = self._engine.render(template, {**self._frame(uri, drawn), **context}, page=uri)
        meta = _front_matter(text, template)
        heading = _HEADING.search(text)
        title = str(meta.get("title") or (heading[1] if heading else uri))
        label = str(meta.get("label") or title)
        page = Page(uri, plain_title(title), plain_title(label), text, self._figures(uri, drawn))
        return page, int(meta.get("order") or 0)

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
            "drawn": drawn,
        }

    def _figures(self, uri: str, drawn: list[Drawn]) -> dict[str, str]:
        addresses = Addresses(uri, self._folder)
        return {
            one.figure.anchor: self._engine.render(
                "parts/figure.html.j2",
                {"drawn": one, "vega": addresses.asset(VEGA), "csv": addresses.asset(csv_address(uri, one))},
                page=uri,
            )
            for one in drawn
        }


def _front_matter(text: str, template: str) -> dict[str, Any]:
    front = _FRONT_MATTER.match(text)
    try:
        meta: Any = yaml.safe_load(front[1]) if front else {}
        return {"title": meta.get("title"), "label": meta.get("label"), "order": int(meta.get("order") or 0)}
    except (yaml.YAMLError, AttributeError, TypeError, ValueError) as problem:
        raise PageError("%(template)s: its front matter is no YAML", template=template) from problem


def figure_place(anchor: str) -> str:
    """Return what holds a figure's place in the Markdown, until the page is HTML."""
    return f'<div id="{anchor}" data-figure></div>'


def csv_address(uri: str, drawn: Drawn) -> str:
    """Return where the table of a page's figure is published."""
    return f"data/{uri.removesuffix('.md').replace('/', '-')}-{drawn.figure.name}.csv"
