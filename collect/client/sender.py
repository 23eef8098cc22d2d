"""Send one request and keep the raw stream: whatever happens to it, an Exchange comes back. Nothing is sent twice."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Literal, Self

import httpx

from collect.client.lag import Lag, LoopWatch
from collect.client.recording import Clock, Recording
from collect.client.stock import StockTransport
from collect.client.transport import StampingTransport
from collect.exchange import Closing, Exchange
from collect.scrub import scrub

# A handshake that takes longer will not come; the plan's own time-out is for the answer.
CONNECT_TIMEOUT_S: Final = 10.0

TransportName = Literal["stamping", "stock"]


@dataclass(frozen=True)
class Target:
    """Where requests go, and how: *url* is the server's address, *key* goes into the Authorization header only."""

    url: str
    key: str | None = None
    transport: TransportName = "stamping"


class Sender:
    """One worker's way to the server: it has one request in flight at most."""

    def __init__(
        self,
        target: Target,
        watch: LoopWatch,
        *,
        clock: Clock = time.perf_counter_ns,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._target = target
        self._watch = watch
        self._clock = clock
        self._now = now
        secure = target.url.lower().startswith("https:")
        stock = secure or target.transport == "stock"
        # The environment's proxies would also catch loopback, and add a hop that nobody asked for: none is used.
        self._client = httpx.AsyncClient(
            transport=StockTransport(clock=clock) if stock else StampingTransport(clock=clock),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
        )

    async def send(self, path: str, body: Any, *, timeout_s: float, fresh: bool = True) -> Exchange:
        """POST *body* as JSON and return what came back, within *timeout_s* for the whole exchange.

        A cancelled request comes back as interrupted, with what had arrived.
        """
        recording = Recording()
        request = self._request(path, body, recording, fresh=fresh)
        started_at, wall_started, cpu_started, started = self._now(), time.time(), time.process_time(), self._clock()
        with self._watch.span() as lag:
            outcome = await self._exchange(request, recording, timeout_s)
        elapsed_s = max(1, self._clock() - started) / 1e9
        return self._as_exchange(
            recording, outcome, lag,
            started_at=started_at,
            client_cpu_share=(time.process_time() - cpu_started) / elapsed_s,
            wall_elapsed_ms=(time.time() - wall_started) * 1e3,
        )  # fmt: skip

    async def close(self) -> None:
        """Close the connection that rests, if there is one."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _request(self, path: str, body: Any, recording: Recording, *, fresh: bool) -> httpx.Request:
        headers = {
            "Accept": "*/*",
            "Accept-Encoding": "identity",  # compressed pieces would wait for each other
            "Connection": "close" if fresh else "keep-alive",
            "Content-Type": "application/json",
            "User-Agent": "roofbook",
        }
        if self._target.key is not None:
            headers["Authorization"] = f"Bearer {self._target.key}"
        return self._client.build_request(
            "POST",
            self._target.url.rstrip("/") + path if path else self._target.url,
            content=json.dumps(body).encode("ascii"),
            headers=headers,
            extensions=recording.as_extension(),
        )

    async def _exchange(self, request: httpx.Request, recording: Recording, timeout_s: float) -> "_Outcome":
        response: httpx.Response | None = None
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._client.send(request, stream=True)
                async for _ in response.aiter_raw():
                    pass
            return _Outcome("complete", response)
        except TimeoutError:
            return _Outcome("timeout", response, f"no end of the answer within {timeout_s:g} s")
        except asyncio.CancelledError:
            if response is not None and recording.whole:
                return _Outcome("complete", response)  # the answer was faster than the stop
            return _Outcome("interrupted", response, "the measurement was stopped")
        except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
            return _Outcome("connect_error", response, str(problem))
        except (httpx.TransportError, OSError) as problem:
            return _Outcome("read_error", response, str(problem) or type(problem).__name__)
        finally:
            if response is not None:
                with contextlib.suppress(httpx.HTTPError, OSError):
                    await response.aclose()

    def _as_exchange(
        self, recording: Recording, outcome: "_Outcome", lag: Lag, *,
        started_at: datetime, client_cpu_share: float, wall_elapsed_ms: float,
    ) -> Exchange:  # fmt: skip
        ended_ns = recording.ended_ns if recording.ended_ns is not None else self._clock()
        response = outcome.response
        return Exchange(
            closing=outcome.closing,
            pieces=recording.pieces,
            http_status=None if response is None else response.status_code,
            content_type="" if response is None else response.headers.get("content-type", ""),
            content_encoding="" if response is None else response.headers.get("content-encoding", ""),
            location=None if response is None else response.headers.get("location"),
            error=None if outcome.error is None else scrub(outcome.error),
            started_at=started_at,
            sent_at_ns=recording.sent_at_ns,
            connect_ms=recording.connect_ms,
            e2e_ms=None if recording.sent_at_ns is None else recording.since_sent_ms(ended_ns),
            loop_lag_ms=lag.largest_ms,
            client_cpu_share=client_cpu_share,
            wall_elapsed_ms=wall_elapsed_ms,
        )


@dataclass(frozen=True)
class _Outcome:
    closing: Closing
    response: httpx.Response | None
    error: str | None = None
