"""Published decode rates: the share of the bandwidth against the time that reading a step would take."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from roofbook.analysis.reference import DecodeStand, middle
from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import INK, MUTED, PAPER, subject_colour
from roofbook.theory.shapes import Range
from roofbook.words import Words

TOP: Final = 1.4
"""Shares above this are drawn at the upper edge with an arrow: one published figure is 87 times the bandwidth."""

_TICKS_MS: Final = [1, 2, 5, 10, 20, 50, 100, 200]
_STEPS: Final = 60

_NEAR: Final = (1.2, 5.0)
"""A numbered point with another one so near on its right (times the time, per cent of share) has its number left."""


@dataclass(frozen=True)
class MeasuredStand:
    """A decode rate of this site, with its subject's name and colour."""

    name: str
    colour: int
    stand: DecodeStand


@dataclass(frozen=True)
class UsualLaw:
    """The law of the middle machine of a maker: k and c are medians over its machines."""

    name: str
    machines: int
    k: float
    c_ms: float
    k_half: Range
    """Between which the middle half of its machines lies."""
    c_half_ms: Range

    def share(self, ideal_ms: float) -> float:
        return ideal_ms / (ideal_ms / self.k + self.c_ms)


def decode_share_figure(
    *,
    words: Words,
    title: str,
    published: Sequence[DecodeStand],
    measured: Sequence[MeasuredStand],
    laws: Sequence[UsualLaw],
) -> Figure:
    """Return published rates small, impossible ones hollow and numbered, this site's large, the usual laws as lines."""
    impossible = [stand for stand in published if stand.impossible]
    points = [_point(stand, words, impossible) for stand in published]
    own = [{**_point(one.stand, words, []), "machine": one.name, "hue": subject_colour(one.colour)} for one in measured]
    spread = [middle(stand.ideal_ms) for stand in [*published, *(one.stand for one in measured)]]
    domain = [min(spread, default=1.0) / 1.2, max(spread, default=100.0) * 1.2]
    x, y = _x(domain, words), _y(words)
    return Figure(
        name="decode-share",
        title=title,
        description=words.say(
            "Scatter chart of %(published)s published decode rates and %(measured)s of this site. %(title)s.",
            published=words.number(len(published)),
            measured=words.number(len(measured)),
            title=title,
        ),
        caption=words.say(
            "Everything but the coloured points is other people's measurement. Numbered points claim more than the "
            "chip's memory can do, as in the list below; an arrow means beyond the scale. Neither they nor the points "
            "in doubt enter a line or a summary."
        ),
        legend=_legend(words, published, measured, laws),
        table=_table(words, published, measured),
        spec=alt.layer(
            _edge(domain, x, y),
            *_lines(laws, domain, x, y),
            _dots(points, x, y, words, own=False),
            *_numbers(points, x, y),
            _dots(own, x, y, words, own=True),
        ).to_dict(),
    )


def _point(stand: DecodeStand, words: Words, impossible: Sequence[DecodeStand]) -> dict[str, Any]:
    return {
        "ideal": round(middle(stand.ideal_ms), 4),
        "share": round(100 * min(stand.share, TOP), 2),
        "number": _number(stand, impossible),
        "left": any(_just_left(stand, other) for other in impossible),
        "hollow": stand.impossible,
        "doubted": _doubted(stand),
        "machine": stand.machine,
        "hue": MUTED,
        "told_model": f"{stand.model} {stand.quantization or ''}".strip(),
        "told_rate": words.say("%(rate)s tok/s", rate=words.significant(stand.tok_per_s)),
        "told_share": words.say("%(value)s %%", value=words.number(100 * stand.share)),
    }


def _number(stand: DecodeStand, impossible: Sequence[DecodeStand]) -> str:
    if stand not in impossible:
        return ""
    return f"{impossible.index(stand) + 1}{' ↑' if stand.share > TOP else ''}"


def _just_left(stand: DecodeStand, other: DecodeStand) -> bool:
    times, percent = _NEAR
    right = 1 < middle(other.ideal_ms) / middle(stand.ideal_ms) < times
    return right and 100 * abs(other.share - stand.share) < percent


def _doubted(stand: DecodeStand) -> bool:
    """Return whether somebody doubts a figure that is not impossible."""
    return not stand.impossible and (stand.flagged or stand.band != "ordinary")


def _x(domain: list[float], words: Words) -> alt.X:
    axis = alt.X("ideal").type("quantitative").title(words.say("Reading one step's bytes at the full bandwidth (ms)"))
    return axis.scale(type="log", nice=False, domain=domain).axis(values=_TICKS_MS, format=",~r")


def _y(words: Words) -> alt.Y:
    axis = alt.Y("share").type("quantitative").title(words.say("Share of the bandwidth reached (%%)"))
    return axis.scale(nice=False, domain=[0, 100 * TOP + 3]).axis(values=[0, 25, 50, 75, 100], format=",.0f")


def _edge(domain: list[float], x: alt.X, y: alt.Y) -> alt.Chart:
    ends = [{"ideal": at, "share": 100} for at in domain]
    return alt.Chart(alt.InlineData(values=ends)).mark_line(strokeWidth=1.5).encode(x=x, y=y, stroke=alt.value(INK))


