"""Order statistics: what n numbers say about a median and a tail."""

import pytest

from roofbook.analysis.intervals import MedianInterval, median_interval, percentile, summary


@pytest.mark.parametrize(
    ("values", "low", "high", "level"),
    [
        # The extremes miss the median only if all values lie on one side: 1 - 2 / 2^n.
        ([1, 2], 1, 2, 0.5),
        ([3, 1, 2], 1, 3, 0.75),
        ([1, 2, 3, 4, 5], 1, 5, 0.9375),
        ([1, 2, 3, 4, 5, 6], 1, 6, 0.96875),
        # Ten: second to ninth, 1 - 2 (1 + 10) / 1024 = 0.978515625; the third would have 1 - 2 x 56/1024 = 0.89.
        (list(range(1, 11)), 2, 9, 0.978515625),
    ],
)
def test_a_median_lies_between_order_statistics(values: list[float], low: float, high: float, level: float) -> None:
    """The interval is the narrowest that reaches 95 %, else the extremes with the level they have."""
    assert median_interval(values) == MedianInterval(low, high, pytest.approx(level))


def test_one_value_has_no_interval() -> None:
    """A single number bounds nothing."""
    assert median_interval([5]) is None


def test_a_percentile_is_a_value_that_was_measured() -> None:
    """P99 of 1..100 is 99, of 1..200 is 198; P50 of four is the second."""
    assert percentile(list(range(1, 101)), 0.99) == 99
    assert percentile(list(range(1, 201)), 0.99) == 198
    assert percentile([4, 3, 2, 1], 0.5) == 2


@pytest.mark.parametrize(
    ("n", "p99", "weak", "missing"), [(99, None, False, 1), (100, 99, True, 0), (500, 495, False, 0)]
)
def test_p99_is_hidden_below_a_hundred_and_marked_below_five(
    n: int, p99: float | None, weak: bool, missing: int
) -> None:
    """Hidden with 99 values, shown with a mark from 100, plain from 500; what is missing is said."""
    found = summary([float(value) for value in range(1, n + 1)])
    assert (found.p99, found.p99_is_weak, found.p99_missing) == (p99, weak, missing)


def test_a_published_median_has_a_middle_and_nothing_else() -> None:
    """One value that stands for three runs: n is 3, no interval, no extremes; for an unknown number n is unknown."""
    of_three, of_unknown = summary([], [(994.0, 3)]), summary([], [(51.0, 0)])
    assert (of_three.n, of_three.rows, of_three.median, of_three.interval, of_three.low) == (3, 1, 994, None, None)
    assert of_unknown.n is None
