"""Whose hardware is measured: this machine, the one that a plan names, or one that described itself in a file."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

from collect import host
from collect.host import HostFacts
from collect.plan import Plan
from collect.reach import Reached
from collect.scrub import of_this_process
from roofbook.errors import ReaderError, UsageError
from roofbook.facts import Facts
from roofbook.places import Places
from roofbook.readers.json_file import read_json_file
from roofbook.validity.known import processor_ceilings

FILE_ENDING: Final = ".json"
"""A plan's machine that ends so is a file beside the plan: what `python -m collect facts` printed there."""


@dataclass(frozen=True)
class Hardware:
    """A run's machine: the *id* that its rows carry (None: nobody told), and the *host* that the run keeps."""

    id: str | None
    host: dict[str, Any]


def hardware(plan: Plan, plan_path: Path, facts: Facts, reached: Reached) -> Hardware:
    """Return the machine that *plan* is measured on, as far as this machine, the plan or a file tells it.

    Raises ReaderError where the plan names a file that describes no machine.
    """
    if plan.machine.endswith(FILE_ENDING):
        told = read_host(plan_path, plan)
        described = {**told.facts.as_json(), "machine": told.facts.machine_id(facts)}
        return Hardware(described["machine"], described | told.ceilings)
    here = describe_host(facts, reached)
    if plan.machine != "this":
        return Hardware(plan.machine, here)
    return Hardware(here["machine"] if reached.facts.host_is_server else None, here)


def check_machine(plan: Plan, plan_path: Path, facts: Facts) -> UsageError | None:
    """Return what to say of a machine that no catalogue knows: it can be measured, its limits stay unknown.

    Raises ReaderError where the plan names a file that describes no machine.
    """
    if plan.machine.endswith(FILE_ENDING):
        read_host(plan_path, plan)
    elif plan.machine != "this":
        try:
            facts.machine(plan.machine)
        except UsageError as problem:
            return problem
    return None


def describe_host(facts: Facts, reached: Reached | None = None) -> dict[str, Any]:
    """Return what this machine is, as JSON that may be published; the engine's log knows the limit of a Mac's GPU."""
    log = None if reached is None or reached.engine is None else reached.engine.log
    machine = host.this_host(
        engine_log=log.read_text("utf-8", "replace") if log is not None and log.is_file() else None
    )
    return {**machine.as_json(), "machine": machine.machine_id(facts)}


@dataclass(frozen=True)
class ReadHost:
    """What a machine said of itself; *ceilings* is empty where it measured none, else as the run keeps them."""

    facts: HostFacts
    ceilings: dict[str, Any]


def read_host(plan_path: Path, plan: Plan) -> ReadHost:
    """Return what the machine of *plan* said of itself in the file beside it.

    Raises ReaderError where that file cannot be read or describes no machine.
    """
    path = plan_path.parent / plan.machine
    value = read_json_file(path)
    clean: object = of_this_process().json(value)
    facts = HostFacts.from_json(clean)
    if facts is None:
        raise ReaderError(
            "%(file)s does not say what a machine is. Print it there: python -m collect facts > %(file)s",
            file=path.name,
        )
    ceilings = processor_ceilings(cast("dict[str, Any]", clean))
    return ReadHost(facts, {} if ceilings is None else {"ceilings": asdict(ceilings)})


def engine_log(places: Places) -> Path:
    """Return where the embedded engine of this process writes its log."""
    return places.root / ".cache" / f"engine-{os.getpid()}.log"
