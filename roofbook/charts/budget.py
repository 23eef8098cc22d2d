"""How many requests a machine's memory holds at once, KV type by KV type, and where arithmetic takes over."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import INK, subject_colour
from roofbook.theory.shapes import Range
from roofbook.words import Words

_OWN: Final = 2
"""Width of the outline of the KV type that the subject runs with."""

_ROOM: Final = 1.3
"""For the label right of the longest bar."""


@dataclass(frozen=True)
class Capacity:
    """One KV type: how many requests fit, and whether it is the subject's own."""

    kv_type: str
    requests: Range
    own: bool
    crossover: Range | None = None
    """From how many requests on arithmetic limits decode; None where it never does, or nobody knows."""


def budget_figure(
    *,
    words: Words,
    title: str,
    capacities: Sequence[Capacity],
    context_tokens: int,
    colour: int,
) -> Figure:
    """Return a bar a KV type: whole to the fewest requests, pale to the most; a mark where arithmetic takes over.

    The subject's own type is outlined.
    """
    bars = [_bar(one, words) for one in capacities]
    crossings = [one.crossover.high for one in capacities if one.crossover is not None]
    top = max([one.requests.high for one in capacities] + [*crossings, 1]) * _ROOM
    x = alt.X("low").type("quantitative")
    x = x.title(words.say("Requests of %(tokens)s tokens at once", tokens=words.number(context_tokens)))
    x = x.scale(nice=False, domain=[0, top]).axis(format=",~r", tickCount=6, grid=True)
    y = alt.Y("kv_type").type("nominal").title(words.say("KV cache type")).sort([one.kv_type for one in capacities])
    y = y.scale(paddingInner=0.5, paddingOuter=0.4)
    return Figure(
        name="budget",
        title=title,
        description=words.say(
            "Bar chart of %(bars)s KV cache types, requests that memory holds at once. %(title)s.",
            bars=words.number(len(bars)),
            title=title,
        ),
        caption=words.say(
            "Whole bar: at least so many. Pale bar: at most, if the system and the reserve allow it. Outlined: the "
            "cache type that this subject ran with."
        ),
        legend=_legend(words, capacities, colour),
        table=_table(words, capacities, context_tokens),
        spec=alt.layer(*_bars(bars, x, y, words, colour), *_crossings(bars, y)).to_dict(),
    )


def _bar(one: Capacity, words: Words) -> dict[str, Any]:
    return {
        "kv_type": one.kv_type,
        "zero": 0,
        "low": one.requests.low,
        "high": one.requests.high,
        "outline": _OWN if one.own else 0,
        "crossing_low": None if one.crossover is None else one.crossover.low,
        "crossing_high": None if one.crossover is None else one.crossover.high,
        "told": span(one.requests, words),
    }


def _bars(bars: list[dict[str, Any]], x: alt.X, y: alt.Y, words: Words, colour: int) -> list[alt.Chart]:
    chart = alt.Chart(alt.InlineData(values=bars))
    hue = alt.value(subject_colour(colour))
    outline = alt.StrokeWidth("outline").type("quantitative").scale(None).legend(None)
    told = [("kv_type", words.say("KV cache type")), ("told", words.say("Requests at once"))]
    tooltip = [alt.Tooltip(field).type("nominal").title(title) for field, title in told]
    return [
        chart.mark_bar(fillOpacity=0.3).encode(x=x, x2="high", y=y, fill=hue, tooltip=tooltip),
        chart.mark_bar().encode(
            x=alt.X("zero").type("quantitative"),
            x2="low",
            y=y,
            fill=hue,
            stroke=alt.value(INK),
            strokeWidth=outline,
            tooltip=tooltip,
        ),
        chart.mark_text(align="left", dx=7, fontSize=13, fontWeight=600).encode(
            x=alt.X("high").type("quantitative"), y=y, text=alt.Text("told").type("nominal"), fill=alt.value(INK)
        ),
    ]


def _crossings(bars: list[dict[str, Any]], y: alt.Y) -> list[alt.Chart]:
    """Return a mark on each bar, from where arithmetic may take over to where it surely does."""
    crossed = [bar for bar in bars if bar["crossing_high"] is not None]
    if not crossed:
        return []
    drawn = alt.Chart(alt.InlineData(values=crossed))
    ink = alt.value(INK)
    ends = [
        drawn.mark_tick(thickness=2, bandSize=30, opacity=1).encode(
            x=alt.X(end).type("quantitative"), y=y, fill=ink, stroke=ink
        )
        for end in ("crossing_low", "crossing_high")
    ]
    between = drawn.mark_rule(strokeWidth=2).encode(
        x=alt.X("crossing_low").type("quantitative"), x2="crossing_high", y=y, stroke=ink
    )
    return [between, *ends]


def _legend(words: Words, capacities: Sequence[Capacity], colour: int) -> tuple[Key, ...]:
    hue = subject_colour(colour)
    keys = [Key("dot", hue, words.say("What memory holds"))]
    if any(not one.requests.known for one in capacities):
        keys.append(Key("band", hue, words.say("Depends on the system and the reserve")))
    if any(one.crossover is not None for one in capacities):
        keys.append(Key("range", INK, words.say("From here on, arithmetic is the limit of decode")))
    return tuple(keys)


def _table(words: Words, capacities: Sequence[Capacity], context_tokens: int) -> Table:
    columns = (
        Column("kv_cache_type", words.say("KV cache type"), None),
        Column("context_tokens", words.say("Tokens a request")),
        Column("requests_low", words.say("At least")),
        Column("requests_high", words.say("At most")),
    )
    rows = [(one.kv_type, context_tokens, one.requests.low, one.requests.high) for one in capacities]
    return Table(columns, tuple(rows))


def span(value: Range, words: Words) -> str:
    """Return a range of whole things as it is written: one number where its ends agree."""
    low, high = words.number(value.low), words.number(value.high)
    return low if low == high else f"{low}–{high}"
