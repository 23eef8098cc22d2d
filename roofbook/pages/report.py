"""Everything a report says, in one language: runs to subjects to pages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from roofbook.charts.cache import FigureCache
from roofbook.charts.draw import vega_bundle
from roofbook.facts import load_facts
from roofbook.pages import prefill
from roofbook.pages.downloads import row_files, run_files
from roofbook.pages.engine import Engine
from roofbook.pages.escape import plain_title
from roofbook.pages.press import VEGA, Press, csv_address
from roofbook.pages.settings import Settings
from roofbook.pages.site import Page, Section, Site
from roofbook.pages.subjects import SubjectView, subject_views
from roofbook.places import Places
from roofbook.record import read_runs
from roofbook.words import Words, load_words, mark

Context = dict[str, Any]

TOPICS: Final[Mapping[str, tuple[str, Callable[[SubjectView, Words, FigureCache], Context]]]] = {
    "prefill": (mark("Prefill"), prefill.context),
}
"""A subject's pages: the name is the template's and the address's, then its label and what it shows."""


def build_site(places: Places, settings: Settings, lang: str, figures: FigureCache) -> Site:
    """Return the finished pages of *lang*, in the order of the navigation, and the files beside them.

    Raises a RoofbookError that names the run file, the template or the catalogue that is wrong.
    """
    words = load_words(places.locale, lang, zone=settings.zone)
    engine = Engine((places.root / "templates", places.root / "site_src"), words)
    press = Press(engine, settings, lang)
    views = subject_views(read_runs(places.measured), load_facts(places.facts))
    chapters = [_chapter(view, words, press, figures) for view in views]
    home = press.page(
        "index.md",
        "pages/home.md.j2",
        {"cards": [chapter.card for chapter in chapters], "site_name": settings.language(lang).site_name},
        title=settings.language(lang).site_name,
        label=words.say("Home"),
    )
    navigation = (home, *(chapter.section for chapter in chapters), *_prose(places, lang, press))
    assets: dict[str, bytes | Path] = {}
    if lang == settings.main.code:
        assets |= {uri: content for chapter in chapters for uri, content in chapter.assets.items()}
        if any(page.figures for chapter in chapters for page in chapter.section.pages):
            assets[VEGA] = vega_bundle().encode()
    return Site(lang, navigation, assets, tuple(sorted(words.missing)))


@dataclass(frozen=True)
class _Chapter:
    """A subject's pages, its card on the front page, and the files that its pages offer."""

    section: Section
    card: Mapping[str, Any]
    assets: Mapping[str, bytes | Path]


def _chapter(view: SubjectView, words: Words, press: Press, figures: FigureCache) -> _Chapter:
    assets: dict[str, bytes | Path] = {**row_files(view), **run_files(view)}
    common = {
        "view": view,
        "conditions": view.conditions(words),
        "files": {"rows": sorted(row_files(view)), "runs": sorted(run_files(view))},
    }
    shown: dict[str, Context] = {}
    pages: list[Page] = []
    for name, (label, context) in TOPICS.items():
        uri = f"{view.slug}/{name}.md"
        shown[name] = context(view, words, figures)
        told = {**common, **shown[name]}
        pages.append(press.page(uri, f"pages/{name}.md.j2", told, title=shown[name]["title"], label=words.say(label)))
        assets |= {csv_address(uri, drawn): drawn.figure.table.csv().encode() for drawn in shown[name]["drawn"]}
    card = {"view": view, "uri": pages[0].uri, **shown}
    return _Chapter(Section(plain_title(view.title(words)), tuple(pages)), card, assets)


def _prose(places: Places, lang: str, press: Press) -> list[Page]:
    """Return the pages that are written by hand, one file a language, in their own order."""
    folder = places.root / "site_src" / lang
    uris = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    written = [press.prose(uri, f"{lang}/{uri}", {}) for uri in uris]
    return [page for page, _ in sorted(written, key=lambda entry: (entry[1], entry[0].uri))]
