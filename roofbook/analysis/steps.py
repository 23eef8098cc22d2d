"""What a decode step costs besides its bytes: ms a token = bytes / (k x bandwidth) + c, machine by machine."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from roofbook.analysis.reference import DecodeStand, middle
from roofbook.analysis.regression import fit

STEPS_APART: Final = 1.3
"""Two steps must differ by this much in bytes before the line through them tells overhead from bandwidth."""


STEPS_FOR_A_LAW: Final = 3
"""A line through two steps passes both, whatever they are worth."""


@dataclass(frozen=True)
class StepLaw:
    """ms a token = bytes / (k x bandwidth) + c, of one machine as one source measured it."""

    source: str
    machine: str
    chip: str
    vendor: str | None
    steps: int
    """How many pairs of model and quantization it was fitted to."""
    k: float
    c_ms: float
    worst: float | None
    """The largest relative residual; None where two steps leave nothing over."""

    @property
    def doubtful(self) -> bool:
        """True where nothing is left over to judge it by, or where it says what cannot be."""
        return self.steps < STEPS_FOR_A_LAW or self.c_ms < 0 or self.k > 1

    def share(self, ideal_ms: float) -> float:
        """Return the share of the bandwidth that the law gives to a step whose reading takes *ideal_ms*."""
        return ideal_ms / (ideal_ms / self.k + self.c_ms)


def step_laws(stands: Iterable[DecodeStand]) -> tuple[StepLaw, ...]:
    """Return a law for each machine that one source measured with steps far enough apart, in their order.

    Of several lengths of one model in one quantization the fastest step counts: it has the emptiest context.
    """
    series: dict[tuple[str, str, str], dict[tuple[str, str | None], DecodeStand]] = {}
    for stand in stands:
        if stand.usable:
            steps = series.setdefault((stand.source, stand.machine, stand.setting), {})
            known = steps.get((stand.model, stand.quantization))
            if known is None or stand.step_ms < known.step_ms:
                steps[stand.model, stand.quantization] = stand
    return tuple(law for steps in series.values() if (law := _step_law(list(steps.values()))) is not None)


def one_a_machine(laws: Iterable[StepLaw]) -> tuple[StepLaw, ...]:
    """Return the laws without a doubt, of each machine the one with most steps, in their order."""
    best: dict[str, StepLaw] = {}
    for law in laws:
        known = best.get(law.machine)
        if not law.doubtful and (known is None or law.steps > known.steps):
            best[law.machine] = law
    return tuple(best.values())


def _step_law(steps: list[DecodeStand]) -> StepLaw | None:
    ideal, took = [middle(step.ideal_ms) for step in steps], [step.step_ms for step in steps]
    if len(steps) < 2 or max(ideal) / min(ideal) < STEPS_APART:
        return None
    law = fit(ideal, took, (0, 1))
    if law is None:
        slope = (took[1] - took[0]) / (ideal[1] - ideal[0])
        c_ms, worst = took[0] - slope * ideal[0], None
    else:
        (c_ms, slope), worst = law.coefficients, max(abs(residual) for residual in law.residuals)
    if slope <= 0:
        return None
    first = steps[0]
    return StepLaw(first.source, first.machine, first.chip, first.vendor, len(steps), 1 / slope, c_ms, worst)
