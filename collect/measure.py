"""Run a schedule: calibrate, warm up, then send what is left of it, block by block, until its end or a stop."""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from collect.apis import unload
from collect.client import lookup
from collect.dispatch import Dispatch, Wanted
from collect.lengths import Lengths
from collect.plan import RunSettings
from collect.prompts import CALIBRATION_WORDS, Calibration, calibrate
from collect.schedule import Block, Cell, Key, Phase, Unit
from collect.server.facts import FACT_COLUMNS
from roofbook.errors import ServerError, UsageError
from roofbook.record import Row

_CALIBRATION_OUTPUT_TOKENS: Final = 4
_FIELD_REFUSED: Final = ("http_400", "http_422")

_UNLOAD_TIMEOUT_S: Final = 60.0
_UNLOAD_POLL_S: Final = 0.2


class Listener(Protocol):
    """Hears what happens while a run is measured."""

    def began(self, cell: Cell, phase: Phase, repeat: int) -> None:
        """A request is about to be sent."""
        ...

    def finished(self, row: Row, cell: Cell, left: Sequence[Unit]) -> None:
        """A request is finished and kept; *left* is what is still to come."""
        ...

    def rested(self, rows: Sequence[Row], cell: Cell, left: Sequence[Unit]) -> None:
        """A unit of *cell* is finished and nothing is in flight; *rows* are all of the run so far."""
        ...

    def changes(self, changes: Sequence[tuple[str, object, object]]) -> None:
        """The server is no longer as it was: name, then, now."""
        ...

    def refused(self, cell: Cell, limit_tokens: int, slots: int | None) -> None:
        """A cell is not measured, because it does not fit into the server's context."""
        ...

    def counts_missing(self) -> None:
        """The server does not take the question for its counts."""
        ...


@dataclass
class Measurement:
    """One life of a run."""

    blocks: tuple[Block, ...]
    dispatch: Dispatch
    listener: Listener
    lengths: Lengths = field(default_factory=Lengths)

    async def run(self) -> None:
        """Measure what the journal does not have yet.

        Raises ServerError where the server is gone or refuses the first request, UsageError where a cold load cannot
        be made, WriteError where the disk refuses; what was measured before is in the journal.
        """
        done = finished_keys(self.dispatch.journal.rows)
        left = [block.without(done) for block in self.blocks]
        self.dispatch.watch.start()
        try:
            for number, block in enumerate(left):
                if block.units and not self.dispatch.stopping:
                    later = [unit for other in left[number + 1 :] for unit in other.units]
                    await _BlockRun(self, block, later).run()
            if not self.dispatch.stopping:
                self.dispatch.check_reached()
        finally:
            self.dispatch.watch.stop()
            await self.dispatch.close()


def finished_keys(rows: Iterable[Row]) -> frozenset[Key]:
    """Return what of the schedule needs not be sent again.

    A request that we cut off is not finished, nor one that found no server; but where the server answers again later
    in the same life, a refused connection is a failure of its own, which counts.
    """
    done: set[Key] = set()
    unreached: set[Key] = set()
    segment = None
    for row in rows:
        if row["segment"] != segment:
            segment = row["segment"]
            unreached.clear()
        key = (row["phase"], row["experiment"], row["point"], row["repeat"])
        scheduled = {key} if row["phase"] in ("measured", "anchor") else set[Key]()
        if row["status"] == "connect_error":
            unreached |= scheduled
        elif row["status"] not in ("interrupted", "refused"):
            done |= scheduled | unreached
            unreached.clear()
        elif row["status"] == "refused":
            done |= scheduled
    return frozenset(done)


