"""How fast a chip was seen to compute, where other people's runs passed what a benchmark without a model reached.

One published matrix product is no physical limit. Where a trusted run is faster, the measured roof is a range: from the
benchmark to the fastest run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from roofbook.analysis.latency import Point
from roofbook.analysis.reference import LONG_PROMPT_TOKENS, PrefillStand, middle, prefill_stands
from roofbook.analysis.standing import doubtful
from roofbook.errors import EstimateError
from roofbook.facts import PublishedRun
from roofbook.theory.roofline import implied_flops_per_s
from roofbook.theory.shapes import Machine, Model


def fastest_prefill(published: Iterable[PublishedRun], machine: Machine | None) -> PrefillStand | None:
    """Return the published prefill on *machine*'s chip with most operations a second; None where there is none."""
    chip = None if machine is None else machine.chip
    if chip is None:
        return None
    stands = prefill_stands(run for run in published if run.chip is not None and run.chip.id == chip.id)
    return max((one for one in stands if one.usable), key=lambda one: one.flops_per_s, default=None)


def own_flops_per_s(points: Sequence[Point], model: Model) -> float | None:
    """Return the most operations a second of the trusted *points*, one request at a time.

    Short prompts do not count: a part of them that all requests share may not have been read at all.
    """
    reached: list[float] = []
    for point in points:
        tokens, prefill_ms = round(point.prompt_tokens or 0), point.prefill.median
        alone = (point.concurrency or 1) == 1 and point.rate_per_s is None
        if not prefill_ms or tokens < LONG_PROMPT_TOKENS or not alone or doubtful(point):
            continue
        try:
            reached.append(middle(implied_flops_per_s(model, tokens, prefill_ms)))
        except EstimateError:
            return None
    return max(reached, default=None)


def as_seen(machine: Machine, *flops_per_s: float | None) -> Machine:
    """Return *machine* with its measured arithmetic reaching up to what was seen of it; without any, as it is."""
    ceilings = machine.ceilings
    seen = max((one for one in flops_per_s if one is not None), default=0.0)
    if ceilings is None or ceilings.flops_per_s is None or seen <= ceilings.flops_per_s.high:
        return machine
    return replace(machine, measured=replace(ceilings, flops_per_s=replace(ceilings.flops_per_s, high=seen)))
