"""Machines as two numbers: how much their GPU may hold, and how fast it reads that."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import altair as alt

from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import INK, MUTED, PAPER, subject_colour
from roofbook.theory.shapes import Range
from roofbook.units import GB, GIB
from roofbook.words import Words

_MEMORY_TICKS_GIB: Final = [8, 16, 32, 64, 128, 256, 512]
_BANDWIDTH_TICKS_GB: Final = [50, 100, 200, 400, 800, 1600, 3200]
_ROOM: Final = 1.3
"""What the axes reach beyond the outermost machine, so that a label beside it has a place."""

Role = Literal["named", "other", "doubtful"]


@dataclass(frozen=True)
class Spot:
    """A machine in the plane: *named* ones are those the page tells of, *doubtful* ones have a memory size unchecked.

    *colour* is of the subject that was measured on it.
    """

    name: str
    usable_bytes: Range
    bandwidth_bytes_per_s: Range
    role: Role
    colour: int | None = None


def hardware_figure(*, words: Words, title: str, spots: Sequence[Spot]) -> Figure:
    """Return the plane of memory and bandwidth; *title* is the page's answer."""
    points = [_point(spot, words) for spot in spots]
    x, y = _x("usable", spots, words), _y(spots, words)
    return Figure(
        name="hardware",
        title=title,
        description=words.say(
            "Scatter chart of %(machines)s machines, memory against bandwidth, both axes logarithmic. %(title)s.",
            machines=words.number(len(spots)),
            title=title,
        ),
        caption=words.say(
            "A Mac's GPU may use a part of the memory only; the line reaches from macOS 15 and older to macOS 26."
        ),
        legend=_legend(words, spots),
        table=_table(words, spots),
        spec=alt.layer(
            _ranges(points, _x("low", spots, words), y), _dots(points, x, y, words), *_names(points, x, y)
        ).to_dict(),
    )


def _point(spot: Spot, words: Words) -> dict[str, Any]:
    low, high = spot.usable_bytes.low / GIB, spot.usable_bytes.high / GIB
    bandwidth = (spot.bandwidth_bytes_per_s.low + spot.bandwidth_bytes_per_s.high) / 2 / GB
    return {
        "usable": (low * high) ** 0.5,
        "low": low,
        "high": high,
        "bandwidth": bandwidth,
        "name": spot.name,
        "role": spot.role,
        "hue": MUTED if spot.role != "named" else INK if spot.colour is None else subject_colour(spot.colour),
        "told_usable": words.significant(low)
        if low == high
        else words.say("%(low)s to %(high)s", low=words.significant(low), high=words.significant(high)),
        "told_bandwidth": words.significant(bandwidth),
    }


def _x(field: str, spots: Sequence[Spot], words: Words) -> alt.X:
    axis = alt.X(field).type("quantitative").title(words.say("Memory that the GPU may use (GiB)"))
    axis = axis.scale(type="log", base=2, nice=False, domain=_domain([spot.usable_bytes for spot in spots], GIB))
    return axis.axis(values=_MEMORY_TICKS_GIB, format=",~r")


def _y(spots: Sequence[Spot], words: Words) -> alt.Y:
    axis = alt.Y("bandwidth").type("quantitative").title(words.say("Memory bandwidth (GB/s)"))
    axis = axis.scale(
        type="log", base=2, nice=False, domain=_domain([spot.bandwidth_bytes_per_s for spot in spots], GB)
    )
    return axis.axis(values=_BANDWIDTH_TICKS_GB, format=",~r")


def _domain(values: Sequence[Range], unit: float) -> list[float]:
    low = min((value.low for value in values), default=unit) / unit
    high = max((value.high for value in values), default=unit) / unit
    return [low / _ROOM, high * _ROOM]


