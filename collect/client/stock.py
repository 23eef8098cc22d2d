"""httpx's own transport, for TLS and for doubt about ours: slower stamps, the same recording."""

from collections.abc import AsyncIterator
from typing import Any, cast

import httpx

from collect.client.recording import Clock, Recording, recording_of
from collect.client.transport import LONGEST_REST_S


class StockTransport(httpx.AsyncBaseTransport):
    """httpx's transport with one connection, its steps and pieces noted in the request's recording."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=LONGEST_REST_S)
        self._inner = httpx.AsyncHTTPTransport(limits=limits, trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        recording = recording_of(request)

        async def trace(name: str, info: dict[str, Any]) -> None:
            del info
            if name == "connection.connect_tcp.started":
                recording.connect_started_ns = self._clock()
            elif name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
                recording.connected_ns = self._clock()
            elif name == "http11.send_request_headers.started":
                recording.sent_at_ns = self._clock()

        request.extensions = {**request.extensions, "trace": trace}
        response = await self._inner.handle_async_request(request)
        response.stream = _Recorded(cast("httpx.AsyncByteStream", response.stream), recording, self._clock)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Recorded(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, recording: Recording, clock: Clock) -> None:
        self._inner = inner
        self._recording = recording
        self._clock = clock

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._recording.received.append((self._clock(), piece))
            yield piece
        self._recording.ended_ns = self._clock()
        self._recording.whole = True

    async def aclose(self) -> None:
        await self._inner.aclose()
