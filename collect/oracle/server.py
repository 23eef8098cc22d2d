"""A loopback HTTP/1.1 server of known times: it plays scripts and notes what it heard and when each piece left."""

import asyncio
import http
import socket
import struct
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from collect.oracle.script import Heard, Request, Script, answer

Handler = Callable[[Request], Script]
"""Chooses the answer to a request."""

Twist = Callable[[Request, Script], Script]
"""Changes a handler's answer: this is where a test breaks one request of many."""

_MAX_HEAD_BYTES: Final = 64 * 1024
_MAX_BODY_BYTES: Final = 64 * 2**20


class Oracle:
    """The server, in a thread of its own; a context manager. *heard* lists every request in the order it came."""

    def __init__(self, handler: Handler, *, twist: Twist | None = None, idle_close_ms: float | None = None) -> None:
        self.heard: list[Heard] = []
        self.url = ""
        self._handler = handler
        self._twist = twist
        self._idle_close_s = None if idle_close_ms is None else idle_close_ms / 1000
        self._in_flight = 0
        self._open: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="oracle", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def prompts(self) -> list[str]:
        """The prompts it was sent, in order."""
        return [heard.request.prompt for heard in self.heard if heard.request.prompt is not None]

    @property
    def most_in_flight(self) -> int:
        """The largest number of requests that it was answering at once."""
        return max((heard.request.in_flight for heard in self.heard), default=0)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_MAX_HEAD_BYTES, backlog=1024)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # the client is gone, spoke no HTTP, or we are stopping
        finally:
            self._open.discard(task)
            writer.transport.abort() if self._stop.is_set() else writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection stays open."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), self._idle_close_s)
        except TimeoutError:
            return False
        method, path, headers = _parse_head(head)
        body = await reader.readexactly(min(int(headers.get("content-length", "0")), _MAX_BODY_BYTES))
        counts = method == "POST"  # a look at the server, such as at its metrics, is no load
        self._in_flight += counts
        try:
            request = Request(len(self.heard), method, path, headers, body, time.monotonic(), self._in_flight)
            script = self._handler(request)
            if self._twist is not None:
                script = self._twist(request, script)
            heard = Heard(request, script)
            self.heard.append(heard)
            try:
                await _play(script, heard, reader, writer)
            except BaseException:
                heard.outcome = "client_gone"
                raise
            heard.outcome = "played"
        finally:
            self._in_flight -= counts
        return script.keep_alive and script.ending == "clean" and script.framing != "eof"


async def _play(script: Script, heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    start_s = heard.request.received_s
    head = _head(script)
    if script.head_at_ms is not None or not script.pieces:
        await _until(start_s, script.head_at_ms or 0.0, reader)
        writer.write(head)
        head = b""
    for piece in script.pieces:
        await _until(start_s, piece.at_ms, reader)
        if writer.transport.is_closing():
            raise ConnectionResetError
        heard.sent_s.append(time.monotonic())
        if script.framing == "chunked":
            writer.write(b"%s%x\r\n%s\r\n" % (head, len(piece.data), piece.data))
        else:
            writer.write(head + piece.data)
        head = b""
        await writer.drain()
    if script.ending_at_ms is not None:
        await _until(start_s, script.ending_at_ms, reader)
    match script.ending:
        case "clean":
            if script.framing == "chunked":
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        case "cut":
            pass
        case "reset":
            sock: socket.socket = writer.get_extra_info("socket")
            # Linger zero: closing sends a reset and drops what was not sent yet, so let the pieces go first.
            await asyncio.sleep(0.01)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        case "stall":
            await reader.read(1)  # nothing, until the client gives up
            raise ConnectionResetError


async def _until(start_s: float, at_ms: float, reader: asyncio.StreamReader) -> None:
    """Wait until *at_ms* after the start; raise ConnectionResetError as soon as the client is gone."""
    while (left_s := start_s + at_ms / 1000 - time.monotonic()) > 0:
        await asyncio.sleep(min(left_s, 0.05))
        if reader.at_eof():
            raise ConnectionResetError


def _head(script: Script) -> bytes:
    fields = {"Content-Type": script.content_type, **script.headers}
    if script.framing == "chunked":
        fields["Transfer-Encoding"] = "chunked"
    elif script.framing == "length":
        fields["Content-Length"] = str(sum(len(piece.data) for piece in script.pieces))
    if script.framing == "eof" or not script.keep_alive:
        fields["Connection"] = "close"
    status = http.HTTPStatus(script.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *rest = head.decode("latin-1").split("\r\n")
    method, path, version = [*first.split(" "), "", "", ""][:3]
    if not version.startswith("HTTP/1."):
        raise ConnectionAbortedError("this is no HTTP")
    pairs = (line.partition(":") for line in rest if ":" in line)
    return method, path, {name.strip().lower(): value.strip() for name, _, value in pairs}


def always(*scripts: Script) -> Handler:
    """Return a handler that plays *scripts* in turn, the last one for ever after."""

    def handle(request: Request) -> Script:
        return scripts[min(request.number, len(scripts) - 1)]

    return handle


def routes(table: "dict[str, Script | Handler]") -> Handler:
    """Return a handler that answers by path ("/props") or method and path ("POST /api/show"); 404 elsewhere."""

    def handle(request: Request) -> Script:
        path = request.path.partition("?")[0]
        found = table.get(f"{request.method} {path}", table.get(path))
        if found is None:
            return answer({"error": "not found"}, status=404)
        return found if isinstance(found, Script) else found(request)

    return handle
