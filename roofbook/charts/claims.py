"""How a publication's numbers fared: how many of them have which verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import INK, MUTED
from roofbook.words import Words

_HUE = "var(--chart-1)"
_WRONG_HUE = "var(--chart-2)"


@dataclass(frozen=True)
class Tally:
    """One verdict in words, how many numbers have it, and whether it asks for a correction."""

    verdict: str
    count: int
    wrong: bool


def claims_figure(*, words: Words, title: str, tallies: Sequence[Tally]) -> Figure:
    """Return one bar a verdict, in their order."""
    bars = [{"verdict": one.verdict, "count": one.count, "wrong": one.wrong} for one in tallies]
    y = alt.Y("verdict").type("nominal").title(None).sort(None)  # pyright: ignore[reportArgumentType] - None keeps the order
    y = y.axis(labelColor=INK)
    x = alt.X("count").type("quantitative").title(words.say("Checks"))
    x = x.scale(nice=False, domain=[0, max((one.count for one in tallies), default=1) * 1.12])
    x = x.axis(format=",~r", tickCount=6, tickMinStep=1)
    chart = alt.Chart(alt.InlineData(values=bars))
    hue = alt.when(alt.datum.wrong).then(alt.value(_WRONG_HUE)).otherwise(alt.value(_HUE))
    return Figure(
        name="claims",
        title=title,
        description=words.say("Bar chart of verdicts on published numbers. %(title)s.", title=title),
        caption=words.say("A number that is judged under two conditions is two checks."),
        legend=(
            Key("dot", _HUE, words.say("Agrees, if need be in another unit or within 5 %%")),
            Key("dot", _WRONG_HUE, words.say("Differs, or cannot be checked")),
        ),
        table=Table(
            (Column("verdict", words.say("Verdict"), None), Column("checks", words.say("Checks"))),
            tuple((one.verdict, one.count) for one in tallies),
        ),
        spec=alt.layer(
            chart.mark_bar(height={"band": 0.6}).encode(x=x, y=y, fill=hue),
            chart.mark_text(align="left", dx=6, fontSize=13).encode(x=x, y=y, text="count:Q", fill=alt.value(MUTED)),
        ).to_dict(),
    )
