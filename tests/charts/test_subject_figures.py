"""The figures of a subject's pages besides its curve: each row of a table is a mark, doubts are hollow, titles told."""

from typing import Any
from xml.etree import ElementTree

import pytest

from roofbook.analysis.coefficients import beyond
from roofbook.analysis.prefill import Curve
from roofbook.analysis.standing import Roofs, Spot
from roofbook.analysis.traps import Reading
from roofbook.charts.beyond import beyond_figure
from roofbook.charts.budget import Capacity, budget_figure
from roofbook.charts.draw import static_svgs
from roofbook.charts.figure import Figure
from roofbook.charts.roofline import roofline_figure
from roofbook.charts.sequence import Sent, Standing, sequence_figure
from roofbook.charts.traps import traps_figure
from roofbook.theory.roofline import Rates
from roofbook.theory.shapes import Range
from roofbook.units import GB, TFLOP
from roofbook.words import Words

SVG = "{http://www.w3.org/2000/svg}"

# The base M4: 120 GB/s and 3.76 to 4.6 TFLOPS by data sheet, 100 GB/s and 2.9 TFLOPS measured.
M4 = Roofs(
    Rates(Range.of(120 * GB), Range(3.76 * TFLOP, 4.6 * TFLOP)), Rates(Range.of(100 * GB), Range.of(2.9 * TFLOP))
)
UNKNOWN = Roofs(Rates(), Rates())


def spot(tokens: float, flop_per_byte: float, tflops: float, *, doubtful: bool = False) -> Spot:
    phase = "decode" if flop_per_byte < 10 else "prefill"
    return Spot(phase, tokens, 5, flop_per_byte, tflops * TFLOP, Range.of(0.92), doubtful)


SPOTS = [spot(74, 3.24, 0.297), spot(3505, 1570, 2.70), spot(40, 120, 1.76, doubtful=True)]


def symbols(drawn: Figure) -> list[Any]:
    """Return the marks of the points in the static picture."""
    return paths(drawn, "mark-symbol")


def paths(drawn: Figure, kind: str) -> list[Any]:
    tree = ElementTree.fromstring(static_svgs(drawn.spec, drawn.name)["wide"])
    groups = (group for group in tree.iter(f"{SVG}g") if kind in (group.get("class") or ""))
    return [path for group in groups for path in group.iter(f"{SVG}path")]


def datasets(drawn: Figure) -> list[list[dict[str, Any]]]:
    """Return what is drawn, layer by layer."""
    named = drawn.spec.get("datasets", {})
    layers = (layer["data"] for layer in drawn.spec["layer"])
    return [data.get("values") or named[data["name"]] for data in layers]


def roofline(words: Words, roofs: Roofs = M4, spots: list[Spot] = SPOTS) -> Figure:
    return roofline_figure(words=words, title="t", roofs=roofs, spots=spots, colour=0)


def test_each_point_of_a_roofline_is_a_mark_and_a_doubtful_one_is_hollow(english: Words) -> None:
    """Three points, three rows; the last one's inside is the paper's colour."""
    drawn = roofline(english)

    assert [mark.get("fill") for mark in symbols(drawn)] == ["var(--chart-1)", "var(--chart-1)", "var(--chart-paper)"]
    assert [(row[0], row[1], row[4]) for row in drawn.table.rows] == [
        ("Decode", 74, 0.297), ("Prefill", 3505, 2.70), ("Prefill", 40, 1.76),
    ]  # fmt: skip
    assert [key.swatch for key in drawn.legend] == ["dot", "hollow", "band", "dashed"]


def test_a_roof_bends_where_both_limits_meet(english: Words) -> None:
    """At 120 GB/s and 4.6 TFLOPS the upper edge is 120 GB/s x 10 FLOP/byte = 1.2 TFLOPS at 10, and 4.6 at 100."""
    edges = next(values for values in datasets(roofline(english)) if "low" in values[0])
    across = sorted(edges, key=lambda edge: abs(edge["across"] - 10))[0]

    assert across["up"] == pytest.approx(0.12 * across["across"])
    assert max(edge["up"] for edge in edges) == pytest.approx(4.6)
    assert max(edge["low"] for edge in edges) == pytest.approx(3.76)


def test_a_machine_that_only_measured_itself_has_its_scatter_as_two_lines(english: Words) -> None:
    """No data sheet, nine repeats between 28 and 31 GB/s: two dashed roofs and no band."""
    own = Roofs(Rates(), Rates(Range(28 * GB, 31 * GB), Range(0.02 * TFLOP, 0.04 * TFLOP)))
    drawn = roofline(english, own, [spot(128, 2.8, 0.01)])

    assert [key.swatch for key in drawn.legend] == ["dot", "dashed"]
    assert len(paths(drawn, "mark-line")) == 2


def test_phases_are_named_in_the_picture_in_the_language(korean: Words) -> None:
    """Each name once, however many points it has."""
    tree = ElementTree.fromstring(static_svgs(roofline(korean).spec, "roofline")["wide"])
    texts = [element.text for element in tree.iter(f"{SVG}text")]

    assert (texts.count("디코드"), texts.count("프리필")) == (1, 1)


