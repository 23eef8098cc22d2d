"""The roofline: the most a machine can do for so much work a byte, and where the measured points stand."""

import math
from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from roofbook.analysis.standing import Phase, Roofs, Spot
from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import INK, MUTED, PAPER, subject_colour
from roofbook.charts.thin import thinned_but
from roofbook.theory.roofline import Rates
from roofbook.theory.shapes import Range
from roofbook.units import TFLOP
from roofbook.words import Words

_ROOM: Final = 2.0
"""By what factor the axes reach beyond the outermost point."""

_STEPS: Final = 96
"""So many straight pieces that the corner of a roof looks sharp."""

_TICKS: Final = [digit * 10.0**power for power in range(-5, 7) for digit in (1, 2, 5)]
_DECADES: Final = [10.0**power for power in range(-5, 7)]
_DECADES_FOR_HALVES: Final = 2.5
"""An axis of fewer decades than this has ticks at 1, 2, 5."""

Mark = dict[str, Any]


def roofline_figure(*, words: Words, title: str, roofs: Roofs, spots: Sequence[Spot], colour: int) -> Figure:
    """Return the roofline of one subject; *title* is its message. Hollow are points whose every row is in doubt."""
    frame = _Frame(words, roofs, spots)
    drawn, left_out = thinned_but(spots, lambda spot: spot.doubtful)
    marks = [_mark(spot, words) for spot in drawn]
    layers = [
        *frame.datasheet(roofs.datasheet),
        *frame.measured(roofs.measured),
        _dots(marks, frame, words, colour),
        _names(marks, frame),
    ]
    return Figure(
        name="roofline",
        title=title,
        description=words.say(
            "Roofline chart, both axes logarithmic, with %(points)s measured points. %(title)s.",
            points=words.number(len(spots)),
            title=title,
        ),
        caption=_caption(words, roofs),
        legend=_legend(words, roofs, spots, colour),
        table=_table(words, drawn),
        spec=alt.layer(*layers).to_dict(),
        left_out=left_out,
    )


class _Frame:
    """The axes, and the roofs drawn in them."""

    def __init__(self, words: Words, roofs: Roofs, spots: Sequence[Spot]) -> None:
        corners = [corner for rates in (roofs.datasheet, roofs.measured) for corner in _corners(rates)]
        self.across = _domain([spot.flop_per_byte for spot in spots] + [across for across, _ in corners])
        up = _domain([spot.flops_per_s / TFLOP for spot in spots] + [flops / TFLOP for _, flops in corners])
        self.x = alt.X("across").type("quantitative").title(words.say("Operations for each byte read (FLOP/byte)"))
        self.x = self.x.scale(type="log", nice=False, domain=list(self.across))
        self.x = self.x.axis(values=_ticks(self.across), format=",~r")
        self.y = alt.Y("up").type("quantitative").title(words.say("Operations a second (TFLOPS)"))
        self.y = self.y.scale(type="log", nice=False, domain=list(up)).axis(values=_ticks(up), format=",~r")

    def datasheet(self, rates: Rates) -> list[alt.Chart]:
        """Return the band between the lower and the upper published peak, with its upper edge drawn."""
        high, low = self._roof(rates, upper=True), self._roof(rates, upper=False)
        edges = [{**one, "low": other["up"]} for one, other in zip(high, low, strict=True)]
        if not edges:
            return []
        drawn = alt.Chart(alt.InlineData(values=edges))
        area = drawn.mark_area(opacity=0.2, clip=True)
        line = drawn.mark_line(strokeWidth=2, clip=True)
        return [
            area.encode(x=self.x, y=alt.Y("low").type("quantitative"), y2="up", fill=alt.value(MUTED)),
            line.encode(x=self.x, y=self.y, stroke=alt.value(MUTED)),
        ]

    def measured(self, rates: Rates) -> list[alt.Chart]:
        """Return the roof that was measured; where its repeats scattered, both ends of them."""
        high, low = self._roof(rates, upper=True), self._roof(rates, upper=False)
        return [
            alt.Chart(alt.InlineData(values=roof))
            .mark_line(strokeWidth=1.5, strokeDash=[5, 4], clip=True)
            .encode(x=self.x, y=self.y, stroke=alt.value(INK))
            for roof in ([high] if high == low else [high, low])
            if roof
        ]

    def _roof(self, rates: Rates, *, upper: bool) -> list[Mark]:
        bandwidth, flops = rates.bandwidth_bytes_per_s, rates.flops_per_s
        if bandwidth is None or flops is None:
            return []
        slope, flat = (bandwidth.high, flops.high) if upper else (bandwidth.low, flops.low)
        start, end = (math.log(edge) for edge in self.across)
        places = [math.exp(start + (end - start) * step / _STEPS) for step in range(_STEPS + 1)]
        return [{"across": place, "up": min(slope * place, flat) / TFLOP} for place in places]


def _corners(rates: Rates) -> list[tuple[float, float]]:
    """Return where slope and flat meet, at both ends of the rates: FLOP a byte, FLOP/s."""
    if rates.bandwidth_bytes_per_s is None or rates.flops_per_s is None:
        return []
    flops, bandwidth = rates.flops_per_s, rates.bandwidth_bytes_per_s
    return [(flops.low / bandwidth.high, flops.low), (flops.high / bandwidth.low, flops.high)]


