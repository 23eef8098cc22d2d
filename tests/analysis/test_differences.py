"""Exact tests of differences, and what justifies a weighting."""

import pytest

from roofbook.analysis.differences import difference, scatter

SHORT = [286.0, 293.0, 302.0, 282.0, 291.0]
LONG = [17499.0, 17846.0, 17809.0, 18067.0, 17905.0]


def test_two_separate_samples_differ_as_much_as_dealing_out_allows() -> None:
    """Three against three, all apart: 2 of 20 ways lie as far, p = 0.1; no smaller p exists."""
    found = difference([1.0, 1.1, 1.2], [2.0, 2.2, 2.4])
    assert found is not None
    assert (found.p_value, found.exact, found.n) == (0.1, True, (3, 3))
    assert found.least_p_value == found.p_value
    assert found.share == pytest.approx(1.0)


def test_two_equal_samples_do_not_differ() -> None:
    """Every dealing lies as far apart as nothing."""
    found = difference([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert found is not None
    assert (found.share, found.p_value) == (pytest.approx(0), 1.0)


def test_five_against_five_can_be_told_apart() -> None:
    """2 of 252 ways: p = 0.0079."""
    found = difference([1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.1, 2.2, 2.3, 2.4])
    assert found is not None
    assert found.p_value == pytest.approx(2 / 252)


def test_large_samples_are_tested_by_their_means() -> None:
    """Forty against forty: too many ways to deal; a shift of 1 % in a scatter of 1 % is found, none is not."""
    first = [100 + (i % 5) - 2 for i in range(40)]
    shifted, same = difference(first, [value * 1.01 for value in first]), difference(first, first)
    assert shifted is not None
    assert same is not None
    assert (shifted.exact, same.exact) == (False, False)
    assert shifted.p_value < 0.01 < 0.9 < same.p_value


@pytest.mark.parametrize(("first", "second"), [([], [1.0, 2.0]), ([1.0], [1.0, 2.0]), ([0.0, 1.0], [1.0, 2.0])])
def test_what_cannot_be_compared_is_not(first: list[float], second: list[float]) -> None:
    """Nothing, a single value, a time of zero."""
    assert difference(first, second) is None


def test_scatter_grows_with_the_time() -> None:
    """Equal variance is rejected (F = 745, p = 1e-5), equal relative variance is not (F = 5.0, p = 0.15).

    7.6 ms at 74 tokens, 207 ms at 3,505: the standard deviation grows like y^0.80.
    """
    found = scatter(SHORT, LONG)
    assert found is not None
    assert (round(found.short_sd, 1), round(found.long_sd)) == (7.6, 207)
    assert found.absolute_f == pytest.approx(745, abs=1)
    assert found.absolute_p == pytest.approx(1e-5, rel=0.1)
    assert (round(found.relative_f, 1), round(found.relative_p, 2)) == (5.0, 0.15)
    assert round(found.exponent, 2) == 0.80


def test_repeats_without_scatter_say_nothing_of_it() -> None:
    """Equal values, or one of them."""
    assert scatter([1.0, 1.0], LONG) is None
    assert scatter([1.0], LONG) is None
