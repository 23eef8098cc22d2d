"""Least squares of a polynomial in x, weighted by what measurement noise of times looks like, with honest intervals.

A time's scatter grows with the time, so its variance is taken proportional to y^2 (``variance_power=2``): every length
counts by its relative error. ``variance_power=0`` is ordinary least squares, kept to show the difference.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import stats

LEVEL: Final = 0.95
"""The level of every interval that is not asked for otherwise."""

_ROUNDING: Final = 1e-12
"""A relative residual below this is the floating point's, not the data's: its logarithm would say nonsense."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its bounds, in the estimate's unit; a bound below zero says that the data do not bound it."""

    mid: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Fit:
    """A fitted sum of ``coefficients[i] * x ** powers[i]``, with at least one degree of freedom left."""

    powers: tuple[int, ...]
    coefficients: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    variance_power: float
    sigma: float
    """Residual standard deviation in weighted units: with variance_power 2 a share of the value."""
    n: int
    residuals: tuple[float, ...]
    """Of each point, in its order: fitted / measured - 1."""
    aicc: float | None
    """Akaike's criterion corrected for few points (the variance counted as a parameter); None where n is too small."""

    @property
    def degrees_of_freedom(self) -> int:
        return self.n - len(self.powers)

    def coefficient(self, power: int) -> float:
        """Return the coefficient of x^power, 0 where the law has no such term."""
        return self.coefficients[self.powers.index(power)] if power in self.powers else 0.0

    def coefficient_interval(self, power: int, level: float = LEVEL) -> Interval:
        """Return a coefficient with its t interval. Raises ValueError for a power the law does not have."""
        index = self.powers.index(power)
        mid = self.coefficients[index]
        return self._around(mid, self.covariance[index][index], level)

    def ratio(self, over: int, under: int, level: float = LEVEL) -> Interval:
        """Return the coefficient of x^over / that of x^under, with its interval to first order (delta method).

        Both come from one fit and vary together, so the bounds are not those of either of them, divided.
        Raises ValueError for a power the law does not have, ZeroDivisionError for an *under* of zero.
        """
        i, j = self.powers.index(over), self.powers.index(under)
        top, bottom = self.coefficients[i], self.coefficients[j]
        ratio = top / bottom
        scatter = self.covariance[i][i] - 2 * ratio * self.covariance[i][j] + ratio**2 * self.covariance[j][j]
        return self._around(ratio, scatter / bottom**2, level)

    def value(self, x: float) -> float:
        """Return the fitted value at *x*."""
        return sum(c * x**p for c, p in zip(self.coefficients, self.powers, strict=True))

    def term_share(self, power: int, x: float) -> float | None:
        """Return the share that the term x^power has in the fitted value at *x*; None where that value is zero."""
        value = self.value(x)
        return self.coefficient(power) * x**power / value if value else None

    def mean_band(self, x: float, level: float = LEVEL) -> Interval:
        """Return where the law itself lies at *x*."""
        return self._around(self.value(x), self._law_variance(x), level)

    def prediction(self, x: float, level: float = LEVEL) -> Interval:
        """Return where one more point of the kind that was fitted would lie at *x*, if the law holds there."""
        value = self.value(x)
        noise = self.sigma**2 * abs(value) ** self.variance_power
        return self._around(value, self._law_variance(x) + noise, level)

    def _law_variance(self, x: float) -> float:
        row = np.array([x**p for p in self.powers])
        return float(row @ np.array(self.covariance) @ row)

    def _around(self, mid: float, variance: float, level: float) -> Interval:
        half = _t_quantile(level, self.degrees_of_freedom) * math.sqrt(max(variance, 0.0))
        return Interval(mid, mid - half, mid + half)


def fit(x: Sequence[float], y: Sequence[float], powers: Sequence[int], variance_power: float = 2.0) -> Fit | None:
    """Return the least-squares fit with variance proportional to y^variance_power.

    None where it cannot be judged: no degree of freedom left, too few different *x*, or a *y* that is not positive.
    """
    if len(x) <= len(powers):
        return None
    solved = _solve(x, y, powers, variance_power)
    if solved is None:
        return None
    coefficients, spread, squares = solved
    n, freedom = len(x), len(x) - len(powers)
    values = [sum(c * xi**p for c, p in zip(coefficients, powers, strict=True)) for xi in x]
    return Fit(
        powers=tuple(powers),
        coefficients=coefficients,
        covariance=tuple(tuple(float(c) for c in row) for row in spread * (squares / freedom)),
        variance_power=variance_power,
        sigma=math.sqrt(squares / freedom),
        n=n,
        residuals=tuple(value / yi - 1 for value, yi in zip(values, y, strict=True)),
        aicc=_aicc(squares, sum(yi ** (2 - variance_power) for yi in y), n, len(powers)),
    )


