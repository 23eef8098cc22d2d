"""Send one wanted request, keep its row, and only then return: the one way in which a request leaves this program."""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from collect.apis import Answer, Ask
from collect.client import LoopWatch, Sender
from collect.exchange import Exchange
from collect.journal import Journal
from collect.plan import RunSettings
from collect.prompts import Prompt, make_prompt
from collect.reach import Reached
from collect.rows import Life, Sent, refused_row, row_of
from collect.schedule import Cell, Phase
from collect.server import ServerFacts
from roofbook.errors import ServerError
from roofbook.record import Row

# A busy server refuses a connection now and then; so many in a row mean that it is gone.
_GONE_AFTER: Final = 5

# Sixteen words have half a million nonces: a run that has used most of them repeats one rather than never end.
_NONCE_TRIES: Final = 100

# These document the field under this name; another server might refuse a request that has it.
_KNOW_IGNORE_EOS: Final = ("vllm", "sglang", "llama.cpp")


@dataclass(frozen=True)
class Wanted:
    """One request of the schedule, its prompt's length in words."""

    cell: Cell
    phase: Phase
    repeat: int
    words: int
    template_tokens: int | None = None
    worker: int = 0


@dataclass
class Dispatch:
    """What all requests of one life of a run share; *source* is where nonces come from."""

    reached: Reached
    journal: Journal
    life: Life
    sample: Callable[[float], Row]
    """What the host did since a moment of the monotonic clock, in seconds."""
    source: random.Random
    include_usage: bool = True
    """Whether the server takes the question for its counts; a probe finds out."""
    stopping: bool = False
    watch: LoopWatch = field(default_factory=LoopWatch)
    _in_flight: set["asyncio.Task[Exchange]"] = field(default_factory=set["asyncio.Task[Exchange]"])
    _awake: asyncio.Event = field(default_factory=asyncio.Event)
    _senders: dict[int, Sender] = field(default_factory=dict[int, Sender])
    _sent: int = 0
    _nonces: set[str] = field(default_factory=set[str])
    _unreachable: int = 0
    _last_error: str = ""

    async def close(self) -> None:
        """Close the workers' connections."""
        for sender in self._senders.values():
            await sender.close()
        self._senders.clear()

    def stop(self) -> None:
        """Send nothing more; what is in flight comes back as interrupted and is kept."""
        self.stopping = True
        self._awake.set()
        for task in self._in_flight:
            task.cancel()

    async def send(self, wanted: Wanted, server: ServerFacts, options: Mapping[str, Any]) -> Row | None:
        """Send *wanted* after its pause and return its row, which is on disk by then; None if stopped before.

        Raises ServerError where the server is gone, EngineError where the embedded engine died, WriteError where the
        disk refuses.
        """
        await self._pause(wanted.cell.run.pause_s)
        api = self.reached.api
        prompt = self._new_prompt(wanted.words, closing=not api.raw_prompt)
        request = api.request(
            Ask(
                prompt=prompt.text,
                output_tokens=wanted.cell.output_tokens,
                model=server.model,
                options=options,
                include_usage=self.include_usage,
                ignore_eos=server.server in _KNOW_IGNORE_EOS,
            )
        )
        index, since_s = self._next_index(), time.monotonic()
        exchange = await self._exchange(self._sender(wanted.worker), request.path, request.body, wanted.cell.run)
        if exchange is None:
            return None
        sent = Sent(
            wanted.cell, wanted.phase, wanted.repeat, index, wanted.worker,
            nonce=prompt.nonce, template_tokens=wanted.template_tokens, options=request.options,
        )  # fmt: skip
        # Reading and writing wait for the disk and the parser: in a thread, so that other streams keep their stamps.
        row, answer = await asyncio.to_thread(self._keep, sent, server, exchange, since_s)
        self._look_whether_gone(answer)
        return row

    async def refuse(self, cell: Cell, phase: Phase, repeat: int, server: ServerFacts, reason: str) -> None:
        """Keep a row of a request that is never sent, because it cannot fit."""
        row = refused_row(self.life, Sent(cell, phase, repeat, self._next_index(), 0), self._columns(server), reason)
        await asyncio.to_thread(self.journal.append, row)

    def _new_prompt(self, words: int, *, closing: bool) -> Prompt:
        """Return a prompt that this run has not sent: the shortest ones have few nonces, and two would be the same."""
        prompt = make_prompt(words, self.source, closing=closing)
        for _ in range(_NONCE_TRIES):
            if prompt.nonce not in self._nonces:
                break
            prompt = make_prompt(words, self.source, closing=closing)
        self._nonces.add(prompt.nonce)
        return prompt

    def _sender(self, worker: int) -> Sender:
        """Return a worker's own way to the server, with its connection where the plan wants it reused."""
        if worker not in self._senders:
            self._senders[worker] = Sender(self.reached.target, self.watch)
        return self._senders[worker]

    def _keep(self, sent: Sent, server: ServerFacts, exchange: Exchange, since_s: float) -> tuple[Row, Answer]:
        answer = self.reached.api.read(exchange)
        row = row_of(self.life, sent, self._columns(server), exchange, answer, self.sample(since_s))
        self.journal.append(row)
        return row, answer

    async def _pause(self, seconds: float) -> None:
        """Wait, but no longer than the run goes on."""
        with contextlib.suppress(TimeoutError):
            if seconds > 0:
                async with asyncio.timeout(seconds):
                    await self._awake.wait()

    async def _exchange(self, sender: Sender, path: str, body: Mapping[str, Any], run: RunSettings) -> Exchange | None:
        if self.stopping:
            return None
        fresh = run.connection == "fresh"
        task = asyncio.ensure_future(sender.send(path, body, timeout_s=run.timeout_s, fresh=fresh))
        self._in_flight.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            return None  # stopped before its first step
        finally:
            self._in_flight.discard(task)

    def _look_whether_gone(self, answer: Answer) -> None:
        if answer.status == "connect_error":
            self._unreachable += 1
            self._last_error = answer.columns["error"] or answer.status
        elif answer.status != "interrupted":
            self._unreachable = 0
        if answer.status in ("connect_error", "read_error") and self.reached.engine is not None:
            self.reached.engine.check()
        if self._unreachable >= _GONE_AFTER:
            self.check_reached()

    def check_reached(self) -> None:
        """Raise ServerError where the server could not be reached when it was last asked."""
        if self._unreachable:
            raise ServerError(
                "The server no longer answers (%(error)s): start it again, then take the run up",
                error=self._last_error,
            )

    def _columns(self, server: ServerFacts) -> Row:
        return {**server.columns(), "api": self.reached.api_name}

    def _next_index(self) -> int:
        """Return the position of the next request over the whole run, earlier lives included."""
        self._sent += 1
        return self._sent - 1


def next_index(rows: Iterable[Row]) -> int:
    """Return the first position that no row has: a request that a kill lost may have left a gap."""
    return 1 + max((row["order_index"] for row in rows), default=-1)


def dispatch_of(
    reached: Reached, journal: Journal, life: Life, *, sample: Callable[[float], Row], source: random.Random
) -> Dispatch:
    """Return the dispatch of a run that goes on where its journal stands."""
    return Dispatch(reached, journal, life, sample, source, _sent=next_index(journal.rows),
        _nonces={row["nonce"] for row in journal.rows if row.get("nonce")},
    )  # fmt: skip
