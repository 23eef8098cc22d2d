"""What the prefill figure says and shows, and that it claims no more than its intervals carry."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from roofbook.analysis.prefill import Curve, Length
from roofbook.charts.draw import static_svgs
from roofbook.charts.figure import Figure
from roofbook.charts.prefill import prefill_figure, time_text
from roofbook.words import Words

SVG = "{http://www.w3.org/2000/svg}"


def figure(words: Words, curve: Curve, *doubtful: Length) -> Figure:
    return prefill_figure(words=words, curve=curve, doubtful=doubtful, colour=2)


def dots(drawn: Figure) -> list[Any]:
    """Return the marks of the points in the static picture."""
    tree = ElementTree.fromstring(static_svgs(drawn.spec, drawn.name)["wide"])
    groups = (group for group in tree.iter(f"{SVG}g") if "mark-symbol" in (group.get("class") or ""))
    return [path for group in groups for path in group.iter(f"{SVG}path")]


def fields(value: Any) -> Iterator[str]:
    """Yield every field name that a spec uses."""
    if isinstance(value, dict):
        if isinstance(value.get("field"), str):
            yield value["field"]
        for inner in value.values():
            yield from fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner)


def test_the_title_says_the_message(published: Curve, english: Words, korean: Words) -> None:
    """As measured, no fit: 48,337 ms / 8,016 = 6.030 and 891 ms / 205 = 4.346 ms a token, 38.7 % more."""
    assert figure(english, published).title == (
        "Prefill grows faster than the prompt: at 8,016 tokens each token took 39 % longer than at 205"
    )
    assert figure(korean, published).title == (
        "프리필 시간은 프롬프트 길이보다 빨리 늘어납니다: "
        "8,016토큰일 때 토큰 하나에 걸린 시간이 205토큰일 때보다 39% 길었습니다"
    )


def test_a_straight_line_is_called_one(curve_of: Callable[..., Curve], english: Words) -> None:
    """2 ms a token at every length, but for a little noise: no growth is claimed."""
    noise = [1.004, 0.997, 1.002, 0.998, 1.001, 0.999]
    curve = curve_of(
        [(tokens, 2 * tokens * n) for tokens, n in zip([200, 400, 800, 1600, 3200, 6400], noise, strict=True)]
    )

    assert figure(english, curve).title == "Prefill grows in step with the prompt: about 2.00 ms for each token"


@pytest.mark.parametrize(
    ("points", "title"),
    [
        ([], "No prefill time could be measured"),
        ([(512, 1000.0)], "Prefill time at 1 prompt length: too few lengths for a law"),
        ([(512, 1000.0), (1024, 2000.0)], "Prefill time at 2 prompt lengths: too few lengths for a law"),
    ],
)
def test_few_points_stand_alone(
    curve_of: Callable[..., Curve], english: Words, points: list[tuple[int, float]], title: str
) -> None:
    """Without a law there is no line, and the title says why; an empty chart can still be drawn."""
    drawn = figure(english, curve_of(points))

    assert drawn.title == title
    assert [key.swatch for key in drawn.legend] == ["dot"] * bool(points)
    assert len(dots(drawn)) == len(points)


def test_each_row_of_the_table_is_a_mark(published: Curve, english: Words, impossible: Length) -> None:
    """Six fitted lengths and a doubtful one: seven marks, seven rows, one of them hollow."""
    drawn = figure(english, published, impossible)
    marks = dots(drawn)

    assert len(marks) == len(drawn.table.rows) == 7
    assert [mark.get("fill") for mark in marks] == ["var(--chart-3)"] * 6 + ["var(--chart-paper)"]
    assert {mark.get("stroke") for mark in marks} == {"var(--chart-3)"}
    assert [row[-1] for row in drawn.table.rows] == ["yes"] * 6 + ["no, in doubt"]


def test_the_table_has_the_numbers_as_they_are(published: Curve, english: Words) -> None:
    """The longest length: 48,337 ms for 8,016 tokens by three requests is 165.8 tokens a second."""
    header, *lines = figure(english, published).table.csv().splitlines()
    last = dict(zip(header.split(","), lines[-1].split(","), strict=True))

    assert (last["prompt_tokens"], last["requests"], last["prefill_ms_median"]) == ("8016.0", "3", "48337.0")
    assert float(last["prompt_tok_per_s"]) == pytest.approx(8016 / 48.337)
    assert last["prefill_ms_lowest"] == ""  # one published median has no range


def test_fields_are_fixed_names(published: Curve, english: Words) -> None:
    """B49: whatever a model is called, no field name of a chart needs escaping."""
    spec = figure(english, published).spec

    assert set("".join(fields(spec))) <= set("abcdefghijklmnopqrstuvwxyz_")
    assert "ollama" not in json.dumps(spec)


def test_axes_have_units_and_marks_have_tooltips_in_the_language(published: Curve, korean: Words) -> None:
    """Everything that a reader sees comes from the words."""
    text = json.dumps(figure(korean, published).spec, ensure_ascii=False)

    assert "프리필 시간 (초)" in text
    assert "프롬프트 길이 (토큰)" in text
    assert "요청 수" in text
    assert "48.3초" in text


def test_short_times_are_milliseconds(curve_of: Callable[..., Curve], english: Words) -> None:
    """Below two seconds the axis counts milliseconds."""
    assert "Prefill time (ms)" in json.dumps(figure(english, curve_of([(100, 400.0)])).spec)


def test_the_clients_clock_is_named(curve_of: Callable[..., Curve], english: Words) -> None:
    """Where the server tells no prefill time, the caption says what stands for it."""
    assert "the client's time to the first token stands for it" in figure(english, curve_of([(100, None)])).caption


@pytest.mark.parametrize(("ms", "told"), [(890.6, "891 ms"), (1999, "1,999 ms"), (48337, "48.3 s"), (2000, "2.00 s")])
def test_times_as_prose(english: Words, ms: float, told: str) -> None:
    """Seconds where there are some."""
    assert time_text(english, ms) == told


def test_a_curve_of_very_many_lengths_is_drawn_thinner(published: Curve, english: Words, impossible: Length) -> None:
    """B53: of 6 x 333 lengths and one in doubt 900 are drawn, that one among them; the caption counts all rows."""
    many = replace(published, lengths=published.lengths * 333)
    drawn = figure(english, many, impossible)

    assert (len(drawn.table.rows), drawn.left_out) == (900, 6 * 333 + 1 - 900)
    assert [row[-1] for row in drawn.table.rows].count("no, in doubt") == 1
    assert "from 1999 rows" in drawn.caption
