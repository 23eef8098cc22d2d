"""Figures by the content of what they are made from: a build draws only what has changed."""

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from roofbook.charts.draw import library_versions, live_spec, static_svgs, vega_bundle
from roofbook.charts.figure import Column, Figure, Key, Table, checked
from roofbook.charts.poster import poster
from roofbook.words import Words


@dataclass(frozen=True)
class Drawn:
    """A figure with its static pictures, by width, and the chart that the browser makes live."""

    figure: Figure
    svgs: dict[str, str]
    live: dict[str, Any]


class FigureCache:
    """Draws figures, or takes them from a folder of earlier drawings (None: no folder, every figure is drawn)."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.drawn = 0
        """How many figures were really drawn."""

    def poster(self, figure: Figure, site_name: str, colours: Mapping[str, str]) -> bytes:
        """Return *figure* as the PNG that a shared link shows; raises PageError where it cannot be drawn."""
        told = json.dumps([figure.title, figure.spec, site_name, sorted(colours.items())])
        key = hashlib.sha256("\0".join((_code(), library_versions(), "poster", told)).encode()).hexdigest()
        path = self._folder / key[:2] / f"{key}.png" if self._folder else None
        if path and path.is_file():
            return path.read_bytes()
        picture = poster(figure, site_name, colours)
        if path:
            keep(path, picture)
        return picture

    def vega_bundle(self) -> bytes:
        """Return the script that makes charts live; packing it takes as long as a small build."""
        key = hashlib.sha256("\0".join((_code(), library_versions(), "vega")).encode()).hexdigest()
        path = self._folder / key[:2] / f"{key}.js" if self._folder else None
        if path and path.is_file():
            return path.read_bytes()
        bundle = vega_bundle().encode()
        if path:
            keep(path, bundle)
        return bundle

    def draw(self, build: Callable[..., Figure], words: Words, /, **inputs: object) -> Drawn:
        """Return ``build(words=words, **inputs)``, drawn; *inputs* are values whose repr tells them whole.

        Raises PageError where the figure cannot be drawn.
        """
        key = _key(build, words, inputs)
        path = self._folder / key[:2] / f"{key}.json" if self._folder else None
        if path and path.is_file():
            return _from_json(json.loads(path.read_text(encoding="utf-8")))
        figure = checked(build(words=words, **inputs))
        drawn = Drawn(figure, static_svgs(figure.spec, figure.name), live_spec(figure.spec))
        self.drawn += 1
        if path:
            keep(path, json.dumps(asdict(drawn), ensure_ascii=False).encode())
        return drawn


def _key(build: Callable[..., Figure], words: Words, inputs: dict[str, object]) -> str:
    told = "\n".join(f"{name}={value!r}" for name, value in sorted(inputs.items()))
    parts = (_code(), library_versions(), words.fingerprint, build.__module__, build.__qualname__, told)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _code() -> str:
    """Return a digest of the code that draws: an edited chart is drawn anew."""
    folder = Path(inspect.getfile(Drawn)).parent
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(folder.glob("*.py")))).hexdigest()


def keep(path: Path, content: bytes) -> None:
    """Write *content* whole or not at all; a cache that cannot be written is no reason to fail."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(content)
        part.replace(path)
    except OSError:
        return


def _from_json(kept: dict[str, Any]) -> Drawn:
    return Drawn(figure_from_json(kept["figure"]), kept["svgs"], kept["live"])


def figure_from_json(kept: Mapping[str, Any]) -> Figure:
    """Return the figure of which *kept* is the ``asdict``, read back from JSON."""
    table = Table(
        tuple(Column(**column) for column in kept["table"]["columns"]),
        tuple(tuple(row) for row in kept["table"]["rows"]),
    )
    legend = tuple(Key(**key) for key in kept["legend"])
    fields: dict[str, Any] = {**kept, "table": table, "legend": legend}
    return Figure(**fields)
