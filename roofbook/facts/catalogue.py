"""The whole catalogue, and how a name finds its entry: by digest, by a listed name, never by likeness."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Final

from roofbook.errors import UsageError
from roofbook.facts.chips import ChipFact, read_chips
from roofbook.facts.machines import MachineFact, read_mac_limits, read_machines, with_card
from roofbook.facts.models import FileFact, ModelFact, read_models
from roofbook.facts.published import PublishedRun, read_published
from roofbook.facts.runtimes import RuntimeFact, read_runtimes
from roofbook.theory.shapes import MacLimit

_NEAR: Final = 5
_DIGEST_AT_LEAST: Final = 12
"""Hexadecimal digits that servers print of a digest: fewer could be anything."""


@dataclass(frozen=True)
class Match:
    """The catalogue's entry for a name or digest, and the file of it where the name means one quantization."""

    model: ModelFact
    file: FileFact | None
    by: str
    """digest, name or id."""


@dataclass(frozen=True)
class Facts:
    """What is known about hardware and models, and who says so."""

    folder: Path
    chips: Mapping[str, ChipFact]
    machines: Mapping[str, MachineFact]
    models: Mapping[str, ModelFact]
    runtimes: Mapping[str, RuntimeFact]
    mac_limits: tuple[MacLimit, ...]

    @cached_property
    def published(self) -> tuple[PublishedRun, ...]:
        """The speeds that others published; raises FactsError where their file is malformed."""
        return read_published(self.folder / "reference_runs.yml", self.chips, self.models)

    def machine(self, name: str) -> MachineFact:
        """Return the machine *name*: an id of machines.yml, or of a discrete card in chips.yml.

        Raises UsageError, listing the near ones, where there is none.
        """
        if name in self.machines:
            return self.machines[name]
        chip = self.chips.get(name)
        if chip is not None and chip.chip.memory_kind == "discrete":
            return with_card(chip)
        if chip is not None:
            with_it = [machine.id for machine in self.machines.values() if machine.machine.chip == chip.chip]
            raise UsageError(
                "'%(name)s' is a chip, not a machine: its memory is not known. Machines with it: %(machines)s",
                name=name,
                machines=", ".join(with_it) or "none",
            )
        cards = [one.id for one in self.chips.values() if one.chip.memory_kind == "discrete"]
        near = _near(name, [*self.machines, *cards])
        raise UsageError("The machine '%(name)s' is not in the catalogue. Near ones: %(near)s", name=name, near=near)

    def model(self, name: str) -> Match:
        """Return what *name* means: an id of models.yml, or a name that an entry lists.

        Raises UsageError, listing the near ones, where there is none.
        """
        found = self.find(names=[name])
        if found is not None:
            return found
        near = _near(name, [*self.models, *self._by_name])
        raise UsageError("The model '%(name)s' is not in the catalogue. Near ones: %(near)s", name=name, near=near)

    def runtime(self, name: str) -> RuntimeFact:
        """Return the runtime *name*; raises UsageError, listing those known, where there is none."""
        if name not in self.runtimes:
            raise UsageError(
                "The runtime '%(name)s' is not in the catalogue; those known are %(known)s",
                name=name,
                known=", ".join(self.runtimes),
            )
        return self.runtimes[name]

    def find(self, names: Iterable[str] = (), digests: Iterable[str] = ()) -> Match | None:
        """Return the entry that one of *digests* means, else one of *names*; None where none is listed."""
        for digest in digests:
            found = self._of_digest(digest)
            if found is not None:
                return found
        for name in names:
            if name.lower() in self._by_name:
                return self._by_name[name.lower()]
        return None

    def _of_digest(self, digest: str) -> Match | None:
        wanted = digest.lower().removeprefix("sha256:").removeprefix("sha256-")
        if len(wanted) < _DIGEST_AT_LEAST:
            return None
        for model in self.models.values():
            for file in model.files:
                if any(known.startswith(wanted) for known in file.digests):
                    return Match(model, file, "digest")
        return None

    @cached_property
    def _by_name(self) -> dict[str, Match]:
        matches: dict[str, Match] = {}
        for model in self.models.values():
            matches[model.id.lower()] = Match(model, None, "id")
            matches |= {name.lower(): Match(model, None, "name") for name in model.aliases}
            matches |= {name.lower(): Match(model, file, "name") for file in model.files for name in file.names}
        return matches


def load_facts(folder: Path) -> Facts:
    """Return the catalogue in *folder* (data/facts of a report); raises FactsError, naming file, entry and key."""
    chips = read_chips(folder / "chips.yml")
    return Facts(
        folder=folder,
        chips=chips,
        machines=read_machines(folder / "machines.yml", chips),
        models=read_models(folder / "models.yml"),
        runtimes=read_runtimes(folder / "runtimes.yml"),
        mac_limits=read_mac_limits(folder / "macos.yml"),
    )


def _near(name: str, known: Iterable[str]) -> str:
    """Return the few of *known* that hold *name* or look like it, those that hold it first."""
    unique = list(dict.fromkeys(known))
    holding = [one for one in unique if len(name) > 1 and name.lower() in one.lower()]
    alike = get_close_matches(name.lower(), unique, n=_NEAR, cutoff=0.4)
    return ", ".join(list(dict.fromkeys([*holding, *alike]))[:_NEAR]) or "none"
