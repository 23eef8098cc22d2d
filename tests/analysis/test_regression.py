"""Least squares with variance proportional to y^2, its intervals, and the criterion of choice."""

import pytest

from roofbook.analysis.regression import Fit, Interval, fit, leave_one_out


def test_a_line_through_the_origin_is_fitted_by_relative_error() -> None:
    """y = ax with weights 1/y^2 gives a = sum(x/y) / sum((x/y)^2)."""
    # By hand: x/y = 1/2, 2/5, 3/6 -> sum 1.4, squares 0.25 + 0.16 + 0.25 = 0.66; a = 1.4/0.66.
    law = fit([1, 2, 3], [2, 5, 6], [1])
    assert law is not None
    assert law.coefficients == pytest.approx((1.4 / 0.66,))
    # Left over: 3 - 1.4^2/0.66 = 0.030303 on two degrees of freedom.
    assert law.sigma == pytest.approx((0.0303030303 / 2) ** 0.5)
    # t(0.975, 2) = 4.30265; standard error = sigma / sqrt(0.66).
    assert law.coefficient_interval(1).high - law.coefficients[0] == pytest.approx(4.30265 * law.sigma / 0.66**0.5)


def test_the_prediction_band_is_the_law_and_one_more_point() -> None:
    """At x = 4 the band is t x sqrt(law's variance + (sigma x value)^2)."""
    law = fit([1, 2, 3], [2, 5, 6], [1])
    assert law is not None
    value, sigma = 4 * 1.4 / 0.66, (0.0303030303 / 2) ** 0.5
    half = 4.30265 * ((4 * sigma) ** 2 / 0.66 + (sigma * value) ** 2) ** 0.5
    band = law.prediction(4)
    assert (band.mid, band.low, band.high) == pytest.approx((value, value - half, value + half), rel=1e-5)


def test_a_ratio_of_coefficients_knows_that_they_vary_together() -> None:
    """To first order Var(b/a) = (Var b - 2 r Cov + r^2 Var a) / a^2 with r = b/a."""
    law = Fit((1, 2), (4.0, 2.0), ((0.04, 0.01), (0.01, 0.09)), 2.0, 0.1, 4, (0.0,) * 4, None)
    # (0.09 - 2 x 0.5 x 0.01 + 0.25 x 0.04) / 16 = 0.005625, its root 0.075; t(0.975, 2) = 4.30265.
    assert law.ratio(2, 1).mid == 0.5
    assert law.ratio(2, 1).high - 0.5 == pytest.approx(4.30265 * 0.075, rel=1e-5)


def test_ordinary_least_squares_is_the_same_with_constant_variance() -> None:
    """variance_power 0: the textbook line through (1,2), (2,3), (3,5) is 1/3 + 1.5 x."""
    law = fit([1, 2, 3], [2, 3, 5], [0, 1], variance_power=0)
    assert law is not None
    assert law.coefficients == pytest.approx((1 / 3, 1.5))


@pytest.mark.parametrize(
    ("x", "y", "powers"),
    [([], [], [1]), ([5], [5], [1]), ([5, 6], [5, 6], [1, 2]), ([5, 5, 5], [5, 6, 7], [1, 2]), ([1, 2], [0, 1], [1])],
)
def test_what_cannot_be_judged_is_not_fitted(x: list[float], y: list[float], powers: list[int]) -> None:
    """No degree of freedom, one single x, or a time of zero: no fit rather than one without an interval."""
    assert fit(x, y, powers) is None


def test_a_perfect_fit_has_finite_numbers() -> None:
    """Rows without any noise leave no residual, and its logarithm must not become minus infinity."""
    law = fit([1, 2, 3, 4, 5], [2, 4, 6, 8, 10], [1])
    assert law is not None
    assert law.aicc is not None
    assert -1000 < law.aicc < 0
    assert law.prediction(10).mid == pytest.approx(20)


def test_leaving_one_out_needs_enough_others() -> None:
    """Two points of aT+bT^2: none can be left out."""
    assert leave_one_out([1, 2], [1, 2], [1, 2]) is None


def test_an_interval_holds_its_bounds() -> None:
    """Bounds belong to an interval."""
    assert [Interval(2, 1, 3).holds(value) for value in (0.9, 1, 3, 3.1)] == [False, True, True, False]
