"""Stamped bytes to events: event streams by their grammar, and JSON lines. How the bytes were cut changes nothing.

An event's time is that of the byte that completes it. The grammar of event streams: WHATWG HTML, 9.2.6.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from collect.exchange import Piece

_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Event:
    """One event of a stream: its data, and its type where the stream names one."""

    at_ms: float
    data: str
    type: str = "message"


def sse_events(pieces: Iterable[Piece]) -> Iterator[Event]:
    """Yield the events of an event stream. One that the stream's end cuts short is none."""
    data: list[bytes] = []
    kind = b""
    for at_ms, line in _lines(pieces):
        if not line:
            if data:
                yield Event(at_ms, _text(b"\n".join(data)), _text(kind) or "message")
            data, kind = [], b""
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value
        elif name == b"error":  # llama.cpp of 2024 names a failure so
            data.append(value)
            kind = b"error"


def json_lines(pieces: Iterable[Piece]) -> Iterator[Event]:
    """Yield the lines of newline-delimited JSON; the last may lack its newline."""
    pending = bytearray()
    at_ms = 0.0
    for at_ms, piece in pieces:  # noqa: B007 - the last stamp is needed after the loop
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            pending += piece[start:end]
            if pending.strip():
                yield Event(at_ms, _text(bytes(pending)))
            pending.clear()
            start = end + 1
        pending += piece[start:]
    if pending.strip():
        yield Event(at_ms, _text(bytes(pending)))


def as_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that *text* is, None where it is something else."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _lines(pieces: Iterable[Piece]) -> Iterator[tuple[float, bytes]]:
    """Yield lines with the time of the byte that ends them: LF, CR, or CR LF also where it is cut in two."""
    pending = bytearray()
    first = True
    after_cr = False
    for at_ms, piece in pieces:
        start = 0
        for index, byte in enumerate(piece):
            if byte == 0x0A and after_cr:
                after_cr = False
                start = index + 1
            elif byte in (0x0A, 0x0D):
                pending += piece[start:index]
                line = bytes(pending)
                yield at_ms, line.removeprefix(_BOM) if first else line
                first = False
                pending.clear()
                start = index + 1
                after_cr = byte == 0x0D
            else:
                after_cr = False
        pending += piece[start:]


def _text(raw: bytes) -> str:
    # A character that the server itself broke is kept as U+FFFD.
    return raw.decode("utf-8", "replace")
