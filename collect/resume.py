"""Taking a run up: its plan has to be the same, what is done is left out, and what is no longer as it was is said."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from collect.journal import Journal
from collect.measure import finished_keys
from collect.plan import Plan
from collect.plan.resolve import resolve
from collect.samples import SampleLog
from collect.schedule import Block, Unit, schedule
from collect.scrub import of_this_process
from collect.server.facts import FACT_COLUMNS
from collect.tell import Tell
from roofbook.errors import UsageError
from roofbook.record import Row, RunFacts, read_samples


def take_up(plan: Plan, measured: Path, run_id: str, tell: Tell) -> Journal:
    """Return the journal of a run that was stopped, open for its next life.

    Raises UsageError where there is none, or it is another plan's; RecordError and WriteError as the journal does.
    """
    journal = Journal.take_up(measured, run_id)
    try:
        check_plan(plan, journal)
    except BaseException:
        journal.close()
        raise
    if journal.torn:
        tell.torn()
    return journal


def check_plan(plan: Plan, journal: Journal, *, api: str | None = None) -> None:
    """Raise UsageError where *plan*, measured through *api* (default: the run's), is not the one of the journal."""
    then, now = journal.facts.plan, publishable(resolve(plan, seed=seed_of(journal), api=api or _api(journal)))
    different = sorted(key for key in {*then, *now} if then.get(key) != now.get(key))
    if different:
        raise UsageError(
            "The plan is not the one that the run %(run_id)s began with (%(keys)s): put it back, or begin a new run",
            run_id=journal.facts.run_id, keys=", ".join(different),
        )  # fmt: skip


def blocks_of(plan: Plan, journal: Journal, *, api: str | None = None) -> tuple[Block, ...]:
    """Return the run's whole schedule, as it was decided when the run began."""
    seed = seed_of(journal)
    return schedule(resolve(plan, seed=seed, api=api or _api(journal)), seed)


def left(plan: Plan, journal: Journal) -> list[Unit]:
    """Return what of the schedule is not measured yet."""
    done = finished_keys(journal.rows)
    return [unit for block in blocks_of(plan, journal) for unit in block.without(done).units]


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


def sample_log(journal: Journal, measured: Path) -> SampleLog:
    """Return the samples of the run, with those of its earlier lives."""
    return SampleLog(journal.path.with_suffix(".samples"), read_samples(measured, journal.facts.run_id))


def publishable(plan: Plan) -> dict[str, Any]:
    """Return the resolved plan as JSON that may be published: of a model's path only its last part."""
    clean = of_this_process()
    described = plan.as_dict()
    for named in (described["server"], *described["experiments"]):
        if named["model"] is not None:
            named["model"] = clean.model_name(named["model"])
    return json.loads(json.dumps(clean.json(described)))


def seed_of(journal: Journal) -> int:
    """Return the seed by which the run was shuffled."""
    return journal.facts.plan["run"]["seed"]


def _api(journal: Journal) -> str:
    return str(journal.facts.server.get("api"))