def _domain(values: Sequence[float]) -> tuple[float, float]:
    known = [value for value in values if value > 0] or [1.0]
    return min(known) / _ROOM, max(known) * _ROOM


def _ticks(domain: tuple[float, float]) -> list[float]:
    few = math.log10(domain[1] / domain[0]) < _DECADES_FOR_HALVES
    return [tick for tick in (_TICKS if few else _DECADES) if domain[0] <= tick <= domain[1]]


def _mark(spot: Spot, words: Words) -> Mark:
    return {
        "across": spot.flop_per_byte,
        "up": spot.flops_per_s / TFLOP,
        "phase": spot.phase,
        "doubtful": spot.doubtful,
        "told_phase": _phase(spot.phase, words),
        "told_tokens": words.number(spot.tokens),
        "told_rate": words.say("%(value)s TFLOPS", value=words.significant(spot.flops_per_s / TFLOP)),
        "told_share": _share(spot.share, words),
        "told_n": words.number(spot.n),
    }


def _dots(marks: list[Mark], frame: _Frame, words: Words, colour: int) -> alt.Chart:
    told = [
        ("told_phase", words.say("Phase")),
        ("told_tokens", words.say("Prompt tokens")),
        ("told_rate", words.say("Operations a second")),
        ("told_share", words.say("Of the roof")),
        ("told_n", words.say("Requests behind it")),
    ]
    hue = subject_colour(colour)
    return (
        alt.Chart(alt.InlineData(values=marks))
        .mark_point(strokeWidth=1, size=75, opacity=1, shape="circle")
        .encode(
            x=frame.x,
            y=frame.y,
            stroke=alt.value(hue),
            fill=alt.when(alt.datum.doubtful).then(alt.value(PAPER)).otherwise(alt.value(hue)),
            tooltip=[alt.Tooltip(field).type("nominal").title(title) for field, title in told],
        )
    )


def _names(marks: list[Mark], frame: _Frame) -> alt.Chart:
    """Return the name of each phase once, below its points."""
    names: list[Mark] = []
    for phase in dict.fromkeys(one["phase"] for one in marks):
        of_phase = [one for one in marks if one["phase"] == phase]
        kept = [one for one in of_phase if not one["doubtful"]] or of_phase
        across = sorted(one["across"] for one in kept)[len(kept) // 2]
        names.append({**kept[0], "across": across, "up": min(one["up"] for one in kept)})
    return (
        alt.Chart(alt.InlineData(values=names))
        .mark_text(fontSize=13, dy=20, fontWeight=600)
        .encode(x=frame.x, y=frame.y, text=alt.Text("told_phase").type("nominal"), fill=alt.value(INK))
    )


def _caption(words: Words, roofs: Roofs) -> str:
    bound = words.say("Below the slope memory is the limit, below the flat roof arithmetic is.")
    if not _corners(roofs.datasheet):
        return bound
    above = words.say("A point above the upper edge of the stated band cannot be right: measurement or band is wrong.")
    return f"{bound} {above}"


def _legend(words: Words, roofs: Roofs, spots: Sequence[Spot], colour: int) -> tuple[Key, ...]:
    keys: list[Key] = []
    hue = subject_colour(colour)
    if not all(spot.doubtful for spot in spots):
        keys.append(Key("dot", hue, words.say("Measured with this model")))
    if any(spot.doubtful for spot in spots):
        keys.append(Key("hollow", hue, words.say("In doubt")))
    if _corners(roofs.datasheet):
        keys.append(
            Key("band", MUTED, words.say("Stated of the machine (where sources differ, from one to the other)"))
        )
    if _corners(roofs.measured):
        keys.append(Key("dashed", INK, words.say("Measured on such a machine")))
    return tuple(keys)


def _table(words: Words, spots: Sequence[Spot]) -> Table:
    columns = (
        Column("phase", words.say("Phase"), None),
        Column("prompt_tokens", words.say("Prompt tokens")),
        Column("requests", words.say("n (requests)")),
        Column("flop_per_byte", words.say("FLOP/byte"), 1),
        Column("tflops", words.say("TFLOPS"), 2),
        Column("share", words.say("Of the roof"), None),
    )
    rows = [
        (
            _phase(spot.phase, words),
            spot.tokens,
            spot.n,
            spot.flop_per_byte,
            spot.flops_per_s / TFLOP,
            _share(spot.share, words),
        )
        for spot in spots
    ]
    return Table(columns, tuple(rows))


def _phase(phase: Phase, words: Words) -> str:
    return words.say("Decode") if phase == "decode" else words.say("Prefill")


def _share(share: Range | None, words: Words) -> str:
    if share is None:
        return words.say("unknown")
    low, high = words.number(100 * share.low), words.number(100 * share.high)
    return words.say("%(percent)s %%", percent=_ends(low, high))


def _ends(low: str, high: str) -> str:
    return low if low == high else f"{low}–{high}"
