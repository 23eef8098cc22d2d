"""Finished pages, kept from one build to the next: what has not changed since is not computed again.

A report says the same on any day, so the pages of a language can only change with what they are made from: data,
templates, prose, settings, this package, and the libraries that it stands on.
"""

import base64
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final, cast

from roofbook.charts.cache import FigureCache, figure_from_json, keep
from roofbook.pages.settings import Settings
from roofbook.pages.site import Page, Section, Site
from roofbook.places import Places

_ROOMS: Final = ("data", "templates", "site_src")
_PACKAGE: Final = Path(__file__).parents[1]
_NAME: Final = re.compile(r"[\w.-]+")


def kept_site(places: Places, settings: Settings, lang: str, figures: FigureCache, folder: Path) -> Site:
    """Return the pages of *lang* as ``build_site`` makes them, from *folder* where they lie there already.

    Raises what ``build_site`` raises; what failed is not kept.
    """
    path = folder / f"site-{lang}.json"
    key = _key(places, settings, lang)
    kept = _read(path)
    if kept.get("key") == key:
        return _site(kept["site"], places.root)
    # Importing what computes and draws takes as long as all that a site builder does, so it waits until here.
    from roofbook.pages.report import build_site

    site = build_site(places, settings, lang, figures)
    keep(path, json.dumps({"key": key, "site": _told(site, places.root)}, ensure_ascii=False).encode())
    return site


def _key(places: Places, settings: Settings, lang: str) -> str:
    """Return a digest of everything that the pages are made from."""
    digest = hashlib.sha256(f"{lang}\0{settings!r}\0{_PACKAGE}\0{sys.version}".encode())
    for one in _versions():
        digest.update(f"\0{one}".encode())
    sources = sorted(_PACKAGE.rglob("*.py"))
    for path in [*sources, *(path for room in _ROOMS for path in sorted((places.root / room).rglob("*")))]:
        if path.is_file():
            content = path.read_bytes()
            digest.update(f"\0{path}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()


def _versions() -> Iterator[str]:
    """Yield the versions of the libraries that this package asks for."""
    for requirement in requires("roofbook") or ():
        name = _NAME.match(requirement)
        if name is not None and "extra ==" not in requirement:
            try:
                yield f"{name[0]} {version(name[0])}"
            except PackageNotFoundError:  # one for another system
                continue


def _read(path: Path) -> dict[str, Any]:
    """Return what is kept at *path*; nothing, where there is none that can be read."""
    try:
        kept = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}


def _told(site: Site, root: Path) -> dict[str, Any]:
    """Return *site* as JSON can hold it; files of the report are called by where they lie in it."""
    return {
        "lang": site.lang,
        "navigation": [asdict(entry) for entry in site.navigation],
        "files": {uri: str(made.relative_to(root)) for uri, made in site.assets.items() if isinstance(made, Path)},
        "made": {
            uri: base64.b64encode(made).decode() for uri, made in site.assets.items() if not isinstance(made, Path)
        },
        "missing": list(site.missing),
    }


def _site(told: Mapping[str, Any], root: Path) -> Site:
    files: dict[str, bytes | Path] = {uri: root / path for uri, path in told["files"].items()}
    made = {uri: base64.b64decode(content) for uri, content in told["made"].items()}
    return Site(
        told["lang"], tuple(_entry(entry) for entry in told["navigation"]), files | made, tuple(told["missing"])
    )


def _entry(told: Mapping[str, Any]) -> Page | Section:
    if "pages" in told:
        return Section(told["title"], tuple(_page(page) for page in told["pages"]), told["group"])
    return _page(told)


def _page(told: Mapping[str, Any]) -> Page:
    lead = None if told["lead"] is None else figure_from_json(told["lead"])
    langs = None if told["langs"] is None else tuple(told["langs"])
    fields: dict[str, Any] = {**told, "langs": langs, "lead": lead}
    return Page(**fields)
