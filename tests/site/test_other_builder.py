"""`roofbook render` writes Markdown that another site builder publishes, with everything that it says."""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml

CURVE_ROWS = 7
"""The Mac's curve: six fitted lengths and one in doubt."""


@dataclass
class Read(HTMLParser):
    """A page as a reader meets it: the words of its article, its anchors, and where it leads."""

    words: str = ""
    anchors: set[str] = field(default_factory=set[str])
    leads: list[str] = field(default_factory=list[str])
    _inside: bool = False
    _silent: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self._inside |= tag == "article"
        self._silent += tag in ("style", "script", "template") or "headerlink" in told.get("class", "")
        if self._inside:
            self.anchors |= {told["id"]} if "id" in told else set()
            self.leads += [told[name] for name in ("href", "src", "data-vega") if name in told]

    def handle_endtag(self, tag: str) -> None:
        self._inside &= tag != "article"
        self._silent = 0 if tag in ("style", "script", "template", "a") else self._silent

    def handle_data(self, data: str) -> None:
        if self._inside and not self._silent:
            self.words += data


def read(page: Path) -> Read:
    reader = Read()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.words = " ".join(reader.words.split())
    return reader


@pytest.fixture(scope="module")
def elsewhere(report: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report as Zensical publishes it, told no more than what --help names."""
    folder = tmp_path_factory.mktemp("elsewhere")
    ours = yaml.load(re.sub(r"!ENV .*", '""', (report / "mkdocs.yml").read_text(encoding="utf-8")), yaml.SafeLoader)
    told = {name: ours[name] for name in ("use_directory_urls", "extra_css", "extra_javascript", "markdown_extensions")}
    settings = {"site_name": "Report", "docs_dir": "docs", "theme": {"variant": "classic", "font": False}, **told}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    run(report, "roofbook", "render", "--out", str(folder / "docs"))
    assert "No issues found" in run(folder, "zensical", "build", "--clean")
    return folder / "site"


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def pages(elsewhere: Path) -> dict[str, Read]:
    found = sorted(elsewhere.rglob("*.html"))
    return {page.relative_to(elsewhere).as_posix(): read(page) for page in found if page.name != "404.html"}


def test_another_builder_says_the_same(site: Path, pages: dict[str, Read]) -> None:
    """Every page of both languages is there, and says word for word and number for number what mkdocs' page says."""
    ours = {path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.name != "404.html"}
    assert set(pages) == ours

    differing = [name for name, page in pages.items() if page.words != read(site / name).words]
    assert differing == []


@pytest.mark.parametrize("folder", ["", "en/"], ids=["ko", "en"])
def test_another_builder_keeps_figures_and_tables(elsewhere: Path, folder: str) -> None:
    """A curve of seven points is drawn at both widths, and its table has seven rows."""
    page = next((elsewhere / folder).glob("mac-mini*/prefill.html")).read_text(encoding="utf-8")
    figure = page.split('id="fig-prefill"')[1].split("</figure>")[0]
    drawings = re.findall(r'<g class="mark-symbol[^"]*">(.*?)</g>', figure, re.DOTALL)
    table = figure.split("<tbody>")[1].split("</tbody>")[0]

    assert sum(drawing.count("<path") for drawing in drawings) == 2 * CURVE_ROWS
    assert table.count("<tr") == CURVE_ROWS


def test_another_builder_breaks_no_link(elsewhere: Path, pages: dict[str, Read]) -> None:
    """What a page of the report leads to is there: pages, anchors, tables to take away, the script of the charts."""
    lost: list[Any] = []
    for name, page in pages.items():
        for lead in page.leads:
            address = urlsplit(lead)
            if address.scheme:
                continue
            target = (elsewhere / name).parent / unquote(address.path) if address.path else elsewhere / name
            anchors = pages[target.resolve().relative_to(elsewhere).as_posix()].anchors if address.fragment else set()
            if not target.is_file() or (address.fragment and unquote(address.fragment) not in anchors):
                lost.append((name, lead))

    assert len(pages) > 20
    assert lost == []
