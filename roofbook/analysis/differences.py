"""Do two samples differ, and how does their scatter grow: exact tests, for samples of a handful."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from scipy import stats

SPLITS_AT_MOST: Final = 20_000
"""Up to so many ways of dealing the values out again all of them are tried; beyond, Welch's t test serves."""


@dataclass(frozen=True)
class Difference:
    """Two samples of positive figures: *share* is second / first - 1 by their geometric means."""

    share: float
    p_value: float
    exact: bool
    n: tuple[int, int]

    @property
    def least_p_value(self) -> float:
        """The smallest p value that samples of these sizes can have by the exact test: one of them wholly above.

        Dealt out the other way round, equal sizes lie as far apart once more.
        """
        return (2 if self.n[0] == self.n[1] else 1) / math.comb(sum(self.n), self.n[0])


@dataclass(frozen=True)
class Scatter:
    """How the standard deviation grows from a short time to a long one: what a weighting must follow.

    Each p value is two-sided: small, and equal variance (of the values, of their relative errors) is rejected.
    """

    short_mean: float
    long_mean: float
    short_sd: float
    long_sd: float
    absolute_f: float
    absolute_p: float
    relative_f: float
    relative_p: float

    @property
    def exponent(self) -> float:
        """The power of the mean by which the standard deviation grows: 0 for equal, 1 for relative scatter."""
        return math.log(self.long_sd / self.short_sd) / math.log(self.long_mean / self.short_mean)


def difference(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """Test whether two samples have one mean (of logarithms); None where a sample has under two positive values.

    The exact test deals the values out in every possible way and counts how often they lie as far apart as they do.
    """
    if min(len(first), len(second)) < 2 or min(*first, *second) <= 0:
        return None
    logs = np.log([*first, *second])
    seen = float(logs[len(first) :].mean() - logs[: len(first)].mean())
    exact = math.comb(len(logs), len(first)) <= SPLITS_AT_MOST
    p_value = _permutation_p(logs.tolist(), len(first), seen) if exact else _welch_p(logs, len(first))
    return Difference(math.exp(seen) - 1, p_value, exact, (len(first), len(second)))


def scatter(short: Sequence[float], long: Sequence[float]) -> Scatter | None:
    """Compare the scatter of repeats of a short time with that of a long one; None where either has none to compare."""
    if min(len(short), len(long)) < 2:
        return None
    means = float(np.mean(short)), float(np.mean(long))
    sds = float(np.std(short, ddof=1)), float(np.std(long, ddof=1))
    if min(*means, *sds) <= 0 or means[0] == means[1]:
        return None
    freedom = len(short) - 1, len(long) - 1
    absolute = (sds[1] / sds[0]) ** 2
    relative = ((sds[0] / means[0]) / (sds[1] / means[1])) ** 2
    return Scatter(
        *means,
        *sds,
        absolute_f=absolute,
        absolute_p=_f_p(absolute, freedom[1], freedom[0]),
        relative_f=relative,
        relative_p=_f_p(relative, *freedom),
    )


def _permutation_p(logs: list[float], size: int, seen: float) -> float:
    total, n = sum(logs), len(logs)
    splits = as_far = 0
    for chosen in combinations(logs, size):
        part = sum(chosen)
        apart = (total - part) / (n - size) - part / size
        splits += 1
        as_far += abs(apart) >= abs(seen) - 1e-12
    return as_far / splits


def _welch_p(logs: "np.ndarray[tuple[int], np.dtype[np.float64]]", size: int) -> float:
    parts = logs[:size], logs[size:]
    errors = [float(part.var(ddof=1)) / len(part) for part in parts]
    if sum(errors) == 0:
        return 0.0 if parts[0].mean() != parts[1].mean() else 1.0
    freedom = sum(errors) ** 2 / sum(
        error**2 / (len(part) - 1) for error, part in zip(errors, parts, strict=True) if error
    )
    apart = abs(float(parts[1].mean() - parts[0].mean())) / math.sqrt(sum(errors))
    return 2 * float(stats.t.sf(apart, freedom))


def _f_p(ratio: float, over: int, under: int) -> float:
    """Return the two-sided p value of a ratio of variances."""
    upper = float(stats.f.sf(ratio, over, under))
    return 2 * min(upper, 1 - upper)
