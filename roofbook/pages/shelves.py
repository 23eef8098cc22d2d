"""The order of the navigation: the front page, what everybody should read, the subjects, the log, the rest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from roofbook.errors import PageError
from roofbook.pages.escape import plain_title
from roofbook.pages.prose import LAST, Written
from roofbook.pages.site import Page, Section
from roofbook.words import Words, mark

SHELVES: Final[Mapping[str, str]] = {
    "basics": mark("The basics"),
    "log": mark("The log"),
    "posts": mark("Posts"),
}
"""Groups of pages, by the ``shelf`` in a page's front matter; basics stand before the subjects, the others after."""


_SIDE_BY_SIDE: Final = 3
"""More subjects than this stand under one heading, of which only the one that is read is unfolded."""


def navigation(
    home: Page, written: Sequence[Written], subjects: Iterable[Section], words: Words
) -> tuple[Page | Section, ...]:
    """Return all pages in the order of the navigation: by their ``order``, those of one order as they come.

    Raises PageError for a shelf that does not exist.
    """
    for one in written:
        if one.head.shelf is not None and one.head.shelf not in SHELVES:
            raise PageError(
                "%(page)s: there is no shelf '%(shelf)s'; there are: %(known)s",
                page=one.page.uri, shelf=one.head.shelf, known=", ".join(SHELVES),
            )  # fmt: skip
    ordered = sorted(written, key=lambda one: one.head.order)
    alone = [one for one in ordered if one.head.shelf is None]
    shelves = {
        name: _shelf(title, [one.page for one in ordered if one.head.shelf == name], words)
        for name, title in SHELVES.items()
    }
    return (
        home,
        *(one.page for one in alone if one.head.order < LAST),
        *shelves["basics"],
        *_gathered(tuple(subjects), words),
        *shelves["log"],
        *shelves["posts"],
        *(one.page for one in alone if one.head.order >= LAST),
    )


def _gathered(subjects: tuple[Section, ...], words: Words) -> tuple[Section, ...]:
    if len(subjects) <= _SIDE_BY_SIDE:
        return subjects
    return tuple(replace(subject, group=plain_title(words.say("Measured"))) for subject in subjects)


def _shelf(title: str, pages: Sequence[Page], words: Words) -> list[Section]:
    return [Section(plain_title(words.say(title)), tuple(pages))] if pages else []
