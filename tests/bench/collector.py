"""What the collector adds to the times that it measures: its stamps beside those of a server that notes its own.

    python -m tests.bench collector

The server is a process of its own and shares the machine's monotonic clock with us, so single stamps can be compared.
"""

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from collect import engine
from collect.apis import APIS, Ask
from collect.client import LoopWatch, Sender, Target
from collect.exchange import Exchange
from collect.prompts import make_prompt
from collect.run import loop_factory
from roofbook.units import MS_PER_S, NS_PER_MS

TITLE: Final = "the collector's own time, beside the send stamps of a server of known times"
STREAMS: Final = (1, 8, 64)
REQUESTS: Final = 50
TRUE_TTFT_MS: Final = 100.0
STEP_MS: Final = 10.0
TOKENS: Final = 8
ENGINE_PROMPT_WORDS: Final = (60, 250)
ENGINE_REQUESTS: Final = 8


def lines() -> Iterator[str]:
    """Yield a line for each number of streams, and what the embedded engine adds where it is installed."""
    yield f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    yield f"a server whose first token leaves {TRUE_TTFT_MS:.0f} ms after the request, {REQUESTS} requests or more; ms"
    yield "streams | TTFT seen: median, p99 | our stamp after the server's: median, p99 | loop lag: largest"
    for streams in STREAMS:
        yield _row(streams)
    if engine.installed():
        yield "the embedded engine: from the end of its prefill until its first token is here, ms"
        for words in ENGINE_PROMPT_WORDS:
            yield _engine_row(words)


def _row(streams: int) -> str:
    with oracle() as url:
        exchanges = _send_all(url, streams)
        with urlopen(f"{url}/oracle/heard") as answer:
            heard: list[dict[str, Any]] = json.load(answer)
    left_s = {one["path"]: one["sent_s"] for one in heard if "?" in one["path"]}
    ttfts: list[float] = []
    behind: list[float] = []
    for number, exchange in enumerate(exchanges):
        seen = APIS["llamacpp"].read(exchange)
        assert seen.status == "ok", seen
        ttfts.append(seen.columns["ttft_ms"])
        assert exchange.sent_at_ns is not None
        sent_ms = exchange.sent_at_ns / NS_PER_MS
        stamps_ms = [sent_ms + at for at in seen.columns["chunk_times_ms"]]
        theirs_ms = [left * MS_PER_S for left in left_s[_path(number)]]
        behind += [ours - theirs for ours, theirs in zip(stamps_ms, theirs_ms, strict=False)]
    lag_ms = max(exchange.loop_lag_ms or 0.0 for exchange in exchanges)
    return (
        f"{streams:7} | {statistics.median(ttfts):8.2f} {_p99(ttfts):8.2f} | "
        f"{statistics.median(behind):8.3f} {_p99(behind):8.3f} | {lag_ms:6.1f}"
    )


def _engine_row(words: int) -> str:
    source = random.Random(words)
    prompts = [make_prompt(words, source, closing=False).text for _ in range(ENGINE_REQUESTS)]

    async def one_by_one(url: str, model: str) -> list[Exchange]:
        async with Sender(Target(url), LoopWatch()) as sender:
            requests = [APIS["llamacpp"].request(Ask(prompt, 4, model)) for prompt in prompts]
            return [await sender.send(request.path, request.body, timeout_s=60) for request in requests]

    with (
        tempfile.TemporaryDirectory() as folder,
        engine.start(context_tokens=2048, log=Path(folder) / "engine.log") as started,
        asyncio.Runner(loop_factory=loop_factory()) as runner,
    ):
        exchanges = runner.run(one_by_one(started.url, started.model))
    rows = [APIS["llamacpp"].read(exchange).columns for exchange in exchanges[1:]]  # the first one warms up
    added = [row["ttft_ms"] - row["server_prefill_ms"] for row in rows]
    prefill = statistics.median(row["server_prefill_ms"] for row in rows)
    return (
        f"{rows[0]['prompt_tokens']} tokens: prefill {prefill:.1f}, added {statistics.median(added):.2f} "
        f"({min(added):.2f} - {max(added):.2f}), n {len(added)}"
    )


def _send_all(url: str, streams: int) -> Sequence[Exchange]:
    """Send REQUESTS, or twice as many as there are streams, over *streams* workers; return them in order."""
    total = max(REQUESTS, 2 * streams)
    request = APIS["llamacpp"].request(Ask("one two three", TOKENS))
    found: dict[int, Exchange] = {}

    async def live() -> None:
        watch = LoopWatch()
        senders = [Sender(Target(url), watch) for _ in range(streams)]  # takes milliseconds each
        watch.start()
        numbers = iter(range(total))

        async def work(sender: Sender) -> None:
            for number in numbers:
                found[number] = await sender.send(_path(number), request.body, timeout_s=30)

        await asyncio.gather(*map(work, senders))
        watch.stop()
        for sender in senders:
            await sender.close()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(live())
    return [found[number] for number in range(total)]


def _path(number: int) -> str:
    return f"/completion?n={number}"


@contextmanager
def oracle() -> Iterator[str]:
    """The server of known times as a process of its own; yields its address."""
    command = [sys.executable, "-m", "collect.oracle", "--fixed-ms", f"{TRUE_TTFT_MS}", "--step-ms", f"{STEP_MS}"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100)[98]
