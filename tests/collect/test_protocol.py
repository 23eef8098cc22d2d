"""The protocol by the server's own log, and the columns by a clock that the test moves: what was really sent, when."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from collect import host
from collect.__main__ import main
from collect.apis import APIS
from collect.client import LoopWatch, Sender, Target, transport
from collect.dispatch import Dispatch
from collect.oracle import Model, Oracle, Speed, llamacpp, ollama, sse
from collect.plan import RunSettings
from collect.rows import Life, Sent, row_of
from collect.schedule import Cell
from collect.tell import Tell
from roofbook.record import Row, read_runs
from roofbook.theory.shapes import Ceilings, Spread
from roofbook.validity import findings, records

ROOT = Path(__file__).parents[2]
FAST = Speed(fixed_ms=2, linear_ms=0.01, step_ms=0.5)


@pytest.fixture
def measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], list[Row]]:
    """Measure a plan's text in a folder of its own and return the rows, in the order in which they were sent."""
    (tmp_path / "mkdocs.yml").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    rate = Spread(1e9, 1e9, 1e9, 1)
    monkeypatch.setattr(host, "measure_ceilings", lambda: Ceilings(rate, rate, "cpu", "a test"))
    monkeypatch.chdir(tmp_path)

    def call(plan: str) -> list[Row]:
        (tmp_path / "p.yml").write_text(plan)
        code = main(["p.yml"])
        assert code == 0, capsys.readouterr().out
        return records(read_runs(tmp_path / "data" / "measured")[-1].rows)

    return call


# By the server's log

TWO_SETTINGS = """
plan: p
server: {api: ollama, url: '%s'}
run: {repeats: 4, warmups: 2, pause_s: 0.02, anchor: {prompt_tokens: 64, output_tokens: 3, every: 4}}
experiments:
  - {kind: baseline, prompt_tokens: [64, 128], output_tokens: 4, options: {num_ctx: 1024}}
  - {kind: baseline, prompt_tokens: 64, output_tokens: 5, options: {num_ctx: 2048}}
  - {kind: concurrency, concurrency: 3, requests: 9, prompt_tokens: 64, output_tokens: 6, options: {num_ctx: 1024}}
"""


def test_a_whole_run_as_the_server_heard_it(measure: Callable[[str], list[Row]]) -> None:
    """Two settings, written alternately: warm-ups, order, anchors and pauses are as the plan and the protocol say."""
    with Oracle(ollama(Model(FAST, slots=3))) as oracle:
        rows = measure(TWO_SETTINGS % oracle.url)
        heard = [one for one in oracle.heard if one.request.path == "/api/generate"]
    assert len(heard) == len(rows)  # one row for each request, and no request is sent twice
    by_prompt = {one.request.prompt: one for one in heard}
    assert len(by_prompt) == len(heard)
    sent = sorted(heard, key=lambda one: one.request.received_s)
    # Options do not alternate: each setting is met once.
    settings = [one.request.json["options"]["num_ctx"] for one in sent]
    assert [setting for setting, _ in groupby(settings)] == [1024, 2048]
    # Every cell is warmed up with as many as the plan says, and with as many as will be in flight.
    warm = Counter(row["point"] for row in rows if row["phase"] == "warmup")
    assert warm == {"p64-o4": 2, "p128-o4": 2, "p64-o6-c3": 3, "p64-o5": 2, "p64-o3": 2 + 2}
    # Each block begins and ends with an anchor, with at most four requests, or one level, between two of them.
    kept = [row for row in rows if row["phase"] in ("measured", "anchor")]
    for num_ctx in (1024, 2048):
        block = [row for row in kept if f'"num_ctx": {num_ctx}' in row["request_options"]]
        assert [block[0]["phase"], block[-1]["phase"]] == ["anchor", "anchor"]
        phases = [row["phase"] for row in block]
        between = [len(list(group)) for phase, group in groupby(phases) if phase != "anchor"]
        assert max(between) <= 3 + 9
    numbers = [row["repeat"] for row in kept if row["phase"] == "anchor"]
    assert numbers == list(range(1, len(numbers) + 1))
    # The pause is the same in a cell, and was made: nothing came sooner after the answer before it.
    assert {row["pause_before_ms"] for row in rows if row["phase"] != "calibration"} == {20.0}
    alone = [row for row in kept if row["concurrency"] == 1]
    for before, after in pairwise(alone):
        if after["order_index"] == before["order_index"] + 1:
            assert after["sent_at_ms"] - before["sent_at_ms"] - before["e2e_ms"] >= 19.9
    # The front of a prompt is its nonce, and none comes twice.
    assert sorted(" ".join(str(prompt).split()[:5]) for prompt in by_prompt) == sorted(row["nonce"] for row in rows)
    assert len({row["nonce"] for row in rows}) == len(rows)


