"""Too many points are thinned and counted; long names stay apart."""

import re
from itertools import pairwise

import altair as alt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofbook.charts.draw import static_svgs
from roofbook.charts.figure import MAX_ROWS
from roofbook.charts.thin import short_names, thinned, thinned_but

LONG = [
    "qwen2.5-coder:32b-instruct-q4_K_M-ctx16384-fa1-kvq8_0",
    "qwen2.5-coder:32b-instruct-q4_K_M-ctx16384-fa1-kvq4_0",
]


def test_twenty_thousand_points_become_two_thousand() -> None:
    """B53: 40 requests of 500 arrivals each; the first and the last stay, and 18,000 are counted as left out."""
    kept, left_out = thinned(range(20_000))

    assert (len(kept), left_out, kept[0], kept[-1]) == (MAX_ROWS, 18_000, 0, 19_999)
    assert {later - earlier for earlier, later in pairwise(kept)} == {10, 11}


@pytest.mark.parametrize(("count", "most"), [(0, 5), (5, 5), (6, 5), (3, 1), (3, 0)])
def test_no_point_is_kept_twice(count: int, most: int) -> None:
    """Whatever the numbers: in order, without repetition, none lost uncounted."""
    kept, left_out = thinned(range(count), most)

    assert kept == sorted(set(kept))
    assert len(kept) == min(count, most) == count - left_out


def test_what_is_rare_stays() -> None:
    """Three doubtful rows among 20,000 are what a figure of doubts is for: all three are drawn, last and so on top."""
    kept, left_out = thinned_but(range(20_000), lambda number: number in (7, 8, 9_999), 900)

    assert (len(kept), left_out, kept[-3:]) == (900, 19_100, [7, 8, 9_999])
    assert (kept[0], kept[-4]) == (0, 19_999)
    assert thinned_but(range(5), lambda _: True, 5) == ([0, 1, 2, 3, 4], 0)
    assert len(thinned_but(range(20_000), lambda _: True, 900)[0]) == 450


def test_names_that_differ_at_the_end_stay_apart_on_an_axis() -> None:
    """B54: cut after so many signs, both would read the same; each label here is seen whole in the picture."""
    labels = short_names(LONG)
    values = [{"label": labels[name], "value": number} for number, name in enumerate(LONG, 1)]
    chart = alt.Chart(alt.InlineData(values=values)).mark_bar().encode(
        x=alt.X("value").type("quantitative"), y=alt.Y("label").type("nominal")
    )  # fmt: skip
    for svg in static_svgs(chart.to_dict(), "x").values():
        seen = set(re.findall(r"<text[^>]*>([^<]+)</text>", svg))

        assert set(labels.values()) <= seen
    assert len(set(labels.values())) == 2


@given(st.lists(st.text(alphabet="ab-", max_size=60), max_size=12))
def test_different_names_have_different_labels(names: list[str]) -> None:
    """Also where they differ only in the middle; a name that is short enough is left as it is."""
    labels = short_names(names, 9)

    assert set(labels) == set(names)
    assert len(set(labels.values())) == len(set(names))
    assert {name for name in names if len(name) <= 9} <= set(labels.values())