@dataclass(frozen=True)
class LackOfFit:
    """Whether a law misses the means of repeats by more than the repeats scatter: an F test."""

    f: float
    freedom: tuple[int, int]
    p_value: float


def lack_of_fit(law: Fit, y: Sequence[float], groups: Sequence[int]) -> LackOfFit | None:
    """Test *law* against the *y* it was fitted to; *groups* says which of them repeat one another.

    What is left splits in two: the repeats' scatter around their own mean, and the rest. None where nothing was
    repeated, or the law has as many coefficients as there are groups. Draper and Smith, Applied Regression Analysis.
    """
    values, cells = np.asarray(y, dtype=float), np.asarray(groups)
    distinct = np.unique(cells)
    missed, repeated = len(distinct) - len(law.powers), len(values) - len(distinct)
    if missed < 1 or repeated < 1:
        return None
    scatter = 0.0
    for cell in distinct:
        own = values[cells == cell]
        weights = own**-law.variance_power
        scatter += float((weights * (own - np.average(own, weights=weights)) ** 2).sum())
    if scatter <= 0:
        return None
    left = law.sigma**2 * law.degrees_of_freedom
    f = max(0.0, left - scatter) / missed / (scatter / repeated)
    return LackOfFit(f, (missed, repeated), float(stats.f.sf(f, missed, repeated)))


def leave_one_out(
    x: Sequence[float], y: Sequence[float], powers: Sequence[int], groups: Sequence[int] | None = None
) -> tuple[float, ...] | None:
    """Return, for each point, predicted / measured - 1 by the fit of all the others; None where one cannot be made.

    With *groups* whole groups are left out, in their order, and each is held by the medians of its x and its y.
    """
    cells = np.arange(len(x)) if groups is None else np.asarray(groups)
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    errors: list[float] = []
    for cell in np.unique(cells):
        left_out = cells == cell
        without = _solve(xs[~left_out].tolist(), ys[~left_out].tolist(), powers, variance_power=2)
        if without is None:
            return None
        at = float(np.median(xs[left_out]))
        predicted = sum(c * at**p for c, p in zip(without[0], powers, strict=True))
        errors.append(predicted / float(np.median(ys[left_out])) - 1)
    return tuple(errors) if errors else None


def root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(sum(value**2 for value in values) / len(values))


@cache
def _t_quantile(level: float, freedom: int) -> float:
    return float(stats.t.ppf((1 + level) / 2, freedom))


def _solve(
    x: Sequence[float], y: Sequence[float], powers: Sequence[int], variance_power: float
) -> tuple[tuple[float, ...], npt.NDArray[np.float64], float] | None:
    """Return coefficients, their covariance for unit variance, and the weighted sum of squares that is left."""
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(np.unique(xs)) < len(powers) or not (xs > 0).all() or not (ys > 0).all():
        return None
    root_weight = ys ** (-variance_power / 2)
    design = np.column_stack([xs**p for p in powers]) * root_weight[:, None]
    target = ys * root_weight
    # Columns brought to one length: T and T^2 differ by four orders of magnitude.
    scale = np.sqrt((design**2).sum(axis=0))
    q, r = np.linalg.qr(design / scale)
    inverse = np.linalg.inv(r) / scale[:, None]
    coefficients = inverse @ (q.T @ target)
    left = target - design @ coefficients
    return tuple(float(c) for c in coefficients), inverse @ inverse.T, float(left @ left)


def _aicc(squares: float, total: float, n: int, parameters: int) -> float | None:
    counted = parameters + 1  # the variance is estimated too
    if n <= counted + 1:
        return None
    mean = max(squares, total * _ROUNDING**2) / n
    return n * math.log(mean) + 2 * counted + 2 * counted * (counted + 1) / (n - counted - 1)
