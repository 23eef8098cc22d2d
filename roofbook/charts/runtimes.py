"""What runs on what, as a matrix: one row a runtime, one column a kind of hardware."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import altair as alt

from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import INK, MUTED, PAPER
from roofbook.words import Words

Support = Literal["native", "plugin", "source", "none", "unknown"]

_HUE: Final = "var(--chart-1)"
_ASIDE: Final = re.compile(r"\s*\([^)]*\)|( Inference)? [Ss]erver$")
"""What a name is understood without: a phone has no room for it."""

_LABEL_PX: Final = 11
_UNCHECKED_OPACITY: Final = 0.35
_SIZES: Final[dict[Support, int]] = {"native": 240, "plugin": 90, "source": 90, "none": 12, "unknown": 12}


@dataclass(frozen=True)
class Square:
    """One runtime on one kind of hardware, with the words for both and for how it runs there."""

    runtime: str
    accelerator: str
    support: Support
    told: str
    checked: bool


def runtimes_figure(*, words: Words, title: str, squares: Sequence[Square]) -> Figure:
    """Return the matrix, in the order of *squares*."""
    marks = [
        {
            "runtime": _ASIDE.sub("", square.runtime),
            "accelerator": square.accelerator,
            "support": square.support,
            "told": square.told if square.checked else words.say("%(told)s (not checked)", told=square.told),
            "size": _SIZES[square.support],
            "hollow": square.support in ("plugin", "source"),
            "faint": square.support in ("none", "unknown"),
            "opacity": 1 if square.checked or square.support in ("none", "unknown") else _UNCHECKED_OPACITY,
        }
        for square in squares
    ]
    x = alt.X("accelerator").type("nominal").title(None).sort(None)  # pyright: ignore[reportArgumentType] - None keeps the order
    x = x.axis(
        orient="top",
        domain=False,
        ticks=False,
        labelAngle=0,
        labelColor=INK,
        labelOverlap=False,
        labelFontSize=_LABEL_PX,
    )
    y = alt.Y("runtime").type("nominal").title(None).sort(None)  # pyright: ignore[reportArgumentType] - None keeps the order
    y = y.axis(labelColor=INK, grid=True)
    told = [("runtime", words.say("Runtime")), ("accelerator", words.say("Hardware")), ("told", words.say("Runs"))]
    hue = alt.when(alt.datum.faint).then(alt.value(MUTED)).otherwise(alt.value(_HUE))
    return Figure(
        name="runtimes",
        title=title,
        description=words.say("Matrix of runtimes and kinds of hardware. %(title)s.", title=title),
        caption=words.say("As of the dates in the table below; a runtime may have moved since."),
        legend=_legend(words, squares),
        table=_table(words, squares),
        spec=alt.Chart(alt.InlineData(values=marks))
        .mark_point(shape="circle", strokeWidth=2)
        .encode(
            x=x,
            y=y,
            size=alt.Size("size").type("quantitative").scale(None).legend(None),
            opacity=alt.Opacity("opacity").type("quantitative").scale(None).legend(None),
            stroke=hue,
            fill=alt.when(alt.datum.hollow)
            .then(alt.value(PAPER))
            .when(alt.datum.faint)
            .then(alt.value(MUTED))
            .otherwise(alt.value(_HUE)),
            tooltip=[alt.Tooltip(field).type("nominal").title(name) for field, name in told],
        )
        .to_dict(),
    )


def _legend(words: Words, squares: Sequence[Square]) -> tuple[Key, ...]:
    keys = [
        Key("dot", _HUE, words.say("In its own releases")),
        Key("hollow", _HUE, words.say("By a plugin, or built from source")),
    ]
    if not all(square.checked for square in squares):
        keys.append(Key("band", _HUE, words.say("Pale: said to run, not checked")))
    return (*keys, Key("small", MUTED, words.say("Not at all, or nobody looked")))


def _table(words: Words, squares: Sequence[Square]) -> Table:
    columns = (
        Column("runtime", words.say("Runtime"), None),
        Column("hardware", words.say("Hardware"), None),
        Column("runs", words.say("Runs"), None),
        Column("checked", words.say("Checked"), None),
    )
    rows = [
        (square.runtime, square.accelerator, square.told, words.say("yes") if square.checked else words.say("no"))
        for square in squares
    ]
    return Table(columns, tuple(rows))