READINGS = [Reading(74, 291, 3.33 * TFLOP, doubted=False), Reading(3473, 58, 823 * TFLOP, doubted=True)]


def test_what_cannot_be_stands_above_the_peak_and_is_hollow(english: Words) -> None:
    """3,473 tokens in 58 ms are 823 TFLOPS, on a chip of 4.6: above in the picture, where y is small."""
    drawn = traps_figure(words=english, title="t", readings=READINGS, peak=Range(3.76 * TFLOP, 4.6 * TFLOP), colour=0)
    marks = symbols(drawn)
    heights = [float(mark.get("transform").split(",")[1].rstrip(")")) for mark in marks]

    assert [mark.get("fill") for mark in marks] == ["var(--chart-1)", "var(--chart-paper)"]
    assert heights[1] < heights[0]
    assert [row[3] for row in drawn.table.rows] == ["no", "yes"]


def test_a_budget_marks_its_own_type_and_both_ends(english: Words) -> None:
    """f16 68 to 89 plain, q8_0 128 to 168 outlined; each bar has its own mark where arithmetic takes over."""
    capacities = [
        Capacity("f16", Range(68, 89), own=False, crossover=Range(14, 24)),
        Capacity("q8_0", Range(128, 168), own=True, crossover=Range(10.4, 15.2)),
    ]
    drawn = budget_figure(words=english, title="t", capacities=capacities, context_tokens=4096, colour=0)

    assert drawn.table.rows == (("f16", 4096, 68, 89), ("q8_0", 4096, 128, 168))
    assert [key.swatch for key in drawn.legend] == ["dot", "band", "range"]
    assert [(bar["told"], bar["outline"], bar["crossing_low"]) for bar in datasets(drawn)[0]] == [
        ("68–89", 0, 14), ("128–168", 2, 10.4),
    ]  # fmt: skip


def test_a_budget_without_a_known_rate_has_no_line(english: Words) -> None:
    """Memory alone, exactly known: one key, and nothing about arithmetic."""
    drawn = budget_figure(
        words=english, title="t", capacities=[Capacity("f16", Range.of(7), own=True)], context_tokens=4096, colour=0
    )

    assert [key.swatch for key in drawn.legend] == ["dot"]


def test_predictions_are_hollow_and_measurements_are_not(published: Curve, english: Words) -> None:
    """Six measured lengths, two predicted ones; the table holds what nobody measured."""
    assert published.chosen is not None
    law = published.chosen.fit
    drawn = beyond_figure(
        words=english, title="t", law=law, lengths=published.lengths, predicted=beyond(law, 8016), colour=0
    )
    fills = [mark.get("fill") for mark in symbols(drawn)]

    assert fills == ["var(--chart-1)"] * 6 + ["var(--chart-paper)"] * 2
    assert [row[0] for row in drawn.table.rows] == [16384, 32768]
    # 4.5263 ms x 16,384: the straight line
    assert drawn.table.rows[0][4] == pytest.approx(74159, rel=1e-3)


@pytest.mark.parametrize(
    ("longest", "asked"), [(8016, [16384, 32768]), (8192, [16384, 32768]), (2048, [4096, 8192]), (900, [2048, 4096])]
)
def test_the_law_is_asked_for_twice_and_four_times_the_longest(
    published: Curve, longest: float, asked: list[int]
) -> None:
    """Powers of two nearest to twice and four times: 16,032 is near 16,384."""
    assert published.chosen is not None
    assert [one.tokens for one in beyond(published.chosen.fit, longest)] == asked


def sent(*standings: Standing) -> list[Sent]:
    return [Sent(place, "baseline", standing, "74 tokens") for place, standing in enumerate(standings, 1)]


def test_each_row_is_a_mark_by_how_it_stands(english: Words) -> None:
    """Filled counts, hollow is in doubt, a cross failed, a small one only helps."""
    rows = sent("counts", "doubted", "failed", "aside")
    drawn = sequence_figure(words=english, title="t", sent=rows, colour=0)
    marks = symbols(drawn)

    assert len(marks) == len(drawn.table.rows) == 4
    assert marks[0].get("fill") == "var(--chart-1)"
    assert marks[1].get("fill") == "var(--chart-paper)"
    assert [key.swatch for key in drawn.legend] == ["dot", "hollow", "cross", "small"]


def test_more_rows_than_a_figure_holds_are_said(english: Words) -> None:
    """B53: 20,000 rows are 2,000 marks from the first to the last, and 18,000 are counted as left out."""
    drawn = sequence_figure(words=english, title="t", sent=sent(*["counts"] * 20_000), colour=0)
    places = [row[0] for row in drawn.table.rows]

    assert (len(places), places[0], places[-1], drawn.left_out) == (2000, 1, 20_000, 18_000)
    assert [len(values) for values in drawn.spec["datasets"].values()] == [2000]
