"""A measured value that has a target."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """What was measured, and the most that it should be, in the same unit."""

    what: str
    value: float
    most: float
    unit: str = ""

    @property
    def share(self) -> float:
        """The value over the target: up to 1 it is met."""
        return self.value / self.most

    def __str__(self) -> str:
        return f"{self.what}: {self.value:.4g} {self.unit}".rstrip()


def table(goals: Sequence[Goal]) -> list[str]:
    """Return the goals as lines: measured, target, and one over the other."""
    width = max((len(goal.what) for goal in goals), default=0)
    head = f"{'':{width}} | measured |  target | measured / target"
    return [
        head,
        *(f"{one.what:{width}} | {one.value:8.4g} | {one.most:7g} | {one.share:5.2f}  {one.unit}" for one in goals),
    ]
