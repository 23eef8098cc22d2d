"""The front page: five numbers of the newest subject, what its owner decided, or how to begin."""

import html
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from roofbook.charts.cache import FigureCache
from roofbook.pages.report import build_site
from roofbook.pages.settings import read_settings
from roofbook.places import Places

ROOT = Path(__file__).parents[2]

TILE = re.compile(
    r'<a class="rb-tile" href="([^"]*)"><strong>([^<]*)</strong><span>([^<]*)</span>(?:<small>([^<]*)</small>)?</a>'
)
ENGINE = {"machine": "x86-64-2-cores-8gb", "api": "embedded", "server": "llama.cpp", "model": "smollm2:135m"}


def front(folder: Path, lang: str = "en") -> str:
    return (
        build_site(Places(folder), read_settings(folder / "mkdocs.yml"), lang, FigureCache(None))
        .page("index.md")
        .markdown
    )


@pytest.fixture(scope="module")
def published(make_report: Any) -> Path:
    """A report with the published log's run, and a self-test that is newer."""
    folder: Path = make_report({})
    measured = folder / "data" / "measured"
    measured.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "data" / "measured" / "article-2026-08-31.parquet", measured)
    return folder


def test_five_numbers_stand_on_rows_and_lead_to_them(published: Path) -> None:
    """Medians of five published runs with their 93.75 % interval; the law's budget with its 95 % interval."""
    tiles = [tuple(map(html.unescape, tile[1:])) for tile in TILE.findall(front(published))]

    assert tiles == [
        ("394 ms", "until the first token, after a prompt of 74 tokens", "5 requests, 94 % interval 379 to 403 ms"),
        ("18.0 s", "until the first token, after a prompt of 3,505 tokens", "5 requests, 94 % interval 17.6 to 18.2 s"),
        ("21.0 tok/s", "while it writes the answer: 76 % of the bandwidth in the data sheet",
         "5 requests, 94 % interval 20.8 to 21.2 tok/s"),
        ("59 to 72 %", "of the arithmetic peak stated for the chip is reached while it reads a prompt",
         "5 requests"),
        ("407 tokens", "of prompt fit if the first token is to come within 2 s",
         "6 prompt lengths, 95 % interval 363 to 463 tokens"),
    ]  # fmt: skip
    assert all(href.startswith("mac-mini-m4-32gb-ollama") for href, *_ in TILE.findall(front(published)))


def test_the_owners_decisions_stand_on_it_in_each_language(published: Path) -> None:
    """They are prose, one file a language, with numbers quoted: 288 over 120 GB/s."""
    assert "What was decided, and why {: #decided }" in front(published)
    assert "무엇을 정했고, 왜 그랬나 {: #decided }" in front(published, "ko")
    assert ">2.4 times</span>" in front(published)


def test_an_owner_who_is_absent_is_left_out(published: Path) -> None:
    """No empty line for a name nobody gave."""
    assert "rb-owner" not in front(published)


def test_a_self_test_says_that_it_is_one(make_report: Any, curve_rows: Any) -> None:
    """Nobody's server: no tiles, no decisions, and the way to a measurement."""
    page = front(make_report({"first": curve_rows([128, 256, 512, 1024, 2048], **ENGINE)}))

    assert "So far only a self-test has run here." in page
    assert "measure.md" in page
    assert TILE.findall(page) == []
    assert "#decided" not in page


def test_a_self_test_leaves_when_there_is_a_subject(make_report: Any, curve_rows: Any) -> None:
    """Two runs, one of them real: only that one is shown."""
    rows = curve_rows([128, 256, 512, 1024, 2048], machine="m", api="ollama", server="ollama", model="real:7b")
    page = front(make_report({"first": curve_rows([128], **ENGINE), "second": rows}))

    assert "real:7b" in page
    assert "smollm2" not in page


def test_what_cannot_be_computed_has_no_tile(make_report: Any, curve_rows: Any) -> None:
    """An unknown machine has no ceilings, one length has no law: what is left stands alone."""
    rows = curve_rows([512], machine="m", api="ollama", server="ollama", model="real:7b")
    values = [value for _, value, _, _ in TILE.findall(front(make_report({"run": rows})))]

    # 4.5 ms x 512 x (1 + 0.00004 x 512) + 100 ms
    assert values == ["2.45 s"]


def test_without_any_run_it_says_how_to_measure(make_report: Any) -> None:
    """The command, and no number."""
    page = front(make_report({}))

    assert "make report" in page
    assert "rb-quote" not in page
