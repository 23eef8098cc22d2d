"""What a subject ran on: machine, model and runtime by the catalogue, completed by what its own runs say of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from roofbook.analysis.reference import PrefillStand
from roofbook.analysis.seen import fastest_prefill
from roofbook.analysis.subjects import Subject
from roofbook.facts import ChipFact, Facts, RuntimeFact
from roofbook.record import Run
from roofbook.theory.shapes import Machine, MacLimit, Model
from roofbook.validity import known_of, records
from roofbook.validity.known import processor_ceilings, stored_model

_MACOS: Final = re.compile(r"\d+")


@dataclass(frozen=True)
class Equipment:
    """A subject's machine, model and runtime; None where neither the catalogue nor a run knows them."""

    machine: Machine | None = None
    """With the limits that the system reported; without a datasheet, what was measured of its processor."""
    model: Model | None = None
    chip: ChipFact | None = None
    """The machine's chip with its sources."""
    runtime: RuntimeFact | None = None
    macos: int | None = None
    """The system's major version, on a Mac that said so."""
    mac_limits: tuple[MacLimit, ...] = ()
    fastest: PrefillStand | None = None
    """The fastest prefill that others published of the same chip."""
    cores: int | None = None
    """Of the processor, all of which its ceilings were measured on; None where the host did not say."""


def equipment_of(subject: Subject, runs: Sequence[Run], facts: Facts) -> Equipment:
    """Return what *subject* ran on; of several *runs* the last one that says something counts."""
    known = known_of(records(subject.rows.head(1)), facts)
    machine = known.machines.get(subject.machine)
    model = known.models.get((subject.model, subject.quantization))
    hosts = [run.facts.host for run in runs if run.facts.host.get("machine") == subject.machine]
    host: Mapping[str, Any] = hosts[-1] if hosts and subject.machine is not None else {}
    chip = None if machine is None or machine.chip is None else facts.chips.get(machine.chip.id)
    return Equipment(
        machine=_machine(subject, machine, host),
        model=model if model is not None else _stored_model(runs),
        chip=chip,
        runtime=facts.runtimes.get(subject.server or ""),
        macos=_macos(host),
        mac_limits=facts.mac_limits,
        fastest=fastest_prefill(facts.published, machine),
        cores=_whole(host.get("cores")),
    )


def _machine(subject: Subject, machine: Machine | None, host: Mapping[str, Any]) -> Machine | None:
    """Return *machine* with what the host says of itself; a host that no catalogue knows is what it measured."""
    if not host:
        return machine
    known = machine or Machine(str(subject.machine), memory_bytes=_whole(host.get("memory_bytes")))
    limits = replace(
        known,
        gpu_limit_bytes=_whole(host.get("gpu_limit_bytes")) or known.gpu_limit_bytes,
        wired_limit_mib=_whole(host.get("wired_limit_mib")) or known.wired_limit_mib,
    )
    ceilings = processor_ceilings(host)
    # The host measures its processor: that bounds a model only where no part of it ran on a GPU.
    if ceilings is None or not subject.rows["gpu_fraction"].eq(0).fillna(False).all():
        return limits
    return replace(limits, measured=ceilings)


def _stored_model(runs: Sequence[Run]) -> Model | None:
    """Return the model as its server described it, where a run kept that."""
    return next((model for run in reversed(runs) if (model := stored_model(run.facts)) is not None), None)


def _macos(host: Mapping[str, Any]) -> int | None:
    version = _MACOS.match(str(host.get("os_version") or ""))
    return int(version.group()) if host.get("os") == "macOS" and version else None


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
