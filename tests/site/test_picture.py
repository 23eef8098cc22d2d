"""A figure as a picture of its own needs no style sheet."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from roofbook.pages.picture import palette, standalone

ROOT = Path(__file__).parents[2]
CSS = """
[data-md-color-scheme="default"] { --rb-paper: #fff; --chart-1: #0b7285; }
[data-md-color-scheme="slate"] { --rb-paper: #000; --chart-1: #4fc3d9; }
[data-md-color-scheme] { --chart-paper: var(--rb-paper); }
"""


@pytest.mark.parametrize(
    ("scheme", "colours"),
    [
        ("default", {"--rb-paper": "#fff", "--chart-1": "#0b7285", "--chart-paper": "#fff"}),
        ("slate", {"--rb-paper": "#000", "--chart-1": "#4fc3d9", "--chart-paper": "#000"}),
    ],
)
def test_a_palette_is_read_from_the_style_sheet(scheme: str, colours: dict[str, str]) -> None:
    """Each scheme's colours, variables of variables resolved."""
    assert palette(CSS, scheme) == colours


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_the_shipped_style_sheet_has_every_colour_of_a_chart(scheme: str) -> None:
    """Eight subjects, ink, grid and paper, all of them real colours."""
    colours = palette((ROOT / "site_src" / "assets" / "report.css").read_text(encoding="utf-8"), scheme)
    needed = [*(f"--chart-{n}" for n in range(1, 9)), *(f"--chart-{n}" for n in ("ink", "muted", "grid", "paper"))]

    assert [name for name in needed if not colours[name].startswith("#")] == []


def test_a_picture_stands_alone() -> None:
    """No variable is left, it has a background, and it is still SVG."""
    start = '<svg xmlns="http://www.w3.org/2000/svg" aria-hidden="true" focusable="false">'
    svg = f'{start}<path fill="var(--chart-1)" /></svg>'
    picture = standalone(svg, palette(CSS, "default"))
    root = ElementTree.fromstring(picture)

    assert "var(" not in picture
    assert [element.get("fill") for element in root] == ["#fff", "#0b7285"]
