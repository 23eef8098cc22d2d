"""Every figure of the shipped site, whoever made it, in both languages."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from roofbook.charts.figure import MAX_ROWS, datasets

FIGURE = re.compile(r'<figure class="rb-figure" id="fig-(?P<name>[\w-]+)".*?</figure>', re.DOTALL)
HANGUL = re.compile(r"[가-힣]")


class Shown(NamedTuple):
    """A figure as a page has it."""

    page: str
    lang: str
    name: str
    markup: str
    spec: dict[str, Any]

    def text(self, css_class: str) -> str:
        found = re.search(rf'class="{css_class}"[^>]*>(.*?)</(?:p|span)>', self.markup, re.DOTALL)
        return html.unescape(re.sub(r"<[^>]+>", "", found[1])).strip() if found else ""


@pytest.fixture(scope="module")
def figures(shipped: Path) -> list[Shown]:
    found = [shown for page in sorted(shipped.rglob("*.html")) for shown in figures_of(page, shipped)]
    assert len(found) >= 20
    return found


def figures_of(page: Path, site: Path) -> Iterator[Shown]:
    uri = page.relative_to(site).as_posix()
    for match in FIGURE.finditer(page.read_text(encoding="utf-8")):
        spec = re.search(r'<template class="rb-spec">(.*?)</template>', match[0], re.DOTALL)
        assert spec is not None, uri
        lang = "en" if uri.startswith("en/") else "ko"
        yield Shown(uri, lang, match["name"], match[0], json.loads(html.unescape(spec[1])))


def parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for name, inner in value.items():
            if name != "datasets":
                yield from parts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from parts(inner)


def listed(channel: Any) -> list[Any]:
    return channel if isinstance(channel, list) else [channel]


def encodings(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (part["encoding"] for part in parts(spec) if "encoding" in part)


def test_each_says_its_message_and_what_its_marks_are(figures: list[Shown]) -> None:
    """A title that is a sentence, a caption, a description for who cannot see it, a table; in the page's language."""
    for shown in figures:
        message, caption = shown.text("rb-figure__message"), shown.text("rb-figure__caption")
        label = html.unescape(re.search(r'role="img" aria-label="([^"]*)"', shown.markup)[1])  # type: ignore[index]

        assert len(message.split()) > 2, shown.page
        assert caption, (shown.page, shown.name)
        assert len(label) > len(message) / 2, (shown.page, shown.name)
        assert {bool(HANGUL.search(text)) for text in (message, caption, label)} == {shown.lang == "ko"}, shown.page
        assert shown.markup.count("<tbody>") == 1


def test_each_has_a_name_for_every_axis_and_tooltip(figures: list[Shown]) -> None:
    """No raw column name is shown: a tooltip has a title, and an axis that measures something has one in some layer."""
    for shown in figures:
        tips = [tip for encoding in encodings(shown.spec) for tip in listed(encoding.get("tooltip", []))]
        assert [tip for tip in tips if not tip.get("title")] == [], (shown.page, shown.name)
        for axis in ("x", "y"):
            measured = [one[axis] for one in encodings(shown.spec) if one.get(axis, {}).get("type") == "quantitative"]
            unnamed = [one for one in measured if one.get("axis", 0) is not None and "title" not in one]
            assert not measured or len(unnamed) < len(measured), (shown.page, shown.name, axis)


def test_what_a_tooltip_says_is_in_the_pages_language(figures: list[Shown]) -> None:
    """No Hangul in an English figure, its data included."""
    for shown in figures:
        text = json.dumps(shown.spec | {"config": None}, ensure_ascii=False)
        assert bool(HANGUL.search(text)) == (shown.lang == "ko"), (shown.page, shown.name)


def test_each_colour_is_the_pages(figures: list[Shown]) -> None:
    """Colours follow light, dark and print: no fixed one in any chart."""
    for shown in figures:
        fixed = re.findall(r'"(#[0-9a-fA-F]{3,8}|(?:rgb|hsl)a?\([^"]*)"', json.dumps(shown.spec))
        assert fixed == [], (shown.page, shown.name)


def test_none_has_more_rows_than_a_chart_should(figures: list[Shown]) -> None:
    """B53: 2,000 at most, table and chart."""
    for shown in figures:
        assert sum(len(rows) for rows in datasets(shown.spec)) <= MAX_ROWS, (shown.page, shown.name)
        assert shown.markup.count("<tr>") <= MAX_ROWS + 1


def test_each_is_the_same_in_both_languages(figures: list[Shown]) -> None:
    """The same figures on the same pages, the same number of rows behind them."""
    counted = {
        lang: {
            (shown.page.removeprefix("en/"), shown.name): (
                [len(rows) for rows in datasets(shown.spec)],
                shown.markup.count("<tr>"),
            )
            for shown in figures
            if shown.lang == lang
        }
        for lang in ("ko", "en")
    }

    assert counted["ko"] == counted["en"]


def test_each_table_is_published(figures: list[Shown], shipped: Path) -> None:
    """The CSV lies where the figure says, with a line for each row of its table."""
    for shown in figures:
        link = re.search(r'<a href="([^"]+\.csv)" download', shown.markup)
        assert link is not None, shown.page
        table = (shipped / shown.page).parent / link[1]

        assert len(table.read_text(encoding="utf-8").splitlines()) == shown.markup.count("<tr>"), shown.name


def test_no_field_needs_escaping(figures: list[Shown]) -> None:
    """B49: models and units are values; a dot, colon or bracket in a field's name would draw nothing."""
    for shown in figures:
        fields = {part["field"] for part in parts(shown.spec) if isinstance(part.get("field"), str)}
        columns = {name for rows in datasets(shown.spec) for row in rows for name in row}
        odd = {name for name in fields | columns if not re.fullmatch(r"[a-z][a-z0-9_]*", name)}
        assert odd == set(), (shown.page, shown.name)
        assert fields, (shown.page, shown.name)
