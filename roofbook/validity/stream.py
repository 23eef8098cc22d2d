"""Did the tokens arrive one by one, as many as wanted, in a time that runs forwards?"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from roofbook.record import Row
from roofbook.validity.derived import is_ok
from roofbook.validity.finding import MEASURES, Finding, of_row

SHORT_SHARE: Final = 0.9
"""Of the wanted output. A tenth less work is within what the machine itself varies; more is another workload."""

FASTEST_TOKEN_MS: Final = 0.2
"""Five thousand tokens a second in one stream: no machine generates so fast, a buffer that is emptied does."""

BUFFERED_CHUNKS: Final = 10
"""So many chunks at once are no chance meeting of two in one read: something held them back."""

BURST_SHARE: Final = 0.9
"""Of the gaps without time: bursts of ten chunks or more. Speculative decoding gives bursts too, but shorter ones."""

CLOCK_SLACK_MS: Final = 0.05
"""Two times of one event may differ by rounding."""


def output(rows: list[Row]) -> Iterator[Finding]:
    """Find answers that ended early, or never began."""
    for row in rows:
        tokens, wanted = row.get("output_tokens"), row.get("output_tokens_wanted")
        if tokens is None or not is_ok(row) or row.get("output_token_source") == "estimate":
            continue
        if tokens == 0:
            yield of_row("empty_output", row, ("ttft", "tpot", "e2e"), wanted_tokens=wanted)
        elif wanted is not None and tokens < SHORT_SHARE * wanted:
            yield of_row("short_output", row, ("e2e",), output_tokens=tokens, wanted_tokens=wanted)


def answer(rows: list[Row]) -> Iterator[Finding]:
    """Find streams that were all thinking: their first token is known, a first token of the answer never came."""
    for row in rows:
        tokens = row.get("output_tokens")
        if is_ok(row) and tokens and row.get("chunks") and row.get("first_answer_ms") is None:
            yield of_row("no_answer", row, output_tokens=tokens, thinking_tokens=row.get("thinking_tokens"))


def buffering(rows: list[Row]) -> Iterator[Finding]:
    """Find streams whose tokens came all at once, or in large bursts.

    Whoever held them back, the gaps are not the model's: the end-to-end time stands, time to first token and time per
    token do not.
    """
    for row in rows:
        first, last = row.get("ttft_ms"), row.get("last_token_ms")
        if first is None or last is None or not is_ok(row) or last < first:
            continue
        at_once = all_at_once(row)
        if at_once or in_bursts(row):
            kind = "coalesced" if at_once and _most_tokens(row) < BUFFERED_CHUNKS else "buffered"
            yield of_row(
                kind, row, ("ttft", "tpot"), chunks=row.get("chunks"), span_ms=last - first, e2e_ms=row.get("e2e_ms")
            )


def all_at_once(row: Row) -> bool:
    """Whether two tokens or more came within less time than any machine takes for them."""
    first, last, tokens = row.get("ttft_ms"), row.get("last_token_ms"), _most_tokens(row)
    if first is None or last is None or last < first or tokens < 2:
        return False
    return (last - first) / (tokens - 1) < FASTEST_TOKEN_MS


def _most_tokens(row: Row) -> int:
    return max(row.get("chunks") or 0, row.get("output_tokens") or 0)


def in_bursts(row: Row) -> bool:
    """Whether nearly all gaps of a stream are without time: bursts of ten pieces or more."""
    times = row.get("chunk_times_ms")
    if times is None or len(times) < 2 * BUFFERED_CHUNKS:
        return False
    together = sum(later - earlier < FASTEST_TOKEN_MS for earlier, later in pairwise(times))
    return together / (len(times) - 1) > BURST_SHARE


def clock(rows: list[Row]) -> Iterator[Finding]:
    """Find times that run backwards: two clocks were mixed, or the stamps are broken."""
    order = ("first_byte_ms", "ttft_ms", "first_answer_ms", "last_token_ms", "e2e_ms")
    for row in rows:
        stamped = [(name, row[name]) for name in order if row.get(name) is not None]
        if not is_ok(row) or not stamped:
            continue
        pairs = pairwise([("sent", 0.0), *stamped])
        backwards = next(((a, b) for a, b in pairs if b[1] < a[1] - CLOCK_SLACK_MS), None)
        if backwards is not None:
            (earlier, earlier_ms), (later, later_ms) = backwards
            yield of_row(
                "clock_error", row, MEASURES,
                earlier=earlier, earlier_ms=earlier_ms, later=later, later_ms=later_ms,
            )  # fmt: skip
