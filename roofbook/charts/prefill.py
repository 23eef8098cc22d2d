"""The prefill curve: time to read a prompt over its length, the fitted law, and how sure it is."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import altair as alt

from roofbook.analysis.prefill import Candidate, Curve, Length
from roofbook.charts.figure import Column, Figure, Key, Table
from roofbook.charts.style import MUTED, PAPER, subject_colour
from roofbook.charts.thin import thinned_but
from roofbook.units import MS_PER_S
from roofbook.words import Words

_STEPS: Final = 60
"""Straight pieces that the fitted curve is drawn with."""

_SEEN_BESIDE_A_DOT: Final = 0.04
"""A range shorter than this, of the axis, is hidden by the dot of its median."""

SECONDS_FROM_MS: Final = 2_000
"""From here on a time is told in seconds."""

Point = dict[str, Any]

Role = Literal["fitted", "unseen", "doubtful"]


def prefill_figure(*, words: Words, curve: Curve, doubtful: Sequence[Length], colour: int) -> Figure:
    """Return the curve of one subject: its lengths and the law with its band.

    Filled are the lengths that were fitted, smaller those that the fit never saw, hollow the *doubtful* ones.
    """
    shown: list[tuple[Role, Length]] = [
        *(("fitted", length) for length in curve.lengths),
        *(("unseen", unseen.length) for unseen in curve.unseen),
        *(("doubtful", length) for length in doubtful),
    ]
    drawn, left_out = thinned_but(shown, lambda one: one[0] == "doubtful")
    scale = _Scale(words, shown)
    points = [scale.point(role, length) for role, length in drawn]
    layers = [_whiskers(points, colour), _dots(points, scale, words, colour)]
    if curve.chosen is not None:
        layers = [*_law(curve.chosen, scale, colour), *layers]
    return Figure(
        name="prefill",
        title=message(words, curve),
        description=_description(words, curve),
        caption=_caption(words, curve, shown),
        legend=_legend(words, curve, shown, colour),
        table=_table(words, curve, drawn),
        spec=alt.layer(*layers).to_dict(),
        left_out=left_out,
    )


def message(words: Words, curve: Curve) -> str:
    """Return what the curve says, as one sentence that claims no more than its intervals carry."""
    if not curve.lengths:
        return words.say("No prefill time could be measured")
    longest = curve.lengths[-1]
    if curve.chosen is None:
        return words.say(
            "Prefill time at %(lengths)s: too few lengths for a law",
            lengths=words.say_n("%(n)d prompt length", "%(n)d prompt lengths", len(curve.lengths)),
        )
    if curve.rejected is not None:
        return _rejected(words, curve, curve.chosen)
    if not _grows(curve.chosen):
        return words.say(
            "Prefill grows in step with the prompt: about %(ms)s ms for each token",
            ms=words.significant(curve.chosen.fit.value(longest.tokens) / longest.tokens),
        )
    return words.say(
        "Prefill grows faster than the prompt: "
        "at %(long)s tokens each token took %(percent)s %% longer than at %(short)s",
        long=words.number(longest.tokens),
        short=words.number(curve.lengths[0].tokens),
        percent=words.number(100 * measured_growth(curve.lengths)),
    )


def _rejected(words: Words, curve: Curve, chosen: Candidate) -> str:
    """Return what the law does not do, where its own rows speak against it."""
    held = curve.hold_out()
    if curve.rejected == "lack_of_fit" or held is None:
        return words.say("None of the tried laws fits: the best misses the lengths by more than their repeats scatter")
    error = 100 * held.error_share
    told = {
        "tokens": words.number(held.tokens),
        "error": words.say("%(value)s %%", value=("+" if error > 0 else "") + words.number(error)),
    }
    if chosen.powers == (1,):
        return words.say(
            "A law in step with the prompt (about %(ms)s ms for each token) does not hit the longest prompt: "
            "%(error)s at %(tokens)s tokens",
            ms=words.significant(chosen.fit.coefficient(1)),
            **told,
        )
    return words.say("The fitted law does not hit the longest prompt: %(error)s at %(tokens)s tokens", **told)


def measured_growth(lengths: Sequence[Length]) -> float:
    """Return by what share the measured time of a token grows from the shortest length to the longest."""
    return lengths[-1].ms_per_token / lengths[0].ms_per_token - 1


def fitted_growth(chosen: Candidate, lengths: Sequence[Length]) -> float:
    """Return the same by the law, which smooths over both ends."""
    short, long = lengths[0].tokens, lengths[-1].tokens
    return (chosen.fit.value(long) / long) / (chosen.fit.value(short) / short) - 1


def _grows(chosen: Candidate) -> bool:
    """Return whether the law's time of a token grows for certain."""
    return 2 in chosen.powers and chosen.fit.coefficient_interval(2).low > 0


