"""Every page of the shipped site, in both languages: on any screen, on paper, for a screen reader, live and static."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = pytest.mark.browser

WIDTHS_PX = (375, 768, 1280, 2560)

# Found in the theme's own parts, which its next version may mend; what lies in our pages is never left out here.
OF_THE_THEME = (
    ".md-search",
    ".md-header",
    ".md-nav",
    ".md-footer",
    ".md-dialog",
    ".headerlink",
    ".md-clipboard",
    ".md-top",
)

SHEET = {"width": 695, "height": 1016}
"""A4 less its margins of 13 and 14 mm, at 96 px an inch."""

WORST_FIRST = ("critical", "serious")

MARKS = "svg => ['symbol', 'rect'].map(kind => svg.querySelectorAll(`.mark-${kind} > path`).length)"


# The theme's parts slide when the window changes; what counts is how they come to rest.
AT_REST = "* { transition: none !important; animation: none !important; }"


@pytest.fixture(scope="module")
def shipped_address(shipped: Path, serve: Callable[[Path], str]) -> str:
    return serve(shipped)


def pages_of(site: Path, folder: str = "") -> list[str]:
    """Return the addresses of all pages below *folder* ("" has the English ones too)."""
    found = sorted(path.relative_to(site).as_posix() for path in (site / folder).rglob("*.html"))
    return [page for page in found if not page.endswith("404.html")]


@pytest.mark.timeout(600)
def test_no_page_scrolls_sideways(shipped: Path, shipped_address: str, read: Any) -> None:
    """From a phone to a very wide screen each page is as wide as the window."""
    with read(shipped_address, bypass_csp=True) as reader:
        too_wide: list[tuple[str, int, int]] = []
        for page in pages_of(shipped):
            reader.open(shipped_address + page)
            reader.page.add_style_tag(content=AT_REST)
            for width in WIDTHS_PX:
                reader.page.set_viewport_size({"width": width, "height": 900})
                if reader.width() > width:
                    too_wide.append((page, width, reader.width()))
    assert too_wide == []


@pytest.mark.timeout(600)
def test_every_live_chart_has_the_marks_of_its_picture(shipped: Path, shipped_address: str, read: Any) -> None:
    """Dots and bars: the live chart draws as many as the static one, and no fewer than the table has rows."""
    with read(shipped_address) as reader:
        # One language: a chart is drawn from the same rows in each, which the tests of the figures hold.
        for page in pages_of(shipped, "en"):
            reader.open(shipped_address + page)
            for figure in reader.page.locator(".rb-figure").all():
                figure.scroll_into_view_if_needed()
                live = figure.locator(".rb-live svg.marks")
                live.wait_for()
                drawn = live.evaluate(MARKS)
                static = figure.locator(".rb-static--wide svg").evaluate(MARKS)
                rows = figure.locator(".rb-data tbody tr").count()

                assert drawn == static, (page, figure.get_attribute("id"))
                assert sum(drawn) >= rows, (page, figure.get_attribute("id"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("folder", "scheme"), [("", "light"), ("en", "dark")], ids=["ko", "en"])
def test_nothing_serious_stands_in_the_way_of_a_screen_reader(
    shipped: Path, shipped_address: str, read: Any, folder: str, scheme: str
) -> None:
    """axe-core finds nothing serious or critical in what is ours: one language in each palette, as both share both."""
    axe = Axe()
    pages = [page for page in pages_of(shipped) if page.startswith("en/") == (folder == "en")]
    with read(shipped_address, color_scheme=scheme, bypass_csp=True) as reader:
        found: list[str] = []
        for page in pages:
            reader.open(shipped_address + page)
            result = axe.run(reader.page, options={"resultTypes": ["violations"]}).response
            found += [f"{page}: {one}" for one in ours(result["violations"])]
    assert found == []


def ours(violations: Iterable[dict[str, Any]]) -> list[str]:
    """Return the serious findings outside the theme's own parts."""
    return [
        f"{violation['id']} {node['target']} {node['html'][:120]}"
        for violation in violations
        if violation["impact"] in WORST_FIRST
        for node in violation["nodes"]
        if not any(part in str(node["target"]) + node["html"] for part in OF_THE_THEME)
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", ["", "en/"], ids=["ko", "en"])
def test_the_front_page_prints_on_one_sheet(shipped_address: str, read: Any, folder: str) -> None:
    """A4, in the margins that the style sheet asks for."""
    with read(shipped_address) as reader:
        reader.open(f"{shipped_address}{folder}index.html")

        assert sheets(reader.page) == 1


@pytest.mark.timeout(600)
def test_a_chapter_prints_on_few_sheets_with_its_figures_whole(shipped: Path, shipped_address: str, read: Any) -> None:
    """No more sheets than its text and figures fill, with room for a figure that moves to the next one."""
    with read(shipped_address) as reader:
        # One language: the same figures and tables, and a line of text more or less.
        for page in pages_of(shipped, "en"):
            reader.open(shipped_address + page)
            reader.page.emulate_media(media="print")
            reader.page.set_viewport_size(SHEET)
            height = reader.page.evaluate("document.documentElement.scrollHeight")
            figures = reader.page.locator(".rb-figure").count()
            whole = "all => all.every(one => getComputedStyle(one).breakInside === 'avoid')"

            assert reader.page.eval_on_selector_all(".rb-figure", whole)
            assert sheets(reader.page) <= height / SHEET["height"] + figures / 2 + 1, page
            reader.page.emulate_media(media="screen")


def sheets(page: Any) -> int:
    """Return how many sheets of A4 the page prints on."""
    pdf = page.pdf(format="A4", prefer_css_page_size=True)
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def test_both_languages_have_the_same_pages_and_anchors(shipped: Path) -> None:
    """Every id of a page's text is the same in both languages: the switch keeps the place, links can be shared."""
    differing: list[str] = []
    for page in pages_of(shipped, "en"):
        twin = shipped / page.removeprefix("en/")
        anchors = [anchors_of(path) for path in (shipped / page, twin)]
        if anchors[0] != anchors[1]:
            differing.append(f"{page}: {sorted(set(anchors[0]) ^ set(anchors[1]))}")
    assert differing == []


def anchors_of(page: Path) -> list[str]:
    article = page.read_text(encoding="utf-8").split("<article")[1].split("</article>")[0]
    return re.findall(r'<(?:h\d|figure|section|div|aside|dt|li)\b[^>]*?\bid="([\w:.-]+)"', article)
