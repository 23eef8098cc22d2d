"""Do the server's own times fit into the client's, and into what any machine can do?"""

from collections.abc import Iterator
from typing import Final

from roofbook.record import Row
from roofbook.units import MS_PER_S
from roofbook.validity.derived import computed_tokens, is_ok
from roofbook.validity.finding import Finding, of_row
from roofbook.validity.server import LOAD_KINDS

SLACK_SHARE: Final = 0.02
"""Of the client's time: two clocks of one machine differ by less, and a server rounds its own."""

SLACK_MS: Final = 2.0
"""And this much, for a server that tells whole milliseconds."""

FASTEST_PREFILL_TOK_PER_S: Final = 1e7
"""2 PFLOPS over a model of 100 million parameters: no request is read faster, so the time is of another unit."""

FAST_PREFILL_TOK_PER_S: Final = 1e5
"""Beyond what one request of a small model reaches on the largest chips; true only of tiny ones."""

PREFILL_SHARE: Final = 0.02
"""Of TTFT, of a request that waited for nobody: so little only where the network takes fifty times the prefill."""


def contradicted(rows: list[Row]) -> Iterator[Finding]:
    """Find times of a server that are longer than the request they are a part of; the client's own stand."""
    for row in rows:
        pairs = (("server_prefill_ms", "ttft_ms"), ("server_decode_ms", "e2e_ms"), ("server_total_ms", "e2e_ms"))
        for part, whole in pairs:
            inner, outer = row.get(part), row.get(whole)
            if not is_ok(row) or inner is None or outer is None or outer <= 0:
                continue
            if inner > outer * (1 + SLACK_SHARE) + SLACK_MS:
                yield of_row(
                    "clock_error", row, ("prefill",), earlier=part, earlier_ms=inner, later=whole, later_ms=outer
                )
                break


def implausible_prefill(rows: list[Row]) -> Iterator[Finding]:
    """Find prefills that no machine does so fast: a time in another unit, or a cache of which nothing is said.

    Below what is impossible anywhere, only where the server denies a cache and the rest of TTFT has no other reason.
    """
    for row in rows:
        prefill, tokens, ttft = row.get("server_prefill_ms"), computed_tokens(row), row.get("ttft_ms")
        if not is_ok(row) or not prefill or prefill < 0 or not tokens or tokens < 2:
            continue
        rate = MS_PER_S * tokens / prefill
        alone = (row.get("concurrency") or 1) == 1 and row.get("kind") not in LOAD_KINDS
        rest = None if ttft is None else ttft - (row.get("server_load_ms") or 0.0) - (row.get("server_queue_ms") or 0.0)
        tiny = rest is not None and alone and row.get("cached_tokens") == 0 and prefill < PREFILL_SHARE * rest
        if rate > FASTEST_PREFILL_TOK_PER_S or (tiny and rate > FAST_PREFILL_TOK_PER_S):
            yield of_row(
                "implausible_prefill", row, ("prefill",),
                tokens=tokens, prefill_ms=prefill, tok_per_s=rate, ttft_ms=ttft,
            )  # fmt: skip
