"""What cannot be: the operations a second that each row's prefill would take, against the most the chip can do."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from roofbook.analysis.traps import Reading
from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import MUTED, PAPER, subject_colour
from roofbook.charts.thin import thinned_but
from roofbook.theory.shapes import Range
from roofbook.units import TFLOP
from roofbook.words import Words

_TICKS: Final = [10.0**power for power in range(-5, 8)]
_ROOM: Final = 1.8

Mark = dict[str, Any]


def traps_figure(*, words: Words, title: str, readings: Sequence[Reading], peak: Range, colour: int) -> Figure:
    """Return the rows of one subject as prompt length against FLOP/s; hollow are those in doubt."""
    drawn, left_out = thinned_but(readings, lambda one: one.doubted)
    marks = [_mark(one, words) for one in drawn]
    longest = max((one.tokens for one in readings), default=1) * 1.04
    up = [one.flops_per_s / TFLOP for one in readings] + [peak.low / TFLOP, peak.high / TFLOP]
    low, high = min(up) / _ROOM, max(up) * _ROOM
    x = alt.X("tokens").type("quantitative").title(words.say("Prompt length (tokens)"))
    x = x.scale(nice=False, domain=[0, longest]).axis(format=",~r", tickCount=8)
    y = alt.Y("up").type("quantitative").title(words.say("TFLOPS, if the prompt was really read"))
    y = y.scale(type="log", nice=False, domain=[low, high]).axis(
        values=[tick for tick in _TICKS if low <= tick <= high], format=",~r"
    )
    return Figure(
        name="traps",
        title=title,
        description=words.say(
            "Scatter chart of %(rows)s rows, prompt length against operations a second, the latter logarithmic. "
            "%(title)s.",
            rows=words.number(len(readings)),
            title=title,
        ),
        caption=words.say(
            "One point a row: a single request, or a published median. Above the band lies more than anybody states "
            "for this chip."
        ),
        legend=_legend(words, readings, colour),
        table=_table(words, drawn),
        spec=alt.layer(*_peak(peak, longest, x, y), _dots(marks, x, y, words, colour)).to_dict(),
        left_out=left_out,
    )


def _mark(reading: Reading, words: Words) -> Mark:
    return {
        "tokens": reading.tokens,
        "up": reading.flops_per_s / TFLOP,
        "doubted": reading.doubted,
        "told_tokens": words.number(reading.tokens),
        "told_time": words.say("%(ms)s ms", ms=words.number(reading.prefill_ms)),
        "told_rate": words.say("%(value)s TFLOPS", value=words.significant(reading.flops_per_s / TFLOP)),
    }


def _peak(peak: Range, longest: float, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    ends = [{"tokens": at, "low": peak.low / TFLOP, "up": peak.high / TFLOP} for at in (0, longest)]
    drawn = alt.Chart(alt.InlineData(values=ends))
    return [
        drawn.mark_area(opacity=0.2).encode(x=x, y=alt.Y("low").type("quantitative"), y2="up", fill=alt.value(MUTED)),
        drawn.mark_line(strokeWidth=2).encode(x=x, y=y, stroke=alt.value(MUTED)),
    ]


def _dots(marks: list[Mark], x: alt.X, y: alt.Y, words: Words, colour: int) -> alt.Chart:
    told = [
        ("told_tokens", words.say("Prompt tokens")),
        ("told_time", words.say("Prefill time")),
        ("told_rate", words.say("Operations a second")),
    ]
    hue = subject_colour(colour)
    return (
        alt.Chart(alt.InlineData(values=marks))
        .mark_point(strokeWidth=2, size=70, shape="circle", opacity=1)
        .encode(
            x=x,
            y=y,
            stroke=alt.value(hue),
            fill=alt.when(alt.datum.doubted).then(alt.value(PAPER)).otherwise(alt.value(hue)),
            tooltip=[alt.Tooltip(field).type("nominal").title(title) for field, title in told],
        )
    )


def _legend(words: Words, readings: Sequence[Reading], colour: int) -> tuple[Key, ...]:
    hue = subject_colour(colour)
    keys = [Key("dot", hue, words.say("One row"))] if not all(one.doubted for one in readings) else []
    if any(one.doubted for one in readings):
        keys.append(Key("hollow", hue, words.say("In doubt: from a cache, or beside a load of the model")))
    return (*keys, Key("band", MUTED, words.say("The chip's peak, as stated")))


def _table(words: Words, readings: Sequence[Reading]) -> Table:
    columns = (
        Column("prompt_tokens", words.say("Prompt tokens")),
        Column("prefill_ms", words.say("Prefill (ms)"), 1),
        Column("tflops", words.say("TFLOPS"), 2),
        Column("in_doubt", words.say("In doubt"), None),
    )
    rows = [
        (one.tokens, one.prefill_ms, one.flops_per_s / TFLOP, words.say("yes") if one.doubted else words.say("no"))
        for one in readings
    ]
    return Table(columns, tuple(rows))
