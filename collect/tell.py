"""What the terminal says: what is being measured, how much is left, and at the end a table."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TextIO

from collect.doubts import Doubts, Find, in_words
from collect.hardware import Hardware
from collect.outcome import doubts, outcome
from collect.pace import Pace
from collect.plan import Plan, PlanFaults
from collect.reach import Reached
from collect.schedule import Block, Cell, Phase, Unit, alternates
from collect.screen import Screen
from roofbook.errors import RoofbookError
from roofbook.record import Row
from roofbook.units import GB, MB
from roofbook.words import Words

# Where the line cannot be rewritten (a log, a pipe), a new one every few seconds is enough to see that it goes on.
_PLAIN_LINE_EVERY_S: Final = 5.0


class Tell:
    """The voice of the collector; it listens to a measurement. A terminal that is gone does not stop a run."""

    def __init__(self, words: Words, out: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.words = words
        self._screen = Screen(out)
        self._clock = clock
        self._pace = Pace()
        self._total = 0
        self._left: Sequence[Unit] = ()
        self._last_plain_s = float("-inf")
        self._refused: set[tuple[str | None, str]] = set()
        self._noted = False
        self._doubts: Doubts | None = None

    def line(self, text: str = "") -> None:
        """Say one line, below what stands there."""
        self._screen.line(text)

    def problem(self, error: RoofbookError) -> None:
        """Say what is wrong; of a plan every fault on a line of its own."""
        for one in error.faults if isinstance(error, PlanFaults) else (error,):
            self.line(self.words.say(one.message, **one.values))

    # Before the run

    def doubts(self, plan: Plan) -> None:
        """Say what is doubtful about a plan that can be measured all the same."""
        for warning in plan.warnings:
            self.problem(warning)
        if alternates(plan):
            self.line(
                self.words.say(
                    "The plan goes back and forth between models or options: each is measured in one go, so that it is "
                    "loaded once"
                )
            )

    def schedule(self, plan: Plan, blocks: Sequence[Block]) -> None:
        """Say what will be measured."""
        requests = count(unit for block in blocks for unit in block.units)
        self.line(
            self.words.say_n(
                "Plan %(plan)s: %(requests)s request, warm-ups left out",
                "Plan %(plan)s: %(requests)s requests, warm-ups left out",
                requests, plan=plan.plan, requests=self.words.number(requests),
            )
        )  # fmt: skip
        for one in plan.experiments:
            cells = {unit.cell for block in blocks for unit in block.units if unit.cell.experiment == one.name}
            told = sorted(cells, key=lambda cell: (cell.concurrency, cell.prompt_tokens))
            self.line(f"  {one.name}: " + ", ".join(f"{cell.point} x{cell.requests}" for cell in told))

    def reached(self, reached: Reached) -> None:
        """Say which server and which model are measured, and how to choose others."""
        say, facts = self.words.say, reached.facts
        if reached.engine is not None and reached.looked:
            self.line(say("No server answers on this machine: measuring the embedded llama.cpp with a small model"))
        columns = facts.columns()
        self.line(say("Server: %(server)s %(version)s at %(url)s", server=facts.server or facts.api,
                      version=columns.get("server_version") or say("(version unknown)"), url=facts.url))  # fmt: skip
        size = "" if facts.weights_bytes is None else f", {_size(facts.weights_bytes, self.words)}"
        quantization = "" if columns.get("quantization") is None else f", {columns['quantization']}"
        model = f"{columns.get('model') or say('(unknown)')}{quantization}{size}"
        self.line(say("Model: %(model)s", model=model))
        listed = [one.name for one in facts.models if one.name != facts.model]
        if listed:
            self.line(say("It also has %(models)s; choose one with server.model in the plan", models=", ".join(listed)))
        if reached.others:
            self.line(
                say(
                    "Also found: %(servers)s; choose one with server.url in the plan",
                    servers=", ".join(f"{one.server or one.api} ({one.url})" for one in reached.others),
                )
            )

    def hardware(self, whose: Hardware, *, here: bool | None) -> None:
        """Say where the machine's name cannot be right, or is not known; *here*: the server runs on this machine."""
        if whose.id is None:
            self.line(
                self.words.say(
                    "The server is another machine, and nobody told which: it stays unknown. Name it under 'machine' "
                    "in the plan; or run python -m collect facts > server.json there, put that file beside the plan "
                    "and write machine: server.json"
                )
            )
        elif here and whose.id != whose.host.get("machine"):
            self.line(
                "! " + self.words.say(
                    "The plan names the machine %(named)s, but this one is %(here)s: write machine: this, unless you "
                    "know better",
                    named=whose.id, here=whose.host.get("machine"),
                )
            )  # fmt: skip

    def another_collector(self, run_id: str) -> None:
        """Warn that somebody measures at the same time."""
        self.line(
            "! " + self.words.say(
                "Another collector is measuring %(run_id)s right now. Nothing of either is lost, but they disturb each "
                "other's times: wait for its end, unless it measures another machine",
                run_id=run_id,
            )
        )  # fmt: skip

    def left_over(self, run_id: str, take_up: str, give_up: str, *, of_this_plan: bool) -> None:
        """Mention a run that was stopped before its end, each command on a line that can be copied."""
        say = self.words.say
        self.line(say("Unfinished: %(run_id)s", run_id=run_id))
        if of_this_plan:
            self.line("  " + say("take it up with: %(command)s", command=take_up))
        else:
            self.line("  " + say("take it up with its own plan: %(command)s", command=take_up))
        self.line("  " + say("give it up with: %(command)s", command=give_up))

    def complete(self) -> None:
        """Say that a run that is taken up has all its requests."""
        self.line(
            self.words.say("Every request of this run is answered: only its file is written now, and nothing is sent")
        )

    def torn(self) -> None:
        """Say that the journal's last line was cut short."""
        self.line(
            self.words.say(
                "The run was killed while it kept a request: that line was cut short, and its request is sent again"
            )
        )

    def changes(self, changes: Sequence[tuple[str, object, object]]) -> None:
        """Say what is no longer as when the run began."""
        for name, then, now in changes:
            self.line(
                self.words.say(
                    "Not as when the run began: %(name)s was %(then)s and is %(now)s, so its rows will not be mixed",
                    name=name, then=then, now=now,
                )
            )  # fmt: skip

    def ignored_options(self, plan: Plan, api: str) -> None:
        """Say that the API which was found cannot ask for a context; of a named one the plan's reading says it."""
        asked = any("num_ctx" in one.options for one in (plan.server, *plan.experiments))
        if asked and plan.server.api == "auto" and api != "ollama":
            self.line(
                self.words.say(
                    "num_ctx is not sent: only Ollama takes a context with each request. Start the server with the "
                    "context you want"
                )
            )

    def begin(self, blocks: Sequence[Block], left: Sequence[Unit], find: Find) -> None:
        """Begin to count; *find* finds what is doubtful about rows."""
        self._doubts = Doubts(find)
        self._total = count(unit for block in blocks for unit in block.units)
        self._left = left

    # While it runs

    def began(self, cell: Cell, phase: Phase, repeat: int) -> None:
        """Say what is being measured."""
        self._status(self._what(cell, phase, repeat))

    def finished(self, row: Row, cell: Cell, left: Sequence[Unit]) -> None:
        """Learn from a finished request; say it where it failed."""
        self._pace.note(row, cell)
        self._left = left
        noted = row["status"] == "ok" and row["error"] is not None and not self._noted
        self._noted = self._noted or noted  # it may be so in every answer: the first is told at once
        if noted or row["status"] not in ("ok", "interrupted"):
            self.line(
                self.words.say(
                    "%(what)s: %(status)s %(error)s",
                    what=self._what(cell, row["phase"], row["repeat"]), status=row["status"], error=row["error"] or "",
                ).rstrip()
            )  # fmt: skip

    def rested(self, rows: Sequence[Row], cell: Cell, left: Sequence[Unit]) -> None:
        """Say what became doubtful while a unit of *cell* was measured, and the way out."""
        if self._doubts is not None:
            for one in self._doubts.news(rows, cell, left):
                self.line("! " + in_words(one, self.words))

    def refused(self, cell: Cell, limit_tokens: int, slots: int | None) -> None:
        """Say once that a cell cannot fit."""
        if (cell.experiment, cell.point) in self._refused:
            return
        self._refused.add((cell.experiment, cell.point))
        what = {"point": cell.point, "needed": cell.tokens, "limit": limit_tokens}
        if slots is None or slots == 1:
            self.line(
                self.words.say(
                    "%(point)s is not measured: %(needed)d tokens do not fit into the server's context of %(limit)d. "
                    "Start the server with a larger one, or shorten the cell",
                    **what,
                )
            )
        else:
            self.line(
                self.words.say(
                    "%(point)s is not measured: %(needed)d tokens do not fit into the %(limit)d that each of the "
                    "server's %(slots)d slots has. Start it with a larger context or fewer slots, or shorten the cell",
                    **what, slots=slots,
                )
            )  # fmt: skip

    def counts_missing(self) -> None:
        """Say that counts will be estimates."""
        self.line(
            self.words.say(
                "The server refuses stream_options: it does not count tokens in a stream, so outputs are estimated "
                "from their chunks, and marked so"
            )
        )

    # After it

    def table(self, plan: Plan, rows: Sequence[Row], *, complete: bool) -> None:
        """Say what was measured, one line a point; that rows are missing only of a run that is *complete*."""
        found = [] if self._doubts is None else self._doubts.find(rows)
        lines = [*outcome(rows, [one.name for one in plan.experiments], self.words, found)]
        if self._doubts is not None:
            lines += doubts([one for one in found if complete or one.kind != "too_few"], self.words)
        for text in lines:
            self.line(text)

    def written(self, path: Path) -> None:
        """Say where the rows are and what to do next."""
        self.line()
        self.line(self.words.say("The rows are in %(path)s", path=path))
        self.line(self.words.say("Next: make site"))

    def stopped(self, path: Path | None, command: str) -> None:
        """Say what is kept of a run that was stopped, and how to take it up."""
        if path is not None:
            self.line(self.words.say("Stopped. What was measured is kept in %(path)s", path=path))
        self.line(self.words.say("Take it up with: %(command)s", command=command))

    def _what(self, cell: Cell, phase: Phase, repeat: int) -> str:
        say = self.words.say
        match phase:
            case "calibration":
                return say("finding the length of prompts")
            case "warmup":
                return say("warm-up %(point)s", point=cell.point)
            case "anchor":
                return say("anchor %(point)s", point=cell.point)
            case "prime" | "measured":
                return say(
                    "%(experiment)s %(point)s, %(repeat)d of %(repeats)d",
                    experiment=cell.experiment, point=cell.point, repeat=repeat, repeats=cell.requests,
                )  # fmt: skip

    def _status(self, what: str) -> None:
        now_s = self._clock()
        if not self._screen.rewrites and now_s - self._last_plain_s < _PLAIN_LINE_EVERY_S:
            return
        self._last_plain_s = now_s
        text = f"[{self._total - count(self._left)}/{self._total}] {what}"
        left_s = self._pace.left_s(self._left)
        if left_s is not None:
            text += "  " + self.words.say("about %(time)s left", time=self.duration(left_s))
        if self._screen.rewrites:
            self._screen.status(text)
        else:
            self.line(text)

    def duration(self, seconds: float) -> str:
        """Return a length of time as a person says it."""
        whole = round(seconds)
        if whole < 60:
            return self.words.say("%(seconds)d s", seconds=whole)
        if whole < 3600:
            return self.words.say("%(minutes)d min %(seconds)d s", minutes=whole // 60, seconds=whole % 60)
        return self.words.say("%(hours)d h %(minutes)d min", hours=whole // 3600, minutes=whole % 3600 // 60)


def count(units: Iterable[Unit]) -> int:
    """Return how many requests *units* are."""
    return sum(len(unit.repeats) for unit in units)


def _size(size_bytes: int, words: Words) -> str:
    return f"{words.significant(size_bytes / GB)} GB" if size_bytes >= GB else f"{words.number(size_bytes / MB)} MB"
