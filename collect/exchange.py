"""One request as it went over the wire: the stamped bytes of the answer and how it ended, all of it unread."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Closing = Literal["complete", "timeout", "connect_error", "read_error", "interrupted"]
"""complete: the body ended as HTTP says. The others are the statuses of the contract."""

Piece = tuple[float, bytes]
"""Bytes of the body and when they reached this process: ms after the request's bytes were about to be written."""


@dataclass(frozen=True)
class Exchange:
    """What came back for one request; times in ms from just before its first byte was written."""

    closing: Closing
    pieces: tuple[Piece, ...] = ()
    http_status: int | None = None
    content_type: str = ""
    error: str | None = None
    started_at: datetime | None = None
    """A label in UTC; no duration is computed from it."""
    sent_at_ns: int | None = None
    """The monotonic clock just before the first byte was written; null where none was."""
    connect_ms: float | None = None
    """Null where the connection was used before, or none was made."""
    e2e_ms: float | None = None
    loop_lag_ms: float | None = None
    client_cpu_share: float | None = None
    wall_elapsed_ms: float | None = None
    proxy: str | None = None
    content_encoding: str = ""
    location: str | None = None
    """Where the server sends the request instead, by its Location header."""

    @property
    def body(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)