class _Scale:
    """The unit of the time axis, and lengths as the points that it shows."""

    def __init__(self, words: Words, shown: Sequence[tuple[Role, Length]]) -> None:
        self._words = words
        self.in_seconds = max((length.high_ms for _, length in shown), default=0) >= SECONDS_FROM_MS
        self.longest = max((length.tokens for _, length in shown), default=1.0)
        unit = words.say("Prefill time (s)") if self.in_seconds else words.say("Prefill time (ms)")
        self.x = alt.X("tokens").type("quantitative").title(words.say("Prompt length (tokens)"))
        self.x = self.x.axis(format=",~r", tickCount=8).scale(zero=True, nice=False, domainMax=self.longest * 1.04)
        self.y = alt.Y("time").type("quantitative").title(unit).axis(format=",~r", tickCount=6).scale(zero=True)

    def time(self, ms: float) -> float:
        return ms / MS_PER_S if self.in_seconds else ms

    def point(self, role: Role, length: Length) -> Point:
        words = self._words
        return {
            "tokens": length.tokens,
            "time": self.time(length.prefill_ms),
            "low": self.time(length.low_ms),
            "high": self.time(length.high_ms),
            "role": role,
            "told_tokens": words.number(length.tokens),
            "told_time": time_text(words, length.prefill_ms),
            "told_rate": words.say("%(rate)s tok/s", rate=words.significant(length.tok_per_s)),
            "told_n": words.number(length.runs),
        }


def _law(chosen: Candidate, scale: _Scale, colour: int) -> list[alt.Chart]:
    steps = [scale.longest * 1.04 * step / _STEPS for step in range(_STEPS + 1)]
    law = [
        {
            "tokens": tokens,
            "time": scale.time(band.mid),
            "low": scale.time(max(band.low, 0)),
            "high": scale.time(band.high),
        }
        for tokens, band in ((tokens, chosen.fit.mean_band(tokens)) for tokens in steps)
    ]
    drawn = alt.Chart(alt.InlineData(values=law))
    hue = alt.value(subject_colour(colour))
    band = drawn.mark_area(opacity=0.16).encode(x=scale.x, y=alt.Y("low").type("quantitative"), y2="high", fill=hue)
    line = drawn.mark_line(strokeWidth=2).encode(x=scale.x, y=scale.y, stroke=hue)
    if 2 not in chosen.powers:
        return [band, line]
    linear = chosen.fit.coefficient(1)
    ends = [{"tokens": tokens, "time": scale.time(linear * tokens)} for tokens in (0, steps[-1])]
    straight = (
        alt.Chart(alt.InlineData(values=ends))
        .mark_line(strokeWidth=1.25, strokeDash=[5, 4])
        .encode(x=scale.x, y=scale.y, stroke=alt.value(MUTED))
    )
    return [band, straight, line]


def _whiskers(points: list[Point], colour: int) -> alt.Chart:
    return (
        alt.Chart(alt.InlineData(values=[point for point in points if point["low"] < point["high"]]))
        .mark_rule(strokeWidth=1.5)
        .encode(
            x=alt.X("tokens").type("quantitative"),
            y=alt.Y("low").type("quantitative"),
            y2="high",
            stroke=alt.value(subject_colour(colour)),
        )
    )


def _dots(points: list[Point], scale: _Scale, words: Words, colour: int) -> alt.Chart:
    hue = subject_colour(colour)
    told = [
        ("told_tokens", words.say("Prompt tokens")),
        ("told_time", words.say("Prefill time")),
        ("told_rate", words.say("Reading speed")),
        ("told_n", words.say("Requests behind it")),
    ]
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(strokeWidth=2, shape="circle", opacity=1)
        .encode(
            x=scale.x,
            y=scale.y,
            stroke=alt.value(hue),
            fill=alt.when(alt.datum.role == "doubtful").then(alt.value(PAPER)).otherwise(alt.value(hue)),
            size=alt.when(alt.datum.role == "unseen").then(alt.value(18)).otherwise(alt.value(75)),
            tooltip=[alt.Tooltip(field).type("nominal").title(title) for field, title in told],
        )
    )


