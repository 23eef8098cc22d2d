"""What a subject's prefill page says of the context: how it slows the answer, and what a larger window costs."""

from typing import Any, Final

from roofbook.analysis.context import DecodeAt, DecodeTest, WindowControl
from roofbook.analysis.differences import Difference
from roofbook.analysis.prefill import Curve
from roofbook.pages.concepts.grid import grid, percent
from roofbook.pages.prefill_tables import signed
from roofbook.pages.row_table import noted
from roofbook.pages.sentence import Sentence
from roofbook.words import Words, mark

_NOTABLE: Final = 0.05
"""Where even the smallest possible p value is above this, the number of requests is what is missing."""


def window(control: WindowControl | None, curve: Curve, words: Words) -> dict[str, Any] | None:
    """Return the control over the context limit; None where there is none."""
    if control is None:
        return None
    heads = [
        (words.say("Context limit (tokens)"), True),
        (words.say("Prompt tokens"), True),
        (words.say("n (requests)"), True),
        (words.say("Prefill (ms)"), True),
    ]
    rows = [
        (
            None if one.context_limit_tokens is None else words.number(one.context_limit_tokens),
            None if one.prompt_tokens is None else words.number(one.prompt_tokens),
            None if one.n is None else words.number(one.n),
            words.number(one.prefill_ms),
        )
        for one in control.windows
    ]
    change = {"change": signed(control.change_share, words, 2)}
    if control.tested is None:
        told_of = Sentence(
            mark(
                "The larger window changes prefill by %(change)s. Without the single runs there is no testing whether "
                "that is more than nothing."
            ),
            change,
        )
    else:
        told_of = Sentence(
            mark("The larger window changes prefill by %(change)s (exact test of no difference: p = %(p)s)."),
            change,
            {"p": words.significant(control.tested.p_value, 2)},
        )
    return {"table": grid(heads, rows), "told": told_of, "twice": _twice(control, curve, words)}


def _twice(control: WindowControl, curve: Curve, words: Words) -> str | None:
    """Return that the control is no measurement of its own, where it is to the digit a median of the curve."""
    medians = [length for length in curve.lengths if (length.runs or 1) > 1]
    for one in control.windows:
        for length in medians:
            near = abs((one.prompt_tokens or 0) - length.tokens) <= 1  # a source may count one token more in one place
            if one.n is None and near and one.prefill_ms == length.prefill_ms:
                return words.say(
                    "The row with %(limit)s is to the digit the curve's median at %(tokens)s tokens: apparently one "
                    "measurement, published twice.",
                    limit="–" if one.context_limit_tokens is None else words.number(one.context_limit_tokens),
                    tokens=words.number(length.tokens),
                )
    return None


def as_printed(excess: float | None, words: Words) -> str | None:
    """Return by how much printed decode rates may be too high; None where none stands as printed."""
    if excess is None:
        return None
    return words.say(
        "Decode rates without a known number of output tokens stand as printed: the server counts the first token and "
        "does not time it, so they may be up to %(more)s high.",
        more=percent(excess, words),
    )


def decode(rates: tuple[DecodeAt, ...], tested: DecodeTest | None, words: Words) -> dict[str, Any] | None:
    """Return how decode slows along the curve, and what that rests on; None where fewer than two rates are known."""
    if not rates:
        return None
    heads = [
        (words.say("Prompt tokens"), True),
        (words.say("n (requests)"), True),
        (words.say("Decode (tok/s)"), True),
        (words.say("Against the shortest"), True),
        (words.say("By the bytes read"), True),
    ]
    rows = [
        (
            words.number(one.tokens),
            None if one.n is None else words.number(one.n),
            noted(words.significant(one.tok_per_s), words.say("outlier"))
            if one.outlier
            else words.significant(one.tok_per_s),
            signed(one.change_share, words),
            None
            if one.expected_share is None
            else signed((one.expected_share.low + one.expected_share.high) / 2, words),
        )
        for one in rates
    ]
    first, last = rates[0], rates[-1]
    values = {"short": words.number(first.tokens), "long": words.number(last.tokens)}
    strong = {"change": signed(last.change_share, words)}
    if last.expected_share is None:
        message = mark("From %(short)s to %(long)s prompt tokens the decode rate changes by %(change)s.")
    else:
        message = mark(
            "From %(short)s to %(long)s prompt tokens the decode rate changes by %(change)s. Each step reads the KV "
            "cache of all tokens so far; those bytes alone would change it by %(expected)s."
        )
        values["expected"] = signed((last.expected_share.low + last.expected_share.high) / 2, words)
    return {
        "table": grid(heads, rows),
        "told": Sentence(message, strong, values),
        "rests": None if first.single and last.single else _two_medians(first, last, words),
        "tested": None if tested is None else _tested(tested, words),
        "least": None if tested is None else _least(tested.tested, words),
        "blocks": _blocks(words) if tested is not None and tested.in_blocks else None,
    }


def _two_medians(first: DecodeAt, last: DecodeAt, words: Words) -> str:
    if first.n is None or last.n is None:
        return words.say("That is two published medians; how many requests stand behind them is not known.")
    return words.say(
        "That is two medians, of %(short)s and of %(long)s requests, whose single values were not published: by them "
        "alone the change cannot be tested.",
        short=words.number(first.n),
        long=words.number(last.n),
    )


def _blocks(words: Words) -> str:
    return words.say(
        "All requests of one length stand before those of the other, as sent or as published, so p does not tell the "
        "effect of the length from that of a machine which had grown warmer."
    )


def _least(tested: Difference, words: Words) -> str | None:
    """Return that so few requests cannot say more, where they lie as far apart as they can; None elsewhere."""
    if not tested.exact or tested.p_value > tested.least_p_value or tested.least_p_value < _NOTABLE:
        return None
    return words.say("So few requests cannot give a smaller p, however far apart they lie.")


def _tested(found: DecodeTest, words: Words) -> Sentence:
    """Return whether single requests bear the change out."""
    return Sentence(
        mark(
            "Single requests that can be compared: %(many)s after %(short)s tokens and %(more)s after %(long)s. There "
            "the median rate changes by %(change)s (%(test)s of no difference: p = %(p)s)."
        ),
        {"change": signed(found.change_share, words)},
        {
            "many": words.number(found.tested.n[0]),
            "more": words.number(found.tested.n[1]),
            "short": words.number(found.short_tokens),
            "long": words.number(found.long_tokens),
            "test": words.say("exact test") if found.tested.exact else words.say("t test"),
            "p": words.significant(found.tested.p_value, 1),
        },
    )
