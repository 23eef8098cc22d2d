"""An HTTP/1.1 transport for httpx that stamps bytes in the read callback, before anything else looks at them.

httpx's own transport wakes a task for every piece and rescans its pool for every request: with many streams in flight
its stamps come late (at 256 streams, 200 ms at the median where the truth is 100). Here a stamp is taken when the event
loop reads the socket. The body is handed over whole, at its end: nothing needs it earlier.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, cast

import httptools
import httpx

from collect.client.recording import Clock, Recording, recording_of

# A server that closes idle connections does so after 5 s (uvicorn, llama.cpp) or later. A connection that rested longer
# than this is replaced, so that none is closed under a request; nothing is ever sent twice.
LONGEST_REST_S: Final = 2.0

_MOST_BYTES: Final = 256 * 2**20  # no answer of a language model; a server that never stops ends here
_WITHOUT_BODY: Final = (204, 304)


class StampingTransport(httpx.AsyncBaseTransport):
    """Plain HTTP/1.1, one request at a time, and at most one connection that rests for the next."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._resting: tuple[tuple[str, int], _Connection, float] | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        recording = recording_of(request)
        address = (request.url.raw_host.decode("ascii").strip("[]"), request.url.port or 80)
        body = await request.aread()
        fresh = request.headers.get("connection", "").lower() == "close"
        connection = None if fresh else self._take(address)
        if connection is None:
            recording.connect_started_ns = self._clock()
            connection = await self._connect(address, request)
            recording.connected_ns = self._clock()
        exchange = connection.begin(recording)
        recording.sent_at_ns = self._clock()
        connection.write(_head(request) + body)
        stream = _Body(exchange, connection, None if fresh else lambda: self._rest(address, connection))
        try:
            await exchange.headers_came
        except BaseException:
            connection.close()
            raise
        return httpx.Response(exchange.status, headers=exchange.headers, stream=stream, request=request)

    def _rest(self, address: tuple[str, int], connection: "_Connection") -> None:
        self._drop()
        self._resting = (address, connection, asyncio.get_running_loop().time())

    async def aclose(self) -> None:
        self._drop()

    def _take(self, address: tuple[str, int]) -> "_Connection | None":
        if self._resting is None:
            return None
        rested_at, connection, since = self._resting
        fresh = asyncio.get_running_loop().time() - since < LONGEST_REST_S
        if rested_at == address and fresh and connection.is_open:
            self._resting = None
            return connection
        self._drop()
        return None

    def _drop(self) -> None:
        if self._resting is not None:
            self._resting[1].close()
            self._resting = None

    async def _connect(self, address: tuple[str, int], request: httpx.Request) -> "_Connection":
        timeouts = request.extensions.get("timeout", {})
        try:
            async with asyncio.timeout(timeouts.get("connect")):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self._clock), *address
                )
        except TimeoutError as problem:
            raise httpx.ConnectTimeout("no connection in time", request=request) from problem
        except OSError as problem:
            raise httpx.ConnectError(problem.strerror or str(problem), request=request) from problem
        return connection


class _Response:
    """One response as it arrives: httptools calls the on_... methods from the read callback."""

    def __init__(self, recording: Recording, clock: Clock) -> None:
        loop = asyncio.get_running_loop()
        self.recording = recording
        self.headers_came: asyncio.Future[None] = loop.create_future()
        self.body_ended: asyncio.Future[None] = loop.create_future()
        self.headers: list[tuple[bytes, bytes]] = []
        self.status = 0
        self.keep_alive = False
        self._clock = clock
        self._stamp = 0
        self._bytes = 0
        self._parser = httptools.HttpResponseParser(self)

    @property
    def ended(self) -> bool:
        return self.body_ended.done()

    def feed(self, stamp: int, data: bytes) -> None:
        """Parse what came at *stamp*."""
        self._stamp = stamp
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            if not self.ended:
                self.fail(httpx.RemoteProtocolError(f"the answer is not HTTP: {problem}"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status < 200:  # 100 Continue and its like announce the real one
            self.headers.clear()
        elif not self.headers_came.done():
            self.headers_came.set_result(None)

    def on_body(self, body: bytes) -> None:
        self._bytes += len(body)
        if self._bytes > _MOST_BYTES:
            self.fail(httpx.ReadError("the answer is longer than any answer"))
        elif not self.ended:
            self.recording.received.append((self._stamp, body))

    def on_message_complete(self) -> None:
        if self.status >= 200 and not self.ended:
            self.keep_alive = self._parser.should_keep_alive()
            self._end()

    def connection_lost(self, problem: Exception | None) -> None:
        """Decide what a closed connection means: the end of a body that nothing else ends, or a body cut off."""
        self._stamp = self._clock()
        if self.ended:
            return
        if problem is None and self.headers_came.done() and self._ends_with_connection():
            self._end()
        elif problem is not None:
            self.fail(httpx.ReadError(str(problem) or type(problem).__name__))
        else:
            self.fail(httpx.RemoteProtocolError("the server closed the connection before the answer's end"))

    def fail(self, problem: Exception) -> None:
        self.recording.ended_ns = self._stamp
        for future in (self.headers_came, self.body_ended):
            if not future.done():
                future.set_exception(problem)
                future.exception()  # read here, so that the loop does not report it where nobody waits any more

    def _ends_with_connection(self) -> bool:
        names = {name.lower() for name, _ in self.headers}
        return not names & {b"content-length", b"transfer-encoding"} and self.status not in _WITHOUT_BODY

    def _end(self) -> None:
        self.recording.ended_ns = self._stamp
        self.recording.whole = True
        self.body_ended.set_result(None)


class _Connection(asyncio.Protocol):
    """One TCP connection; its read callback takes the stamp first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._transport: asyncio.Transport | None = None
        self._response: _Response | None = None
        self.is_open = True

    def begin(self, recording: Recording) -> _Response:
        """Return the response that the next bytes belong to."""
        self._response = _Response(recording, self._clock)
        return self._response

    def write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        stamp = self._clock()
        if self._response is None or self._response.ended:
            self.close()  # bytes that nobody asked for: this connection cannot be trusted
        else:
            self._response.feed(stamp, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._response is not None:
            self._response.connection_lost(exc)


class _Body(httpx.AsyncByteStream):
    """A response's body: waits for its end, then hands over what came; *rest* keeps the connection, None closes it."""

    def __init__(self, response: _Response, connection: _Connection, rest: Callable[[], None] | None) -> None:
        self._response = response
        self._connection = connection
        self._rest = rest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await self._response.body_ended
        for _, piece in self._response.recording.received:
            yield piece

    async def aclose(self) -> None:
        response = self._response
        if self._rest is not None and response.ended and response.keep_alive and self._connection.is_open:
            self._rest()
        else:
            self._connection.close()


def _head(request: httpx.Request) -> bytes:
    lines = [request.method.encode("ascii") + b" " + request.url.raw_path + b" HTTP/1.1"]
    lines += [name + b": " + value for name, value in request.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n"
