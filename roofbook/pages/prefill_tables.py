"""What a subject's prefill page says of times: what fits a wait, and what a prediction is worth."""

from collections.abc import Sequence
from typing import Final

from roofbook.analysis.coefficients import Beyond, attention_share, beyond
from roofbook.analysis.latency import Point
from roofbook.analysis.prefill import Curve
from roofbook.analysis.quantities.quantity import of_range
from roofbook.charts.prefill import time_text
from roofbook.pages.concepts.grid import Grid, grid, percent
from roofbook.pages.row_table import noted
from roofbook.pages.sentence import Sentence
from roofbook.pages.speed_tables import between
from roofbook.pages.values import told
from roofbook.theory.shapes import Model, Range
from roofbook.units import MS_PER_S
from roofbook.words import Words, mark

TARGETS_MS: Final = (1_000, 2_000, 5_000)
"""Waits for a first token: hardly felt, borne, and too long for a conversation."""

RAG_TOKENS: Final = 1_600
"""A question with a few retrieved passages before it."""


def budgets(curve: Curve, words: Words) -> Grid | None:
    """Return how many prompt tokens fit each of TARGETS_MS; None without a law. What was fitted nowhere is marked."""
    if curve.law is None or curve.longest is None:
        return None
    heads = [
        (words.say("First token within"), True),
        (words.say("Prompt tokens"), True),
        (words.say("95 %% interval"), True),
    ]
    rows: list[tuple[str | None, ...]] = []
    for target_ms in TARGETS_MS:
        fits = curve.budget(target_ms)
        if fits is None:
            continue
        ends = [None if end is None else words.number(end) for end in (fits.low, fits.high)]
        rows.append(
            (
                words.say("%(value)s s", value=words.number(target_ms / MS_PER_S)),
                # A prompt of that length or a shorter one was measured to take longer: only the interval stands.
                None
                if fits.mid is None or curve.contradicted(fits.mid, target_ms)
                else _budget(fits.mid, curve, words),
                None if None in ends else words.say("%(low)s to %(high)s", low=ends[0], high=ends[1]),
            )
        )
    return grid(heads, rows)


def _budget(tokens: float, curve: Curve, words: Words) -> str:
    told_of = words.number(tokens)
    if tokens < curve.lengths[0].tokens:
        return noted(told_of, words.say("below the shortest fitted length"))
    if tokens > curve.lengths[-1].tokens:
        return noted(told_of, words.say("beyond the longest fitted length"))
    return told_of


def below_the_shortest(curve: Curve, points: Sequence[Point], words: Words) -> Sentence | None:
    """Return what was measured nearest to the budgets that lie below every fitted length; None where none does."""
    if not curve.lengths:
        return None
    shortest = curve.lengths[0]
    short = [
        fits.mid
        for target_ms in TARGETS_MS
        if (fits := curve.budget(target_ms)) is not None and fits.mid is not None and fits.mid < shortest.tokens
    ]
    waited = next(
        (
            point.ttft.median
            for point in points
            if point.kind == "prefill_curve" and point.prompt_tokens == shortest.tokens
        ),
        None,
    )
    if not short or waited is None:
        return None
    return Sentence(
        mark(
            "No prompt as short as %(tokens)s tokens was fitted; the law is only drawn on to there. What was measured: "
            "%(shortest)s tokens, the shortest length of the curve, had their first token after %(wait)s."
        ),
        {"wait": time_text(words, waited)},
        {"tokens": words.number(max(short)), "shortest": words.number(shortest.tokens)},
    )


def rag(curve: Curve, words: Words) -> Sentence | None:
    """Return how long a prompt usual for RAG waits; None without a law."""
    band = curve.ttft(RAG_TOKENS)
    if band is None:
        return None
    slower = curve.contradicted(RAG_TOKENS, band.mid)
    if slower is not None:
        return Sentence(
            mark(
                "A prompt of %(tokens)s tokens, usual for RAG, should wait %(range)s for its first token (95 %% "
                "interval); one of %(shorter)s tokens was measured to take %(time)s to read."
            ),
            {"range": between(max(0.0, band.low), band.high, words)},
            {
                "tokens": words.number(RAG_TOKENS),
                "shorter": words.number(slower.tokens),
                "time": time_text(words, slower.prefill_ms),
            },
        )
    return Sentence(
        mark(
            "A prompt of %(tokens)s tokens, usual for RAG, waits %(time)s for its first token "
            "(95 %% interval %(range)s)."
        ),
        {"time": time_text(words, band.mid)},
        {"tokens": words.number(RAG_TOKENS), "range": between(max(0.0, band.low), band.high, words)},
    )


