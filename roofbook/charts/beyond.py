"""The prefill law beyond what was measured: how fast its band widens, and how far a straight line would miss."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from roofbook.analysis.coefficients import Beyond
from roofbook.analysis.prefill import Length
from roofbook.analysis.regression import Fit
from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.prefill import time_text
from roofbook.charts.style import MUTED, PAPER, subject_colour
from roofbook.charts.thin import POINTS, thinned
from roofbook.units import MS_PER_S
from roofbook.words import Words

_STEPS: Final = 60

_EDGE: Final = 1.06
"""The axis ends so far beyond the last prediction."""

Mark = dict[str, Any]


def beyond_figure(
    *, words: Words, title: str, law: Fit, lengths: Sequence[Length], predicted: Sequence[Beyond], colour: int
) -> Figure:
    """Return *law* up to the longest of *predicted*, with the measured *lengths* it was fitted to."""
    end = predicted[-1].tokens * _EDGE
    x = alt.X("tokens").type("quantitative").title(words.say("Prompt length (tokens)"))
    x = x.scale(nice=False, domain=[0, end]).axis(format=",d", values=_ticks(predicted))
    y = alt.Y("time").type("quantitative").title(words.say("Prefill time (s)")).axis(format=",~r", tickCount=6)
    y = y.scale(zero=True)
    hue, bends = subject_colour(colour), 2 in law.powers
    # The measured lengths are told by the figure of the curve; here they only show where the law comes from.
    measured, _ = thinned(lengths, POINTS)
    layers = [
        *_law(law, end, x, y, hue),
        _measured(measured, x, y, hue),
        *_predicted(predicted, x, y, words, hue, bends),
    ]
    return Figure(
        name="beyond",
        title=title,
        description=words.say(
            "Line chart of the fitted law up to %(tokens)s prompt tokens, with its widening 95 %% band. %(title)s.",
            tokens=words.number(predicted[-1].tokens),
            title=title,
        ),
        caption=words.say(
            "The band says where a measurement would fall if the law held that far, and that has not been measured."
        ),
        legend=(
            Key("dot", hue, words.say("Measured lengths")),
            Key("line", hue, words.say("Fitted law")),
            Key("band", hue, words.say("95 %% prediction interval")),
            Key("hollow", hue, words.say("Predicted, not measured")),
            *([Key("dashed", MUTED, words.say("A straight line, the linear term alone"))] if bends else []),
        ),
        table=_table(words, predicted, bends),
        spec=alt.layer(*layers).to_dict(),
    )


def _ticks(predicted: Sequence[Beyond]) -> list[int]:
    longest = predicted[-1].tokens
    return [longest * step // 4 for step in range(5)]


def _law(law: Fit, end: float, x: alt.X, y: alt.Y, hue: str) -> list[alt.Chart]:
    points: list[Mark] = []
    for step in range(_STEPS + 1):
        tokens = end * step / _STEPS
        band = law.prediction(tokens)
        points.append(
            {
                "tokens": tokens,
                "time": band.mid / MS_PER_S,
                "low": max(0.0, band.low) / MS_PER_S,
                "high": band.high / MS_PER_S,
                "straight": law.coefficient(1) * tokens / MS_PER_S,
            }
        )
    drawn = alt.Chart(alt.InlineData(values=points))
    straight = drawn.mark_line(strokeWidth=1.25, strokeDash=[5, 4]).encode(
        x=x, y=alt.Y("straight").type("quantitative"), stroke=alt.value(MUTED)
    )
    return [
        drawn.mark_area(opacity=0.16).encode(x=x, y=alt.Y("low").type("quantitative"), y2="high", fill=alt.value(hue)),
        *([straight] if 2 in law.powers else []),
        drawn.mark_line(strokeWidth=2).encode(x=x, y=y, stroke=alt.value(hue)),
    ]


def _measured(lengths: Sequence[Length], x: alt.X, y: alt.Y, hue: str) -> alt.Chart:
    marks = [{"tokens": length.tokens, "time": length.prefill_ms / MS_PER_S} for length in lengths]
    return (
        alt.Chart(alt.InlineData(values=marks))
        .mark_point(size=55, shape="circle", opacity=1, filled=True)
        .encode(x=x, y=y, fill=alt.value(hue))
    )


def _predicted(predicted: Sequence[Beyond], x: alt.X, y: alt.Y, words: Words, hue: str, bends: bool) -> list[alt.Chart]:
    marks = [
        {
            "tokens": one.tokens,
            "time": one.law.mid / MS_PER_S,
            "low": max(0.0, one.law.low) / MS_PER_S,
            "high": one.law.high / MS_PER_S,
            "told_tokens": words.number(one.tokens),
            "told_time": time_text(words, one.law.mid),
            "told_range": f"{time_text(words, max(0.0, one.law.low))} – {time_text(words, one.law.high)}",
            "told_straight": time_text(words, one.straight_ms),
        }
        for one in predicted
    ]
    told = [
        ("told_tokens", words.say("Prompt tokens")),
        ("told_time", words.say("Predicted")),
        ("told_range", words.say("95 %% interval")),
        *([("told_straight", words.say("By a straight line"))] if bends else []),
    ]
    drawn = alt.Chart(alt.InlineData(values=marks))
    return [
        drawn.mark_rule(strokeWidth=1.5).encode(
            x=x, y=alt.Y("low").type("quantitative"), y2="high", stroke=alt.value(hue)
        ),
        drawn.mark_point(strokeWidth=2, size=75, shape="circle", opacity=1).encode(
            x=x,
            y=y,
            stroke=alt.value(hue),
            fill=alt.value(PAPER),
            tooltip=[alt.Tooltip(field).type("nominal").title(title) for field, title in told],
        ),
    ]


def _table(words: Words, predicted: Sequence[Beyond], bends: bool) -> Table:
    columns = (
        Column("prompt_tokens", words.say("Prompt tokens")),
        Column("predicted_ms", words.say("Predicted (ms)")),
        Column("predicted_ms_low", words.say("at least (ms)")),
        Column("predicted_ms_high", words.say("at most (ms)")),
        *([Column("straight_ms", words.say("By a straight line (ms)"))] if bends else []),
    )
    rows = [
        (one.tokens, one.law.mid, one.law.low, one.law.high, *([one.straight_ms] if bends else [])) for one in predicted
    ]
    return Table(columns, tuple(rows))
