"""The tables of a subject's speed page about its points: medians, tails and traps."""

from collections.abc import Sequence
from typing import Any

from roofbook.analysis.intervals import Summary
from roofbook.analysis.latency import Point
from roofbook.analysis.quantities.quantity import Quantity, of_summary
from roofbook.analysis.standing import doubtful
from roofbook.analysis.traps import Trap
from roofbook.charts.prefill import SECONDS_FROM_MS, time_text
from roofbook.pages.concepts.grid import Grid, grid, percent
from roofbook.pages.doubts import name_of
from roofbook.pages.row_table import noted
from roofbook.pages.study import Study
from roofbook.pages.values import told
from roofbook.units import MS_PER_S
from roofbook.words import Words


def medians(study: Study, words: Words) -> Grid:
    """Return the medians of every point, their intervals below them, and the failures beside them."""
    several = any((point.concurrency or 1) > 1 or point.rate_per_s is not None for point in study.points)
    failed = any(point.failed for point in study.points)
    heads = [
        (words.say("Experiment"), False),
        (words.say("Prompt tokens"), True),
        *([(words.say("Requests at once"), True)] if several else []),
        (words.say("n (requests)"), True),
        (words.say("TTFT"), True),
        (words.say("Prefill"), True),
        (words.say("Decode"), True),
        (words.say("Level of the intervals"), True),
        *([(words.say("Failed"), True)] if failed else []),
    ]
    return grid(heads, [_medians_of(point, several, failed, words) for point in study.points])


def _medians_of(point: Point, several: bool, failed: bool, words: Words) -> list[str | None]:
    name = point.experiment or words.say("unknown")
    counts = [one.n for one in (point.ttft, point.prefill, point.decode) if one.n]
    intervals = [one.interval for one in (point.ttft, point.prefill, point.decode) if one.interval is not None]
    return [
        noted(name, words.say("in doubt")) if doubtful(point) else name,
        None if point.prompt_tokens is None else words.number(point.prompt_tokens),
        *([None if point.concurrency is None else words.number(point.concurrency)] if several else []),
        words.number(max(counts)) if counts else None,
        _time(point.ttft, words),
        _time(point.prefill, words),
        _speed(point.decode, words),
        percent(intervals[0].level, words) if intervals else None,
        *([words.number(point.failed)] if failed else []),
    ]


def _time(figure: Summary, words: Words) -> str | None:
    if figure.median is None:
        return None
    if figure.interval is None:
        return time_text(words, figure.median)
    return noted(time_text(words, figure.median), between(figure.interval.low, figure.interval.high, words))


def _speed(figure: Summary, words: Words) -> str | None:
    if figure.median is None:
        return None
    median = words.say("%(rate)s tok/s", rate=words.significant(figure.median))
    if figure.interval is None:
        return median
    low, high = (words.significant(edge) for edge in (figure.interval.low, figure.interval.high))
    return noted(median, words.say("%(low)s to %(high)s", low=low, high=high))


def between(low_ms: float, high_ms: float, words: Words) -> str:
    """Return two times as a range, in the unit of the upper one."""
    if high_ms >= SECONDS_FROM_MS:
        low, high = (words.significant(edge / MS_PER_S) for edge in (low_ms, high_ms))
        return words.say("%(low)s to %(high)s s", low=low, high=high)
    return words.say("%(low)s to %(high)s ms", low=words.significant(low_ms), high=words.significant(high_ms))


def tails(study: Study, words: Words) -> Grid | None:
    """Return P50 and P99 of the single requests' TTFT; None where no point has single requests."""
    heads = [
        (words.say("Experiment"), False),
        (words.say("Prompt tokens"), True),
        (words.say("n (requests)"), True),
        ("P50", True),
        ("P99", True),
        (words.say("Requests missing for a P99"), True),
        (words.say("How long they take"), True),
    ]
    rows = [
        (
            point.experiment or words.say("unknown"),
            None if point.prompt_tokens is None else words.number(point.prompt_tokens),
            words.number(point.ttft.rows),
            told(of_summary("ms", point.ttft), words),
            _p99(point, words),
            words.number(point.ttft.p99_missing),
            None
            if point.minutes_to_p99 is None
            else words.say("%(minutes)s min", minutes=words.significant(point.minutes_to_p99, 2)),
        )
        for point in study.points
        if point.ttft.interval is not None
    ]
    return grid(heads, rows) if rows else None


def _p99(point: Point, words: Words) -> str | None:
    if point.ttft.p99 is None:
        return None
    value = told(Quantity("ms", point.ttft.p99), words)
    return words.say("%(value)s (weak)", value=value) if point.ttft.p99_is_weak else value


def fallen(fell: Sequence[Trap], words: Words) -> Grid | None:
    """Return the rows that fell into a trap, each beside the median of the nearest trusted length."""
    heads = [
        (words.say("Trap"), False),
        (words.say("Prompt tokens"), True),
        (words.say("Load (ms)"), True),
        (words.say("Prefill (ms)"), True),
        (words.say("Nearest trusted length: tokens"), True),
        (words.say("its median prefill (ms)"), True),
        (words.say("Seemingly faster a token"), True),
    ]
    rows = [
        (
            name_of(trap.finding, words),
            _count(trap.row.get("prompt_tokens"), words),
            _count(trap.row.get("server_load_ms"), words),
            _count(trap.row.get("server_prefill_ms"), words),
            _count(trap.beside and trap.beside.prompt_tokens, words),
            _count(trap.beside and trap.beside.prefill_ms, words),
            None if trap.factor is None or trap.factor < 1 else told(Quantity("factor", trap.factor), words),
        )
        for trap in fell
    ]
    return grid(heads, rows) if rows else None


def _count(value: Any, words: Words) -> str | None:
    return None if value is None else words.number(float(value))
