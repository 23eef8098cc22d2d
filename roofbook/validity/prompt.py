"""Was the prompt read, all of it, and for the first time?"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from roofbook.record import Row
from roofbook.validity.derived import is_ok
from roofbook.validity.finding import MEASURES, Finding, of_point, of_row

CACHED_SHARE: Final = 0.05
"""Of the prompt. Below this a cached start (a begin-of-text token, a chat template) moves prefill less than repeats
of one prompt differ (3 % at 74 tokens in the published baseline)."""

IMPLIED_SHARE: Final = 0.5
"""A row at under half its point's median prefill did less work; heat and load explain tens of per cent, not half."""

ROWS_FOR_A_MEDIAN: Final = 3
"""Of two rows that differ, nobody can say which is the odd one."""

SHORTFALL: Final = 0.75
"""Of the wanted tokens. Calibrated prompts meet theirs within a few per cent (the published ones within 3 % or above);
a server that cuts keeps about half its context."""

CALIBRATED_SHORTFALL: Final = 0.95
"""Of the wanted tokens, where the collector counted with this server first: such prompts meet theirs within 2 %."""

CALIBRATED_TOKENS: Final = 8
"""And so many: of a prompt of 64 tokens, 5 % are what a template may differ by."""


def cached(rows: list[Row]) -> Iterator[Finding]:
    """Find prompts of which the server says that it took more from its cache than was meant."""
    for row in rows:
        cached_tokens, prompt = row.get("cached_tokens"), row.get("prompt_tokens")
        if cached_tokens is None or not prompt or not is_ok(row):
            continue
        expected = (row.get("shared_prefix_tokens") or 0) + (row.get("template_tokens") or 0)
        if cached_tokens - expected > CACHED_SHARE * prompt:
            yield of_row(
                "cached_prefix", row, ("prefill", "ttft", "e2e"),
                cached_tokens=cached_tokens, expected_tokens=expected, prompt_tokens=prompt,
            )  # fmt: skip


def cached_by_its_time(rows: list[Row]) -> Iterator[Finding]:
    """Find rows of one point that took less than half its median: a cache of which the server says nothing."""
    timed = [row for row in rows if is_ok(row) and row.get("server_prefill_ms") and row.get("cached_tokens") is None]
    if len(timed) < ROWS_FOR_A_MEDIAN:
        return
    median = float(np.median([row["server_prefill_ms"] for row in timed]))
    for row in timed:
        if row["server_prefill_ms"] < IMPLIED_SHARE * median:
            yield of_row(
                "cached_prefix_implied", row, ("prefill", "ttft", "e2e"),
                prefill_ms=row["server_prefill_ms"], median_ms=median, rows=len(timed),
            )  # fmt: skip


def truncated(rows: list[Row]) -> Iterator[Finding]:
    """Find prompts that the server cut: far fewer tokens than wanted, or exactly as many as its context holds.

    Ollama keeps num_ctx - (num_ctx - num_keep) / 2 of a prompt that is too long, about half its context, and answers as
    if nothing were wrong; before 0.30 it kept num_ctx.
    """
    for row in rows:
        prompt, wanted = row.get("prompt_tokens"), row.get("prompt_tokens_wanted")
        limit = row.get("context_limit_tokens")
        if prompt is None or not is_ok(row) or row.get("prompt_token_source") == "estimate":
            continue
        short = wanted is not None and (prompt < SHORTFALL * wanted or _short_of_calibrated(row, prompt, wanted))
        full = limit is not None and prompt >= limit - 1
        if short or full:
            yield of_row(
                "truncated", row, MEASURES,
                prompt_tokens=prompt, wanted_tokens=wanted, context_limit_tokens=limit,
            )  # fmt: skip


def _short_of_calibrated(row: Row, prompt: int, wanted: int) -> bool:
    """Whether a prompt whose length was calibrated is shorter than that allows."""
    calibrated = row.get("template_tokens") is not None and row.get("imported_from") is None
    return calibrated and prompt < min(CALIBRATED_SHORTFALL * wanted, wanted - CALIBRATED_TOKENS)


def estimated(rows: list[Row]) -> Iterator[Finding]:
    """Find a point's counts that are our own estimate: beside counted ones they spoil its time per token, alone they
    are told."""
    done = [row for row in rows if is_ok(row)]
    guessed = [row for row in done if "estimate" in (row.get("output_token_source"), row.get("prompt_token_source"))]
    if guessed and len(guessed) == len(done):
        yield of_point("estimated_counts", done, estimated=len(guessed), rows=len(done))
        return
    for row in guessed:
        yield of_row("estimated_counts", row, ("tpot",), estimated=len(guessed), rows=len(done))
