"""What a run's rows come to, as lines for the terminal: a table, what is not in it, and what is doubtful."""

from collections.abc import Iterator, Sequence
from typing import Final

from collect.doubts import summary
from collect.screen import aligned
from collect.summary import Figure, PointSummary, Spread, failures, summarise
from roofbook.record import Row
from roofbook.validity import Finding
from roofbook.words import Words

LENGTH_TOLERANCE: Final = 0.02
"""Prompts within this share of the wanted length are as long as they should be."""


def outcome(
    rows: Sequence[Row], experiments: Sequence[str], words: Words, found: Sequence[Finding] = ()
) -> Iterator[str]:
    """Yield the points that were measured in the order of *experiments*, and beside which lengths and failures.

    What *found* doubts is left out of the figures that it spoils, and counted beside them.
    """
    points = summarise(rows, experiments, found)
    if points:
        yield ""
        yield from aligned([_headings(words), *(_cells(one, words) for one in points)])
    for one in points:
        reached = one.prompt_tokens
        if reached is not None and reached.differs_from(one.wanted_tokens, LENGTH_TOLERANCE):
            yield words.say(
                "%(point)s: the server counted %(low)d to %(high)d prompt tokens where %(wanted)d were wanted",
                point=one.point, low=reached.low, high=reached.high, wanted=one.wanted_tokens,
            )  # fmt: skip
    if failed := failures(rows):
        told = ", ".join(f"{number} x {status}" for status, number in sorted(failed.items()))
        yield words.say("Not in these figures: %(failures)s", failures=told)


def doubts(found: Sequence[Finding], words: Words) -> Iterator[str]:
    """Yield what is doubtful about the rows, each kind once; that nothing is, is said too."""
    yield ""
    if not found:
        yield words.say("Nothing known to spoil a measurement was found in these rows")
        return
    yield words.say("What is doubtful about these rows:")
    for text in summary(found, words):
        yield f"! {text}"


def _headings(words: Words) -> list[str]:
    say = words.say
    return [say("experiment"), say("point"), "n", say("TTFT ms"), say("prefill tok/s"), say("TPOT ms")]


def _cells(one: PointSummary, words: Words) -> list[str]:
    figures = (one.ttft_ms, one.prefill_tok_per_s, one.tpot_ms)
    return [one.experiment, one.point, str(one.n), *(_figure(figure, words) for figure in figures)]


def _figure(figure: Figure, words: Words) -> str:
    told = "-" if figure.spread is None else _spread(figure.spread, words)
    if figure.n == figure.known:
        return told
    return words.say("%(figure)s, %(n)d of %(known)d", figure=told, n=figure.n, known=figure.known)


def _spread(spread: Spread, words: Words) -> str:
    median, low, high = (words.significant(value) for value in (spread.median, spread.low, spread.high))
    return f"{median} ({low} - {high})"
