"""Pages that people write: one Markdown file a language, with numbers and figures that they quote by name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from roofbook.charts.cache import Drawn
from roofbook.errors import PageError
from roofbook.pages.site import Page

_FRONT_MATTER: Final = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_HEADING: Final = re.compile(r"\s*# +(.+?) *(?:\{[^}\n]*\})? *(?:\n|\Z)")

LAST: Final = 50
"""Pages of this ``order`` and beyond stand behind everything else in the navigation."""


@dataclass(frozen=True)
class Head:
    """What a file says of itself in its front matter; *summary* is HTML or Markdown, as it was written."""

    title: str | None = None
    label: str | None = None
    order: int = 0
    shelf: str | None = None
    """The group of pages it stands in: see ``shelves``."""
    day: date | None = None
    summary: str | None = None


@dataclass(frozen=True)
class Written:
    """A finished page of prose with what stands in its head and which figures it places."""

    page: Page
    head: Head
    drawn: tuple[Drawn, ...] = ()


def files(folder: Path) -> list[str]:
    """Return the addresses of the pages written in *folder*, posts left out; a name with _ in front is no page."""
    found = (path.relative_to(folder) for path in folder.rglob("*.md"))
    return sorted(
        path.as_posix()
        for path in found
        if not path.name.startswith("_") and path.parts[0] != "posts"
    )  # fmt: skip


def read_head(text: str, template: str) -> Head:
    """Return the front matter of *text*; raises PageError, naming *template*, for one that is none."""
    front = _FRONT_MATTER.match(text)
    try:
        meta: Any = yaml.safe_load(front[1]) if front else {}
        return Head(
            title=_text(meta, "title"),
            label=_text(meta, "label"),
            order=int(meta.get("order") or 0),
            shelf=_text(meta, "shelf"),
            day=_day(meta.get("date")),
            summary=_text(meta, "summary"),
        )
    except (yaml.YAMLError, AttributeError, TypeError, ValueError) as problem:
        raise PageError("%(template)s: its front matter is no YAML", template=template) from problem


def heading_of(text: str) -> str | None:
    """Return the heading that the page opens with."""
    found = _HEADING.match(text, len(_front(text)))
    return found[1] if found else None


def below_heading(text: str, note: str) -> str:
    """Return *text* with *note* below the heading that it opens with; without one, below its front matter."""
    front = _front(text)
    found = _HEADING.match(text, len(front))
    end = found.end() if found else len(front)
    return f"{text[:end].rstrip()}\n\n{note.strip()}\n\n{text[end:].lstrip()}"


def below_front_matter(text: str, opening: str) -> str:
    """Return *text* with *opening* as the first thing that a reader sees."""
    front = _front(text)
    return f"{front}\n{opening.strip()}\n\n{text[len(front) :].lstrip()}"


def _front(text: str) -> str:
    found = _FRONT_MATTER.match(text)
    return found[0] if found else ""


def _text(meta: Mapping[str, Any], key: str) -> str | None:
    value = meta.get(key)
    return None if value is None else str(value).strip()


def _day(value: Any) -> date | None:
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(str(value))
