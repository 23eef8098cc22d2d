"""Published prefill rates as shares of the chip's arithmetic, by maker and precision."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from roofbook.analysis.reference import PrefillStand
from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import INK, MUTED, subject_colour
from roofbook.charts.thin import POINTS, thinned_but
from roofbook.words import Words


@dataclass(frozen=True)
class GroupedPrefill:
    """A prefill rate in its group; *name* and *colour* are of the subject where this site measured it."""

    group: str
    stand: PrefillStand
    name: str | None = None
    colour: int | None = None


def prefill_share_figure(*, words: Words, title: str, stands: Sequence[GroupedPrefill]) -> Figure:
    """Return one row a group in the order of *stands*, one tick a published figure, one dot for each of this site's."""
    shown, left_out = thinned_but(stands, lambda one: one.colour is None, 2 * POINTS)
    points = [
        {
            "group": one.group,
            "share": round(100 * one.stand.of_usual, 1),
            "machine": one.name or one.stand.machine,
            "told_model": f"{one.stand.model} {one.stand.quantization or ''}".strip(),
            "told_tokens": words.number(one.stand.prompt_tokens),
            "told_share": words.say("%(value)s %%", value=words.number(100 * one.stand.of_usual)),
            "hue": MUTED if one.colour is None else subject_colour(one.colour),
            "own": one.colour is not None,
        }
        for one in shown
    ]
    x = alt.X("share").type("quantitative").title(words.say("Share of the chip's peak usual for inference (%%)"))
    x = x.scale(nice=False, domain=[0, max((one.stand.of_usual for one in stands), default=1.0) * 104])
    x = x.axis(format=",~r", tickCount=8)
    y = alt.Y("group").type("nominal").title(None).sort(None)  # pyright: ignore[reportArgumentType] - None keeps the order
    y = y.axis(labelColor=INK)
    told = [
        ("machine", words.say("Machine")),
        ("told_model", words.say("Model")),
        ("told_tokens", words.say("Prompt tokens")),
        ("told_share", words.say("Of the peak")),
    ]
    tooltip = [alt.Tooltip(field).type("nominal").title(name) for field, name in told]
    fill = alt.Fill("hue").type("nominal").scale(None).legend(None)
    return Figure(
        name="prefill-share",
        title=title,
        description=words.say(
            "Strip chart of %(stands)s prefill rates by maker and precision. %(title)s.",
            stands=words.number(len(points)),
            title=title,
        ),
        caption=words.say(
            "Usual for inference: 16-bit products accumulated in FP32, on Apple's GPUs FP32. Quantized weights on "
            "NVIDIA's cards are multiplied in INT8, which is faster, so they may pass 100 %%."
        ),
        legend=_legend(words, stands),
        table=_table(words, shown),
        spec=alt.layer(
            alt.Chart(alt.InlineData(values=[{"share": 100}]))
            .mark_rule(strokeWidth=1.25, strokeDash=[5, 4])
            .encode(x=x, stroke=alt.value(INK)),
            alt.Chart(alt.InlineData(values=[point for point in points if not point["own"]]))
            .mark_tick(thickness=1.5, opacity=0.55)
            .encode(x=x, y=y, stroke=alt.value(MUTED), tooltip=tooltip),
            alt.Chart(alt.InlineData(values=[point for point in points if point["own"]]))
            .mark_point(shape="circle", size=90, opacity=1, strokeWidth=0)
            .encode(x=x, y=y, fill=fill, tooltip=tooltip),
        ).to_dict(),
        left_out=left_out,
    )


def _legend(words: Words, stands: Sequence[GroupedPrefill]) -> tuple[Key, ...]:
    own = dict.fromkeys((one.name or "", one.colour) for one in stands if one.colour is not None)
    keys = [
        Key("dot", subject_colour(colour), words.say("Measured on this site: %(machine)s", machine=name))
        for name, colour in own
    ]
    keys.append(Key("range", MUTED, words.say("Published by others")))
    keys.append(Key("dashed", INK, words.say("The peak usual for inference")))
    return tuple(keys)


def _table(words: Words, stands: Sequence[GroupedPrefill]) -> Table:
    columns = (
        Column("whose", words.say("Whose"), None),
        Column("group", words.say("Group"), None),
        Column("machine", words.say("Machine"), None),
        Column("model", words.say("Model"), None),
        Column("quantization", words.say("Quantization"), None),
        Column("prompt_tokens", words.say("Prompt tokens")),
        Column("tflops", "TFLOPS", 1),
        Column("of_usual_percent", words.say("Of the usual peak (%%)")),
        Column("of_fastest_percent", words.say("Of the fastest peak (%%)")),
        Column("source", words.say("Source"), None),
    )
    rows = [
        (
            words.say("published") if one.colour is None else words.say("this site"),
            one.group,
            one.name or one.stand.machine,
            one.stand.model,
            one.stand.quantization,
            one.stand.prompt_tokens,
            one.stand.flops_per_s / 1e12,
            100 * one.stand.of_usual,
            100 * one.stand.of_fastest,
            one.stand.source or None,
        )
        for one in stands
    ]
    return Table(columns, tuple(rows))
