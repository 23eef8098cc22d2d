"""A prefill law for prompts of which a fixed share is in the cache already."""

from dataclasses import replace

from scipy import stats

from roofbook.analysis.regression import LEVEL, Fit


def with_cached_share(law: Fit, share: float) -> Fit:
    """Return *law* as it reads when *share* (0 to 1) of every prompt T is cached: a (T - sT) + b (T^2 - (sT)^2).

    The constant is paid all the same. Its bands scale with the terms, so they stay those of the fit.
    """
    left = [1.0 if power == 0 else 1 - share**power for power in law.powers]
    return replace(
        law,
        coefficients=tuple(value * part for value, part in zip(law.coefficients, left, strict=True)),
        covariance=tuple(
            tuple(value * row_part * part for value, part in zip(row, left, strict=True))
            for row, row_part in zip(law.covariance, left, strict=True)
        ),
    )


def half_width(law: Fit, level: float = LEVEL) -> float:
    """Return how many standard deviations of *law* lie between an estimate and the end of its interval."""
    return float(stats.t.ppf((1 + level) / 2, law.degrees_of_freedom))