def _lines(laws: Sequence[UsualLaw], domain: list[float], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    layers: list[alt.Chart] = []
    for law, dash in zip(laws, ([1, 0], [6, 4]), strict=False):
        ratio = domain[1] / domain[0]
        values = [
            {"ideal": at, "share": 100 * law.share(at)}
            for at in (domain[0] * ratio ** (step / _STEPS) for step in range(_STEPS + 1))
        ]
        layers.append(
            alt.Chart(alt.InlineData(values=values))
            .mark_line(strokeWidth=1.75, strokeDash=dash, clip=True)
            .encode(x=x, y=y, stroke=alt.value(INK))
        )
    return layers


def _dots(points: list[dict[str, Any]], x: alt.X, y: alt.Y, words: Words, *, own: bool) -> alt.Chart:
    told = [
        ("machine", words.say("Machine")),
        ("told_model", words.say("Model")),
        ("told_rate", words.say("Decode")),
        ("told_share", words.say("Of the bandwidth")),
    ]
    hue = alt.Fill("hue").type("nominal").scale(None).legend(None)
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(shape="circle", strokeWidth=1.5)
        .encode(
            x=x,
            y=y,
            stroke=alt.when(alt.datum.hollow)
            .then(alt.value(INK))
            .when(alt.datum.doubted)
            .then(alt.value(MUTED))
            .otherwise(alt.value(PAPER if own else "none")),
            fill=alt.when(alt.datum.hollow | alt.datum.doubted).then(alt.value(PAPER)).otherwise(hue),
            opacity=alt.value(1)
            if own
            else alt.when(alt.datum.hollow | alt.datum.doubted).then(alt.value(1)).otherwise(alt.value(0.5)),
            size=alt.value(110) if own else alt.when(alt.datum.hollow).then(alt.value(60)).otherwise(alt.value(20)),
            tooltip=[alt.Tooltip(field).type("nominal").title(name) for field, name in told],
        )
    )


def _numbers(points: list[dict[str, Any]], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Return the numbers of impossible points, on the side where there is room."""
    numbered = [point for point in points if point["hollow"]]
    right = [point for point in numbered if not point["left"]]
    left = [point for point in numbered if point["left"]]
    sides = [
        alt.Chart(alt.InlineData(values=right)).mark_text(align="left", dx=7, fontSize=12),
        alt.Chart(alt.InlineData(values=left)).mark_text(align="right", dx=-7, fontSize=12),
    ]
    return [side.encode(x=x, y=y, text="number:N", fill=alt.value(INK)) for side in sides]


def _legend(
    words: Words, published: Sequence[DecodeStand], measured: Sequence[MeasuredStand], laws: Sequence[UsualLaw]
) -> tuple[Key, ...]:
    keys = [
        Key("dot", subject_colour(colour), words.say("Measured on this site: %(machine)s", machine=name))
        for name, colour in dict.fromkeys((one.name, one.colour) for one in measured)
    ]
    keys.append(Key("small", MUTED, words.say("Published by others")))
    if any(_doubted(stand) for stand in published):
        keys.append(Key("hollow", MUTED, words.say("Published, and in doubt")))
    if any(stand.impossible for stand in published):
        keys.append(Key("hollow", INK, words.say("Published, and impossible (numbered)")))
    for law, swatch in zip(laws, ("line", "dashed"), strict=False):
        told = words.say(
            "Usual for %(maker)s: %(k)s of the bandwidth, and %(c)s ms a step",
            maker=law.name,
            k=words.say("%(value)s %%", value=words.significant(100 * law.k, 2)),
            c=words.significant(law.c_ms, 2),
        )
        keys.append(Key("line" if swatch == "line" else "dashed", INK, told))
    return tuple(keys)


def _table(words: Words, published: Sequence[DecodeStand], measured: Sequence[MeasuredStand]) -> Table:
    columns = (
        Column("whose", words.say("Whose"), None),
        Column("machine", words.say("Machine"), None),
        Column("model", words.say("Model"), None),
        Column("quantization", words.say("Quantization"), None),
        Column("decode_tok_per_s", words.say("Decode (tok/s)"), 1),
        Column("share_percent", words.say("Of the bandwidth (%%)"), 1),
        Column("judgement", words.say("Judgement"), None),
        Column("source", words.say("Source"), None),
    )
    site = words.say("this site")
    others, copied = words.say("published"), words.say("published, read in a copy")
    rows = [_row(one.stand, site, one.name, words) for one in measured]
    rows += [_row(stand, copied if stand.read_in_copy else others, stand.machine, words) for stand in published]
    return Table(columns, tuple(rows))


def _row(stand: DecodeStand, whose: str, machine: str, words: Words) -> tuple[str | float | None, ...]:
    judged = ""
    if stand.impossible:
        judged = words.say("impossible")
    elif _doubted(stand):
        judged = words.say("in doubt")
    return (
        whose, machine, stand.model, stand.quantization, stand.tok_per_s, 100 * stand.share, judged,
        stand.source or None,
    )  # fmt: skip
