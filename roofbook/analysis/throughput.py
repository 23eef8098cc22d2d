"""Tokens a second of many requests at once: over the whole level, and while as many as wanted were in flight.

At a level's start its requests come in one burst, at its end they run out; both belong to the full figure, neither says
what the server sustains. So both figures are given, each with the window that it holds for.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from roofbook.record import Row
from roofbook.units import MS_PER_S
from roofbook.validity.derived import is_judged, is_ok


@dataclass(frozen=True)
class Window:
    """A stretch of a level: from when to when, in ms of the segment's monotonic time, and what came in it."""

    start_ms: float
    end_ms: float
    tokens: float
    """Generated between the two; a part of an answer counts as the part that it is."""

    @property
    def tok_per_s(self) -> float | None:
        """Tokens a second; None where the window has no length."""
        length_ms = self.end_ms - self.start_ms
        return MS_PER_S * self.tokens / length_ms if length_ms > 0 else None


@dataclass(frozen=True)
class Throughput:
    """One level: the *full* run of it, and the *steady* part; None where nothing is known, or never were so many."""

    in_flight: int
    """How many requests the steady window has, from its first moment with so many to its last."""
    full: Window | None
    steady: Window | None


@dataclass(frozen=True)
class _Flight:
    start_ms: float
    end_ms: float
    arrivals: tuple[tuple[float, float], ...]
    """Stretches in which tokens came, evenly."""
    tokens: float

    def tokens_in(self, start_ms: float, end_ms: float) -> float:
        """Return how many of its tokens came between *start_ms* (not included) and *end_ms*."""
        each = self.tokens / len(self.arrivals) if self.arrivals else 0.0
        return sum(each * _part(first, last, start_ms, end_ms) for first, last in self.arrivals)


def throughput(rows: Iterable[Row], in_flight: int) -> Throughput:
    """Return the throughput of one level's measured *rows* (of one segment, warm-ups left out whatever is handed over).

    A request that failed was in flight and brought no tokens.
    """
    flights = [
        flight
        for row in rows
        if is_judged(row) and row.get("phase") != "anchor" and (flight := _flight(row)) is not None
    ]
    if not flights:
        return Throughput(in_flight, None, None)
    full = _window(flights, min(one.start_ms for one in flights), max(one.end_ms for one in flights))
    edges = _with_so_many(flights, in_flight)
    return Throughput(in_flight, full, None if edges is None else _window(flights, *edges))


def _window(flights: list[_Flight], start_ms: float, end_ms: float) -> Window:
    return Window(start_ms, end_ms, sum(one.tokens_in(start_ms, end_ms) for one in flights))


def _with_so_many(flights: list[_Flight], in_flight: int) -> tuple[float, float] | None:
    """Return the first and the last moment at which at least *in_flight* were under way; None where none was.

    The moment in which one ends and the next begins is no end: between the two a client takes a breath.
    """
    # Those that end at a moment leave before others begin: two that touch are never both under way.
    changes = sorted([(one.start_ms, 1) for one in flights] + [(one.end_ms, -1) for one in flights])
    under_way, first, last = 0, None, None
    for at_ms, change in changes:
        if change == -1 and under_way >= in_flight:
            last = at_ms
        under_way += change
        if under_way >= in_flight and first is None:
            first = at_ms
    return None if first is None or last is None else (first, last)


def _flight(row: Row) -> _Flight | None:
    start_ms, e2e_ms = row.get("sent_at_ms"), row.get("e2e_ms")
    if start_ms is None or e2e_ms is None:
        return None
    tokens = (row.get("output_tokens") or 0) if is_ok(row) else 0
    return _Flight(start_ms, start_ms + e2e_ms, _arrivals(row, start_ms, start_ms + e2e_ms), tokens)


def _arrivals(row: Row, start_ms: float, end_ms: float) -> tuple[tuple[float, float], ...]:
    """Return when a row's tokens came: chunk by chunk, else evenly from its first to its last, else over all of it."""
    times = row.get("chunk_times_ms")
    if times is not None and len(times):
        return tuple((start_ms + at_ms, start_ms + at_ms) for at_ms in times)
    first, last = row.get("ttft_ms"), row.get("last_token_ms")
    if first is None or last is None:
        return ((start_ms, end_ms),)
    return ((start_ms + first, start_ms + last),)


def _part(first_ms: float, last_ms: float, start_ms: float, end_ms: float) -> float:
    """Return which part of a stretch lies between two moments; a stretch without length lies in or out."""
    if last_ms <= first_ms:
        return 1.0 if start_ms < first_ms <= end_ms else 0.0
    return max(0.0, min(last_ms, end_ms) - max(first_ms, start_ms)) / (last_ms - first_ms)
