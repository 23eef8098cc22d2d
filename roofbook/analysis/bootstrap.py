"""Intervals of a fit without assuming how errors are distributed: lengths and their runs are drawn again and again."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from roofbook.analysis.regression import LEVEL, Interval, fit

LENGTHS_AT_LEAST: Final = 8
"""With fewer lengths a draw repeats some so often that the fit's terms can no longer be told apart."""

RUNS_AT_LEAST: Final = 5
"""Of a length: a median of fewer is drawn from hardly anything."""

DRAWS: Final = 2000


def bootstrap(
    lengths: Sequence[tuple[float, Sequence[float]]],
    powers: tuple[int, ...],
    random: np.random.Generator,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> tuple[Interval, ...] | None:
    """Return percentile intervals of the coefficients; *lengths* are (x, the single runs' y).

    Lengths are drawn as clusters, then runs within each, and each draw is fitted to its medians. None where there are
    too few of either: then the t intervals of the fit are the ones to print.
    """
    if len(lengths) < LENGTHS_AT_LEAST or min(len(runs) for _, runs in lengths) < RUNS_AT_LEAST:
        return None
    mid = fit([x for x, _ in lengths], [float(np.median(runs)) for _, runs in lengths], powers)
    if mid is None:
        return None
    drawn: list[tuple[float, ...]] = []
    for _ in range(draws):
        places: list[int] = random.integers(len(lengths), size=len(lengths)).tolist()
        chosen = [lengths[place] for place in places]
        medians = [float(np.median(random.choice(np.asarray(runs), size=len(runs)))) for _, runs in chosen]
        again = fit([x for x, _ in chosen], medians, powers)
        if again is not None:
            drawn.append(again.coefficients)
    low, high = np.quantile(np.asarray(drawn), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return tuple(
        Interval(middle, float(below), float(above))
        for middle, below, above in zip(mid.coefficients, low, high, strict=True)
    )
