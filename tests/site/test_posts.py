"""Dated posts: one file a language, listed on the front page, newest first."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from roofbook.charts.cache import FigureCache
from roofbook.errors import PageError
from roofbook.pages.posts import checked, languages_of
from roofbook.pages.prose import read_head
from roofbook.pages.report import build_site
from roofbook.pages.settings import read_settings
from roofbook.pages.site import Page, Section, Site
from roofbook.places import Places
from roofbook.plugin import RoofbookPlugin

KOREAN_ONLY = "posts/2026-12-01-only-here.md"
BOTH = "posts/2026-12-02-both.md"


def post(title: str, day: str, summary: str = "A *short* line.") -> str:
    return f"---\ntitle: {title}\ndate: {day}\nsummary: {summary}\n---\n\nThe text.\n\n```sh\n# no heading\n```\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, make_report: Any, curve_rows: Any) -> Path:
    """A report with two posts of its own: one in both languages, one in Korean only."""
    folder = tmp_path_factory.mktemp("posts") / "report"
    rows = curve_rows([512], machine="mac-mini-m4-32gb", api="ollama", server="ollama", model="qwen2.5:7b")
    shutil.copytree(make_report({"run": rows}), folder)
    for lang in ("ko", "en"):
        (folder / "site_src" / lang / BOTH).write_text(post(f"Both <{lang}>", "2026-12-02"), encoding="utf-8")
    (folder / "site_src" / "ko" / KOREAN_ONLY).write_text(post("여기만", "2026-12-01"), encoding="utf-8")
    return folder


def site_of(folder: Path, lang: str) -> Site:
    return build_site(Places(folder), read_settings(folder / "mkdocs.yml"), lang, FigureCache(None))


@pytest.fixture(scope="module")
def sites(folder: Path) -> dict[str, Site]:
    return {lang: site_of(folder, lang) for lang in ("ko", "en")}


def posts_of(site: Site) -> list[Page]:
    """The posts of this test, without those that come with the repository."""
    return [page for page in site.pages if page.uri in (BOTH, KOREAN_ONLY)]


def list_on_front(site: Site) -> list[tuple[str, str]]:
    """The links and titles of the front page's list, in its order."""
    front = site.page("index.md").markdown.split('<ul class="rb-posts">')[1]
    return re.findall(r'<li><a href="([^"]*2026-12[^"]*)"[^>]*>([^<]*)</a>', front)


def test_posts_are_pages_of_their_languages(sites: dict[str, Site]) -> None:
    """In the navigation they stand together, newest first."""
    sections = {
        lang: [entry for entry in site.navigation if isinstance(entry, Section)] for lang, site in sites.items()
    }

    assert [page.uri for page in posts_of(sites["ko"])] == [BOTH, KOREAN_ONLY]
    assert [page.uri for page in posts_of(sites["en"])] == [BOTH]
    assert [page.exists_in("en") for page in posts_of(sites["ko"])] == [True, False]
    assert any(entry.title == "Posts" for entry in sections["en"])


def test_the_front_lists_them_newest_first(sites: dict[str, Site]) -> None:
    """Titles are text, summaries are markup of the owner's."""
    assert list_on_front(sites["ko"]) == [
        ("posts/2026-12-02-both.html", "Both &#60;ko&#62;"),
        ("posts/2026-12-01-only-here.html", "여기만"),
    ]
    assert '<span class="rb-posts__summary">A *short* line.</span>' in sites["ko"].page("index.md").markdown


def test_a_post_of_another_language_is_marked(sites: dict[str, Site]) -> None:
    """The English list leads to the Korean page, and says so."""
    assert list_on_front(sites["en"]) == [
        ("posts/2026-12-02-both.html", "Both &#60;en&#62;"),
        ("../posts/2026-12-01-only-here.html", "여기만"),
    ]
    assert 'hreflang="ko" lang="ko">여기만</a>' in sites["en"].page("index.md").markdown
    assert '<span class="rb-badge">only in 한국어</span>' in sites["en"].page("index.md").markdown


def test_a_post_opens_with_its_title_and_date(sites: dict[str, Site]) -> None:
    """Above the text, below the front matter; a comment in code is no heading."""
    page = sites["en"].page(BOTH)
    _, _, text = page.markdown.split("---\n", 2)

    assert text.lstrip().startswith("# Both &#60;en&#62; {: #post }")
    assert text.index('<time class="rb-age" datetime="2026-12-02">') < text.index("The text.")
    assert page.title == "Both &lt;en&gt;"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (post("x", "2026-12-04"), r"its date is 2026-12-04, its name says 2026-12-03"),
        ("---\ntitle: x\ndate: 2026-12-03\n---\n", r"a post needs 'summary'"),
        ("The text.\n", r"a post needs 'title'"),
        ("---\ntitle: [\n---\n", r"its front matter is no YAML"),
        ("---\ntitle: x\ndate: tomorrow\nsummary: y\n---\n", r"its front matter is no YAML"),
    ],
)
def test_a_post_that_lacks_something_names_its_file(text: str, said: str) -> None:
    """The file and the key."""
    uri = "posts/2026-12-03-x.md"

    with pytest.raises(PageError, match=f"^ko/{uri}: {said}"):
        checked(read_head(text, f"ko/{uri}"), uri, f"ko/{uri}")


@pytest.mark.parametrize("name", ["notes.md", "2026-12-03-Big.md", "2026-12-03.md", "2026-12-03-x y.md"])
def test_a_post_is_named_by_its_date(tmp_path: Path, name: str) -> None:
    """Its name is its address, so it is written as addresses are."""
    (tmp_path / "ko" / "posts").mkdir(parents=True)
    (tmp_path / "ko" / "posts" / name).write_text(post("x", "2026-12-03"), encoding="utf-8")

    with pytest.raises(PageError, match="a post is named by its date"):
        languages_of(tmp_path, ["ko", "en"])


def test_languages_are_told_by_the_files(folder: Path) -> None:
    """Newest first, each with the languages it exists in, the site's main one first."""
    found = languages_of(folder / "site_src", ["ko", "en"])

    assert list(found.items())[:2] == [(BOTH, ("ko", "en")), (KOREAN_ONLY, ("ko",))]


def test_the_header_switches_only_where_the_other_page_exists(folder: Path, sites: dict[str, Site]) -> None:
    """A post in one language has no twin."""
    plugin = RoofbookPlugin()
    # As on_files leaves it, but for pictures of pages.
    plugin._settings, plugin._site = read_settings(folder / "mkdocs.yml"), sites["ko"]
    plugin._posters = SimpleNamespace(of=lambda _uri: None)  # type: ignore[assignment]

    def twins(uri: str) -> list[str]:
        file = SimpleNamespace(src_uri=uri, dest_uri=uri.replace(".md", ".html"))
        page, config = SimpleNamespace(file=file), SimpleNamespace(extra={})
        context: Any = plugin.on_page_context({}, page=page, config=config)  # type: ignore[arg-type]
        return [twin["href"] for twin in context["twins"]]

    assert (twins(BOTH), twins(KOREAN_ONLY)) == (["../en/posts/2026-12-02-both.html"], [])
