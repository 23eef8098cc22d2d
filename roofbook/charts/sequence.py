"""Every row of a subject in the order in which it was sent: which count, which are in doubt, which failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import MUTED, PAPER, subject_colour
from roofbook.charts.thin import short_names, thinned
from roofbook.words import Words

Standing = Literal["counts", "doubted", "failed", "aside"]
"""It counts; a doubt keeps it out of a figure; it did not finish; it is a warm-up or the like."""


@dataclass(frozen=True)
class Sent:
    """One row: its place, its experiment, how it stands, and why, in words."""

    place: int
    experiment: str
    standing: Standing
    told: str
    """Its prompt and what is noted of it."""


def sequence_figure(*, words: Words, title: str, sent: Sequence[Sent], colour: int) -> Figure:
    """Return one mark a row, experiment by experiment, from the first to the last; of very many, some are left out."""
    drawn, left_out = thinned(sent)
    experiments = short_names([one.experiment for one in sent])
    marks = [_mark(one, experiments[one.experiment], words) for one in drawn]
    x = alt.X("place").type("quantitative").title(words.say("Row, in the order of sending (imported: of publication)"))
    x = x.scale(nice=False, domain=[-0.6, max((one.place for one in sent), default=0) + 0.6])
    x = x.axis(format=",~r", tickCount=8, tickMinStep=1)
    y = alt.Y("label").type("nominal").sort(list(experiments.values())).title(words.say("Experiment"))
    y = y.axis(labelLimit=200).scale(padding=0.5)
    return Figure(
        name="rows",
        title=title,
        description=words.say(
            "Strip of %(rows)s rows in their order, by experiment. %(title)s.",
            rows=words.number(len(marks)),
            title=title,
        ),
        caption=words.say("One mark a row, in the order of sending, or of publication for what was imported."),
        legend=_legend(words, sent, colour),
        table=_table(words, drawn),
        spec=_marks(marks, x, y, words, colour),
        left_out=left_out,
    )


def _mark(one: Sent, label: str, words: Words) -> dict[str, Any]:
    return {
        "place": one.place,
        "label": label,
        "experiment": one.experiment,
        "standing": one.standing,
        "told_place": words.number(one.place),
        "told_standing": name_of(one.standing, words),
        "told": one.told,
    }


def name_of(standing: Standing, words: Words) -> str:
    """Return how a row stands, in words."""
    match standing:
        case "counts":
            return words.say("counts")
        case "doubted":
            return words.say("in doubt")
        case "failed":
            return words.say("failed")
        case "aside":
            return words.say("not counted: a warm-up, calibration or anchor")


def _marks(marks: list[dict[str, Any]], x: alt.X, y: alt.Y, words: Words, colour: int) -> dict[str, Any]:
    hue = subject_colour(colour)
    told = [
        ("told_place", words.say("Row")),
        ("experiment", words.say("Experiment")),
        ("told_standing", words.say("How it stands")),
        ("told", words.say("Noted")),
    ]
    stands = alt.datum.standing
    return (
        alt.Chart(alt.InlineData(values=marks))
        .mark_point(strokeWidth=1.75, opacity=1)
        .encode(
            x=x,
            y=y,
            stroke=alt.when(stands == "aside").then(alt.value(MUTED)).otherwise(alt.value(hue)),
            fill=alt.when(stands == "counts").then(alt.value(hue)).otherwise(alt.value(PAPER)),
            shape=alt.when(stands == "failed").then(alt.value("M-1,-1L1,1M-1,1L1,-1")).otherwise(alt.value("circle")),
            size=alt.when(stands == "aside").then(alt.value(22)).otherwise(alt.value(75)),
            tooltip=[alt.Tooltip(field).type("nominal").title(title) for field, title in told],
        )
        .to_dict()
    )


def _legend(words: Words, sent: Sequence[Sent], colour: int) -> tuple[Key, ...]:
    hue = subject_colour(colour)
    standings = {one.standing for one in sent}
    keys: list[Key] = []
    if "counts" in standings:
        keys.append(Key("dot", hue, words.say("Counts")))
    if "doubted" in standings:
        keys.append(Key("hollow", hue, words.say("In doubt, kept out of a figure")))
    if "failed" in standings:
        keys.append(Key("cross", hue, words.say("Failed")))
    if "aside" in standings:
        keys.append(Key("small", MUTED, words.say("Warm-up, calibration or anchor")))
    return tuple(keys)


def _table(words: Words, sent: Sequence[Sent]) -> Table:
    columns = (
        Column("row", words.say("Row")),
        Column("experiment", words.say("Experiment"), None),
        Column("standing", words.say("How it stands"), None),
        Column("noted", words.say("Noted"), None),
    )
    rows = [(one.place, one.experiment, name_of(one.standing, words), one.told) for one in sent]
    return Table(columns, tuple(rows))
