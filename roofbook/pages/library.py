"""What prose may quote: subjects with their numbers and figures, and the machines and models of the catalogue."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final

from roofbook.analysis.quantities import Known, Quantities, machine_quantities, model_quantities, subject_quantities
from roofbook.charts.cache import Drawn
from roofbook.errors import PageError, UsageError
from roofbook.facts import Facts
from roofbook.pages.settings import Named
from roofbook.pages.subjects import SubjectView, subject_views
from roofbook.record import Run
from roofbook.words import Words

_NEAR: Final = 6


@dataclass(frozen=True)
class Placeable:
    """A figure of a subject that prose may place, and where its table is published."""

    drawn: Drawn
    csv: str


@dataclass(frozen=True)
class Quotable:
    """A subject with its pages, by their topic, and its figures."""

    view: SubjectView
    topics: Mapping[str, str]
    figures: Sequence[Placeable]

    @property
    def tables(self) -> dict[str, bytes]:
        """The tables of its figures, by address."""
        return {one.csv: one.drawn.figure.table.csv().encode() for one in self.figures}


@dataclass(frozen=True)
class Source:
    """Whose numbers they are: a subject (then with its page and its figures), or a machine or model of the catalogue.

    There are no quantities for a subject that mkdocs.yml names and nobody has measured in this folder.
    """

    name: str
    title: str
    quantities: Quantities | None
    topics: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its pages, by their topic."""
    figures: Mapping[str, Placeable] = field(default_factory=dict[str, Placeable])

    @property
    def uri(self) -> str | None:
        """The first of its pages."""
        return next(iter(self.topics.values()), None)


def with_short_names(
    measured: Iterable[Quotable],
    named: Mapping[str, Named],
    runs: Sequence[Run],
    facts: Facts,
    draw: Callable[[SubjectView], list[Drawn]],
) -> dict[str, Quotable]:
    """Return the subjects by slug and by short name; *draw* makes the figures of a subject as one run has it."""
    found = {one.view.slug: one for one in measured}
    for name, meant in named.items():
        whole = found.get(meant.subject)
        if whole is None:
            continue
        run_ids = [run.run_id for run in whole.view.runs]
        if meant.run is None or run_ids == [meant.run]:
            found[name] = whole
        elif meant.run in run_ids:
            found[name] = _of_run(whole, name, next(run for run in runs if run.run_id == meant.run), facts, draw)
    return found


def _of_run(whole: Quotable, name: str, run: Run, facts: Facts, draw: Callable[[SubjectView], list[Drawn]]) -> Quotable:
    """Return the subject as *run* alone has it: what a text said of that day stays what it was."""
    view = next(view for view in subject_views([run], facts) if view.slug == whole.view.slug)
    view = replace(view, colour=whole.view.colour)
    figures = [Placeable(drawn, f"data/{name}-{drawn.figure.name}.csv") for drawn in draw(view)]
    return Quotable(view, whole.topics, figures)


class Library:
    """All that prose may quote, in one language: *subjects* by slug or short name, machines and models by their id.

    *named* are the short names of mkdocs.yml; one that is not among the subjects has not been measured here.
    """

    def __init__(
        self, words: Words, facts: Facts, subjects: Mapping[str, Quotable], named: Mapping[str, Named]
    ) -> None:
        self.words = words
        self._facts = facts
        self._subjects = subjects
        self._named = named
        self._sources: dict[str, Source] = {}

    def source(self, name: str) -> Source:
        """Return what *name* means; raises PageError, with the near names, where it means nothing."""
        if name not in self._sources:
            self._sources[name] = self._source(name)
        return self._sources[name]

    def _source(self, name: str) -> Source:
        found = self._subjects.get(name)
        if found is not None:
            figures = {one.drawn.figure.name: one for one in found.figures}
            return Source(name, found.view.title(self.words), self._of_subject(found.view), found.topics, figures)
        if name in self._named:
            return Source(name, self._named[name].subject, None)
        return self._of_catalogue(name)

    def _of_subject(self, view: SubjectView) -> Quantities:
        subject = view.subject
        equipment = view.equipment
        seen = equipment.fastest and equipment.fastest.flops_per_s
        known = Known(equipment.machine, equipment.model, self._facts.mac_limits, seen)
        claims: dict[str, Any] = {}
        for run in view.runs:
            claims |= run.facts.origin.get("claims") or {}
        return subject_quantities(subject, view.found, known, claims)

    def _of_catalogue(self, name: str) -> Source:
        try:
            machine = self._facts.machine(name).machine
            return Source(name, machine.name or name, machine_quantities(machine, self._facts.mac_limits))
        except UsageError:
            match = self._facts.find(names=[name])
        if match is None:
            known = [*self._named, *self._subjects, *self._facts.machines, *self._facts.models]
            raise PageError(
                "Nothing is called '%(name)s': no subject, machine or model. Near ones: %(near)s",
                name=name, near=near(name, known),
            )  # fmt: skip
        model = match.model.quantized(match.file.quantization) if match.file else match.model.shape
        return Source(name, match.model.name, model_quantities(model))


def near(name: str, known: Iterable[str]) -> str:
    """Return the few of *known* that hold *name* or its parts, or look like it."""
    names = list(dict.fromkeys(known))
    alike = get_close_matches(name, names, n=_NEAR, cutoff=0.5)
    holding = [one for one in names if name.lower() in one.lower()]
    last = name.rpartition(".")[2]
    same_end = [one for one in names if one.rpartition(".")[2] == last]
    return ", ".join(list(dict.fromkeys([*alike, *holding, *same_end]))[:_NEAR]) or ", ".join(names[:_NEAR]) or "none"
