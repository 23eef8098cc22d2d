"""From runs to pages, before any site builder: what is there, what is missing, what is odd."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from roofbook.charts.cache import FigureCache
from roofbook.errors import RecordError, RoofbookError
from roofbook.pages.render import render
from roofbook.pages.report import build_site
from roofbook.pages.settings import read_settings
from roofbook.pages.site import Addresses, Section, Site
from roofbook.places import Places
from roofbook.validity import KINDS
from roofbook.words import load_words
from roofbook.words.doubts import NAMES, SENTENCES

MAC = {"machine": "mac-mini-m4-32gb", "server": "ollama", "model": "qwen2.5:7b", "api": "ollama"}


def site_of(folder: Path, lang: str = "en", figures: FigureCache | None = None) -> Site:
    return build_site(Places(folder), read_settings(folder / "mkdocs.yml"), lang, figures or FigureCache(None))


def prefill_of(site: Site) -> str:
    return topic_of(site, "prefill")


def topic_of(site: Site, topic: str) -> str:
    """Return the first subject's page on *topic*, as Markdown."""
    return next(page.markdown for page in site.pages if page.uri.endswith(f"/{topic}.md"))


def test_a_subject_gets_its_pages_without_an_edit(report: Path) -> None:
    """Two subjects: the front page first, then a section each, newest first and the self-test last."""
    site = site_of(report)
    chapters = [entry for entry in site.navigation if isinstance(entry, Section) and entry.pages[0].figures]

    assert site.pages[0].uri == "index.md"
    assert [chapter.title for chapter in chapters][:2] == [
        "qwen2.5:7b · Mac mini M4, 32 GB",
        "smollm2:135m · x86-64-2-cores-8gb",
    ]
    assert [[page.label for page in chapter.pages] for chapter in chapters[:2]] == [
        ["Overview", "Speed", "Prefill", "Memory", "Data"]
    ] * 2
    assert site.missing == ()


def test_both_languages_have_the_same_pages_and_every_sentence(report: Path) -> None:
    """The same addresses and figures; nothing falls through to English; files are published once, each table too."""
    korean, english = site_of(report, "ko"), site_of(report, "en")
    figures = [(page.uri, anchor) for page in korean.pages for anchor in page.figures if page.uri.endswith("/speed.md")]

    assert [page.uri for page in korean.pages] == [page.uri for page in english.pages]
    assert [list(page.figures) for page in korean.pages] == [list(page.figures) for page in english.pages]
    assert korean.missing == ()
    assert english.assets == {}
    assert sorted(path for path in korean.assets if path.endswith((".js", ".parquet"))) == [
        "assets/vega.js",
        "data/20261001T030000-mac.parquet",
        "data/20261002T030000-first.parquet",
    ]
    tables = [f"data/{uri[:-3].replace('/', '-')}-{anchor.removeprefix('fig-')}.csv" for uri, anchor in figures]
    assert tables
    assert set(tables) <= set(korean.assets)


def test_the_page_says_its_conditions_and_what_is_unknown(report: Path) -> None:
    """Versions, sources and unknowns stand on the page."""
    page = topic_of(site_of(report), "data")

    assert "ollama 0.12.3" in page
    assert "said by the server" in page
    assert '<th scope="row">Flash attention</th><td><span class="rb-unknown">unknown</span>' in page
    assert '<time class="rb-age" datetime="2026-10-01"' in page


def test_a_report_without_data_says_how_to_measure(make_report: Any) -> None:
    """No runs: a front page with the command, and no file of rows."""
    site = site_of(make_report({}), "ko")

    assert {"index.md", "measure.md"} <= {page.uri for page in site.pages}
    assert "make report" in site.pages[0].markdown
    assert [path for path in site.assets if path.endswith(".parquet")] == []


@pytest.mark.parametrize(
    ("lengths", "changes", "said"),
    [
        ([512], {}, "A law needs at least five prompt lengths; 4 more are missing."),
        ([512], {"status": "timeout", "ttft_ms": None, "server_prefill_ms": None}, "No prefill time of this subject"),
        ([512], {"machine": None, "model": None, "server": None, "api": None}, "unknown model · unknown machine"),
        ([512], {"server_prefill_ms": None}, "the client's time to the first token stands for it"),
        ([512], {"prompt_tokens": 0}, "No prefill time of this subject"),
        ([512], {"started_at": None}, "date unknown"),
    ],
)
def test_odd_runs_say_what_is_missing(
    make_report: Any, curve_rows: Any, lengths: list[int], changes: dict[str, Any], said: str
) -> None:
    """One point, only failures, unknown names, no server clock, zero tokens, no date: a page that says so."""
    rows = curve_rows(lengths, **{**MAC, **changes})
    site = site_of(make_report({"run": rows}))
    page = prefill_of(site) + " ".join(next(page for page in site.pages if page.figures).figures.values())

    assert said in re.sub(r"&#(\d+);", lambda sign: chr(int(sign[1])), page)
    assert not re.search(r"\b(?:nan|NaN|None|NA|inf)\b", page)


def test_counts_with_gaps_stay_counts(make_report: Any, curve_rows: Any) -> None:
    """B51: 69, unknown, 71 are shown as 69, a dash, 71."""
    rows = [row | {"output_tokens": n} for row, n in zip(curve_rows([512], **MAC), [69, None, 71], strict=True)]
    page = prefill_of(site_of(make_report({"run": rows})))
    # Five columns hold numbers: prompt, n, prefill, TTFT, output; no row has a context limit.
    cells = re.findall(r'<td class="rb-number">(?:<span[^>]*>)?([^<]*)', page.split("Output tokens</th>")[1])

    assert cells[4:15:5] == ["69", "–", "71"]


