"""A prefill curve's rows by prompt length: what was timed, each length's median, the points that a law is fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Length:
    """One prompt length: the medians of its rows, milliseconds, and between which values they lay."""

    tokens: float
    prefill_ms: float
    low_ms: float
    high_ms: float
    rows: int
    runs: int | None
    """How many requests stand behind it, where that is known."""
    contexts: tuple[int, ...]
    """The context limits it ran under (tokens): a condition that may differ inside a curve."""
    spread_share: float | None
    """Standard deviation of the rows / their mean; None for one row."""

    @property
    def ms_per_token(self) -> float:
        return self.prefill_ms / self.tokens

    @property
    def tok_per_s(self) -> float:
        return 1000 * self.tokens / self.prefill_ms


def timed_rows(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the finished rows with their ``tokens`` and ``time_ms``, and whose clock that time is."""
    finished = rows[rows["status"].eq("ok").fillna(False) & rows["prompt_tokens"].gt(0).fillna(False)]
    clock = "server" if len(finished) and finished["server_prefill_ms"].notna().all() else "client"
    times = finished["server_prefill_ms" if clock == "server" else "ttft_ms"]
    kept = finished.assign(tokens=finished["prompt_tokens"], time_ms=times)
    usable = kept["time_ms"].gt(0).fillna(False) & kept["time_ms"].lt(np.inf).fillna(False)
    return kept[usable], clock


def lengths_of(timed: pd.DataFrame) -> tuple[Length, ...]:
    lengths = [_length(group) for _, group in timed.groupby(_cells(timed))]
    return tuple(sorted(lengths, key=lambda length: length.tokens))


def _cells(timed: pd.DataFrame) -> "pd.Series[int]":
    """Return what names each row's length: the wanted one; counted ones differ by a token or two between repeats."""
    return timed["prompt_tokens_wanted"].fillna(timed["prompt_tokens"]).astype("int64")


def _length(group: pd.DataFrame) -> Length:
    times = group["time_ms"].to_numpy(dtype=float)
    stands_for = group["aggregate_of"].fillna(1)
    return Length(
        tokens=float(np.median(group["tokens"].to_numpy(dtype=float))),
        prefill_ms=float(np.median(times)),
        low_ms=float(times.min()),
        high_ms=float(times.max()),
        rows=len(group),
        runs=None if stands_for.eq(0).any() else int(stands_for.sum()),
        contexts=tuple(sorted(int(limit) for limit in group["context_limit_tokens"].dropna().unique())),
        spread_share=float(times.std(ddof=1) / times.mean()) if len(times) > 1 else None,
    )


@dataclass(frozen=True)
class Points:
    """What is fitted: tokens, ms, and the length (by its place, shortest first) that each point belongs to."""

    tokens: list[float]
    times: list[float]
    lengths: list[int]

    def without(self, length: int) -> "Points":
        kept = [place for place, own in enumerate(self.lengths) if own != length]
        return Points(
            [self.tokens[place] for place in kept],
            [self.times[place] for place in kept],
            [self.lengths[place] for place in kept],
        )


def points_of(timed: pd.DataFrame, lengths: Sequence[Length]) -> Points:
    aggregates = timed["aggregate_of"].notna()
    if aggregates.any() and not aggregates.all():
        tokens, times = [length.tokens for length in lengths], [length.prefill_ms for length in lengths]
        return Points(tokens, times, list(range(len(lengths))))
    cells = _cells(timed)
    middles = timed["tokens"].astype(float).groupby(cells).median().sort_values(kind="stable")
    places = {cell: place for place, cell in enumerate(middles.index)}
    return Points(
        [float(tokens) for tokens in timed["tokens"]],
        [float(time) for time in timed["time_ms"]],
        [places[cell] for cell in cells],
    )


def repeat_spread(timed: pd.DataFrame) -> float | None:
    """Pool the relative scatter of single requests at one length; medians of several say nothing about it."""
    single = timed[timed["aggregate_of"].isna()]
    cells = _cells(single)
    logs = np.log(single["time_ms"].to_numpy(dtype=float))
    groups = [logs[(cells == cell).to_numpy()] for cell in cells.unique()]
    freedom = sum(len(group) - 1 for group in groups)
    if freedom < 1:
        return None
    return float(np.sqrt(sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / freedom))
