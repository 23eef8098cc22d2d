"""How prefill time grows with the prompt: the law chosen from the rows, and what it predicts, with intervals.

The rows are fitted, each as it is: a single request as one, a published median (``aggregate_of``) as the one value it
is. So every interval is about one more row of that kind. Where a curve mixes both, each length counts once, by its
median: the two do not scatter alike. What a law is worth is asked of lengths: the rules of how many there must be count
lengths, and what is left out is a whole length, against its median. Repeats of one length share whatever the law misses
there; whether that is more than their own scatter is tested (``lack_of_fit``), and a law that fails predicts nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd
from scipy import optimize

from roofbook.analysis.lengths import Length, Points, lengths_of, points_of, repeat_spread, timed_rows
from roofbook.analysis.regression import (
    Fit,
    Interval,
    LackOfFit,
    fit,
    lack_of_fit,
    leave_one_out,
    root_mean_square,
)

LAWS: Final[tuple[tuple[int, ...], ...]] = ((1,), (1, 2), (0, 1, 2))
"""The candidates aT, aT+bT^2, c+aT+bT^2, as powers of the prompt's tokens T."""

LENGTHS_FOR_A_CHOICE: Final = 5
"""AICc of aT+bT^2 (three parameters with the variance) is undefined under five points."""

LENGTHS_FOR_A_CONSTANT: Final = 8
"""The contract's rule: with fewer points three parameters follow the noise, however small their residuals."""

REJECTED: Final = 0.05
"""A law is ruled out where chance alone would miss the repeats' means by so much less often than this."""

FARTHEST: Final = 64
"""A budget is looked for up to this many times the longest measured prompt; beyond that no fit means anything."""


@dataclass(frozen=True)
class Candidate:
    """A law as it fits these lengths, and how it fares on each length left out (predicted / measured - 1)."""

    powers: tuple[int, ...]
    fit: Fit
    left_out: tuple[float, ...] | None
    lack_of_fit: LackOfFit | None
    """None where no length was repeated: then nothing tells what the law misses from scatter."""

    @property
    def left_out_rms(self) -> float | None:
        return None if self.left_out is None else root_mean_square(self.left_out)


@dataclass(frozen=True)
class HoldOut:
    """The longest length predicted from the shorter ones: what a prediction is worth."""

    powers: tuple[int, ...]
    tokens: float
    measured_ms: float
    predicted_ms: Interval
    fitted_lengths: int

    @property
    def error_share(self) -> float:
        return self.predicted_ms.mid / self.measured_ms - 1

    @property
    def inside(self) -> bool:
        return self.predicted_ms.holds(self.measured_ms)


@dataclass(frozen=True)
class Unseen:
    """A length that the fit never saw, against what it predicts there."""

    length: Length
    predicted_ms: Interval

    @property
    def error_share(self) -> float:
        return self.predicted_ms.mid / self.length.prefill_ms - 1


@dataclass(frozen=True)
class Budget:
    """How many prompt tokens fit a TTFT target: None means that the fit sets no bound within its reach."""

    target_ms: float
    overhead_ms: float
    mid: float | None
    low: float | None
    high: float | None


Rejection = Literal["lack_of_fit", "hold_out"]


@dataclass(frozen=True)
class Curve:
    """A subject's prefill curve. *chosen* is None where the lengths are too few; the candidates may still be drawn."""

    clock: str
    """``server`` where every row has the server's own prefill time, ``client`` where TTFT must stand for it."""
    lengths: tuple[Length, ...]
    candidates: tuple[Candidate, ...]
    chosen: Candidate | None
    held_out: tuple[HoldOut, ...]
    """One for each candidate that the shorter lengths can carry."""
    unseen: tuple[Unseen, ...]
    overhead_ms: float | None
    """Median of TTFT - prefill over the curve's rows; None where the clock is the client's or TTFT is unknown."""
    repeat_spread_share: float | None
    """Pooled relative standard deviation of repeats of one length."""

    @property
    def lengths_missing(self) -> int:
        """How many more lengths a choice takes."""
        return max(0, LENGTHS_FOR_A_CHOICE - len(self.lengths))

    @property
    def longest(self) -> Length | None:
        return self.lengths[-1] if self.lengths else None

    @property
    def rejected(self) -> Rejection | None:
        """What speaks against the chosen law: the repeats' own scatter, or the longest length; None for nothing."""
        held, lack = self.hold_out(), self.chosen and self.chosen.lack_of_fit
        if lack is not None and lack.p_value < REJECTED:
            return "lack_of_fit"
        return "hold_out" if held is not None and not held.inside else None

    @property
    def law(self) -> Fit | None:
        """The chosen law to predict with; None without one, and where its own rows speak against it."""
        return self.chosen.fit if self.chosen is not None and self.rejected is None else None

    def errors(self) -> tuple[float, ...]:
        """Return, of each length, by the chosen law / measured - 1; empty without one."""
        law = self.chosen
        return (
            ()
            if law is None
            else tuple(law.fit.value(length.tokens) / length.prefill_ms - 1 for length in self.lengths)
        )

    def candidate(self, powers: tuple[int, ...]) -> Candidate | None:
        return next((c for c in self.candidates if c.powers == powers), None)

    def ttft(self, tokens: float) -> Interval | None:
        """Return the wait for the first token by the law, the overhead added; ms, None without a law."""
        if self.law is None:
            return None
        band, overhead_ms = self.law.prediction(tokens), self.overhead_ms or 0.0
        return Interval(band.mid + overhead_ms, band.low + overhead_ms, band.high + overhead_ms)

    def contradicted(self, tokens: float, ttft_ms: float) -> Length | None:
        """Return a length of at most *tokens* whose first token was measured to take longer; None without one."""
        overhead_ms = self.overhead_ms or 0.0
        return next(
            (one for one in self.lengths if one.tokens <= tokens and one.prefill_ms + overhead_ms > ttft_ms), None
        )

    def budget(self, target_ms: float) -> Budget | None:
        """Return how many prompt tokens fit *target_ms* of TTFT by the law; None without one."""
        if self.law is None or self.longest is None:
            return None
        return prompt_budget(self.law, target_ms, self.overhead_ms or 0.0, self.longest.tokens)

    def hold_out(self) -> HoldOut | None:
        """Return the hold-out of the chosen law."""
        return next((h for h in self.held_out if self.chosen and h.powers == self.chosen.powers), None)


