"""What the oracle plays: an answer cut into pieces, each with the time at which it leaves."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

EVENT_STREAM = "text/event-stream"
NDJSON = "application/x-ndjson"
JSON = "application/json"

Framing = Literal["chunked", "length", "eof"]
"""How the end of a body is known: chunks, a Content-Length, or the end of the connection."""

Ending = Literal["clean", "cut", "reset", "stall"]
"""How it ends: as it should, by closing early, by a TCP reset, or never."""


@dataclass(frozen=True)
class Piece:
    """Bytes that leave *at_ms* after the request has been read."""

    at_ms: float
    data: bytes


@dataclass(frozen=True)
class Script:
    """One answer. The head leaves at *head_at_ms*, by default with the first piece, as servers do that stream."""

    pieces: tuple[Piece, ...] = ()
    status: int = 200
    content_type: str = EVENT_STREAM
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    framing: Framing = "chunked"
    head_at_ms: float | None = None
    ending: Ending = "clean"
    ending_at_ms: float | None = None
    """Default: with the last piece."""
    keep_alive: bool = True


@dataclass(frozen=True)
class Request:
    """What the oracle was asked."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    received_s: float
    """Monotonic, when its last byte was read."""
    in_flight: int
    """POST requests being answered, this one included."""

    @property
    def json(self) -> dict[str, Any]:
        """The body as an object; empty where it is none."""
        try:
            read: Any = json.loads(self.body)
        except ValueError:
            return {}
        return cast("dict[str, Any]", read) if isinstance(read, dict) else {}

    @property
    def prompt(self) -> str | None:
        """The text that a model would see: `prompt`, or the contents of `messages`, in order."""
        body = self.json
        if isinstance(body.get("prompt"), str):
            return body["prompt"]
        if isinstance(body.get("messages"), list):
            return "\n".join(str(message.get("content", "")) for message in body["messages"])
        return None


@dataclass
class Heard:
    """A request and what became of it; *sent_s* are the monotonic stamps at which its pieces left."""

    request: Request
    script: Script
    sent_s: list[float] = field(default_factory=list[float])
    outcome: Literal["playing", "played", "client_gone"] = "playing"

    @property
    def sent_ms(self) -> list[float]:
        """When the pieces really left, in ms after the request was read."""
        return [(stamp - self.request.received_s) * 1000 for stamp in self.sent_s]


def stream(
    times_ms: "list[float] | tuple[float, ...]", lines: "list[bytes] | tuple[bytes, ...]", **rest: Any
) -> Script:
    """Return a script of one piece a line: *times_ms* and *lines* side by side."""
    return Script(pieces=tuple(Piece(at, data) for at, data in zip(times_ms, lines, strict=True)), **rest)


def answer(body: Any, *, status: int = 200, at_ms: float = 0.0) -> Script:
    """Return a script that answers *body* as JSON, in one piece."""
    data = json.dumps(body, ensure_ascii=False).encode()
    return Script((Piece(at_ms, data),), status=status, content_type=JSON, framing="length")


def text(body: str, *, status: int = 200, content_type: str = "text/plain", at_ms: float = 0.0) -> Script:
    """Return a script that answers *body* as text, in one piece."""
    return Script((Piece(at_ms, body.encode()),), status=status, content_type=content_type, framing="length")


def sse(event: Any) -> bytes:
    """Return one server-sent event: JSON of *event*, or *event* itself where it is text ([DONE])."""
    data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
    return f"data: {data}\n\n".encode()


def ndjson(line: Any) -> bytes:
    """Return one line of JSON."""
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


# What can go wrong with an answer, as changes to a script


def buffered(script: Script) -> Script:
    """Everything leaves with the last piece: a proxy that buffers."""
    end = script.pieces[-1].at_ms
    return replace(script, pieces=tuple(Piece(end, piece.data) for piece in script.pieces))


def coalesced(script: Script, size: int) -> Script:
    """*size* pieces leave as one, at the time of their last."""
    groups = [script.pieces[at : at + size] for at in range(0, len(script.pieces), size)]
    joined = (Piece(group[-1].at_ms, b"".join(piece.data for piece in group)) for group in groups)
    return replace(script, pieces=tuple(joined))


def ended_after(script: Script, pieces: int, ending: Ending) -> Script:
    """Only the first *pieces* leave, then the connection ends by *ending*."""
    return replace(script, pieces=script.pieces[:pieces], ending=ending)


def split_bytes(script: Script, size: int) -> Script:
    """Each piece leaves in parts of *size* bytes, at the same time: characters and lines are cut anywhere."""
    parts = (
        Piece(piece.at_ms, piece.data[at : at + size])
        for piece in script.pieces
        for at in range(0, len(piece.data), size)
    )
    return replace(script, pieces=tuple(parts))
