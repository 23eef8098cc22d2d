"""What a longer context does besides prefill: how decode slows, and whether a larger window costs anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from roofbook.analysis.differences import Difference, difference
from roofbook.analysis.latency import Point
from roofbook.errors import EstimateError
from roofbook.record import Row
from roofbook.theory.roofline import step_bytes
from roofbook.theory.shapes import Model, Range
from roofbook.validity.derived import decode_tok_per_s


@dataclass(frozen=True)
class DecodeAt:
    """The decode rate after a prompt of *tokens*: tokens a second, and its change from the shortest prompt."""

    tokens: float
    tok_per_s: float
    n: int | None
    change_share: float
    expected_share: Range | None
    """By the bytes of keys and values that each step reads; None where they are not known."""
    outlier: bool
    single: bool
    """False where published medians stand for the requests, whose own rates are not known."""


@dataclass(frozen=True)
class DecodeTest:
    """Single requests of one experiment after its shortest and its longest repeated prompt: do their rates differ?"""

    short_tokens: float
    long_tokens: float
    change_share: float
    """Of the medians, as every page tells them."""
    tested: Difference
    in_blocks: bool
    """All requests of one length stand before all of the other, so that time passed between them as well."""


@dataclass(frozen=True)
class _Single:
    """One request: its place in its run, its prompt, its rate."""

    place: int | None
    tokens: float
    rate: float


@dataclass(frozen=True)
class Window:
    """The same prompt under one context limit (tokens); ms."""

    context_limit_tokens: int | None
    prompt_tokens: float | None
    prefill_ms: float
    n: int | None


@dataclass(frozen=True)
class WindowControl:
    """Prompts that differ in the context limit only, smallest first."""

    windows: tuple[Window, ...]
    tested: Difference | None
    """Largest against smallest window; None where single requests are missing."""

    @property
    def change_share(self) -> float:
        return self.windows[-1].prefill_ms / self.windows[0].prefill_ms - 1


def decode_over_context(
    points: Sequence[Point], odd: Sequence[str | None], model: Model | None, kv_type: str | None
) -> tuple[DecodeAt, ...]:
    """Return the decode rates along the prefill curve; *odd* names its points whose rate is an outlier.

    Empty where fewer than two are known.
    """
    curve = [
        point
        for point in points
        if point.kind == "prefill_curve" and point.prompt_tokens and point.decode.median is not None
    ]
    curve.sort(key=lambda point: point.prompt_tokens or 0)
    if len(curve) < 2:
        return ()
    shortest = curve[0]
    told: list[DecodeAt] = []
    for point in curve:
        rate, tokens = point.decode.median or 0.0, point.prompt_tokens or 0.0
        told.append(
            DecodeAt(
                tokens,
                rate,
                point.decode.n,
                rate / (shortest.decode.median or rate) - 1,
                _expected(model, kv_type, shortest.prompt_tokens or 0, tokens),
                point.point in odd,
                point.decode.low is not None,
            )
        )
    return tuple(told)


def printed_excess(rows: Sequence[Row]) -> float | None:
    """Return by what share decode rates of *rows* may be too high that stand as a server or a publication printed them.

    Servers count the first token and do not time it: n / (n - 1) too high, for the fewest tokens that were asked for;
    it can be taken back only where it is known how many were written. None where no rate stands as printed, or nobody
    knows how many tokens were asked for.
    """
    asked = [
        row.get("output_tokens_wanted")
        for row in rows
        if row.get("server_decode_tok_per_s") and row.get("output_tokens") is None and row.get("status") == "ok"
    ]
    known = [int(count) for count in asked if count is not None and count > 1]
    return 1 / (min(known) - 1) if known and len(known) == len(asked) else None


def decode_test(rows: Sequence[Row]) -> DecodeTest | None:
    """Test whether decode slows between the ends of an experiment, by its single trusted *rows*.

    The experiment whose repeated prompts reach farthest is taken, in one run: sessions differ by more than contexts do.
    None where no experiment repeats two prompts; a published median says nothing of the scatter behind it.
    """
    cells: dict[tuple[str | None, str | None], dict[str | None, list[_Single]]] = {}
    for row in rows:
        rate, tokens = decode_tok_per_s(row), row.get("prompt_tokens")
        if row.get("aggregate_of") is None and rate is not None and tokens and (row.get("concurrency") or 1) == 1:
            points = cells.setdefault((row.get("run_id"), row.get("experiment")), {})
            points.setdefault(row.get("point"), []).append(_Single(row.get("order_index"), tokens, rate))
    found = [one for points in cells.values() if (one := _ends_tested(list(points.values()))) is not None]
    return max(found, key=lambda one: one.long_tokens / one.short_tokens, default=None)


def _ends_tested(points: Sequence[Sequence[_Single]]) -> DecodeTest | None:
    repeated = sorted((point for point in points if len(point) > 1), key=_length)
    if len(repeated) < 2 or _length(repeated[0]) >= _length(repeated[-1]):
        return None
    shortest, longest = repeated[0], repeated[-1]
    before, after = [one.rate for one in shortest], [one.rate for one in longest]
    tested = difference(before, after)
    if tested is None:
        return None
    change = median(after) / median(before) - 1
    return DecodeTest(_length(shortest), _length(longest), change, tested, _in_blocks(shortest, longest))


def _length(point: Sequence[_Single]) -> float:
    return median(one.tokens for one in point)


def _in_blocks(shortest: Sequence[_Single], longest: Sequence[_Single]) -> bool:
    short = [one.place for one in shortest if one.place is not None]
    long = [one.place for one in longest if one.place is not None]
    return bool(short and long) and (max(short) < min(long) or max(long) < min(short))


def window_control(rows: Sequence[Row]) -> WindowControl | None:
    """Return the control over the context limit (rows of kind ``context_control``); None where there is none."""
    limits: dict[int | None, list[Row]] = {}
    for row in rows:
        if row.get("kind") == "context_control" and row.get("server_prefill_ms") and row.get("status") == "ok":
            limits.setdefault(row.get("context_limit_tokens"), []).append(row)
    if len(limits) < 2:
        return None
    ordered = sorted(limits.items(), key=lambda pair: pair[0] or 0)
    windows = tuple(_window(limit, group) for limit, group in ordered)
    singles = [[row["server_prefill_ms"] for row in group if row.get("aggregate_of") is None] for _, group in ordered]
    return WindowControl(windows, difference(singles[0], singles[-1]) if singles[0] and singles[-1] else None)


def _window(limit: int | None, rows: list[Row]) -> Window:
    times = sorted(float(row["server_prefill_ms"]) for row in rows)
    counts = [row["prompt_tokens"] for row in rows if row.get("prompt_tokens") is not None]
    stands_for = [1 if row.get("aggregate_of") is None else row["aggregate_of"] for row in rows]
    middle = len(times) // 2
    return Window(
        limit,
        float(sum(counts)) / len(counts) if counts else None,
        times[middle] if len(times) % 2 else (times[middle - 1] + times[middle]) / 2,
        sum(stands_for) if all(stands_for) else None,
    )


def _expected(model: Model | None, kv_type: str | None, short: float, long: float) -> Range | None:
    if model is None:
        return None
    try:
        less = step_bytes(model, context_tokens=round(short), kv_type=kv_type)
        more = step_bytes(model, context_tokens=round(long), kv_type=kv_type)
    except EstimateError:
        return None
    if more.high == float("inf"):
        return None
    ends = sorted((less.low / more.low - 1, less.high / more.high - 1))
    return Range(ends[0], ends[1])
