"""A run from its plan to its file: reach the server, measure, write the rows, say how to go on."""

import asyncio
import contextlib
import importlib.metadata
import random
import secrets
import shlex
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from collect import host
from collect.dispatch import dispatch_of
from collect.doubts import finder
from collect.hardware import check_machine, engine_log, hardware
from collect.journal import FOLDER, Journal, being_measured, left_over, new_run_id, plan_of
from collect.measure import Measurement, finished_keys
from collect.plan import Plan, load_plan
from collect.plan.resolve import resolve
from collect.reach import Reached, reach
from collect.resume import blocks_of, changed, check_plan, left, publishable, sample_log, seed_of, take_up
from collect.rows import Life
from collect.samples import SampleLog
from collect.schedule import Block, schedule
from collect.scrape import Scraper
from collect.selftest import selftest_ttft_ms
from collect.signals import StopSignals
from collect.summary import failures
from collect.tell import Tell
from roofbook.errors import RoofbookError
from roofbook.facts import Facts, load_facts
from roofbook.places import Places
from roofbook.record import RunFacts, write_run, write_samples
from roofbook.words import SOURCE_LANGUAGE

EXIT_MEASURED: Final = 0
EXIT_WITH_FAILURES: Final = 4


@dataclass(frozen=True)
class Order:
    """What was asked for on the command line."""

    plan: Path
    out: Path | None = None
    resume: str | None = None
    dry_run: bool = False
    lang: str = SOURCE_LANGUAGE

    def resume_command(self, run_id: str, plan: Path | None = None) -> str:
        """Return the line that takes *run_id* up, a run of *plan* (default: the one of this call)."""
        out = [] if self.out is None else ["--out", str(self.out)]
        lang = [] if self.lang == SOURCE_LANGUAGE else ["--lang", self.lang]
        return shlex.join([_python(), "-m", "collect", str(plan or self.plan), *out, *lang, "--resume", run_id])


def collect(order: Order, places: Places, tell: Tell) -> int:
    """Measure what *order* asks for and return the exit code.

    Raises what the steps raise; whatever was measured before is kept.
    """
    measured = places.measured if order.out is None else order.out
    plan, facts = load_plan(order.plan), load_facts(places.facts)
    tell.doubts(plan)
    if (unknown := check_machine(plan, order.plan, facts)) is not None:
        tell.problem(unknown)
    if order.dry_run:
        tell.schedule(plan, schedule(plan, plan.run.seed or 0))
        return EXIT_MEASURED
    for run_id in being_measured(measured):
        tell.another_collector(run_id)
    if order.resume is None:
        _mention_left_over(order, plan, measured, tell)
    with contextlib.ExitStack() as opened:
        journal = None
        if order.resume is not None:
            journal = opened.enter_context(take_up(plan, measured, order.resume, tell))
            if not left(plan, journal):
                tell.complete()
                with _open(order, plan, measured, journal, facts, tell) as run:
                    return _closed(run, None)
        reached = opened.enter_context(reach(plan, engine_log=engine_log(places)))
        tell.reached(reached)
        tell.ignored_options(plan, reached.api_name)
        whose = hardware(plan, order.plan, facts, reached)
        tell.hardware(whose, here=reached.facts.host_is_server)
        if journal is None:
            journal = opened.enter_context(_begun(plan, reached, measured, whose.host, tell))
        else:
            check_plan(plan, journal, api=reached.api.name)
            tell.changes(changed(journal.facts, journal.rows, server=reached.facts.as_json(), host=whose.host))
        with _open(order, plan, measured, journal, facts, tell, api=reached.api.name) as run, host.KeepAwake():
            return _closed(run, _measured(run, reached, whose.id))


def _mention_left_over(order: Order, plan: Plan, measured: Path, tell: Tell) -> None:
    for run_id in left_over(measured):
        ours = plan_of(run_id) == plan.plan
        take_up_with = order.resume_command(run_id, None if ours else Path("PLAN"))
        give_up_with = f"rm {shlex.quote(str(measured / FOLDER / run_id))}.*"
        tell.left_over(run_id, take_up_with, give_up_with, of_this_plan=ours)


def _begun(plan: Plan, reached: Reached, measured: Path, described: dict[str, Any], tell: Tell) -> Journal:
    """Return the journal of a new run on the machine that is *described*."""
    if reached.facts.host_is_server and "ceilings" not in described:
        tell.line(tell.words.say("Measuring what this machine's memory and processor can do"))
        described = {**described, "ceilings": asdict(host.measure_ceilings())}
    seed = secrets.randbits(31) if plan.run.seed is None else plan.run.seed
    facts = RunFacts(
        run_id=new_run_id(plan.plan, datetime.now(UTC)),
        plan=publishable(resolve(plan, seed=seed, api=reached.api.name)),
        host=described,
        server=reached.facts.as_json(),
        origin={"program": "roofbook", "version": importlib.metadata.version("roofbook")},
    )
    return Journal.create(measured, facts)