def mean_in_flight(rows: Sequence[Row]) -> float:
    """The mean number in flight from the first request's start until the last one's, by the client's clock."""
    first, last = min(row["sent_at_ms"] for row in rows), max(row["sent_at_ms"] for row in rows)
    busy = sum(min(last, row["sent_at_ms"] + row["e2e_ms"]) - row["sent_at_ms"] for row in rows)
    return busy / (last - first)


def test_a_closed_loop_keeps_its_level(measure: Callable[[str], list[Row]]) -> None:
    """Four workers, twenty requests of 150 ms: never a fifth in flight, and hardly ever a third."""
    plan = """
plan: p
server: {api: llamacpp, url: '%s'}
run: {anchor: null}
experiments: [{kind: concurrency, concurrency: 4, requests: 20, prompt_tokens: 64, output_tokens: 6}]
"""
    with Oracle(llamacpp(Model(Speed(fixed_ms=100, step_ms=10), slots=4))) as oracle:
        rows = [row for row in measure(plan % oracle.url) if row["phase"] == "measured"]
        assert oracle.most_in_flight == 4
    assert {row["worker"]: row["concurrency"] for row in rows} == dict.fromkeys(range(4), 4)
    # A worker keeps its row before it sends again; that is what is missing to four.
    assert 2.5 < mean_in_flight(rows) <= 4.0


def test_b15_a_level_of_150_starts_at_once(measure: Callable[[str], list[Row]]) -> None:
    """B15: 150 in flight, each held for a second: the server has all of them, the last sent 300 ms after the first."""
    plan = """
plan: p
server: {api: llamacpp, url: '%s'}
run: {anchor: null}
experiments: [{kind: concurrency, concurrency: 150, requests: 150, prompt_tokens: 64, output_tokens: 2}]
"""
    with Oracle(llamacpp(Model(Speed(fixed_ms=1000, step_ms=1), slots=150))) as oracle:
        rows = measure(plan % oracle.url)
        assert oracle.most_in_flight == 150
    measured = [row for row in rows if row["phase"] == "measured"]
    assert len(measured) == len([row for row in rows if row["phase"] == "warmup"]) == 150
    # A busy machine may hold one of the two levels up, not both.
    starts = [[row["sent_at_ms"] for row in rows if row["phase"] == phase] for phase in ("warmup", "measured")]
    assert min(max(sent) - min(sent) for sent in starts) < 300


