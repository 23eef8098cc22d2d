"""The rows of a run as one line a point: how many, median and range. Nothing of it is stored."""

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from roofbook.record import Row
from roofbook.units import MS_PER_S
from roofbook.validity import Finding, Measure, spoilt_rows

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
class Figure:
    """The spread of the *n* rows that may stand for a figure, of *known* rows that have it; None where none may."""

    spread: Spread | None
    n: int
    known: int


@dataclass(frozen=True)
class PointSummary:
    """One point of an experiment. Only requests that ended well count,
    and in each figure only those that no doubt keeps out of it."""

    experiment: str
    point: str
    n: int
    failed: int
    refused: int
    wanted_tokens: int
    prompt_tokens: Spread | None
    ttft_ms: Figure
    prefill_tok_per_s: Figure
    tpot_ms: Figure


def summarise(rows: Iterable[Row], experiments: Sequence[str], found: Collection[Finding] = ()) -> list[PointSummary]:
    """Return the measured points in the order of *experiments*, in each by concurrency and length.

    Rows that *found* keeps from standing for a figure are not in it, as on the pages.
    """

    def place(row: Row) -> tuple[int, int, int]:
        return experiments.index(row["experiment"]), row["concurrency"], row["prompt_tokens_wanted"]

    points: dict[tuple[str, str], list[Row]] = {}
    for row in sorted((row for row in rows if row["phase"] == "measured"), key=place):
        points.setdefault((row["experiment"], row["point"]), []).append(row)
    doubted = _Doubted({measure: spoilt_rows(found, measure) for measure in ("prefill", "ttft", "tpot")})
    return [_summary(experiment, point, of_point, doubted) for (experiment, point), of_point in points.items()]


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
    """Return the uncached prompt tokens per second of the server's prefill time, else of the time to first token.

    None where the server claims to have cached more than there was.
    """
    tokens, ms = row.get("prompt_tokens"), row.get("server_prefill_ms") or row.get("ttft_ms")
    cached = row.get("cached_tokens") or 0
    if tokens is None or not ms or cached > tokens:
        return None
    return (tokens - cached) / ms * MS_PER_S


@dataclass(frozen=True)
class _Doubted:
    """Which rows may not stand for which measure."""

    rows: Mapping[Measure, Collection[tuple[str | None, int]]]

    def figure(self, rows: Iterable[Row], value_of: Callable[[Row], float | None], of: Measure) -> Figure:
        """Return *value_of* over the rows that may stand for it."""
        known = [(row, value) for row in rows if (value := value_of(row)) is not None]
        kept = [value for row, value in known if (row.get("run_id"), row.get("order_index")) not in self.rows[of]]
        return Figure(_spread(kept), len(kept), len(known))


def _summary(experiment: str, point: str, rows: list[Row], doubted: _Doubted) -> PointSummary:
    # A rate by the server's clock is its prefill's; where it has none, the client's time to first token bounds it.
    prefill: Measure = "prefill" if any(row.get("server_prefill_ms") for row in rows) else "ttft"
    good = [row for row in rows if row["status"] == "ok"]
    return PointSummary(
        experiment=experiment,
        point=point,
        n=len(good),
        failed=sum(row["status"] not in ("ok", *NOT_MEASURED) for row in rows),
        refused=sum(row["status"] == "refused" for row in rows),
        wanted_tokens=rows[0]["prompt_tokens_wanted"],
        prompt_tokens=_spread(row.get("prompt_tokens") for row in good),
        ttft_ms=doubted.figure(good, lambda row: row.get("ttft_ms"), "ttft"),
        prefill_tok_per_s=doubted.figure(good, prefill_tok_per_s, prefill),
        tpot_ms=doubted.figure(good, tpot_ms, "tpot"),
    )


def _spread(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return Spread(statistics.median(known), min(known), max(known)) if known else None