def _ranges(points: list[dict[str, Any]], x: alt.X, y: alt.Y) -> alt.Chart:
    wide = [point for point in points if point["low"] < point["high"]]
    hue = alt.Stroke("hue").type("nominal").scale(None).legend(None)
    strength = alt.when(alt.datum.role == "named").then(alt.value(1)).otherwise(alt.value(0.5))
    return (
        alt.Chart(alt.InlineData(values=wide))
        .mark_rule(strokeWidth=1.5)
        .encode(x=x, x2="high", y=y, stroke=hue, opacity=strength)
    )


def _dots(points: list[dict[str, Any]], x: alt.X, y: alt.Y, words: Words) -> alt.Chart:
    told = [
        ("name", words.say("Machine")),
        ("told_usable", words.say("GPU may use (GiB)")),
        ("told_bandwidth", words.say("Bandwidth (GB/s)")),
    ]
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(strokeWidth=1.5, shape="circle", opacity=1)
        .encode(
            x=x,
            y=y,
            stroke=alt.Stroke("hue").type("nominal").scale(None).legend(None),
            fill=alt.when(alt.datum.role == "doubtful")
            .then(alt.value(PAPER))
            .otherwise(alt.Fill("hue").type("nominal").scale(None).legend(None)),
            size=alt.when(alt.datum.role == "named").then(alt.value(110)).otherwise(alt.value(22)),
            tooltip=[alt.Tooltip(field).type("nominal").title(title) for field, title in told],
        )
    )


def _names(points: list[dict[str, Any]], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Name the machines that the page tells of: the faster ones above, the slower ones below, clear of the others."""
    named = [point for point in points if point["role"] == "named"]
    middle = sorted(point["bandwidth"] for point in named)[len(named) // 2] if named else 0
    above = [point for point in named if point["bandwidth"] >= middle]
    below = [point for point in named if point["bandwidth"] < middle]
    hue = alt.Fill("hue").type("nominal").scale(None).legend(None)
    chart = [alt.Chart(alt.InlineData(values=group)) for group in (above, below)]
    return [
        chart[0]
        .mark_text(align="left", baseline="bottom", dx=6, dy=-8, fontSize=13, fontWeight="bold")
        .encode(x=x, y=y, text="name:N", fill=hue),
        chart[1]
        .mark_text(align="left", baseline="top", dx=6, dy=9, fontSize=13, fontWeight="bold")
        .encode(x=x, y=y, text="name:N", fill=hue),
    ]


def _legend(words: Words, spots: Sequence[Spot]) -> tuple[Key, ...]:
    keys = [
        Key("dot", subject_colour(spot.colour), words.say("Measured on this site: %(machine)s", machine=spot.name))
        for spot in spots
        if spot.role == "named" and spot.colour is not None
    ]
    if any(spot.role == "named" and spot.colour is None for spot in spots):
        keys.append(Key("dot", INK, words.say("Compared with, not measured yet")))
    if any(spot.role == "other" for spot in spots):
        keys.append(Key("small", MUTED, words.say("Other machines of the catalogue")))
    if any(spot.role == "doubtful" for spot in spots):
        keys.append(Key("hollow", MUTED, words.say("Sold with this memory by recollection, not checked")))
    return tuple(keys)


def _table(words: Words, spots: Sequence[Spot]) -> Table:
    columns = (
        Column("machine", words.say("Machine"), None),
        Column("gpu_usable_gib_low", words.say("GPU may use, at least (GiB)"), 1),
        Column("gpu_usable_gib_high", words.say("at most (GiB)"), 1),
        Column("bandwidth_gb_per_s_low", words.say("Bandwidth, at least (GB/s)"), 1),
        Column("bandwidth_gb_per_s_high", words.say("at most (GB/s)"), 1),
    )
    rows = [
        (
            spot.name,
            spot.usable_bytes.low / GIB,
            spot.usable_bytes.high / GIB,
            spot.bandwidth_bytes_per_s.low / GB,
            spot.bandwidth_bytes_per_s.high / GB,
        )
        for spot in spots
    ]
    return Table(columns, tuple(rows))
