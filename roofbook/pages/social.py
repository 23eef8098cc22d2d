"""The picture that a shared link to a page shows: the page's lead figure, or the site's first one."""

from dataclasses import dataclass
from typing import Final

from roofbook.charts.cache import FigureCache
from roofbook.charts.figure import Figure
from roofbook.charts.poster import can_write_korean
from roofbook.pages.picture import palette
from roofbook.pages.site import Site
from roofbook.places import Places

_FOLDER: Final = "social"
_KOREAN: Final = "ko"


@dataclass(frozen=True)
class Poster:
    """Where the picture lies below the language's root, what it says, and what it shows."""

    uri: str
    message: str
    description: str


@dataclass(frozen=True)
class Posters:
    """The posters of one language: *files* by address, and the one of each page that has a figure."""

    files: dict[str, bytes]
    by_page: dict[str, Poster]
    first: Poster | None = None

    def of(self, uri: str) -> Poster | None:
        """Return the poster of the page *uri*: its own, else the site's first."""
        return self.by_page.get(uri, self.first)


def posters(site: Site, site_name: str, places: Places, figures: FigureCache) -> Posters:
    """Return a picture for each page with a figure; none in Korean on a machine without a Korean face.

    Raises PageError where a chart cannot be drawn.
    """
    leads = {page.uri: page.lead for page in site.pages if page.lead is not None}
    if not leads or (site.lang == _KOREAN and not can_write_korean()):
        return Posters({}, {})
    css = (places.root / "site_src" / "assets" / "report.css").read_text(encoding="utf-8")
    colours = palette(css, "default")
    by_page = {uri: _poster(uri, lead) for uri, lead in leads.items()}
    files = {by_page[uri].uri: figures.poster(lead, site_name, colours) for uri, lead in leads.items()}
    return Posters(files, by_page, next(iter(by_page.values())))


def _poster(uri: str, lead: Figure) -> Poster:
    return Poster(f"{_FOLDER}/{uri.removesuffix('.md').replace('/', '-')}.png", lead.title, lead.description)
