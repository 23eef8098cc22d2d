"""Names that would like to be markup, scripts or paths: they are text on every page, in both languages."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "'><svg/onload=window.hacked=1>",
    "](javascript:window.hacked=1) [x",
    "![x](https://example.com/x.png)",
    "</template></svg><script>window.hacked=1</script>",
    "<!-- unfinished",
    "{{ 7 * 7 }}{% raw %}",
    "a | b | c",
    "*bold* _it_ `code` ~~~",
    "# heading {: #prefill }",
    "1. one",
    "&lt;b&gt;&amp;",
    "%(name)s 100%",
    "../../etc/passwd",
    "=cmd()",
    "qwen2.5-coder:32b-instruct-q4_K_M-ctx16384-fa1-kvq8_0-and-a-name-that-does-not-end",
    "\u202egnp.exe",
]


WHOLE_TABLES = """[...document.querySelectorAll('article .rb-table tr')].every(
    row => row.children.length === row.closest('table').tHead.rows[0].children.length)"""


@pytest.fixture(scope="module")
def hostile_site(make_report: Any, curve_rows: Any, build: Any) -> Path:
    """A subject for each name, which is its model, machine, server, version and settings at once."""
    runs = {}
    for number, name in enumerate(HOSTILE):
        conditions = dict.fromkeys(
            ("machine", "server", "server_version", "model", "quantization", "kv_cache_type"), name
        )
        rows = curve_rows([200, 400, 800, 1600, 3200], repeats=2, **conditions, error=name, sources=name)
        rows[0] |= {"status": name, "finish_reason": name}
        runs[f"run-{number:02}"] = rows
    return build(make_report(runs))


@pytest.mark.parametrize("folder", ["", "en/"], ids=["ko", "en"])
@pytest.mark.timeout(300)
def test_nothing_in_a_name_runs(hostile_site: Path, serve: Any, read: Any, folder: str) -> None:
    """Every page: nothing ran or was asked for, the name reads as it is, tables are whole, a phone is wide enough."""
    root = serve(hostile_site)
    pages = sorted((hostile_site / folder).glob("*/prefill.html"))
    pages = [page for page in pages if page.parent.parent.name != "en" or folder]
    assert len(pages) == len(HOSTILE)
    seen: set[str] = set()
    with read(root, viewport={"width": 375, "height": 800}) as reader:
        for page in pages:
            reader.open(f"{root}{folder}{page.relative_to(hostile_site / folder).as_posix()}")
            reader.wait_live()

            assert reader.page.evaluate("window.hacked === undefined")
            assert reader.width() == 375, page
            assert reader.page.locator("#rows ~ .rb-table").first.locator("tbody tr").count() == 10
            assert reader.page.evaluate(WHOLE_TABLES)
            assert reader.page.locator("article a[href^='javascript:'], article img").count() == 0
            reader.open(reader.page.url.replace("prefill.html", "data.html"))
            reader.wait_live()

            assert reader.page.evaluate("window.hacked === undefined")
            assert reader.width() == 375, page
            assert reader.page.evaluate(WHOLE_TABLES)
            assert reader.page.locator("article a[href^='javascript:'], article img").count() == 0
            cell = reader.page.locator("#conditions ~ .rb-table tbody tr").first.locator("td").first
            seen.add(cell.inner_text())
        reader.open(f"{root}{folder}index.html")
        assert reader.page.evaluate("window.hacked === undefined")
        assert reader.page.locator(".rb-card").count() == len(HOSTILE)
        assert reader.width() == 375

    # As it is, but for runs of blanks, and for a sign that turns the reading direction around.
    assert seen == {name.replace("\u202e", "") for name in HOSTILE}


def test_addresses_are_plain(hostile_site: Path) -> None:
    """No file of the site has a name that needs quoting."""
    names = {part for path in hostile_site.rglob("*") for part in path.relative_to(hostile_site).parts}

    assert {name for name in names if not name.replace("-", "").replace(".", "").replace("_", "").isalnum()} == set()


def test_a_hostile_name_is_found_by_search_as_text(hostile_site: Path, serve: Any, read: Any) -> None:
    """The search's results are text as well."""
    root = serve(hostile_site)
    with read(root) as reader:
        reader.open(f"{root}en/index.html")
        reader.page.keyboard.press("/")
        reader.page.fill(".md-search__input", "hacked")
        reader.page.keyboard.press("End")
        reader.page.wait_for_selector(".md-search-result__item")

        assert reader.page.evaluate("window.hacked === undefined")
        assert (
            reader.page.locator(
                ".md-search-result img, .md-search-result script, .md-search-result svg[onload]"
            ).count()
            == 0
        )
