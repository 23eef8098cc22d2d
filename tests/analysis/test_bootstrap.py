"""The bootstrap of a fit: where there are enough lengths and runs, and reproducible."""

import numpy as np
import pytest

from roofbook.analysis.bootstrap import bootstrap


def lengths(count: int, runs: int, noise: float) -> list[tuple[float, list[float]]]:
    """Return lengths whose runs lie on 5T + 0.0002 T^2, give or take *noise*, evenly spread."""
    spread = np.linspace(-noise, noise, runs) if runs > 1 else np.zeros(1)
    tokens = [200.0 * 2 ** (i / 1.5) for i in range(count)]
    return [(x, [float((5 * x + 2e-4 * x**2) * (1 + share)) for share in spread]) for x in tokens]


def test_the_intervals_hold_the_truth() -> None:
    """Ten lengths of five runs within 2 %: a is 5 and b is 2e-4, within intervals of a few per cent."""
    found = bootstrap(lengths(10, 5, 0.02), (1, 2), np.random.default_rng(1), draws=400)
    assert found is not None
    a, b = found
    assert (a.holds(5), b.holds(2e-4)) == (True, True)
    assert 0 < a.high - a.low < 0.3


def test_the_same_seed_gives_the_same_intervals() -> None:
    """Randomness is an argument."""
    cells = lengths(8, 5, 0.05)
    first, second = (bootstrap(cells, (1,), np.random.default_rng(3), draws=50) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("count", "runs"), [(7, 5), (8, 4), (8, 1)])
def test_too_few_lengths_or_runs_are_not_drawn_from(count: int, runs: int) -> None:
    """Seven lengths, four runs, published medians alone: the t intervals serve."""
    assert bootstrap(lengths(count, runs, 0.02), (1, 2), np.random.default_rng(1), draws=10) is None
