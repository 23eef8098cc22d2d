"""What is known besides the rows: the models and machines that they name, looked up once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from roofbook.errors import UsageError
from roofbook.facts import Facts
from roofbook.record import Row
from roofbook.theory.shapes import Machine, Model

_Name = tuple[str | None, str | None]


@dataclass(frozen=True)
class Known:
    """Shapes by the rows' own names; a rule that lacks what it needs says nothing."""

    models: Mapping[_Name, Model] = field(default_factory=dict[_Name, Model])
    """By the row's ``model`` and ``quantization``."""
    machines: Mapping[str | None, Machine] = field(default_factory=dict[str | None, Machine])
    """By the row's ``machine``."""

    def model(self, row: Row) -> Model | None:
        return self.models.get((row.get("model"), row.get("quantization")))

    def machine(self, row: Row) -> Machine | None:
        return self.machines.get(row.get("machine"))


def known_of(rows: Iterable[Row], facts: Facts) -> Known:
    """Return what the catalogue knows of the models (by digest, else by name) and machines of *rows*."""
    models: dict[_Name, Model] = {}
    machines: dict[str | None, Machine] = {}
    for row in rows:
        key = (row.get("model"), row.get("quantization"))
        if key not in models and (model := _model(row, facts)) is not None:
            models[key] = model
        name = row.get("machine")
        if name is not None and name not in machines and (machine := _machine(name, facts)) is not None:
            machines[name] = machine
    return Known(models, machines)


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
