"""A run from its plan to its file: reach the server, measure, write the rows, say how to go on."""

import asyncio
import contextlib
import importlib.metadata
import json
import os
import random
import secrets
import shlex
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from collect import host
from collect.dispatch import dispatch_of
from collect.doubts import finder
from collect.journal import Journal, left_over, new_run_id
from collect.measure import Measurement, finished_keys
from collect.plan import Plan, load_plan
from collect.plan.resolve import resolve
from collect.reach import Reached, reach
from collect.rows import Life
from collect.schedule import Block, schedule
from collect.scrape import Scraper
from collect.scrub import of_this_process
from collect.selftest import selftest_ttft_ms
from collect.server.facts import FACT_COLUMNS
from collect.signals import StopSignals
from collect.summary import failures
from collect.tell import Tell
from roofbook.errors import RoofbookError, UsageError
from roofbook.facts import load_facts
from roofbook.places import Places
from roofbook.record import Row, RunFacts, read_samples, write_run, write_samples

EXIT_MEASURED: Final = 0
EXIT_WITH_FAILURES: Final = 4


@dataclass(frozen=True)
class Order:
    """What was asked for on the command line."""

    plan: Path
    out: Path | None = None
    resume: str | None = None
    dry_run: bool = False

    def resume_command(self, run_id: str) -> str:
        """Return the line that takes *run_id* up."""
        out = [] if self.out is None else ["--out", str(self.out)]
        return shlex.join([_python(), "-m", "collect", str(self.plan), *out, "--resume", run_id])


def collect(order: Order, places: Places, tell: Tell) -> int:
    """Measure what *order* asks for and return the exit code.

    Raises what the steps raise; whatever was measured before is kept.
    """
    measured = places.measured if order.out is None else order.out
    plan = load_plan(order.plan)
    tell.doubts(plan)
    if order.dry_run:
        tell.schedule(plan, schedule(plan, plan.run.seed or 0))
        return EXIT_MEASURED
    tell.left_over([run_id for run_id in left_over(measured) if run_id != order.resume], order.resume_command)
    with reach(plan, engine_log=engine_log(places)) as reached:
        tell.reached(reached)
        tell.ignored_options(plan, reached.api_name)
        if plan.machine == "this" and not reached.facts.host_is_server:
            tell.other_machine()
        with (
            _begun(order, plan, reached, measured, places, tell) as journal,
            StopSignals() as signals,
            host.KeepAwake(),
        ):
            machine = journal.facts.host["machine"]
            if order.resume is not None:
                now = describe_host(places, reached)
                machine = now["machine"]
                _check_same(plan, reached, journal, now, tell)
            blocks = _blocks(plan, reached, journal)
            done = finished_keys(journal.rows)
            find = finder(load_facts(places.facts), lambda: journal.facts)
            tell.begin(blocks, [unit for block in blocks for unit in block.without(done).units], find)
            samples = read_samples(measured, journal.facts.run_id)  # of earlier lives of the run
            hardware = _machine(plan, reached, machine)
            problem = _measured(blocks, reached, journal, hardware, samples, signals, tell)
            return _closed(order, plan, blocks, journal, measured, samples, problem, signals, tell)


def _begun(order: Order, plan: Plan, reached: Reached, measured: Path, places: Places, tell: Tell) -> Journal:
    """Return the journal of a new run, or of the one to take up."""
    if order.resume is not None:
        return Journal.take_up(measured, order.resume)
    described = describe_host(places, reached)
    if reached.facts.host_is_server:
        tell.line(tell.words.say("Measuring what this machine's memory and processor can do"))
        described["ceilings"] = asdict(host.measure_ceilings())
    seed = secrets.randbits(31) if plan.run.seed is None else plan.run.seed
    facts = RunFacts(
        run_id=new_run_id(plan.plan, datetime.now(UTC)),
        plan=_kept(resolve(plan, seed=seed, api=reached.api.name)),
        host=described,
        server=reached.facts.as_json(),
        origin={"program": "roofbook", "version": importlib.metadata.version("roofbook")},
    )
    return Journal.create(measured, facts)


def changed(
    before: RunFacts, rows: Sequence[Row], *, server: Mapping[str, Any], host: Mapping[str, Any]
) -> list[tuple[str, Any, Any]]:
    """Return what is no longer as when the run's *rows* were measured: name, then, now.

    Each model of a run is held against the last of its own rows.
    """
    same_model = [row for row in rows if row.get("model") == server.get("model_name")]
    then = same_model[-1] | {"model_name": server.get("model_name")} if same_model else before.server
    names = ("model_name", *FACT_COLUMNS)
    named = [("machine", before.host.get("machine"), host.get("machine"))]
    named += [("api", before.server.get("api"), server.get("api"))]
    named += [(name, then.get(name), server.get(name)) for name in names]
    return [(name, then, now) for name, then, now in named if then != now and None not in (then, now)]


def engine_log(places: Places) -> Path:
    """Return where the embedded engine of this process writes its log."""
    return places.root / ".cache" / f"engine-{os.getpid()}.log"


