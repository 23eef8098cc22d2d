"""What a shared link shows, and what stands where there is no page."""

import posixpath
import re
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roofbook.charts.figure import Figure, Key, Table
from roofbook.charts.poster import can_write_korean, poster
from roofbook.pages.picture import palette

ROOT = Path(__file__).parents[2]
ADDRESS = "https://example.com/report/"
SPEC: Mapping[str, Any] = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.4.1.json",
    "data": {"values": [{"x": 1}, {"x": 2}]},
    "mark": {"type": "point", "color": "var(--chart-1)", "opacity": 0.2},
    "encoding": {"x": {"field": "x", "type": "quantitative"}},
}


def shared(page: Path) -> dict[str, str]:
    """Return what the page's head tells of it, by property."""
    told = re.findall(r'<meta property="(og:[\w:]+)" content="([^"]*)">', page.read_text(encoding="utf-8"))
    return dict(told)


def test_every_page_has_a_picture_of_the_right_size(shipped: Path) -> None:
    """1200 x 630 pixels at an absolute address that exists; in Korean only where a Korean face is installed."""
    for page in shipped.rglob("*.html"):
        korean = page.relative_to(shipped).parts[0] != "en"
        if page.name == "404.html" or (korean and not can_write_korean()):
            continue
        told = shared(page)
        picture = shipped / told["og:image"].removeprefix(ADDRESS)

        assert told["og:image"].startswith(ADDRESS), page
        assert struct.unpack(">II", picture.read_bytes()[16:24]) == (1200, 630)
        assert (told["og:title"] != "", told["og:description"] != "") == (True, True)
        assert told["og:url"] == ADDRESS + page.relative_to(shipped).as_posix()


def test_without_an_address_there_is_no_picture(site: Path) -> None:
    """A picture can only be named by its whole address."""
    assert not (site / "social").exists()
    assert shared(site / "index.html") == {}


@pytest.mark.parametrize("title", ["t", "word " * 60, "한글 " * 60, "x" * 200, "<b>&</b>"])
def test_any_title_makes_a_picture(title: str) -> None:
    """Short, long, unbroken, and what would be markup."""
    colours = palette((ROOT / "site_src" / "assets" / "report.css").read_text(encoding="utf-8"), "default")
    figure = Figure("x", title, "d", "c", (Key("dot", "x", "x"),), Table((), ()), SPEC)
    first = poster(figure, "site", colours)

    assert struct.unpack(">II", first[16:24]) == (1200, 630)
    assert poster(figure, "site", colours) == first
    assert poster(replace(figure, title="another"), "site", colours) != first


@pytest.mark.parametrize("folder", ["", "en/"])
def test_a_missing_page_is_said_in_both_languages(shipped: Path, folder: str) -> None:
    """Hosts show the root's page for any address, so it speaks both, and its links hold from any depth."""
    page = (shipped / folder / "404.html").read_text(encoding="utf-8")
    article = page.split("<article")[1].split("</article>")[0]

    assert [text in article for text in ("없는 페이지입니다", "There is no such page")] == [True, True]
    assert (article.index("없는 페이지") < article.index("no such page")) == (folder == "")
    links = [posixpath.normpath(link) for link in re.findall(r'<a href="([^"]+)"', article)]
    assert links == ["/report/index.html", "/report/en/index.html"][:: 1 if folder == "" else -1]