def held_out(curve: Curve, words: Words) -> Sentence | None:
    """Return how the law of the shorter lengths fares at the longest; None where they are too few."""
    held, chosen = curve.hold_out(), curve.chosen
    if held is None or chosen is None:
        return None
    inside = mark(
        "Fitted to the %(lengths)s shorter lengths only, the law predicts %(predicted)s for %(tokens)s tokens "
        "(95 %% prediction interval %(range)s). Measured: %(measured)s, inside the interval; the prediction is off by "
        "%(error)s. The law that has seen this point misses it by %(seen)s, which is no prediction."
    )
    outside = mark(
        "Fitted to the %(lengths)s shorter lengths only, the law predicts %(predicted)s for %(tokens)s tokens "
        "(95 %% prediction interval %(range)s). Measured: %(measured)s, outside the interval; the prediction is off by "
        "%(error)s. The law that has seen this point misses it by %(seen)s, which is no prediction."
    )
    band = held.predicted_ms
    return Sentence(
        inside if held.inside else outside,
        {
            "predicted": time_text(words, band.mid),
            "measured": time_text(words, held.measured_ms),
            "error": signed(held.error_share, words),
        },
        {
            "lengths": words.number(held.fitted_lengths),
            "tokens": words.number(held.tokens),
            "range": between(max(0.0, band.low), band.high, words),
            "seen": signed(curve.errors()[-1], words),
        },
    )


def by_length(curve: Curve, model: Model | None, words: Words) -> Grid | None:
    """Return every fitted length: measured, by the law, left out, and how much of it is attention."""
    chosen = curve.chosen
    if chosen is None:
        return None
    square = 2 in chosen.powers
    shares = [attention_share(model, length.tokens) for length in curve.lengths]
    heads = [
        (words.say("Prompt tokens"), True),
        (words.say("n (requests)"), True),
        (words.say("As measured"), True),
        (words.say("ms per token"), True),
        (words.say("Law"), True),
        (words.say("Error"), True),
        (words.say("Error when left out"), True),
        *([(words.say("Share of bT²"), True)] if square else []),
        *([(words.say("Attention by arithmetic"), True)] if any(shares) else []),
    ]
    rows = [
        (
            words.number(length.tokens),
            None if length.runs is None else words.number(length.runs),
            time_text(words, length.prefill_ms),
            words.significant(length.ms_per_token),
            time_text(words, chosen.fit.value(length.tokens)),
            signed(residual, words),
            None if chosen.left_out is None else signed(chosen.left_out[place], words),
            *([percent(chosen.fit.term_share(2, length.tokens) or 0.0, words)] if square else []),
            *([_range_share(shares[place], words)] if any(shares) else []),
        )
        for place, (length, residual) in enumerate(zip(curve.lengths, curve.errors(), strict=True))
    ]
    return grid(heads, rows)


def predicted(curve: Curve, words: Words) -> Grid | None:
    """Return what the law says of lengths nobody measured, beside a straight line if it bends; None without a law."""
    if curve.law is None or curve.longest is None:
        return None
    bends = 2 in curve.law.powers
    heads = [
        (words.say("Prompt tokens"), True),
        (words.say("By the law"), True),
        (words.say("95 %% prediction interval"), True),
        *(
            [(words.say("By a straight line"), True), (words.say("A straight line falls short by"), True)]
            if bends
            else []
        ),
    ]
    rows = [
        (
            words.number(one.tokens),
            time_text(words, one.law.mid),
            between(max(0.0, one.law.low), one.law.high, words),
            *(_straight(one, words) if bends else ()),
        )
        for one in beyond(curve.law, curve.longest.tokens)
    ]
    return grid(heads, rows)


def _straight(one: Beyond, words: Words) -> tuple[str, str | None]:
    short = percent(1 - one.straight_ms / one.law.mid, words) if one.straight_ms < one.law.mid else None
    return time_text(words, one.straight_ms), short


def signed(share: float, words: Words, decimals: int = 1) -> str:
    """Return a change in per cent with its sign."""
    value = words.number(100 * share, decimals)
    sign = "+" if share > 0 else ""
    return words.say("%(value)s %%", value=sign + value)


def _range_share(share: Range | None, words: Words) -> str | None:
    return None if share is None else told(of_range("share", share), words)
