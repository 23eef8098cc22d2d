"""The rows of a run as one line a point: how many, median and range. Nothing of it is stored."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from roofbook.record import Row
from roofbook.units import MS_PER_S

NOT_MEASURED: Final = ("refused", "interrupted")
"""Statuses of requests that say nothing about the server."""


@dataclass(frozen=True)
class Spread:
    """Median, smallest and largest of some values."""

    median: float
    low: float
    high: float

    def differs_from(self, wanted: float, share: float) -> bool:
        """Whether any of the values is further from *wanted* than *share* of it."""
        return max(abs(self.low - wanted), abs(self.high - wanted)) > share * wanted


@dataclass(frozen=True)
class PointSummary:
    """One point of an experiment; a spread is None where no row has the value. Only requests that ended well count."""

    experiment: str
    point: str
    n: int
    failed: int
    refused: int
    wanted_tokens: int
    prompt_tokens: Spread | None
    ttft_ms: Spread | None
    prefill_tok_per_s: Spread | None
    tpot_ms: Spread | None


def summarise(rows: Iterable[Row], experiments: Sequence[str]) -> list[PointSummary]:
    """Return the measured points in the order of *experiments*, in each by concurrency and length."""

    def place(row: Row) -> tuple[int, int, int]:
        return experiments.index(row["experiment"]), row["concurrency"], row["prompt_tokens_wanted"]

    points: dict[tuple[str, str], list[Row]] = {}
    for row in sorted((row for row in rows if row["phase"] == "measured"), key=place):
        points.setdefault((row["experiment"], row["point"]), []).append(row)
    return [_summary(experiment, point, found) for (experiment, point), found in points.items()]


def failures(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many requests of the schedule ended in which status other than ok."""
    counts: dict[str, int] = {}
    for row in rows:
        if row["phase"] in ("measured", "anchor") and row["status"] not in ("ok", "interrupted"):
            counts[row["status"]] = counts.get(row["status"], 0) + 1
    return counts


def tpot_ms(row: Row) -> float | None:
    """Return the time per output token after the first, in ms; None where the row cannot tell."""
    first, last, tokens = row.get("ttft_ms"), row.get("last_token_ms"), row.get("output_tokens")
    if first is None or last is None or tokens is None or tokens < 2 or last <= first:
        return None
    return (last - first) / (tokens - 1)


def prefill_tok_per_s(row: Row) -> float | None:
    """Return the uncached prompt tokens per second of the server's prefill time, else of the time to first token."""
    tokens, ms = row.get("prompt_tokens"), row.get("server_prefill_ms") or row.get("ttft_ms")
    if tokens is None or not ms:
        return None
    return (tokens - (row.get("cached_tokens") or 0)) / ms * MS_PER_S


def _summary(experiment: str, point: str, rows: list[Row]) -> PointSummary:
    good = [row for row in rows if row["status"] == "ok"]
    return PointSummary(
        experiment=experiment,
        point=point,
        n=len(good),
        failed=sum(row["status"] not in ("ok", *NOT_MEASURED) for row in rows),
        refused=sum(row["status"] == "refused" for row in rows),
        wanted_tokens=rows[0]["prompt_tokens_wanted"],
        prompt_tokens=_spread(row.get("prompt_tokens") for row in good),
        ttft_ms=_spread(row.get("ttft_ms") for row in good),
        prefill_tok_per_s=_spread(map(prefill_tok_per_s, good)),
        tpot_ms=_spread(map(tpot_ms, good)),
    )


def _spread(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return Spread(statistics.median(known), min(known), max(known)) if known else None