def test_more_rows_than_a_page_holds_are_counted(make_report: Any, curve_rows: Any) -> None:
    """201 rows: 200 on the page, one more only in the file."""
    page = prefill_of(site_of(make_report({"run": curve_rows([512], repeats=201, **MAC)})))

    assert "1 more row is only in the files below." in page


def test_a_broken_run_names_its_file(make_report: Any, curve_rows: Any) -> None:
    """A file that is no parquet is named."""
    folder = make_report({"run": curve_rows([512], **MAC)})
    (folder / "data" / "measured" / "torn.parquet").write_bytes(b"PAR1 and nothing more")

    with pytest.raises(RecordError, match=r"torn\.parquet cannot be read"):
        site_of(folder)


def test_a_second_build_draws_nothing(report: Path, tmp_path: Path) -> None:
    """Figures are kept by the content of what they are made from: the same rows need no drawing, and give the same."""
    first, second = FigureCache(tmp_path), FigureCache(tmp_path)
    drawn, kept = site_of(report, "en", first), site_of(report, "en", second)

    assert first.drawn >= 2
    assert second.drawn == 0
    assert [page.figures for page in drawn.pages] == [page.figures for page in kept.pages]


def test_every_kind_of_doubt_has_its_words(report: Path) -> None:
    """A name and a sentence for each kind of finding, whose places are values that the finding has."""
    places = {kind: set(re.findall(r"%\((\w+)\)s", sentence)) for kind, sentence in SENTENCES.items()}

    assert set(NAMES) == set(SENTENCES) == set(KINDS)
    assert {kind: places[kind] - set(names) for kind, names in KINDS.items() if places[kind] - set(names)} == {}
    assert load_words(report / "templates" / "locale", "ko", strict=True).say(NAMES["cold_load"]) == "콜드 로드"


@pytest.mark.parametrize(
    ("uri", "folder", "page", "asset"),
    [
        ("index.md", "", "x/prefill.html", "data/x.csv"),
        ("x/prefill.md", "", "../x/prefill.html", "../data/x.csv"),
        ("x/prefill.md", "en", "../x/prefill.html", "../../data/x.csv"),
    ],
)
def test_addresses_are_relative(uri: str, folder: str, page: str, asset: str) -> None:
    """They hold below any path and from a folder."""
    addresses = Addresses(uri, folder)

    assert [addresses.page("x/prefill.md"), addresses.asset("data/x.csv")] == [
        page if uri != "x/prefill.md" else "prefill.html",
        asset,
    ]


def test_rendered_markdown_is_whole(report: Path, tmp_path: Path) -> None:
    """Every page of every language, figures inline as one block each, and the files they need."""
    pages = render(Places(report), read_settings(report / "mkdocs.yml"), tmp_path)
    text = next(page for page in pages if page.name == "prefill.md").read_text(encoding="utf-8")
    figure = re.search(r"<figure.*?</figure>", text, re.DOTALL)

    assert len(pages) == 2 * len(site_of(report).pages)
    assert figure is not None
    assert "\n\n" not in figure[0]
    assert "data-figure" not in text
    assert (tmp_path / "assets" / "vega.js").is_file()
    assert (tmp_path / "en" / "assets" / "report.js").is_file()
    spec = re.search(r'<template class="rb-spec">(.*?)</template>', figure[0], re.DOTALL)
    assert spec is not None
    assert json.loads(spec[1].replace("&quot;", '"'))["$schema"].startswith("https://vega.github.io/schema/vega-lite/")


def test_a_catalogue_with_a_gap_is_told(report: Path, tmp_path: Path) -> None:
    """A sentence without translation is said in English and named."""
    folder = tmp_path / "report"
    shutil.copytree(report, folder, ignore=shutil.ignore_patterns("site", ".cache"))
    path = folder / "templates" / "locale" / "ko" / "LC_MESSAGES" / "report.po"
    path.write_text(path.read_text(encoding="utf-8").replace('msgid "The rows"', 'msgid "The lines"'), encoding="utf-8")

    assert site_of(folder, "ko").missing == ("The rows",)


def test_an_unknown_language_is_an_error_of_ours(report: Path) -> None:
    """Whatever is wrong with the words is said as an error of ours."""
    with pytest.raises(RoofbookError):
        site_of(report, "fr")


def test_many_subjects_stand_under_one_heading(make_report: Any, curve_rows: Any) -> None:
    """Three stand side by side; a fourth puts all of them into one group, which mkdocs unfolds where it is read."""
    rows = {f"run-{n}": curve_rows([512], repeats=1, **{**MAC, "model": f"model-{n}"}) for n in range(4)}
    few, many = ({run: rows[run] for run in sorted(rows)[:count]} for count in (3, 4))

    assert groups_of(site_of(make_report(few))) == [None] * 3
    assert groups_of(site_of(make_report(many))) == ["Measured"] * 4


def groups_of(site: Site) -> list[str | None]:
    """Return the group of each subject's section."""
    sections = [entry for entry in site.navigation if isinstance(entry, Section)]
    return [section.group for section in sections if any(page.uri.endswith("/prefill.md") for page in section.pages)]
