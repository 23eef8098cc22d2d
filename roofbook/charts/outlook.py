"""The first token against the share of the prompt that a cache holds: predicted, with its interval."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from roofbook.analysis.outlook import CachedPrompt
from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import subject_colour
from roofbook.units import MS_PER_S
from roofbook.words import Words


def cache_forecast_figure(
    *, words: Words, title: str, prompts: Sequence[CachedPrompt], shares: Sequence[CachedPrompt], colour: int
) -> Figure:
    """Return the predicted TTFT over the cached share: *prompts* as a line, those that will be measured as points."""
    x = alt.X("share").type("quantitative").title(words.say("Share of the prompt in the cache (%%)"))
    x = x.scale(nice=False, domain=[0, 102]).axis(values=[0, 25, 50, 75, 90, 100], format=",.0f")
    y = alt.Y("ttft").type("quantitative").title(words.say("Time to first token (s)"))
    y = y.scale(zero=True).axis(format=",~r", tickCount=6)
    hue = alt.value(subject_colour(colour))
    line = alt.Chart(alt.InlineData(values=[_point(one, words) for one in prompts]))
    told = [
        ("told_share", words.say("In the cache")),
        ("told_ttft", words.say("First token, predicted")),
        ("told_interval", words.say("95 %% prediction interval")),
    ]
    points = (
        alt.Chart(alt.InlineData(values=[_point(one, words) for one in shares]))
        .mark_point(shape="circle", size=80, strokeWidth=2, opacity=1)
        .encode(
            x=x,
            y=y,
            stroke=hue,
            fill=alt.value("var(--chart-paper)"),
            tooltip=[alt.Tooltip(field).type("nominal").title(name) for field, name in told],
        )
    )
    return Figure(
        name="cache-forecast",
        title=title,
        description=words.say("Line chart, predicted and not measured. %(title)s.", title=title),
        caption=words.say(
            "Nothing here is measured: the line follows from the fitted law, and the circles are what the plan will "
            "measure. Prompt: %(tokens)s tokens.",
            tokens=words.number(shares[0].tokens) if shares else words.say("unknown"),
        ),
        legend=(
            Key("dashed", subject_colour(colour), words.say("Predicted")),
            Key("band", subject_colour(colour), words.say("95 %% prediction interval")),
            Key("hollow", subject_colour(colour), words.say("Will be measured")),
        ),
        table=_table(words, shares),
        spec=alt.layer(
            line.mark_area(opacity=0.16).encode(x=x, y=alt.Y("low").type("quantitative"), y2="high", fill=hue),
            line.mark_line(strokeWidth=2, strokeDash=[5, 4]).encode(x=x, y=y, stroke=hue),
            points,
        ).to_dict(),
    )


def _point(one: CachedPrompt, words: Words) -> dict[str, Any]:
    low, high = (words.significant(edge / MS_PER_S) for edge in (one.ttft_ms.low, one.ttft_ms.high))
    return {
        "share": 100 * one.share,
        "ttft": one.ttft_ms.mid / MS_PER_S,
        "low": one.ttft_ms.low / MS_PER_S,
        "high": one.ttft_ms.high / MS_PER_S,
        "told_share": words.say("%(value)s %%", value=words.number(100 * one.share)),
        "told_ttft": words.say("%(seconds)s s", seconds=words.significant(one.ttft_ms.mid / MS_PER_S)),
        "told_interval": f"{low} … {high}",
    }


def _table(words: Words, shares: Sequence[CachedPrompt]) -> Table:
    columns = (
        Column("share_percent", words.say("In the cache (%%)")),
        Column("cached_tokens", words.say("Cached tokens")),
        Column("prefill_ms", words.say("Prefill, predicted (ms)")),
        Column("prefill_ms_low", words.say("at least")),
        Column("prefill_ms_high", words.say("at most")),
        Column("ttft_ms", words.say("TTFT, predicted (ms)")),
        Column("ttft_ms_low", words.say("at least")),
        Column("ttft_ms_high", words.say("at most")),
    )
    rows = [
        (
            100 * one.share,
            one.cached_tokens,
            one.prefill_ms.mid,
            one.prefill_ms.low,
            one.prefill_ms.high,
            one.ttft_ms.mid,
            one.ttft_ms.low,
            one.ttft_ms.high,
        )
        for one in shares
    ]
    return Table(columns, tuple(rows))