def describe_host(places: Places, reached: Reached | None = None) -> dict[str, Any]:
    """Return what this machine is, as JSON that may be published; the engine's log knows the limit of a Mac's GPU."""
    log = None if reached is None or reached.engine is None else reached.engine.log
    machine = host.this_host(
        engine_log=log.read_text("utf-8", "replace") if log is not None and log.is_file() else None
    )
    return {**machine.as_json(), "machine": machine.machine_id(load_facts(places.facts))}


def _check_same(plan: Plan, reached: Reached, journal: Journal, now: Mapping[str, Any], tell: Tell) -> None:
    """Refuse another plan, and say where machine or server are not those that the run began with."""
    then, resolved = journal.facts.plan, _kept(resolve(plan, seed=_seed(journal), api=reached.api.name))
    different = sorted(key for key in {*then, *resolved} if then.get(key) != resolved.get(key))
    if different:
        raise UsageError(
            "The plan is not the one that the run %(run_id)s began with (%(keys)s): put it back, or begin a new run",
            run_id=journal.facts.run_id, keys=", ".join(different),
        )  # fmt: skip
    if journal.torn:
        tell.torn()
    tell.changes(changed(journal.facts, journal.rows, server=reached.facts.as_json(), host=now))


def _blocks(plan: Plan, reached: Reached, journal: Journal) -> tuple[Block, ...]:
    seed = _seed(journal)
    return schedule(resolve(plan, seed=seed, api=reached.api.name), seed)


def _seed(journal: Journal) -> int:
    return journal.facts.plan["run"]["seed"]


def _kept(plan: Plan) -> dict[str, Any]:
    """Return the resolved plan as JSON that may be published."""
    return json.loads(json.dumps(of_this_process().json(plan.as_dict())))


def _measured(
    blocks: tuple[Block, ...], reached: Reached, journal: Journal, machine: str | None, samples: list[Row],
    signals: StopSignals, tell: Tell,
) -> RoofbookError | None:  # fmt: skip
    """Measure what is left, and return the problem that ended it, if one did; the rows are in the journal.

    What host and server said of themselves meanwhile is added to *samples*.
    """
    with _sampling(reached, samples) as sampler, asyncio.Runner(loop_factory=loop_factory()) as runner:
        life = Life(
            run_id=journal.facts.run_id,
            plan=journal.facts.plan["plan"],
            segment=journal.segment,
            machine=machine,
            seed=_seed(journal),
            started_ns=time.perf_counter_ns(),
            selftest_ttft_ms=runner.run(selftest_ttft_ms()),
        )
        dispatch = dispatch_of(reached, journal, life, sample=sampler.sample, source=random.SystemRandom())

        async def live() -> None:
            loop = asyncio.get_running_loop()
            signals.when_asked(lambda: loop.call_soon_threadsafe(dispatch.stop))
            try:
                await Measurement(blocks, dispatch, tell).run()
            finally:
                signals.when_asked(lambda: None)

        try:
            runner.run(live())
        except RoofbookError as problem:
            return problem
    return None


@contextlib.contextmanager
def _sampling(reached: Reached, samples: list[Row]) -> Generator[host.Sampler]:
    """Watch this machine and the server's metrics, and add what was seen to *samples* in the end."""
    # A front of somebody's own has one path, the plan's; nothing else is asked for there.
    metrics = contextlib.nullcontext() if reached.api.name == "sse" else Scraper(reached.target)
    with host.Sampler() as sampler, metrics as scraper:
        yield sampler
    samples += sampler.samples() + ([] if scraper is None else scraper.samples())


def _closed(
    order: Order, plan: Plan, blocks: Sequence[Block], journal: Journal, measured: Path, samples: list[Row],
    ended_by: RoofbookError | None, signals: StopSignals, tell: Tell,
) -> int:  # fmt: skip
    """Write the rows, say what they are, and return the exit code; a run that is not at its end keeps its journal."""
    rows, again = journal.rows, order.resume_command(journal.facts.run_id)
    if not any(row["phase"] in ("measured", "anchor") for row in rows):
        # It never began: a run without a measured row would be a page without a figure.
        if ended_by is not None:
            journal.remove()
            raise ended_by
        tell.stopped(None, again)
        return signals.exit_code or EXIT_WITH_FAILURES
    try:
        # With several in flight, requests are finished in another order than they were sent.
        path = write_run(measured, sorted(rows, key=lambda row: row["order_index"]), journal.facts)
        write_samples(measured, journal.facts.run_id, samples)
    except RoofbookError as problem:
        tell.stopped(None, again)
        raise ended_by or problem from problem
    tell.table(plan, rows)
    done = finished_keys(rows)
    if ended_by is not None or any(block.without(done).units for block in blocks):
        tell.stopped(path, again)
        if ended_by is not None:
            raise ended_by
        return signals.exit_code or EXIT_WITH_FAILURES
    journal.remove()
    tell.written(path)
    return EXIT_WITH_FAILURES if failures(rows) else EXIT_MEASURED


def _machine(plan: Plan, reached: Reached, here: str) -> str | None:
    """Return whose hardware is measured: what the plan says, else this machine where the server runs on it."""
    if plan.machine != "this":
        return plan.machine
    return here if reached.facts.host_is_server else None


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
