"""Where the time of one request goes: reading the prompt, the little before the first token, writing the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import MUTED, subject_colour
from roofbook.units import MS_PER_S
from roofbook.words import Words

_WRITING_OPACITY: Final = 0.22
"""The site's style sheet gives the legend's band the same."""


@dataclass(frozen=True)
class RequestParts:
    """One prompt length: the medians of its requests, ms, over *requests* of them."""

    prompt_tokens: float
    prefill_ms: float
    ttft_ms: float
    e2e_ms: float
    output_tokens: float | None
    requests: int | None

    @property
    def waiting_share(self) -> float:
        return self.ttft_ms / self.e2e_ms


def request_figure(*, words: Words, requests: Sequence[RequestParts], colour: int) -> Figure:
    """Return a bar for each of *requests*, shortest prompt first, in the order in which its parts happen."""
    longest = requests[-1]
    title = words.say(
        "After a prompt of %(tokens)s tokens, %(percent)s %% of the time goes by before the first token",
        tokens=words.number(longest.prompt_tokens),
        percent=words.number(100 * longest.waiting_share),
    )
    hue = subject_colour(colour)
    return Figure(
        name="request",
        title=title,
        description=words.say(
            "Bar chart of %(bars)s prompt lengths, each bar one request from sending it to its last token. %(title)s.",
            bars=words.number(len(requests)),
            title=title,
        ),
        caption=words.say(
            "Each question was new and sent after the one before it. A bar is the middle value (median) of its "
            "runs; a template that all prompts share may still have been cached."
        ),
        legend=(
            Key("dot", hue, words.say("Reading the prompt (prefill)")),
            Key("dot", MUTED, words.say("Until the first token arrives")),
            Key("band", hue, words.say("Writing the answer (decode)")),
        ),
        table=_table(words, requests),
        spec=_bars(words, requests, hue),
    )


def _bars(words: Words, requests: Sequence[RequestParts], hue: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for request in requests:
        label = words.say("%(tokens)s tokens", tokens=words.number(request.prompt_tokens))
        names = (words.say("Prefill"), words.say("Until the first token"), words.say("Decode"))
        ends = (0.0, request.prefill_ms, request.ttft_ms, request.e2e_ms)
        for place, (name, fill, opacity) in enumerate(
            zip(names, (hue, MUTED, hue), (1.0, 1.0, _WRITING_OPACITY), strict=True)
        ):
            parts.append(
                {
                    "label": label,
                    "start": ends[place] / MS_PER_S,
                    "end": ends[place + 1] / MS_PER_S,
                    "fill": fill,
                    "opacity": opacity,
                    "told_part": name,
                    "told_time": words.say(
                        "%(seconds)s s", seconds=words.significant((ends[place + 1] - ends[place]) / MS_PER_S)
                    ),
                }
            )
    labels = list(dict.fromkeys(part["label"] for part in parts))
    y = (
        alt.Y("label")
        .type("nominal")
        .sort(labels)
        .title(words.say("Prompt"))
        .scale(paddingInner=0.45, paddingOuter=0.3)
    )
    x = (
        alt.X("start")
        .type("quantitative")
        .title(words.say("Seconds since the request"))
        .axis(format=",~r", tickCount=8)
    )
    tooltip = [
        alt.Tooltip("label").type("nominal").title(words.say("Prompt")),
        alt.Tooltip("told_part").type("nominal").title(words.say("Part")),
        alt.Tooltip("told_time").type("nominal").title(words.say("Time")),
    ]
    return (
        alt.Chart(alt.InlineData(values=parts))
        .mark_bar()
        .encode(
            y=y,
            x=x,
            x2="end",
            fill=alt.Fill("fill").type("nominal").scale(None).legend(None),
            opacity=alt.Opacity("opacity").type("quantitative").scale(None).legend(None),
            tooltip=tooltip,
        )
        .to_dict()
    )


def _table(words: Words, requests: Sequence[RequestParts]) -> Table:
    columns = (
        Column("prompt_tokens", words.say("Prompt tokens")),
        Column("requests", words.say("n (requests)")),
        Column("prefill_ms", words.say("Prefill, median (ms)")),
        Column("ttft_ms", words.say("TTFT, median (ms)")),
        Column("e2e_ms", words.say("Whole request, median (ms)")),
        Column("output_tokens", words.say("Output tokens, median")),
    )
    rows = tuple(
        (one.prompt_tokens, one.requests, one.prefill_ms, one.ttft_ms, one.e2e_ms, one.output_tokens)
        for one in requests
    )
    return Table(columns, rows)
