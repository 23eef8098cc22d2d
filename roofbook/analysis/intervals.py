"""What n numbers say about their middle and their tail, without assuming how they are distributed."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from scipy import stats

from roofbook.analysis.regression import LEVEL

REQUESTS_FOR_P99: Final = 100
"""Below this the slowest one per cent is not even one request."""

REQUESTS_FOR_A_FIRM_P99: Final = 500
"""Below this the 99th percentile rests on fewer than five requests."""


@dataclass(frozen=True)
class MedianInterval:
    """Two of the ordered values between which the true median lies with probability *level*, exactly."""

    low: float
    high: float
    level: float


@dataclass(frozen=True)
class Summary:
    """One figure of one point: how many numbers, their middle with its interval, their extremes, their tail.

    *n* is how many requests stand behind it, None where a row stands for an unknown number; *rows* how many numbers.
    """

    n: int | None
    rows: int
    median: float | None
    interval: MedianInterval | None
    low: float | None
    high: float | None
    p99: float | None
    """Hidden (None) below REQUESTS_FOR_P99."""

    @property
    def p99_is_weak(self) -> bool:
        """True where the 99th percentile is shown but must be marked."""
        return self.p99 is not None and self.rows < REQUESTS_FOR_A_FIRM_P99

    @property
    def p99_missing(self) -> int:
        """How many more requests a 99th percentile takes."""
        return max(0, REQUESTS_FOR_P99 - self.rows)


NOTHING: Final = Summary(0, 0, None, None, None, None, None)


def summary(singles: Sequence[float], medians: Sequence[tuple[float, int]] = ()) -> Summary:
    """Summarise single values, and medians that stand for several (value, how many; 0: unknown).

    Where medians are among them, only their middle is known: no interval, no extremes, no tail.
    """
    values = [*singles, *(value for value, _ in medians)]
    if not values:
        return NOTHING
    middle = float(np.median(values))
    if medians:
        known = all(runs for _, runs in medians)
        n = len(singles) + sum(runs for _, runs in medians) if known else None
        return Summary(n, len(values), middle, None, None, None, None)
    p99 = percentile(values, 0.99) if len(values) >= REQUESTS_FOR_P99 else None
    return Summary(len(values), len(values), middle, median_interval(values), min(values), max(values), p99)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of the values that at least *share* of them do not exceed: one that was really measured."""
    return sorted(values)[max(0, math.ceil(share * len(values) - 1e-9) - 1)]


def median_interval(values: Sequence[float], level: float = LEVEL) -> MedianInterval | None:
    """Return the narrowest symmetric order-statistic interval of the median with at least *level*; exact binomial.

    Where even the extremes do not reach it (five values: 93.75 %, three: 75 %), they are returned with the level they
    have. None for a single value.
    """
    ordered, n = sorted(values), len(values)
    if n < 2:
        return None
    inside = _inside(n, level)
    return MedianInterval(ordered[inside - 1], ordered[n - inside], _coverage(inside, n))


@cache
def _inside(n: int, level: float) -> int:
    """Return how far from either end the interval may begin and still hold the median with *level*; 1: the extreme."""
    # The further inside, the smaller the coverage, so the last place that still has it is found by halving.
    return max(1, bisect_right(range(1, n // 2 + 1), -level, key=lambda inside: -_coverage(inside, n)))


def _coverage(inside: int, n: int) -> float:
    """Return the probability that the median lies between the values *inside*-th from either end."""
    return 1 - 2 * float(stats.binom.cdf(inside - 1, n, 0.5))
