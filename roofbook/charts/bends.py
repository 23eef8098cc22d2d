"""How much more than its arithmetic the quadratic term of a prefill costs, machine by machine, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from roofbook.analysis.bends import Bend
from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import INK, MUTED, subject_colour
from roofbook.words import Words

_SHORTEST_LABEL: Final = 11
"""Size of the machines' names, so that some twenty of them fit the figure's height."""


@dataclass(frozen=True)
class NamedBend:
    """A bend with the short name of its machine; *colour* is of the subject where this site measured it."""

    name: str
    bend: Bend
    colour: int | None = None


def bends_figure(*, words: Words, title: str, bends: Sequence[NamedBend], model: str) -> Figure:
    """Return the bends in their order, one row a machine, 1 marked as what arithmetic explains."""
    points = [
        {
            "machine": one.name,
            "excess": one.bend.excess.mid,
            "low": one.bend.excess.low,
            "high": one.bend.excess.high,
            "hue": MUTED if one.colour is None else subject_colour(one.colour),
            "own": one.colour is not None,
            "told_excess": f"{words.significant(one.bend.excess.mid, 2)}"
            f" ({words.significant(one.bend.excess.low, 2)} … {words.significant(one.bend.excess.high, 2)})",
            "told_growth": words.say("%(value)s %%", value=words.number(100 * one.bend.growth)),
        }
        for one in bends
    ]
    published = [one.bend for one in bends if one.colour is None]
    x = alt.X("excess").type("quantitative").title(words.say("Quadratic term: times what attention's arithmetic takes"))
    low = min([0.0, *(one.bend.excess.low for one in bends)])
    x = x.scale(nice=False, domain=[low, max((one.bend.excess.high for one in bends), default=1.0) * 1.04])
    y = alt.Y("machine").type("nominal").title(None).sort(None)  # pyright: ignore[reportArgumentType] - None keeps the order
    y = y.axis(labelFontSize=_SHORTEST_LABEL, labelColor=INK, labelOverlap=False, labelLimit=160)
    return Figure(
        name="bends",
        title=title,
        description=words.say(
            "Range chart of %(machines)s series for %(model)s. %(title)s.",
            machines=words.number(len(bends)),
            model=model,
            title=title,
        ),
        caption=words.say(
            "Published series: %(model)s, from %(short)s to %(long)s tokens of prompt. Two points in a row are two "
            "machines of one name. Lines are 95 %% intervals.",
            model=model,
            short=words.number(min((length for one in published for length in one.lengths), default=0)),
            long=words.number(max((length for one in published for length in one.lengths), default=0)),
        ),
        legend=_legend(words, bends),
        table=_table(words, bends),
        spec=alt.layer(_one(x), *_ranges(points, x, y, words)).to_dict(),
    )


def _one(x: alt.X) -> alt.Chart:
    return (
        alt.Chart(alt.InlineData(values=[{"excess": 1}]))
        .mark_rule(strokeWidth=1.25, strokeDash=[5, 4])
        .encode(x=x, stroke=alt.value(INK))
    )


def _ranges(points: list[dict[str, Any]], x: alt.X, y: alt.Y, words: Words) -> list[alt.Chart]:
    chart = alt.Chart(alt.InlineData(values=points))
    told = [
        ("machine", words.say("Machine")),
        ("told_excess", words.say("Times the arithmetic")),
        ("told_growth", words.say("Time a token, longest against shortest")),
    ]
    hue = alt.Stroke("hue").type("nominal").scale(None).legend(None)
    low = alt.X("low").type("quantitative").title(words.say("Quadratic term: times what attention's arithmetic takes"))
    return [
        chart.mark_rule(strokeWidth=2).encode(x=low, x2="high", y=y, stroke=hue),
        chart.mark_point(shape="circle", opacity=1, strokeWidth=1).encode(
            x=x,
            y=y,
            stroke=hue,
            fill=alt.Fill("hue").type("nominal").scale(None).legend(None),
            size=alt.when(alt.datum.own).then(alt.value(110)).otherwise(alt.value(35)),
            tooltip=[alt.Tooltip(field).type("nominal").title(name) for field, name in told],
        ),
    ]


def _legend(words: Words, bends: Sequence[NamedBend]) -> tuple[Key, ...]:
    keys = [
        Key("dot", subject_colour(one.colour), words.say("Measured on this site: %(machine)s", machine=one.name))
        for one in bends
        if one.colour is not None
    ]
    keys.append(Key("small", MUTED, words.say("Published by others")))
    keys.append(Key("range", MUTED, words.say("95 %% interval")))
    keys.append(Key("dashed", INK, words.say("All that attention's arithmetic takes")))
    return tuple(keys)


def _table(words: Words, bends: Sequence[NamedBend]) -> Table:
    columns = (
        Column("whose", words.say("Whose"), None),
        Column("machine", words.say("Machine"), None),
        Column("model", words.say("Model"), None),
        Column("quantization", words.say("Quantization"), None),
        Column("lengths", words.say("Prompt lengths")),
        Column("growth_percent", words.say("Time a token, longest against shortest (%%)")),
        Column("excess", words.say("Times the arithmetic"), 2),
        Column("excess_low", words.say("at least"), 2),
        Column("excess_high", words.say("at most"), 2),
        Column("source", words.say("Source"), None),
    )
    rows = [
        (
            words.say("this site") if one.colour is not None else words.say("published"),
            one.bend.machine,
            one.bend.model,
            one.bend.quantization,
            len(one.bend.lengths),
            100 * one.bend.growth,
            one.bend.excess.mid,
            one.bend.excess.low,
            one.bend.excess.high,
            one.bend.source,
        )
        for one in bends
    ]
    return Table(columns, tuple(rows))
