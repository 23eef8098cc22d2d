"""What the concept pages are made from: the facts, the runs, and each subject with what is known of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from roofbook.analysis.latency import Point
from roofbook.analysis.prefill import Curve
from roofbook.analysis.reference import DecodeStand, decode_stands
from roofbook.analysis.steps import StepLaw, step_laws
from roofbook.facts import Facts, MachineFact
from roofbook.pages.subjects import SubjectView
from roofbook.record import Run
from roofbook.theory.shapes import Machine, Model

ROOMY_MACHINE: Final = "mac-mini-m4-32gb"
FAST_MACHINE: Final = "desktop-rtx-4060-ti-8gb"
"""The two machines that the pages compare: much memory, and fast memory."""


@dataclass(frozen=True)
class Measured:
    """A subject with its prefill curve and its points; model and machine where the catalogue or a run knows them."""

    view: SubjectView
    curve: Curve
    points: tuple[Point, ...]
    model: Model | None
    machine: Machine | None

    @property
    def shortest(self) -> Point | None:
        """The point whose decode rate has the least context behind it: single requests before medians."""
        known = [point for point in self.points if point.decode.median is not None and point.prompt_tokens is not None]
        best = max((point.decode.rows for point in known), default=0)
        return min(
            (point for point in known if point.decode.rows == best),
            key=lambda point: point.prompt_tokens or 0,
            default=None,
        )


@dataclass(frozen=True)
class World:
    """Everything there is to tell of."""

    facts: Facts
    runs: Sequence[Run]
    views: Sequence[SubjectView]

    @cached_property
    def measured(self) -> tuple[Measured, ...]:
        """The subjects in the site's order; self-tests only while there is nothing else."""
        real = [view for view in self.views if not view.subject.is_self_test]
        return tuple(self._measured(view) for view in real or self.views)

    @cached_property
    def stands(self) -> tuple[DecodeStand, ...]:
        """The published decode rates against their chips: hundreds of models are weighed for them, so only once."""
        return decode_stands(self.facts.published)

    @cached_property
    def laws(self) -> tuple[StepLaw, ...]:
        """What a step costs besides its bytes, machine by machine."""
        return step_laws(self.stands)

    @property
    def leading(self) -> Measured | None:
        """The first subject with a prefill law and a known model: the one that predictions are made for."""
        return next((one for one in self.measured if one.curve.law is not None and one.model is not None), None)

    def machine(self, name: str) -> MachineFact | None:
        """Return a machine of the catalogue, None where someone has taken it out."""
        return self.facts.machines.get(name)

    def _measured(self, view: SubjectView) -> Measured:
        return Measured(
            view=view,
            curve=view.curve,
            points=tuple(view.points),
            model=view.equipment.model,
            machine=view.equipment.machine,
        )