def prefill_curve(rows: pd.DataFrame, others: pd.DataFrame | None = None) -> Curve:
    """Return the curve through *rows* (one subject's, measured, trusted), held against the subject's *others*.

    Nothing is raised for rows that are few, failed or without times: the curve then says so by what it lacks.
    """
    timed, clock = timed_rows(rows)
    lengths = lengths_of(timed)
    points = points_of(timed, lengths)
    candidates = _candidates(points)
    chosen = choose(candidates, len(lengths))
    unseen: tuple[Unseen, ...] = ()
    if chosen is not None and others is not None:
        other_rows, other_clock = timed_rows(others)
        if other_clock == clock:
            unseen = tuple(Unseen(length, chosen.fit.prediction(length.tokens)) for length in lengths_of(other_rows))
    return Curve(
        clock=clock,
        lengths=lengths,
        candidates=candidates,
        chosen=chosen,
        held_out=_held_out(points, lengths),
        unseen=unseen,
        overhead_ms=_overhead(timed, clock),
        repeat_spread_share=repeat_spread(timed),
    )


def choose(candidates: Sequence[Candidate], lengths: int) -> Candidate | None:
    """Return the candidate with the lowest AICc; None where the lengths are too few to choose."""
    if lengths < LENGTHS_FOR_A_CHOICE:
        return None
    judged = [
        (candidate.fit.aicc, candidate)
        for candidate in candidates
        if candidate.fit.aicc is not None and (0 not in candidate.powers or lengths >= LENGTHS_FOR_A_CONSTANT)
    ]
    return min(judged, key=lambda pair: pair[0])[1] if judged else None


def prompt_budget(law: Fit, target_ms: float, overhead_ms: float, longest_tokens: float) -> Budget:
    """Return how many prompt tokens reach *target_ms* of TTFT when *overhead_ms* of it is no prefill.

    The bounds come from the prediction band: its upper edge meets the target at *low*, its lower one at *high*.
    """
    left_ms = target_ms - overhead_ms

    def reach(edge: Callable[[Interval], float]) -> float | None:
        return _crossing(lambda tokens: edge(law.prediction(tokens)) - left_ms, longest_tokens)

    return Budget(
        target_ms,
        overhead_ms,
        mid=reach(lambda band: band.mid),
        low=reach(lambda band: band.high),
        high=reach(lambda band: band.low),
    )


def _crossing(above: Callable[[float], float], longest_tokens: float) -> float | None:
    """Return the tokens at which *above* first turns positive; 0 where it is from the start, None if never."""
    if above(1.0) >= 0:
        return 0.0
    low = 1.0
    while low < FARTHEST * longest_tokens:
        high = low * 1.25
        if above(high) >= 0:
            return float(optimize.brentq(above, low, high))
        low = high
    return None


def _candidates(points: Points) -> tuple[Candidate, ...]:
    fitted = [(powers, _fit(points, powers)) for powers in LAWS]
    return tuple(
        Candidate(
            powers,
            law,
            leave_one_out(points.tokens, points.times, powers, points.lengths),
            lack_of_fit(law, points.times, points.lengths),
        )
        for powers, law in fitted
        if law is not None
    )


def _fit(points: Points, powers: tuple[int, ...]) -> Fit | None:
    """Return the fit where lengths are left over, too: repeats of two lengths say nothing about a bend."""
    return fit(points.tokens, points.times, powers) if len(set(points.lengths)) > len(powers) else None


def _held_out(points: Points, lengths: Sequence[Length]) -> tuple[HoldOut, ...]:
    if not lengths:
        return ()
    longest, shorter = lengths[-1], points.without(len(lengths) - 1)
    fitted = [(powers, _fit(shorter, powers)) for powers in LAWS]
    return tuple(
        HoldOut(powers, longest.tokens, longest.prefill_ms, law.prediction(longest.tokens), len(lengths) - 1)
        for powers, law in fitted
        if law is not None
    )


def _overhead(timed: pd.DataFrame, clock: str) -> float | None:
    if clock != "server":
        return None
    apart = (timed["ttft_ms"] - timed["time_ms"]).dropna()
    return float(np.median(apart.to_numpy(dtype=float))) if len(apart) else None
