"""A finished site in one language, before any site builder has seen it."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from roofbook.charts.figure import Figure


@dataclass(frozen=True)
class Page:
    """One page: *uri* ends in .md and is the same in every language; *figures* by the anchor that holds their place.

    *title* and *label* (its name in the navigation) are HTML.
    """

    uri: str
    title: str
    label: str
    markdown: str
    figures: Mapping[str, str] = field(default_factory=dict[str, str])
    langs: tuple[str, ...] | None = None
    """The languages that it exists in; None: in every one."""
    lead: Figure | None = None
    """The figure that stands for the page where a link to it is shared."""

    def exists_in(self, lang: str) -> bool:
        return self.langs is None or lang in self.langs


@dataclass(frozen=True)
class Section:
    """A group of pages in the navigation; *title* is HTML."""

    title: str
    pages: tuple[Page, ...]
    group: str | None = None
    """What several sections stand under together, where there would be too many side by side; HTML."""


@dataclass(frozen=True)
class Site:
    """All pages of one language in the order of the navigation, and the files that stand beside them.

    *assets* belong to the site as a whole: they are published once, at the root, whatever the number of languages.
    """

    lang: str
    navigation: tuple[Page | Section, ...]
    assets: Mapping[str, bytes | Path]
    missing: tuple[str, ...] = ()
    """Sentences that were said in English for want of a translation."""

    @property
    def pages(self) -> tuple[Page, ...]:
        groups = (entry.pages if isinstance(entry, Section) else (entry,) for entry in self.navigation)
        return tuple(page for group in groups for page in group)

    def page(self, uri: str) -> Page:
        """Return the page at *uri*."""
        return self._by_uri[uri]

    @cached_property
    def _by_uri(self) -> Mapping[str, Page]:
        return {page.uri: page for page in self.pages}


@dataclass(frozen=True)
class Addresses:
    """Relative addresses as they are seen from one page: they hold on a server, below any path, and from a folder."""

    uri: str
    lang_folder: str
    """"" for the main language, else its code."""

    def page(self, uri: str) -> str:
        """Return the address of the page *uri* of the same language."""
        return self._relative(posixpath.join(self.lang_folder, uri.removesuffix(".md") + ".html"))

    def asset(self, path: str) -> str:
        """Return the address of an asset at the site's root."""
        return self._relative(path)

    def _relative(self, target: str) -> str:
        here = posixpath.dirname(posixpath.join(self.lang_folder, self.uri))
        return posixpath.relpath(target, here or ".")


def figure_place(anchor: str) -> str:
    """Return what holds a figure's place in the Markdown, until the page is HTML."""
    return f'<div id="{anchor}" data-figure></div>'
