"""Everything a report says, in one language: runs to subjects to pages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from roofbook.charts.cache import Drawn, FigureCache
from roofbook.facts import load_facts
from roofbook.pages import budget, data, overview, prefill, speed
from roofbook.pages.calculator import calculator
from roofbook.pages.concepts import World, concepts, tables
from roofbook.pages.downloads import plan_files, row_files, run_files
from roofbook.pages.engine import Engine
from roofbook.pages.escape import plain_title
from roofbook.pages.home import front_page
from roofbook.pages.library import Library, Placeable, Quotable, with_short_names
from roofbook.pages.posts import languages_of, listed, written_posts
from roofbook.pages.press import VEGA, Press, csv_address
from roofbook.pages.prose import files
from roofbook.pages.quotes import PageQuotes
from roofbook.pages.settings import Settings
from roofbook.pages.shelves import navigation
from roofbook.pages.site import Page, Section, Site
from roofbook.pages.subjects import SubjectView, subject_views
from roofbook.places import Places
from roofbook.record import read_runs
from roofbook.words import Words, load_words, mark

Context = dict[str, Any]

TOPICS: Final[Mapping[str, tuple[str, Callable[[SubjectView, Words, FigureCache], Context]]]] = {
    "overview": (mark("Overview"), overview.context),
    "speed": (mark("Speed"), speed.context),
    "prefill": (mark("Prefill"), prefill.context),
    "memory": (mark("Memory"), budget.context),
    "data": (mark("Data"), data.context),
}
"""A subject's pages: the name is the template's and the address's, then its label and what it shows."""


def build_site(places: Places, settings: Settings, lang: str, figures: FigureCache) -> Site:
    """Return the finished pages of *lang*, in the order of the navigation, and the files beside them.

    Raises a RoofbookError that names the run file, the template or the catalogue that is wrong.
    """
    words = load_words(places.locale, lang, zone=settings.zone)
    engine = Engine((places.root / "templates", places.root / "site_src"), words, places.compiled)
    press = Press(engine, settings, lang)
    facts = load_facts(places.facts)
    runs = read_runs(places.measured)
    views = subject_views(runs, facts)
    chapters = [_chapter(view, words, press, figures) for view in views]
    quotable = with_short_names(
        [chapter.quotable for chapter in chapters], settings.subjects, runs, facts, partial(_drawn, words, figures)
    )
    library = Library(words, facts, quotable, settings.subjects)
    posts = languages_of(places.root / "site_src", [language.code for language in settings.languages])
    own_posts = written_posts(press, lang, posts, library)
    shown = listed(posts, places.root / "site_src", lang, own_posts)
    home = front_page(press, settings, lang, library, [chapter.card for chapter in chapters], shown)
    written = [
        press.prose(uri, f"{lang}/{uri}", PageQuotes(library, uri)) for uri in files(places.root / "site_src" / lang)
    ]
    known = concepts(World(facts, runs, views), words, press, figures)
    known += calculator(facts, views, words, press)
    sections = [chapter.section for chapter in chapters]
    assets: dict[str, bytes | Path] = {}
    if lang == settings.main.code:
        assets |= {uri: content for chapter in chapters for uri, content in chapter.assets.items()}
        assets |= tables(known)
        assets |= {table: data for one in quotable.values() for table, data in one.tables.items()}
        if any(one.drawn for one in known) or any(page.figures for section in sections for page in section.pages):
            assets[VEGA] = figures.vega_bundle()
    pages = navigation(home, [*written, *known, *own_posts], sections, words)
    return Site(lang, pages, assets, tuple(sorted(words.missing)))


@dataclass(frozen=True)
class _Chapter:
    """A subject's pages, its card on the front page, and the files that its pages offer."""

    section: Section
    card: Mapping[str, Any]
    assets: Mapping[str, bytes | Path]
    quotable: Quotable


def _chapter(view: SubjectView, words: Words, press: Press, figures: FigureCache) -> _Chapter:
    assets: dict[str, bytes | Path] = {**row_files(view), **run_files(view), **plan_files(view)}
    common = {
        "view": view,
        "conditions": view.conditions(words),
        "files": {"rows": sorted(row_files(view)), "runs": sorted(run_files(view))},
    }
    shown: dict[str, Context] = {}
    pages: list[Page] = []
    placeable: list[Placeable] = []
    for name, (label, context) in TOPICS.items():
        uri = f"{view.slug}/{name}.md"
        shown[name] = context(view, words, figures)
        told = {**common, **shown[name]}
        pages.append(press.page(uri, f"pages/{name}.md.j2", told, title=shown[name]["title"], label=words.say(label)))
        tables = {csv_address(uri, drawn): drawn for drawn in shown[name]["drawn"]}
        assets |= {address: drawn.figure.table.csv().encode() for address, drawn in tables.items()}
        placeable += [Placeable(drawn, address) for address, drawn in tables.items()]
    topics = {name: f"{view.slug}/{name}.md" for name in TOPICS}
    card = {"view": view, "uri": pages[0].uri, "topics": topics, **shown}
    return _Chapter(
        Section(plain_title(view.title(words)), tuple(pages)), card, assets, Quotable(view, topics, placeable)
    )


def _drawn(words: Words, figures: FigureCache, view: SubjectView) -> list[Drawn]:
    """Return all figures of *view*, for pages other than its own."""
    contexts = (context(view, words, figures) for _, context in TOPICS.values())
    return [drawn for shown in contexts for drawn in shown["drawn"]]
