"""machines.yml and macos.yml: whole machines, and how much of a Mac's memory its GPU may use."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roofbook.errors import FactsError
from roofbook.facts.chips import ChipFact
from roofbook.facts.entries import Entry, Provenance, read_document, read_entries
from roofbook.theory.shapes import Machine, MacLimit, Range
from roofbook.units import GIB, MB, MIB

_SIZE: Final = "{memory}"
"""Stands in id and name for the memory's size, where a machine is sold with several."""

_LIMIT_UNITS: Final = {"limit_mib": MIB, "limit_gib": GIB, "limit_mb": MB}


@dataclass(frozen=True)
class MachineFact:
    """A machine with what is known beside its chip, and where that comes from."""

    machine: Machine
    provenance: Provenance
    sold_with_gib: tuple[int, ...] = ()
    """The sizes that this machine is sold with, its own among them."""
    form: str | None = None
    year: int | None = None
    idle_power_w: Range | None = None

    @property
    def id(self) -> str:
        return self.machine.id


def read_machines(path: Path, chips: Mapping[str, ChipFact]) -> dict[str, MachineFact]:
    """Return the machines of the file at *path* by id, one for each size of memory; raises FactsError."""
    machines: dict[str, MachineFact] = {}
    for entry in read_entries(path, "machines"):
        for machine in _machines(entry, chips):
            if machine.id in machines:
                raise FactsError("%(file)s has the id '%(id)s' twice", file=entry.file, id=machine.id)
            machines[machine.id] = machine
    return machines


def with_card(chip: ChipFact) -> MachineFact:
    """Return a machine with the discrete card *chip*, about which nothing else matters here."""
    machine = Machine(chip.id, chip.chip, chip.chip.name, chip.chip.memory_bytes)
    return MachineFact(machine, chip.provenance, chip.memory_gib)


def _machines(entry: Entry, chips: Mapping[str, ChipFact]) -> Iterator[MachineFact]:
    entry.only("id", "name", "chip", "memory_gib", "form", "year", "idle_power_w")
    sizes, name = entry.sizes("memory_gib"), entry.text("name")
    chip = chips.get(entry.text("chip"))
    if chip is None:
        raise FactsError(
            "%(file)s, %(entry)s: the chip '%(chip)s' is not in chips.yml",
            file=entry.file,
            entry=entry.name,
            chip=entry.text("chip"),
        )
    if (_SIZE in entry.name) != isinstance(entry.values["memory_gib"], list):
        raise FactsError(
            "%(file)s, %(entry)s: an id with {memory} in it and a list of memory_gib go together",
            file=entry.file,
            entry=entry.name,
        )
    for size in sizes:
        machine = Machine(
            id=entry.name.replace(_SIZE, str(size)),
            chip=chip.chip,
            name=name.replace(_SIZE, str(size)),
            memory_bytes=size * GIB,
        )
        yield MachineFact(
            machine,
            entry.provenance(),
            sizes,
            entry.text_or_none("form"),
            entry.whole("year"),
            entry.range("idle_power_w"),
        )


def read_mac_limits(path: Path) -> tuple[MacLimit, ...]:
    """Return the observed limits of the file at *path*; raises FactsError."""
    document = read_document(path)
    document.only("schema_version", "limits", provenance=False)
    return tuple(_limit(entry) for entry in document.inners("limits"))


def _limit(entry: Entry) -> MacLimit:
    entry.only("macos", "memory_gib", *_LIMIT_UNITS)
    given = [key for key in _LIMIT_UNITS if entry.number(key) is not None]
    if len(given) != 1:
        raise FactsError(
            "%(file)s, %(entry)s: one of %(keys)s is wanted, not %(count)d of them",
            file=entry.file,
            entry=entry.name,
            keys=", ".join(_LIMIT_UNITS),
            count=len(given),
        )
    figure = entry.number(given[0]) or 0
    return MacLimit(
        macos=entry.needed("macos"),
        memory_bytes=entry.needed("memory_gib") * GIB,
        limit_bytes=round(figure * _LIMIT_UNITS[given[0]]),
        source=entry.text("source"),
    )