@dataclass(frozen=True)
class _Run:
    """A run that is open: what was asked for, what it is made of, where it is kept, and who hears of it."""

    order: Order
    plan: Plan
    blocks: tuple[Block, ...]
    measured: Path
    journal: Journal
    samples: SampleLog
    signals: StopSignals
    tell: Tell


@contextlib.contextmanager
def _open(
    order: Order, plan: Plan, measured: Path, journal: Journal, facts: Facts, tell: Tell, *, api: str | None = None
) -> Generator[_Run]:
    """Open a run through *api* (default: as it began); from here on a signal only asks it to stop."""
    blocks = blocks_of(plan, journal, api=api)
    done = finished_keys(journal.rows)
    tell.begin(
        blocks,
        [unit for block in blocks for unit in block.without(done).units],
        finder(facts, lambda: journal.facts),
    )
    with StopSignals() as signals, sample_log(journal, measured) as samples:
        yield _Run(order, plan, blocks, measured, journal, samples, signals, tell)


def _measured(run: _Run, reached: Reached, machine: str | None) -> RoofbookError | None:
    """Measure what is left, and return the problem that ended it, if one did; the rows are in the journal.

    What host and server say of themselves meanwhile is added to its samples.
    """
    journal, signals = run.journal, run.signals
    with _sampling(reached, run.samples) as sampler, asyncio.Runner(loop_factory=loop_factory()) as runner:
        life = Life(
            run_id=journal.facts.run_id,
            plan=journal.facts.plan["plan"],
            segment=journal.segment,
            machine=machine,
            seed=seed_of(journal),
            started_ns=time.perf_counter_ns(),
            selftest_ttft_ms=runner.run(selftest_ttft_ms()),
        )
        dispatch = dispatch_of(reached, journal, life, sample=sampler.sample, source=random.SystemRandom())

        async def live() -> None:
            loop = asyncio.get_running_loop()
            signals.when_asked(lambda: loop.call_soon_threadsafe(dispatch.stop))
            try:
                await Measurement(run.blocks, dispatch, run.tell).run()
            finally:
                signals.when_asked(lambda: None)

        try:
            runner.run(live())
        except RoofbookError as problem:
            return problem
    return None


@contextlib.contextmanager
def _sampling(reached: Reached, samples: SampleLog) -> Generator[host.Sampler]:
    """Watch this machine and the server's metrics."""
    # A front of somebody's own has one path, the plan's; nothing else is asked for there.
    metrics = contextlib.nullcontext() if reached.api.name == "sse" else Scraper(reached.target, samples.add)
    with host.Sampler(samples.add) as sampler, metrics:
        yield sampler


def _closed(run: _Run, ended_by: RoofbookError | None) -> int:
    """Write the rows, say what they are, and return the exit code; a run that is not at its end keeps its journal."""
    journal, samples, tell = run.journal, run.samples, run.tell
    rows, again = journal.rows, run.order.resume_command(journal.facts.run_id)
    if not any(row["phase"] in ("measured", "anchor") for row in rows):
        # It never began: a run without a measured row would be a page without a figure.
        if ended_by is not None:
            samples.remove()
            journal.remove()
            raise ended_by
        tell.stopped(None, again)
        return run.signals.exit_code or EXIT_WITH_FAILURES
    try:
        # With several in flight, requests are finished in another order than they were sent.
        path = write_run(run.measured, sorted(rows, key=lambda row: row["order_index"]), journal.facts)
        write_samples(run.measured, journal.facts.run_id, samples.rows)
    except RoofbookError as problem:
        tell.stopped(None, again)
        raise ended_by or problem from problem
    done = finished_keys(rows)
    complete = ended_by is None and not any(block.without(done).units for block in run.blocks)
    tell.table(run.plan, rows, complete=complete)
    if not complete:
        tell.stopped(path, again)
        if ended_by is not None:
            raise ended_by
        return run.signals.exit_code or EXIT_WITH_FAILURES
    samples.remove()
    journal.remove()
    tell.written(path)
    return EXIT_WITH_FAILURES if failures(rows) else EXIT_MEASURED


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event loop where it is installed: its read callbacks come sooner."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _python() -> str:
    """Return how this Python is called from here: the environment's own, else by its name."""
    with contextlib.suppress(ValueError):
        return str(Path(sys.executable).relative_to(Path.cwd()))
    return "python"
