"""Requests on real sockets: nothing waits in line, is sent twice, or takes a way round: B15, B16, B32, B33."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from collect.apis import APIS
from collect.client import LoopWatch, Sender, Target
from collect.exchange import Exchange
from collect.oracle import Oracle, Piece, Script, always, answer, sse, stream
from collect.run import loop_factory


def chunk(text: str) -> bytes:
    return sse({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})


FINISH = sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + sse("[DONE]")
QUICK = stream([0, 10], [chunk("a"), FINISH])


def with_sender(url: str, ask: Callable[[Sender], Awaitable[Any]]) -> Any:
    async def live() -> Any:
        async with Sender(Target(url), LoopWatch()) as sender:
            return await ask(sender)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(live())


def status(exchange: Exchange) -> str:
    return APIS["openai"].read(exchange).status


async def ask(sender: Sender, *, timeout_s: float = 10, fresh: bool = True) -> str:
    return status(await sender.send("/x", {}, timeout_s=timeout_s, fresh=fresh))


@pytest.mark.parametrize("at_once", [21, 101])
def test_b15_as_many_at_once_as_wanted(at_once: int) -> None:
    """One above the usual pools' limits of 20 and 100: the server has all of them at the same time."""
    with Oracle(always(stream([1000, 1001], [chunk("a"), FINISH]))) as oracle:

        async def all_at_once() -> list[Exchange]:
            senders = [Sender(Target(oracle.url), LoopWatch()) for _ in range(at_once)]
            return await asyncio.gather(*(sender.send("/x", {}, timeout_s=20) for sender in senders))

        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            exchanges = runner.run(all_at_once())
        assert oracle.most_in_flight == at_once
    assert {status(exchange) for exchange in exchanges} == {"ok"}


@pytest.mark.parametrize(
    ("script", "timeout_s", "found"),
    [
        (Script((Piece(0, chunk("a")),), ending="stall"), 0.4, "timeout"),  # begins and never ends
        (stream([900, 901], [chunk("a"), FINISH]), 0.4, "timeout"),  # would have begun later
        (stream([0, 700, 701], [chunk("a"), chunk("b"), FINISH]), 5.0, "ok"),  # harmless: a long pause within its time
        (stream([900, 901], [chunk("a"), FINISH]), 5.0, "ok"),  # harmless: a long prefill
    ],
)
def test_b15_the_plans_own_time_decides(script: Script, timeout_s: float, found: str) -> None:
    """A request that takes longer than the plan allows is a failure, and no long latency; no other limit counts."""
    with Oracle(always(script)) as oracle:
        assert with_sender(oracle.url, lambda sender: ask(sender, timeout_s=timeout_s)) == found


@pytest.mark.parametrize(
    ("first", "found"),
    [
        (Script((Piece(0, b"{}"),), status=429, headers={"Retry-After": "0"}), "http_429"),  # asked to come back
        (Script((), ending="reset"), "read_error"),  # reset before a byte of the body
        (Script((Piece(0, b""),), status=307, headers={"Location": "/y"}), "http_307"),  # sent elsewhere
        (answer({"error": {"message": "loading"}}, status=503), "http_503"),  # would work a moment later
        (QUICK, "ok"),  # harmless
    ],
)
def test_b16_one_request_is_sent_once(first: Script, found: str) -> None:
    """Whatever comes back is the row's outcome, though the second try would be good."""
    with Oracle(always(first, QUICK)) as oracle:
        assert with_sender(oracle.url, ask) == found
        assert len(oracle.heard) == 1


@pytest.mark.parametrize(
    "environment",
    [
        {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "localhost"},  # 127.0.0.1 is not among the exceptions
        {"all_proxy": "socks5://127.0.0.1:9"},  # a kind that needs a package which is not there
        {"HTTPS_PROXY": "http://127.0.0.1:9"},  # harmless: for another scheme
        {},  # harmless
    ],
)
def test_b32_no_proxy_comes_between(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says, a server on this machine is reached by the straight way."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with Oracle(always(QUICK)) as oracle:
        for url in (oracle.url, oracle.url.replace("127.0.0.1", "localhost")):
            assert with_sender(url, ask) == "ok"


@pytest.mark.parametrize(
    ("fresh", "keep_alive", "connected"),
    [
        (False, False, [True, True]),  # the server closes after each answer: the next one connects
        (True, True, [True, True]),  # the plan wants a new one each time
        (False, True, [True, False]),  # harmless: reused, and then there is no time to connect
    ],
)
def test_b33_each_row_says_whether_it_connected(fresh: bool, keep_alive: bool, connected: list[bool]) -> None:
    """connect_ms stands where a connection was made, is null where one was reused, and is in no other time."""

    async def two(sender: Sender) -> list[Exchange]:
        return [await sender.send("/x", {}, timeout_s=5, fresh=fresh) for _ in range(2)]

    script = Script(QUICK.pieces, keep_alive=keep_alive)
    with Oracle(always(script)) as oracle:
        exchanges = with_sender(oracle.url, two)
    assert [exchange.connect_ms is not None for exchange in exchanges] == connected
    assert [status(exchange) for exchange in exchanges] == ["ok", "ok"]


def test_b17_spans_that_saw_the_same_delay_stay_apart() -> None:
    """Two requests at once of equal lag: the end of the later one does not end the watch over the earlier one."""

    async def crossed() -> tuple[float, float]:
        watch = LoopWatch()
        watch.start()
        first, second = watch.span(), watch.span()
        one, other = first.__enter__(), second.__enter__()
        second.__exit__(None, None, None)  # the later one ends first, with the same lag as the other
        time.sleep(0.05)
        await asyncio.sleep(0.02)
        first.__exit__(None, None, None)
        watch.stop()
        return one.largest_ms, other.largest_ms

    late_ms, early_ms = asyncio.run(crossed())
    assert late_ms >= 40
    assert early_ms < late_ms
