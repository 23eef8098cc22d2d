"""Stamped bytes to events: event streams by their grammar, and JSON lines. How the bytes were cut changes nothing.

An event's time is that of the byte that completes it. The grammar of event streams: WHATWG HTML, 9.2.6.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, cast

from collect.exchange import Piece
from collect.fields import parsed

_BOM: Final = b"\xef\xbb\xbf"
_SSE_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_LF: Final = re.compile(rb"\n")


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
    for at_ms, line in _lines(pieces, _SSE_LINE_END):
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


def json_lines(pieces: Sequence[Piece]) -> Iterator[Event]:
    """Yield the lines of newline-delimited JSON; the last may lack its newline."""
    closed = [*pieces, (pieces[-1][0], b"\n")] if pieces else []
    for at_ms, line in _lines(closed, _LF):
        if line.strip():
            yield Event(at_ms, _text(line))


def as_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that *text* is, None where it is something else."""
    value = parsed(text)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_dict(value: object) -> dict[str, Any]:
    """Return *value* where it is a JSON object, an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_dicts(value: object) -> list[dict[str, Any]]:
    """Return *value* where it is a JSON list, each entry as an object."""
    return [as_dict(one) for one in cast("list[object]", value)] if isinstance(value, list) else []


def _lines(pieces: Iterable[Piece], line_end: re.Pattern[bytes]) -> Iterator[tuple[float, bytes]]:
    """Yield every ended line with the time of the byte that ends it."""
    kept = [piece for piece in pieces if piece[1]]
    body = b"".join(piece for _, piece in kept)
    ends = list(accumulate(len(piece) for _, piece in kept))
    start = len(_BOM) if body.startswith(_BOM) else 0
    for match in line_end.finditer(body, start):
        at_ms, _ = kept[bisect_right(ends, match.start())]
        yield at_ms, body[start : match.start()]
        start = match.end()


def _text(raw: bytes) -> str:
    # A character that the server itself broke is kept as U+FFFD.
    return raw.decode("utf-8", "replace")
