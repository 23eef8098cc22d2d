"""The site as people read it: live and without scripts, on a phone, in the dark, from a folder, in two languages."""

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

PHONE = {"width": 375, "height": 800}

CURVE = "#fig-prefill"
"""The page's first figure; below it stands another."""
LANGUAGES = pytest.mark.parametrize("folder", ["", "en/"], ids=["ko", "en"])


def subject_pages(site: Path, name: str) -> list[str]:
    """Return the addresses below the root of the subjects' pages of that name."""
    return sorted(path.relative_to(site).as_posix() for path in site.glob(f"*/{name}.html") if path.parent.name != "en")


def mac_page(site: Path) -> str:
    return next(page for page in subject_pages(site, "prefill") if page.startswith("mac-mini"))


@LANGUAGES
def test_the_live_chart_has_a_mark_for_each_row(site: Path, address: str, read: Any, folder: str) -> None:
    """Six fitted lengths and one in doubt: seven marks, as many as the figure's table has rows."""
    with read(address) as reader:
        reader.open(address + folder + mac_page(site))
        reader.wait_live()

        assert reader.marks(f"{CURVE} .rb-live") == 7
        assert reader.page.locator(f"{CURVE} .rb-data tbody tr").count() == 7


@LANGUAGES
def test_legend_and_tooltips_speak_the_pages_language(site: Path, address: str, read: Any, folder: str) -> None:
    """B54: the key of each of a tooltip's numbers and each line of the legend, live, in Korean and in English."""
    with read(address) as reader:
        reader.open(address + folder + mac_page(site))
        reader.wait_live()
        reader.page.locator(f"{CURVE} .rb-live .mark-symbol path").first.hover(force=True)
        reader.page.wait_for_selector("#vg-tooltip-element.visible td.key")
        keys = reader.page.locator("#vg-tooltip-element td.key").all_inner_texts()
        legend = reader.page.locator(f"{CURVE} .rb-legend li").all_inner_texts()

    assert len(keys) == 4
    assert len(legend) >= 4
    assert {bool(re.search("[가-힣]", told)) for told in (*keys, *legend)} == {folder == ""}


@LANGUAGES
def test_without_scripts_the_static_chart_has_the_same_marks(site: Path, address: str, read: Any, folder: str) -> None:
    """The picture is there before any script, at both widths."""
    with read(address, javascript=False) as reader:
        reader.open(address + folder + mac_page(site))

        assert reader.marks(f"{CURVE} .rb-static--wide") == 7
        assert reader.page.locator(f"{CURVE} .rb-static--wide svg").is_visible()
        assert not reader.page.locator(f"{CURVE} .rb-static--narrow svg").is_visible()


def test_a_row_in_doubt_is_hollow_and_out_of_the_fit(site: Path, address: str, read: Any) -> None:
    """One hollow mark, one table row that says so, one sentence with the reason."""
    with read(address) as reader:
        reader.open(address + "en/" + mac_page(site))
        reader.wait_live()
        fills = reader.page.eval_on_selector_all(
            f"{CURVE} .rb-live .mark-symbol path", "all => all.map(m => m.getAttribute('fill'))"
        )

        assert fills.count("var(--chart-paper)") == 1
        assert reader.page.locator(f"{CURVE} .rb-data tbody tr", has_text="no, in doubt").count() == 1
        assert "more than the chip's peak" in reader.page.locator("article").inner_text()


@LANGUAGES
def test_nothing_is_wider_than_a_phone(site: Path, address: str, read: Any, folder: str) -> None:
    """At 375 px no page scrolls sideways, and the chart is as wide as the text."""
    with read(address, viewport=PHONE) as reader:
        for page in ["index.html", "measure.html", *subject_pages(site, "prefill")]:
            reader.open(address + folder + page)
            if page.endswith("prefill.html"):
                reader.wait_live()

            assert reader.width() == 375, page


def test_nothing_moves_when_the_chart_becomes_live(site: Path, address: str, read: Any) -> None:
    """Static and live have the same height, so what stands below stays where it is."""
    with read(address) as reader:
        reader.open(address + mac_page(site))
        before = reader.page.locator(f"{CURVE} .rb-figure__caption").evaluate("e => e.offsetTop")
        reader.wait_live()

        assert reader.page.locator(f"{CURVE} .rb-figure__caption").evaluate("e => e.offsetTop") == before