def _legend(words: Words, curve: Curve, shown: Sequence[tuple[Role, Length]], colour: int) -> tuple[Key, ...]:
    hue = subject_colour(colour)
    roles = {role for role, _ in shown}
    keys: list[Key] = []
    if "fitted" in roles:
        keys.append(Key("dot", hue, words.say("Measured: median at one length")))
    top = max((length.high_ms for _, length in shown), default=0.0)
    if any(length.high_ms - length.low_ms > _SEEN_BESIDE_A_DOT * top for _, length in shown):
        keys.append(Key("range", hue, words.say("Lowest to highest")))
    if "unseen" in roles:
        keys.append(Key("small", hue, words.say("Measured elsewhere, not used for the fit")))
    if "doubtful" in roles:
        keys.append(Key("hollow", hue, words.say("In doubt, not used for the fit")))
    if curve.chosen is not None:
        keys.append(Key("line", hue, words.say("Fitted law")))
        keys.append(Key("band", hue, words.say("Its 95 %% interval")))
        if 2 in curve.chosen.powers:
            keys.append(Key("dashed", MUTED, words.say("If a token took equally long at every length")))
    return tuple(keys)


def _description(words: Words, curve: Curve) -> str:
    if not curve.lengths:
        return words.say("An empty chart: no prefill time could be measured.")
    first, last = curve.lengths[0], curve.lengths[-1]
    return words.say(
        "Scatter chart. From %(short)s to %(long)s prompt tokens, "
        "prefill time rises from %(low)s to %(high)s. %(message)s.",
        short=words.number(first.tokens),
        long=words.number(last.tokens),
        low=time_text(words, first.prefill_ms),
        high=time_text(words, last.prefill_ms),
        message=message(words, curve),
    )


def _caption(words: Words, curve: Curve, shown: Sequence[tuple[Role, Length]]) -> str:
    rows = sum(length.rows for _, length in shown)
    parts = [
        words.say_n("%(points)s points from %(n)d row.", "%(points)s points from %(n)d rows.", rows, points=len(shown))
    ]
    if curve.clock == "client":
        parts.append(
            words.say("The server reports no prefill time, so the client's time to the first token stands for it.")
        )
    return " ".join(parts)


def _table(words: Words, curve: Curve, shown: Sequence[tuple[Role, Length]]) -> Table:
    columns = (
        Column("prompt_tokens", words.say("Prompt tokens")),
        Column("requests", words.say("n (requests)")),
        Column("prefill_ms_median", words.say("Prefill, median (ms)")),
        Column("prefill_ms_lowest", words.say("lowest (ms)")),
        Column("prefill_ms_highest", words.say("highest (ms)")),
        Column("prompt_tok_per_s", words.say("Reading speed (tok/s)"), 1),
        Column("fitted_ms", words.say("Fitted law (ms)")),
        Column("fitted_over_measured_percent", words.say("Law against measured (%%)"), 1),
        Column("used", words.say("Used for the fit"), None),
    )
    roles = {"fitted": words.say("yes"), "unseen": words.say("no"), "doubtful": words.say("no, in doubt")}
    law = curve.chosen.fit if curve.chosen else None
    rows = [
        (
            length.tokens,
            length.runs,
            length.prefill_ms,
            length.low_ms if length.rows > 1 else None,
            length.high_ms if length.rows > 1 else None,
            length.tok_per_s,
            law.value(length.tokens) if law else None,
            100 * (law.value(length.tokens) / length.prefill_ms - 1) if law else None,
            roles[role],
        )
        for role, length in shown
    ]
    return Table(columns, tuple(rows))


def time_text(words: Words, ms: float) -> str:
    """Return a time as prose says it: in seconds where there are some."""
    if ms >= SECONDS_FROM_MS:
        return words.say("%(seconds)s s", seconds=words.significant(ms / MS_PER_S))
    return words.say("%(ms)s ms", ms=words.significant(ms))
