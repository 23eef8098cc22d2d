"""`mkdocs build --strict`: what a user runs, and what it says when something is wrong."""

import base64
import filecmp
import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ANOTHER_DAY = Path(__file__).with_name("another_day.py")
MAC = {"machine": "mac-mini-m4-32gb", "server": "ollama", "model": "qwen2.5:7b", "api": "ollama"}


def mkdocs(folder: Path, *, shift_s: float | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build the site of *folder*; with *shift_s* on a day so many seconds away."""
    run = ["-m", "mkdocs"] if shift_s is None else [str(ANOTHER_DAY), str(shift_s)]
    command = [sys.executable, *run, "build", "--strict"]
    given = {**os.environ, "NO_MKDOCS_2_WARNING": "1", **environment}
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False, timeout=100)


@pytest.fixture
def copy(report: Path, tmp_path: Path) -> Path:
    """A report of our own to break."""
    folder = tmp_path / "report"
    shutil.copytree(report, folder, ignore=shutil.ignore_patterns("site"))
    return folder


def test_each_language_is_a_site_of_its_own(site: Path) -> None:
    """Korean at the root, English below /en/: pages, search index and sitemap each."""
    pages = sorted(path.relative_to(site / "en").as_posix() for path in (site / "en").rglob("*.html"))

    assert pages == sorted(
        path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.relative_to(site).parts[0] != "en"
    )
    assert '<html lang="ko"' in (site / "index.html").read_text(encoding="utf-8")
    assert '<html lang="en"' in (site / "en" / "index.html").read_text(encoding="utf-8")
    korean, english = (
        (site / folder / "search" / "search_index.json").read_text(encoding="utf-8") for folder in ("", "en")
    )
    assert "프리필" in korean
    assert "프리필" not in english
    assert not (site / "en" / "data").exists()


def test_links_to_sections_say_so_in_the_pages_language(site: Path) -> None:
    """The sign beside each heading has a tooltip, and a screen reader reads it."""
    for folder, told in (("", "이 절로 가는 링크"), ("en", "Link to this section")):
        page = (site / folder / "measure.html").read_text(encoding="utf-8")
        titles = re.findall(r'<a class="headerlink" href="#[^"]+" title="([^"]+)"', page)

        assert set(titles) == {told}


def test_no_korean_page_has_a_sentence_in_english(site: Path) -> None:
    """Five Latin words in a row, outside code and what is marked as English, are a sentence that nobody translated."""
    for path in site.rglob("*.html"):
        if path.relative_to(site).parts[0] == "en":
            continue
        article = re.search(r"<article.*</article>", path.read_text(encoding="utf-8"), re.DOTALL)
        seen = re.sub(r"<(pre|svg|template|script|code)\b.*?</\1>", " ", article[0], flags=re.DOTALL) if article else ""
        seen = re.sub(r'<(\w+)[^>]*\blang="en"[^>]*>.*?</\1>', " | ", seen, flags=re.DOTALL)
        words = html.unescape(re.sub(r"<[^>]+>", " | ", seen))

        assert re.findall(r"(?:\b[A-Za-z]{2,}\b[ ,]+){4,}\b[A-Za-z]{2,}\b", words) == [], path


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """B44: no page, style or script of the site loads from another address."""
    loads = re.compile(
        r"""(?:<(?:script|img|iframe)[^>]*\ssrc=|<link(?![^>]*rel="canonical")[^>]*\shref=)["']?(https?:[^"' >]+)"""
    )
    css = re.compile(r"(?:url\(|@import\s)[\"']?(https?:[^\"')]+)")

    found = [
        match
        for path in site.rglob("*")
        if path.suffix in (".html", ".css")
        for match in (loads if path.suffix == ".html" else css).findall(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_policy_names_every_inline_script(site: Path) -> None:
    """Each page has a policy without eval, and each of its inline scripts has its hash in it."""
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
        assert policy is not None, path
        assert "unsafe-eval" not in policy[1]
        scripts = re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>(.*?)</script>", page, re.DOTALL)
        digests = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts}

        assert digests == set(re.findall(r"'sha256-([^']+)'", policy[1])), path


def test_the_sitemap_names_the_languages(copy: Path) -> None:
    """Under an address, each page has its twin as an alternate, and the first language as the default."""
    assert mkdocs(copy, SITE_URL="https://example.com/report/").returncode == 0
    space = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9", "x": "http://www.w3.org/1999/xhtml"}
    root = "https://example.com/report/"
    for folder in ("", "en/"):
        tree = ElementTree.parse(copy / "site" / folder / "sitemap.xml")
        page = next(
            url for url in tree.findall("s:url", space) if url.findtext("s:loc", "", space).endswith("measure.html")
        )

        assert page.findtext("s:loc", "", space) == f"{root}{folder}measure.html"
        assert {(link.get("hreflang"), link.get("href")) for link in page.findall("x:link", space)} == {
            ("ko", f"{root}measure.html"), ("en", f"{root}en/measure.html"), ("x-default", f"{root}measure.html"),
        }  # fmt: skip


def test_the_same_data_gives_the_same_site_on_any_day(copy: Path) -> None:
    """Built in two folders, in two years, time zones and orders of sets, from files of another age: the same bytes."""
    address = "https://example.com/report/"
    other = copy.parent / "other"
    shutil.rmtree(copy / ".cache", ignore_errors=True)
    shutil.copytree(copy, other)
    for path in other.rglob("*"):
        os.utime(path, (1_500_000_000, 1_500_000_000))
    assert mkdocs(copy, SITE_URL=address, TZ="Asia/Seoul", PYTHONHASHSEED="1").returncode == 0
    assert mkdocs(other, SITE_URL=address, TZ="America/Lima", PYTHONHASHSEED="2", shift_s=300 * 86_400).returncode == 0
    first, second = copy / "site", other / "site"
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())

    assert Path("sitemap.xml.gz") in files
    assert files == sorted(path.relative_to(second) for path in second.rglob("*") if path.is_file())
    assert filecmp.cmpfiles(first, second, files, shallow=False)[1:] == ([], [])


def test_a_site_without_data_is_built(make_report: Any, build: Any) -> None:
    """With no data yet the front page says how to measure, and asks for no chart library."""
    front = (build(make_report({})) / "index.html").read_text(encoding="utf-8")

    assert "make report" in re.sub(r"<[^>]*>", "", front)
    assert "vega.js" not in front


def broken_run(folder: Path) -> None:
    (folder / "data" / "measured" / "torn.parquet").write_bytes(b"PAR1")


def broken_template(folder: Path) -> None:
    path = folder / "templates" / "pages" / "prefill.md.j2"
    path.write_text("# Prefill\n\n{{ nothing }}\n", encoding="utf-8")


def broken_facts(folder: Path) -> None:
    path = folder / "data" / "facts" / "machines.yml"
    path.write_text(path.read_text(encoding="utf-8") + "\na: [", encoding="utf-8")


def broken_settings(folder: Path) -> None:
    path = folder / "mkdocs.yml"
    path.write_text(path.read_text(encoding="utf-8").replace("owner: {}", "owner: {nmae: x}"), encoding="utf-8")


def broken_catalogue(folder: Path) -> None:
    path = folder / "templates" / "locale" / "ko" / "LC_MESSAGES" / "report.po"
    path.write_text(path.read_text(encoding="utf-8") + "\nno entry\n", encoding="utf-8")


def lost_translation(folder: Path) -> None:
    path = folder / "templates" / "locale" / "ko" / "LC_MESSAGES" / "report.po"
    path.write_text(path.read_text(encoding="utf-8").replace('msgid "The rows"', 'msgid "Rows"'), encoding="utf-8")


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (broken_run, "roofbook: data/measured/torn.parquet cannot be read"),
        (broken_template, "roofbook: templates/pages/prefill.md.j2:3: 'nothing' is undefined (page 'mac-mini"),
        (broken_facts, 'expected node content in "data/facts/machines.yml", line'),
        (broken_settings, "unknown key 'extra.owner.nmae'; there are: name, role, links"),
        (broken_catalogue, "templates/locale/ko/LC_MESSAGES/report.po is no gettext catalogue"),
        (lost_translation, "no translation into 'ko' for: The rows"),
    ],
)
def test_a_mistake_is_one_line(copy: Path, break_it: Callable[[Path], None], said: str) -> None:
    """The build fails and names the place inside the report; no stack trace."""
    break_it(copy)
    done = mkdocs(copy)
    ours = [line for line in done.stderr.splitlines() if "roofbook:" in line]

    assert done.returncode == 1
    assert len(ours) == 1
    assert said in ours[0]
    assert str(copy) not in ours[0]
    assert "Traceback" not in done.stderr


def test_the_owner_stands_on_the_front_page(copy: Path) -> None:
    """Name, role in the page's language, links; what is absent is left out."""
    path = copy / "mkdocs.yml"
    owner = 'owner: {name: Hong <b>, role: {ko: 엔지니어, en: Engineer}, links: [{name: Code, url: "https://example.com/"}]}'
    path.write_text(path.read_text(encoding="utf-8").replace("owner: {}", owner, 1), encoding="utf-8")
    assert mkdocs(copy).returncode == 0

    english = (copy / "site" / "en" / "index.html").read_text(encoding="utf-8")
    assert re.search(r"Hong &(?:lt|#60);b&(?:gt|#62);</strong><span>Engineer</span>", english)
    assert 'href="https://example.com/"' in english
    assert "엔지니어" in (copy / "site" / "index.html").read_text(encoding="utf-8")
