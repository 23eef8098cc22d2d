"""Figures are checked before they are drawn, drawn once, and safe to embed."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import pytest

from roofbook.charts.cache import FigureCache
from roofbook.charts.draw import live_spec, static_svgs, vega_bundle
from roofbook.charts.figure import MAX_ROWS, Column, Figure, Table, checked
from roofbook.charts.style import HEIGHT_PX, subject_colour
from roofbook.errors import PageError
from roofbook.words import Words


def figure(*, words: Words, points: tuple[tuple[float, float], ...], title: str = "t") -> Figure:
    """A plain scatter chart."""
    data = alt.InlineData(values=[{"x": x, "y": y} for x, y in points])
    chart = alt.Chart(data).mark_point(clip=True).encode(
        x=alt.X("x").type("quantitative").title(title), y=alt.Y("y").type("quantitative")
    )  # fmt: skip
    table = Table((Column("x", "x"), Column("y", "y")), points)
    return Figure("plain", title, "d", words.lang, (), table, chart.to_dict())


def test_too_many_rows_are_refused(english: Words) -> None:
    """B53: more than 2,000 rows belong into an aggregate."""
    plain = figure(words=english, points=((1, 1),))
    many = replace(plain, table=Table(plain.table.columns, ((1, 1),) * (MAX_ROWS + 1)))

    with pytest.raises(PageError, match="'plain' would have 2001 rows, more than 2000"):
        checked(many)


def test_too_many_rows_in_the_chart_are_refused_as_well(english: Words) -> None:
    """B53: a short table does not excuse 2,001 rows behind the chart."""
    plain = figure(words=english, points=tuple((n, n) for n in range(MAX_ROWS + 1)))

    with pytest.raises(PageError, match="'plain' would have 2001 rows"):
        checked(replace(plain, table=Table(plain.table.columns, ((1, 1),))))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(english: Words, number: float) -> None:
    """NaN and infinity never reach a page's JSON, nor its table."""
    plain = figure(words=english, points=((1, 1),))

    with pytest.raises(PageError, match="holds a number that is none"):
        checked(replace(plain, spec={"data": number}))
    with pytest.raises(PageError, match="holds a number that is none"):
        checked(replace(plain, table=Table(plain.table.columns, ((1, number),))))


@pytest.mark.parametrize("value", [0, -1])
def test_a_logarithmic_axis_loses_nothing(english: Words, value: float) -> None:
    """Vega would leave out a value that has no logarithm without a word; unknown ones are left out on purpose."""

    def on_logarithms(*values: float | None) -> Figure:
        data = alt.InlineData(values=[{"x": x, "y": 1} for x in values])
        x, y = alt.X("x").type("quantitative").scale(type="log"), alt.Y("y").type("quantitative")
        return replace(
            figure(words=english, points=((1, 1),)), spec=alt.Chart(data).mark_point().encode(x, y).to_dict()
        )

    assert checked(on_logarithms(1, None)).name == "plain"
    with pytest.raises(PageError, match="logarithmic axis, where they vanish: x"):
        checked(on_logarithms(1, value))


@pytest.mark.parametrize("points", [(), ((0, 0),), ((1e15, 1e-15),), ((-5, 5), (1e308, 1))])
def test_odd_data_can_be_drawn(english: Words, points: tuple[tuple[float, float], ...]) -> None:
    """Nothing, zero, huge and tiny: as many marks as points, and no number in the picture that is none."""
    drawn = checked(figure(words=english, points=points))
    svg = static_svgs(drawn.spec, drawn.name)["wide"]
    marks = re.findall(r'<g class="mark-symbol[^>]*>(.*?)</g>', svg, re.DOTALL)

    assert sum(group.count("<path") for group in marks) == len(points)
    assert not re.search(r"NaN|Infinity|undefined|null", svg)


def test_a_chart_that_vega_refuses_is_an_error_of_ours() -> None:
    """A broken spec is one line."""
    with pytest.raises(PageError, match="A chart cannot be drawn"):
        static_svgs({"$schema": "https://vega.github.io/schema/vega-lite/v6.4.1.json", "mark": 7}, "x")


def test_a_drawing_is_kept_by_what_it_is_made_from(english: Words, korean: Words, tmp_path: Path) -> None:
    """The same inputs are drawn once; other points, another language or another builder's argument are drawn anew."""
    cache = FigureCache(tmp_path)
    first = cache.draw(figure, english, points=((1, 2),))

    assert cache.draw(figure, english, points=((1, 2),)) == first
    assert cache.drawn == 1
    cache.draw(figure, english, points=((1, 3),))
    cache.draw(figure, korean, points=((1, 2),))
    cache.draw(figure, english, points=((1, 2),), title="other")
    assert cache.drawn == 4


def test_a_cache_that_cannot_be_written_does_no_harm(english: Words, tmp_path: Path) -> None:
    """A file where the folder should be: the figure is drawn all the same."""
    (tmp_path / "cache").write_text("")

    assert FigureCache(tmp_path / "cache").draw(figure, english, points=((1, 2),)).figure.title == "t"


def test_text_in_a_chart_is_text(english: Words) -> None:
    """A title with markup is escaped in the picture."""
    drawn = figure(words=english, points=((1, 2),), title='<script>window.hacked=1</script>" role="x')
    svg = static_svgs(drawn.spec, drawn.name)["wide"]

    assert "<script" not in svg
    assert "&lt;script&gt;" in svg


def test_a_picture_is_lean_and_has_ids_of_its_own(english: Words) -> None:
    """One role for the whole figure stands outside; no id depends on what was drawn before."""
    drawn = figure(words=english, points=((1, 2.123456789), (3, 4)))
    first, again = (static_svgs(drawn.spec, drawn.name) for _ in range(2))

    assert first == again
    assert 'role="' not in first["wide"]
    assert "font-family" not in first["wide"]
    assert not re.search(r"\d\.\d{3,}", first["wide"])
    assert set(re.findall(r'id="([^"]+)"', first["wide"] + first["narrow"])) == {"plain-wide-1", "plain-narrow-1"}


def test_static_and_live_are_equally_high(english: Words) -> None:
    """So nothing moves when one replaces the other."""
    drawn = figure(words=english, points=((1, 2),))

    assert live_spec(drawn.spec)["height"] == HEIGHT_PX
    assert all(f'viewBox="0 0 {width} 340"' in svg for width, svg in
               zip((700, 343), static_svgs(drawn.spec, drawn.name).values(), strict=True))  # fmt: skip


@pytest.mark.parametrize(
    ("value", "cell"),
    [(None, ""), (1.5, "1.5"), ("=cmd()", "'=cmd()"), ("-1", "'-1"), ("a,b", '"a,b"'), ("qwen2.5:7b", "qwen2.5:7b")],
)
def test_csv_cells(value: Any, cell: str) -> None:
    """Unknown is empty; what a spreadsheet would run stays text; numbers are as they are."""
    assert Table((Column("x", "x"), Column("y", "y")), ((value, 1),)).csv() == f"x,y\n{cell},1\n"


def test_colours_go_round() -> None:
    """The ninth subject shares the first one's colour: there are eight."""
    assert [subject_colour(0), subject_colour(7), subject_colour(8)] == [
        "var(--chart-1)",
        "var(--chart-8)",
        "var(--chart-1)",
    ]


def test_the_bundle_is_one_function() -> None:
    """The library's names stay its own; only roofbookVega is the page's, and no address is loaded."""
    bundle = vega_bundle()

    assert bundle.startswith("(()=>{")
    assert bundle.endswith("})();\n")
    assert "window.roofbookVega" in bundle
