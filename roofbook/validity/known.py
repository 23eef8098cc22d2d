"""What is known besides the rows: the models and machines that they name, looked up once.

The catalogue comes first. What it does not have, the run itself may: its server described the model, its host measured
what the processor reaches.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from roofbook.errors import ReaderError, UsageError
from roofbook.facts import Facts
from roofbook.readers.reading import from_json
from roofbook.record import Row, RunFacts
from roofbook.theory.shapes import Ceilings, Machine, Model, Spread

_Name = tuple[str | None, str | None]


@dataclass(frozen=True)
class Known:
    """Shapes by the rows' own names; a rule that lacks what it needs says nothing."""

    models: Mapping[_Name, Model] = field(default_factory=dict[_Name, Model])
    """By the row's ``model`` and ``quantization``."""
    machines: Mapping[str | None, Machine] = field(default_factory=dict[str | None, Machine])
    """By the row's ``machine``."""
    processors: Mapping[str | None, Ceilings] = field(default_factory=dict[str | None, Ceilings])
    """What a run measured of its machine's processor, by the row's ``machine``."""

    def model(self, row: Row) -> Model | None:
        """Return the shape of the row's model."""
        return self.models.get((row.get("model"), row.get("quantization")))

    def machine(self, row: Row) -> Machine | None:
        """Return the row's machine.

        Where no part of the model ran on a GPU, with what the run measured of the processor; elsewhere that bounds
        nothing.
        """
        name = row.get("machine")
        machine, processor = self.machines.get(name), self.processors.get(name)
        if processor is None or row.get("gpu_fraction") != 0:
            return machine
        return replace(machine or Machine(str(name)), measured=processor)


def known_of(rows: Iterable[Row], facts: Facts, runs: Iterable[RunFacts] = ()) -> Known:
    """Return what is known of the models (by digest, else by name) and machines of *rows*.

    *runs* are the facts of the runs they come from: they fill what the catalogue does not have.
    """
    models: dict[_Name, Model] = {}
    machines: dict[str | None, Machine] = {}
    # Each name once: a catalogue that lacks one searches for near ones, and a run has thousands of rows.
    asked: set[object] = set()
    for row in rows:
        key = (row.get("model"), row.get("quantization"))
        named = (*key, row.get("model_digest"))
        if key not in models and named not in asked and (model := _model(row, facts)) is not None:
            models[key] = model
        name = row.get("machine")
        if name is not None and name not in asked and (machine := _machine(name, facts)) is not None:
            machines[name] = machine
        asked |= {named, name}
    processors: dict[str | None, Ceilings] = {}
    for run in runs:
        key = (run.server.get("model_name"), run.server.get("quantization"))
        if key not in models and (model := stored_model(run)) is not None:
            models[key] = model
        ceilings, name = processor_ceilings(run.host), run.host.get("machine")
        if ceilings is not None and isinstance(name, str):
            processors[name] = ceilings
    return Known(models, machines, processors)


def stored_model(run: RunFacts) -> Model | None:
    """Return the model as the run's server described it; None where the run did not keep that, or not whole."""
    try:
        return from_json(run.server["model"]).model
    except (KeyError, ReaderError):
        return None


def processor_ceilings(host: Mapping[str, Any]) -> Ceilings | None:
    """Return what a run's host measured of its processor, with n and spread; None where it measured nothing."""
    value = host.get("ceilings")
    if not isinstance(value, dict):
        return None
    found = cast("dict[str, Any]", value)
    bandwidth, flops = _spread(found.get("bandwidth_bytes_per_s")), _spread(found.get("flops_per_s"))
    if bandwidth is None and flops is None:
        return None
    return Ceilings(bandwidth, flops, measured_on="cpu", source=str(found.get("source") or ""))


def _spread(value: object) -> Spread | None:
    if not isinstance(value, dict):
        return None
    found = cast("dict[str, Any]", value)
    try:
        median, low, high = (float(found[name]) for name in ("median", "low", "high"))
    except (KeyError, TypeError, ValueError):
        return None
    n = found.get("n")
    counted = n if isinstance(n, int) and not isinstance(n, bool) and n > 0 else None
    return Spread(median, low, high, counted) if 0 < low <= median <= high < float("inf") else None


def _model(row: Row, facts: Facts) -> Model | None:
    names, digests = ([value] if value else [] for value in (row.get("model"), row.get("model_digest")))
    found = facts.find(names, digests)
    if found is None:
        return None
    quantization = row.get("quantization") or (found.file.quantization if found.file else None)
    return found.model.quantized(quantization) if quantization else found.model.shape


def _machine(name: str, facts: Facts) -> Machine | None:
    try:
        return facts.machine(name).machine
    except UsageError:
        return None
