"""The finished Markdown in a folder: the way out to any other site builder."""

from pathlib import Path

from roofbook.charts.cache import FigureCache
from roofbook.errors import WriteError
from roofbook.pages.picture import palette, pictures
from roofbook.pages.report import build_site
from roofbook.pages.settings import Settings
from roofbook.pages.site import Page, Site, figure_place
from roofbook.places import Places


def render(places: Places, settings: Settings, out: Path, cache: Path | None = None) -> list[Path]:
    """Write every page of every language into *out* and return the pages.

    Figures stand inline, and each is also a picture of its own below ``figures``; the files that pages need lie beside.

    Raises a RoofbookError that names what is wrong with the report, WriteError where *out* cannot be written.
    """
    written: list[Path] = []
    for language in settings.languages:
        site = build_site(places, settings, language.code, FigureCache(cache))
        folder = out if language == settings.main else out / language.code
        written += _write(site, folder, places.root / "site_src" / "assets")
    return written


def _write(site: Site, folder: Path, look: Path) -> list[Path]:
    files: dict[str, bytes | Path] = {f"assets/{path.name}": path for path in sorted(look.glob("*"))}
    files |= site.assets
    files |= {page.uri: with_figures(page).encode() for page in site.pages}
    files |= _pictures(site, look / "report.css")
    for uri, content in files.items():
        path = folder / uri
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read_bytes() if isinstance(content, Path) else content)
        except OSError as problem:
            raise WriteError("Cannot write %(path)s: %(problem)s", path=path, problem=problem) from problem
    return [folder / page.uri for page in site.pages]


def _pictures(site: Site, css: Path) -> dict[str, bytes]:
    colours = palette(css.read_text(encoding="utf-8"), "default")
    return {
        f"figures/{page.uri.removesuffix('.md').replace('/', '-')}-{anchor.removeprefix('fig-')}.svg": svg.encode()
        for page in site.pages
        for anchor, svg in pictures(page, colours).items()
    }


def with_figures(page: Page) -> str:
    """Return the page's Markdown with each figure where its place is held."""
    text = page.markdown
    for anchor, html in page.figures.items():
        text = text.replace(figure_place(anchor), html)
    return text