def test_b17_a_client_that_stood_still_is_found(
    measure: Callable[[str], list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B17: fifty chunks 10 ms apart, and 200 ms in which our loop stands still during the second request of three."""
    real = Tell.began

    def began(self: Tell, cell: Cell, phase: Any, repeat: int) -> None:
        if (phase, repeat) == ("measured", 2):
            asyncio.get_running_loop().call_later(0.25, time.sleep, 0.2)
        real(self, cell, phase, repeat)

    monkeypatch.setattr(Tell, "began", began)
    plan = """
plan: p
server: {api: llamacpp, url: '%s'}
run: {repeats: 3, order: as_written, anchor: null}
experiments: [{kind: baseline, prompt_tokens: 64, output_tokens: 50}]
"""
    with Oracle(llamacpp(Model(Speed(fixed_ms=400, step_ms=10)))) as oracle:
        rows = measure(plan % oracle.url)
    lags = {row["repeat"]: row["loop_lag_ms"] for row in rows if row["phase"] == "measured"}
    assert lags[2] >= 190
    found = {one.order_index for one in findings(rows) if one.kind == "client_saturated"}
    late = {row["order_index"] for row in rows if row["phase"] == "measured" and row["repeat"] == 2}
    assert late <= found
    # A busy machine may make another one late too, and says so then; one that was on time is not accused.
    on_time = {row["order_index"] for row in rows if row["loop_lag_ms"] <= 10}
    assert not found & on_time


def test_b32_a_proxy_of_the_environment_is_not_used(
    measure: Callable[[str], list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B32: every spelling of a proxy points at a server that must hear nothing; the rows say that none was used."""
    with Oracle(llamacpp(Model(FAST))) as oracle, Oracle(llamacpp(Model(FAST))) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        rows = measure(
            f"plan: p\nserver: {{api: llamacpp, url: '{oracle.url}'}}\nrun: {{repeats: 2, anchor: null}}\n"
            "experiments: [{kind: baseline, prompt_tokens: 64, output_tokens: 4}]\n"
        )
        assert proxy.heard == []
    assert {(row["status"], row["proxy"]) for row in rows} == {("ok", "none")}


@pytest.mark.parametrize("pause_s", [0.1, 0.98, 1.0, 1.02])
def test_b33_a_pause_as_long_as_the_servers_patience_is_no_failure(
    measure: Callable[[str], list[Row]], pause_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B33, five times as fast: the server closes a connection that rests for 1 s; pauses around it, connections
    reused: no failure, and each row says whether its connection was new, and how long that took."""
    monkeypatch.setattr(transport, "LONGEST_REST_S", 0.4)
    with Oracle(llamacpp(Model(FAST)), idle_close_ms=1000) as oracle:
        rows = measure(
            f"plan: p\nserver: {{api: llamacpp, url: '{oracle.url}'}}\n"
            f"run: {{repeats: 2, warmups: 1, anchor: null, connection: reused, pause_s: {pause_s}}}\n"
            "experiments: [{kind: baseline, prompt_tokens: 64, output_tokens: 4}]\n"
        )
    assert {row["status"] for row in rows} == {"ok"}
    assert all((row["connect_ms"] is None) == (row["connection"] == "reused") for row in rows)
    connections = {row["connection"] for row in rows if row["phase"] == "measured"}
    assert connections == {"new"} if pause_s > 0.4 else "reused" in connections


def test_a_run_of_the_shortest_prompts_repeats_no_nonce() -> None:
    """A source that draws the same words again and again is asked again: the nonces of a run are its own."""

    class Stuck(random.Random):
        """Repeats each draw three times."""

        def __init__(self) -> None:
            super().__init__(5)
            self.draws = 0

        def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
            del counts
            self.draws += 1
            return random.Random(self.draws // 3).sample(population, k)

    nothing: Any = None
    dispatch = Dispatch(nothing, nothing, nothing, lambda _: {}, Stuck())
    nonces = [dispatch._new_prompt(16, closing=False).nonce for _ in range(10)]
    assert len(set(nonces)) == 10


# By a clock that the test moves


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now_ns = 5_000_000_000

    def __call__(self) -> int:
        return self.now_ns


class Wire(asyncio.Transport):
    """A connection on which bytes arrive at told times after the request was written."""

    def __init__(self, clock: Clock, protocol: asyncio.Protocol, arrivals: Sequence[tuple[float, bytes]]) -> None:
        super().__init__()
        self._clock = clock
        self._protocol = protocol
        self._arrivals = arrivals

    def write(self, data: Any) -> None:
        del data
        asyncio.get_running_loop().call_soon(self._play)

    def _play(self) -> None:
        start_ns = self._clock.now_ns
        for at_ms, piece in self._arrivals:
            self._clock.now_ns = start_ns + round(at_ms * 1e6)
            self._protocol.data_received(piece)

    def abort(self) -> None:
        pass


def chunk(event: Any) -> bytes:
    """One event as one HTTP chunk."""
    data = sse(event)
    return b"%x\r\n%s\r\n" % (len(data), data)


def said(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_the_columns_are_exact() -> None:
    """B03 to the microsecond: role at 5, "He" cut between 310 and 320, tokens at 340 and 360, usage at 361, end at
    365.5; connected in 2 ms, sent 7 ms after the segment began."""
    clock = Clock()
    he = chunk(said({"content": "He"}))
    usage = chunk({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}})
    arrivals = [
        (4.0, HEAD), (5.0, chunk(said({"role": "assistant", "content": ""}))), (310.0, he[:20]), (320.0, he[20:]),
        (340.0, chunk(said({"content": "llo"}))), (360.0, chunk(said({"content": "!"}))),
        (361.0, chunk(said({}, "stop")) + usage + chunk("[DONE]")), (365.5, b"0\r\n\r\n"),
    ]  # fmt: skip
    life = Life("r", "p", 0, None, 1, clock.now_ns - 5_000_000, None)

    async def live() -> Any:
        loop = asyncio.get_running_loop()

        async def connect(factory: Callable[[], asyncio.Protocol], *_: Any) -> tuple[Wire, asyncio.Protocol]:
            clock.now_ns += 2_000_000
            protocol = factory()
            wire = Wire(clock, protocol, arrivals)
            protocol.connection_made(wire)
            return wire, protocol

        loop.create_connection = connect  # type: ignore[assignment,method-assign]
        moment = datetime(2026, 11, 30, tzinfo=UTC)
        async with Sender(Target("http://127.0.0.1:9"), LoopWatch(), clock=clock, now=lambda: moment) as sender:
            return await sender.send("/v1/chat/completions", {}, timeout_s=5)

    exchange = asyncio.run(live())
    cell = Cell("e", "baseline", "p", 12, 3, 1, 1, RunSettings())
    row = row_of(life, Sent(cell, "measured", 1, 0, 0), {}, exchange, APIS["openai"].read(exchange), {})
    expected = {
        "status": "ok", "connect_ms": 2.0, "sent_at_ms": 7.0, "first_byte_ms": 5.0, "ttft_ms": 320.0,
        "first_answer_ms": 320.0, "last_token_ms": 360.0, "e2e_ms": 365.5, "chunk_times_ms": [320.0, 340.0, 360.0],
        "prompt_tokens": 12, "output_tokens": 3, "chunks": 3, "connection": "new",
        "started_at": datetime(2026, 11, 30, tzinfo=UTC),
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