def test_the_toggle_recolours_the_chart_at_once(site: Path, address: str, read: Any) -> None:
    """B45: The colour of a mark follows the palette without a second drawing."""
    colour = "e => getComputedStyle(e).fill"
    with read(address, color_scheme="light") as reader:
        reader.open(address + mac_page(site))
        reader.wait_live()
        mark = reader.page.locator(f"{CURVE} .rb-live .mark-symbol path").first
        light = mark.evaluate(colour)
        reader.page.evaluate("document.querySelector('#__palette_2').click()")

        assert reader.page.locator("body").get_attribute("data-md-color-scheme") == "slate"
        assert mark.evaluate(colour) != light


def test_the_switch_stays_on_the_page_and_at_the_anchor(site: Path, address: str, read: Any) -> None:
    """B45: From an anchor of a Korean page to the same anchor of the English one, and back."""
    with read(address) as reader:
        reader.open(f"{address}{mac_page(site)}#method")
        reader.page.click("a[data-twin]")
        reader.page.wait_for_url(f"{address}en/{mac_page(site)}#method")
        assert reader.page.locator("html").get_attribute("lang") == "en"

        reader.page.click("a[data-twin]")
        reader.page.wait_for_url(f"{address}{mac_page(site)}#method")


def test_both_languages_have_the_same_anchors_and_figures(site: Path) -> None:
    """Every id of the text is the same in both languages."""
    for page in ["index.html", "measure.html", *subject_pages(site, "prefill")]:
        ids = [
            re.findall(r'\bid="([\w-]+)"', (site / folder / page).read_text(encoding="utf-8").split("<article")[1])
            for folder in ("", "en")
        ]
        assert ids[0] == ids[1], page


@LANGUAGES
def test_the_site_works_from_a_folder(site: Path, read: Any, folder: str) -> None:
    """Opened as files, charts become live and the search answers."""
    root = f"file://{site}/"
    with read(root) as reader:
        reader.open(root + folder + mac_page(site))
        reader.wait_live()
        reader.page.keyboard.press("/")
        reader.page.fill(".md-search__input", "prefill" if folder else "프리필")
        reader.page.keyboard.press("End")
        reader.page.wait_for_selector(".md-search-result__item")

        assert reader.marks(f"{CURVE} .rb-live") == 7


@pytest.mark.parametrize(("folder", "word"), [("", "프리필"), ("", "캐시"), ("", "qwen2"), ("en/", "prefill")])
def test_search_finds_pages_of_its_own_language(address: str, read: Any, folder: str, word: str) -> None:
    """What is found lies in the language that is read."""
    with read(address) as reader:
        reader.open(f"{address}{folder}index.html")
        reader.page.keyboard.press("/")
        reader.page.fill(".md-search__input", word)
        reader.page.keyboard.press("End")
        reader.page.wait_for_selector(".md-search-result__item")
        links = reader.page.eval_on_selector_all("a.md-search-result__link", "all => all.map(a => a.href)")

        assert links != []
        assert {link.startswith(f"{address}en/") for link in links} == {folder == "en/"}


def test_dates_tell_their_age_in_the_readers_language(site: Path, address: str, read: Any) -> None:
    """The date is printed at build; how long ago that is, the browser says."""
    with read(address) as reader:
        reader.page.clock.set_fixed_time("2026-10-11T12:00:00Z")
        reader.open(address + mac_page(site))
        assert "2026년 10월 1일 (10일 전)" in reader.page.locator(".rb-facts").inner_text()

        reader.open(f"{address}en/{mac_page(site)}")
        assert "October 1, 2026 (10 days ago)" in reader.page.locator(".rb-facts").inner_text()


def test_a_figure_can_be_cited_and_its_table_taken(site: Path, address: str, read: Any) -> None:
    """The permalink lands at the figure, the CSV has a header and a line a mark."""
    with read(address) as reader:
        reader.open(f"{address}{mac_page(site)}#fig-prefill")
        reader.wait_live()
        assert 0 <= reader.page.locator("#fig-prefill").evaluate("e => e.getBoundingClientRect().top") < 200

        with reader.page.expect_download() as download:
            reader.page.locator(f"{CURVE} .rb-take summary").click()
            reader.page.locator(f"{CURVE} .rb-take a[download]").click()
        lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()

        assert len(lines) == 1 + 7
        assert lines[0].startswith("prompt_tokens,requests,prefill_ms_median")


def test_paper_has_the_figure_whole_and_no_menus(site: Path, address: str, read: Any) -> None:
    """In print the picture stays and the frame goes."""
    with read(address) as reader:
        reader.open(address + mac_page(site))
        reader.wait_live()
        reader.page.emulate_media(media="print")

        assert reader.page.locator(f"{CURVE} .rb-static--wide svg").is_visible()
        assert not reader.page.locator(f"{CURVE} .rb-live").is_visible()
        assert not reader.page.locator(".md-header").is_visible()
        assert not reader.page.locator(".rb-data >> visible=true").count()