class _BlockRun:
    """One block as it is measured."""

    def __init__(self, measurement: Measurement, block: Block, later: list[Unit]) -> None:
        self._block = block
        self._later = later
        self._dispatch = measurement.dispatch
        self._listener = measurement.listener
        self._lengths = measurement.lengths
        self._facts = self._dispatch.reached.look(block.model)

    async def run(self) -> None:
        await self._refuse_what_cannot_fit()
        if not self._block.units:
            return
        if not self._lengths.knows(self._facts.model):
            await self._calibrate()
        if not self._block.cold:
            for cell in self._block.cells:
                await self._warm_up(cell)
            await self._look_again()
        for number, unit in enumerate(self._block.units):
            if self._dispatch.stopping:
                return
            if self._block.cold:
                await asyncio.to_thread(self._unload)
            later = [*self._block.units[number + 1 :], *self._later]
            await self._closed_loop(unit, later)
            # In a thread: the loop goes on to tick, so that the time this takes is not held against the next request.
            await asyncio.to_thread(self._listener.rested, self._dispatch.journal.rows, unit.cell, later)
        before = self._facts
        with contextlib.suppress(ServerError):  # all of this block is measured: that it went away since costs nothing
            await self._look_again()
        self._listener.changes(changed(before.columns(), self._facts.columns()))

    async def _refuse_what_cannot_fit(self) -> None:
        limit = self._dispatch.reached.context_limit(self._facts, self._block.options)
        if limit is None:
            return
        fits = tuple(unit for unit in self._block.units if unit.cell.tokens <= limit)
        for unit in self._block.units:
            if unit in fits:
                continue
            self._listener.refused(unit.cell, limit, self._facts.parallel_slots)
            for repeat in unit.repeats:
                reason = f"{unit.cell.tokens} tokens do not fit into {limit}"
                await self._dispatch.refuse(unit.cell, unit.phase, repeat, self._facts, reason)
        self._block = replace(self._block, units=fits)

    async def _calibrate(self) -> None:
        """Find out how this server counts; and before that, whether it takes the question for its counts."""
        counts: list[tuple[int, int]] = []
        for repeat, words in enumerate(CALIBRATION_WORDS, start=1):
            row = await self._probe(words, repeat)
            if row is not None and row["status"] in _FIELD_REFUSED and self._asks_for_counts():
                self._dispatch.include_usage = False
                self._listener.counts_missing()
                row = await self._probe(words, repeat)
            if row is None or self._dispatch.stopping:
                return
            _check(row)
            if row["prompt_tokens"] is not None:
                counts.append((words, row["prompt_tokens"]))
        counted = len(counts) == len(CALIBRATION_WORDS)
        self._lengths.calibrated(self._facts.model, calibrate(counts[0], counts[1]) if counted else Calibration())

    def _asks_for_counts(self) -> bool:
        return self._dispatch.reached.api.name == "openai" and self._dispatch.include_usage

    async def _probe(self, words: int, repeat: int) -> Row | None:
        run = replace(self._block.units[0].cell.run, pause_s=0)
        cell = _calibration_cell(words, run)
        self._listener.began(cell, "calibration", repeat)
        row = await self._dispatch.send(Wanted(cell, "calibration", repeat, words), self._facts, self._block.options)
        if row is not None:
            self._listener.finished(row, cell, [*self._block.units, *self._later])
        return row

    async def _warm_up(self, cell: Cell) -> None:
        """Warm up with a cell's own settings, each worker at least once, and correct the length of its prompts."""
        if cell.run.warmups == 0 or self._dispatch.stopping:
            return
        repeats = tuple(range(1, max(cell.run.warmups, cell.concurrency) + 1))
        rows = await self._closed_loop(Unit(cell, "warmup", repeats), [*self._block.units, *self._later])
        counted = [row["prompt_tokens"] for row in rows if row["status"] == "ok" and row["prompt_tokens"] is not None]
        if counted:
            self._lengths.counted(self._facts.model, cell.prompt_tokens, counted[-1])

    async def _look_again(self) -> None:
        """See what the server says now that the model is loaded, and keep it with the run."""
        if not self._dispatch.stopping:
            self._facts = await asyncio.to_thread(self._dispatch.reached.look, self._block.model)
            self._dispatch.journal.amend(server=self._facts.as_json())

    async def _closed_loop(self, unit: Unit, later: Sequence[Unit]) -> list[Row]:
        """Send a unit over as many workers as its cell has: each keeps its row before it sends again."""
        waiting = list(reversed(unit.repeats))
        rows: list[Row] = []

        async def work(worker: int) -> None:
            while waiting and not self._dispatch.stopping:
                repeat = waiting.pop()
                self._listener.began(unit.cell, unit.phase, repeat)
                wanted = self._wanted(unit, repeat, worker)
                row = await self._dispatch.send(wanted, self._facts, self._block.options)
                if row is not None:
                    rows.append(row)
                    self._listener.finished(row, unit.cell, [replace(unit, repeats=tuple(waiting)), *later])

        workers = [asyncio.ensure_future(work(worker)) for worker in range(min(unit.cell.concurrency, len(waiting)))]
        try:
            await asyncio.gather(*workers)
        except BaseException:
            self._dispatch.stop()  # the first failure ends the others too; their rows are kept
            await asyncio.gather(*workers, return_exceptions=True)
            raise
        return rows

    def _wanted(self, unit: Unit, repeat: int, worker: int) -> Wanted:
        model = self._facts.model
        template = 0 if self._dispatch.reached.api.raw_prompt else self._lengths.template_tokens(model)
        words = self._lengths.words(model, unit.cell.prompt_tokens)
        return Wanted(unit.cell, unit.phase, repeat, words, template, worker)

    def _unload(self) -> None:
        """Make Ollama forget the model, and wait until it has."""
        url, model = self._dispatch.reached.target.url, self._facts.model
        if self._dispatch.reached.api.name != "ollama" or model is None:
            raise UsageError(
                "Only Ollama can be told to unload its model: take the cold_load experiment out, or use api: ollama"
            )
        request = unload(model)
        lookup.post(url, request.path, dict(request.body), timeout_s=_UNLOAD_TIMEOUT_S)
        deadline = time.monotonic() + _UNLOAD_TIMEOUT_S
        while time.monotonic() < deadline and any(
            listed.name == model and listed.loaded for listed in self._dispatch.reached.look(model).models
        ):
            time.sleep(_UNLOAD_POLL_S)


def changed(then: Row, now: Row) -> list[tuple[str, object, object]]:
    """Return which facts of a server are other than they were, where both are known: name, then, now."""
    return [
        (name, then[name], now[name])
        for name in ("model", *FACT_COLUMNS)
        if then[name] != now[name] and None not in (then[name], now[name])
    ]


def _calibration_cell(words: int, run: RunSettings) -> Cell:
    return Cell(
        experiment=None, kind=None, point=f"calibration-{words}-words", prompt_tokens=words,
        output_tokens=_CALIBRATION_OUTPUT_TOKENS, concurrency=1, requests=1, run=run,
    )  # fmt: skip


def _check(row: Row) -> None:
    """Raise where the very first request fails: then all would."""
    status, error = row["status"], row["error"] or ""
    # One stream that was cut short may be an accident; one without any text will come again.
    if status in ("ok", "interrupted") or (status == "incomplete" and row["chunks"]):
        return
    if str(status).startswith("http_4"):
        raise UsageError("The server refuses the first request (%(status)s): %(error)s", status=status, error=error)
    raise ServerError("The first request failed (%(status)s): %(error)s", status=status, error=error)
