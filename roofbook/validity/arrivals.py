"""Were the first tokens seen when they were made, and what does it do to the times where they were not?

A time per token is the time from the first token to the last over the tokens between. Tokens that came in one moment
with the first took no part of that time and are counted all the same, whoever held them back: a proxy, a server that
sends several tokens a piece, one that streams in name only at its start.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from roofbook.record import Row
from roofbook.validity.derived import is_ok
from roofbook.validity.finding import Finding, Measure, of_row
from roofbook.validity.server import LOAD_KINDS
from roofbook.validity.stream import FASTEST_TOKEN_MS, all_at_once, in_bursts

TOKENS_FOR_A_LUMP: Final = 3
"""Two tokens in one read are a chance meeting, or one character of two tokens."""

LUMP_SHARE: Final = 0.125
"""Of the time per token, or of TTFT: four tokens a step, as good guessing ahead gives, move the mean over 32 by a tenth
at the most; four of 16, or eight of 48, by more."""

HELD_FACTOR: Final = 2
"""Times the largest later burst: a model that guesses ahead comes in bursts throughout, and its first token alone."""

HELD_SHARE: Final = 0.05
"""Where only the start came in a burst the cause is known, and what it moves is no scatter: as for a late client."""

TOKENS_A_STEP: Final = 5.0
"""Good guessing ahead gives three to four tokens a step on the average; of an answer with more a piece, tokens may have
come before the first piece, unseen or held back."""

UNSEEN_SHARE: Final = 0.2
"""Of the server's decode time. The first step and a last token without text are up to a tenth of 16 tokens each."""

UNSEEN_MS: Final = 20.0
"""And this much: of a few tokens the two clocks differ by a step, which is one token of 50 a second."""

APART_FACTOR: Final = 10.0
"""Times the usual gap between the first piece and the second: a step that builds its kernels or meets a pause of the
system takes a few steps' time."""

APART_MS: Final = 50.0
"""And this much: less is one pause of the system or of the network."""

GAPS_FOR_A_USUAL: Final = 4
"""With fewer further gaps nobody can say what is usual."""


@dataclass(frozen=True)
class _Start:
    """How a stream began: tokens in its first moment, and what they move."""

    pieces: int
    """Pieces of the first moment."""
    later_pieces: int
    """Of the largest later one."""
    tokens: float
    """Tokens of the first moment, at the stream's mean of tokens a piece."""
    token_ms: float
    """Time per token after it."""
    unseen_ms: float
    """How long those tokens may have taken that no piece is known of, one after the other before the first piece."""
    share: float
    """By which the time per token comes out too short, if the first moment held so many tokens."""

    @property
    def late_ms(self) -> float:
        """How long the first token had been ready by then."""
        return (self.tokens - 1) * self.token_ms


def starts(rows: list[Row]) -> Iterator[Finding]:
    """Find streams whose first tokens were not seen one by one: held back, in lumps, unseen, or no tokens at all."""
    for row in rows:
        times = row.get("chunk_times_ms")
        if not is_ok(row) or row.get("ttft_ms") is None or all_at_once(row) or in_bursts(row):
            continue
        found = _unseen(row)
        if found is None and times is not None and len(times) > 1:
            found = _held(row, times) or _apart(row, times)
        if found is not None:
            yield found


def _held(row: Row, times: Sequence[float]) -> Finding | None:
    start = _start(row, times)
    if start is None or start.tokens < TOKENS_FOR_A_LUMP:
        return None
    # A client that was late reads several events at once, and that is told as its own fault; it joins none into one.
    if start.pieces > 1 and (row.get("loop_lag_ms") or 0.0) >= start.late_ms / 2:
        return None
    held = start.pieces >= TOKENS_FOR_A_LUMP and start.pieces > HELD_FACTOR * start.later_pieces
    enough = HELD_SHARE if held else LUMP_SHARE
    spoils: set[Measure] = {"tpot"} if start.share > enough else set()
    # Tokens that come in lumps throughout may have come alone at first: only a clear case speaks against TTFT.
    if max(start.late_ms, start.unseen_ms) > enough * row["ttft_ms"] and (held or spoils):
        spoils.add("ttft")
    if not spoils:
        return None
    if held:
        return of_row(
            "held_start", row, spoils,
            held=start.pieces, chunks=len(times), late_ms=start.late_ms, ttft_ms=row["ttft_ms"], share=start.share,
        )  # fmt: skip
    return of_row(
        "lumped_start", row, spoils,
        tokens=round(start.tokens), output_tokens=_tokens(row, times), chunks=len(times), share=start.share,
    )  # fmt: skip


def _start(row: Row, times: Sequence[float]) -> _Start | None:
    """Return how the stream began; None where nothing came after it."""
    bursts = _bursts(times)
    tokens = _tokens(row, times)
    first = bursts[0] * tokens / len(times)
    if len(bursts) < 2 or tokens - first < 1:
        return None
    few = tokens >= TOKENS_A_STEP * len(times)
    gap_ms = (times[-1] - times[0]) / (len(bursts) - 1)
    return _Start(
        pieces=bursts[0],
        later_pieces=max(bursts[1:]),
        tokens=first,
        token_ms=(times[-1] - times[0]) / (tokens - first),
        unseen_ms=(tokens - len(times)) * gap_ms if few else 0.0,
        share=(first - 1) / (tokens - 1),
    )


def _bursts(times: Sequence[float]) -> list[int]:
    """Return how many pieces came in each moment."""
    bursts = [1]
    for earlier, later in pairwise(times):
        if later - earlier < FASTEST_TOKEN_MS:
            bursts[-1] += 1
        else:
            bursts.append(1)
    return bursts


def _tokens(row: Row, times: Sequence[float]) -> int:
    """Return the tokens of the answer, at least one a piece: what is only estimated was counted by pieces."""
    counted = row.get("output_tokens") if row.get("output_token_source") != "estimate" else None
    return max(counted or 0, len(times))


def _unseen(row: Row) -> Finding | None:
    """Return a finding where the server wrote for clearly longer than tokens were seen."""
    decode, tokens, last = row.get("server_decode_ms"), row.get("output_tokens"), row.get("last_token_ms")
    if decode is None or last is None or not tokens or tokens < TOKENS_FOR_A_LUMP:
        return None
    span, end = last - row["ttft_ms"], row.get("e2e_ms")
    missing = decode * (tokens - 1) / tokens - span
    # A clock that contradicts the whole request is told as one.
    if missing < max(UNSEEN_SHARE * decode, UNSEEN_MS) or (end is not None and decode > end):
        return None
    at_the_end = end is not None and end - last > missing / 2
    return of_row("unseen_tokens", row, ("tpot",) if at_the_end else ("ttft", "tpot"), decode_ms=decode, span_ms=span)


def _apart(row: Row, times: Sequence[float]) -> Finding | None:
    """Return a finding where a first piece came long before all others, sooner after the request than they after it.

    Where several requests share the server another one's prompt may stand between two tokens.
    """
    alone = (row.get("concurrency") or 1) == 1 and row.get("kind") not in LOAD_KINDS
    if not alone or len(times) < 2 + GAPS_FOR_A_USUAL:
        return None
    first, *others = (later - earlier for earlier, later in pairwise(times))
    usual = float(np.median(others))
    lag = row.get("loop_lag_ms") or 0.0
    if first < max(APART_FACTOR * usual, APART_MS, row["ttft_ms"]) or lag >= first / 2:
        return None
    return of_row("first_apart", row, ("ttft", "tpot"), ttft_ms=row["ttft_ms"], gap_ms=first, usual_ms=usual)
