"""What a transport notes of one request while it runs: stamps of the monotonic clock, in nanoseconds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import httpx

from collect.exchange import Piece
from roofbook.units import NS_PER_MS

Clock = Callable[[], int]
"""Nanoseconds of a monotonic clock."""

_KEY: Final = "recording"


@dataclass
class Recording:
    """The stamps of one request. A transport fills it in; httpx carries it among the request's extensions."""

    connect_started_ns: int | None = None
    connected_ns: int | None = None
    sent_at_ns: int | None = None
    """Just before the first byte of the request was written."""
    received: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    ended_ns: int | None = None
    whole: bool = False
    """Whether the body ended as HTTP says."""

    @property
    def connect_ms(self) -> float | None:
        if self.connect_started_ns is None or self.connected_ns is None:
            return None
        return (self.connected_ns - self.connect_started_ns) / NS_PER_MS

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple((self.since_sent_ms(at_ns), piece) for at_ns, piece in self.received)

    def since_sent_ms(self, at_ns: int) -> float:
        """Return *at_ns* in ms after the request was sent."""
        return 0.0 if self.sent_at_ns is None else (at_ns - self.sent_at_ns) / NS_PER_MS

    def as_extension(self) -> dict[str, "Recording"]:
        return {_KEY: self}


def recording_of(request: httpx.Request) -> Recording:
    """Return the recording that *request* carries, or one that nobody reads."""
    found = request.extensions.get(_KEY)
    return found if isinstance(found, Recording) else Recording()
