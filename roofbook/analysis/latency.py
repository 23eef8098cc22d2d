"""How long requests took, point by point: each figure over the rows that may stand for it, the failures beside it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from roofbook.analysis.intervals import REQUESTS_FOR_P99, Summary, summary
from roofbook.record import Row
from roofbook.validity import Finding, Measure, records
from roofbook.validity.derived import beyond_service_ms, decode_tok_per_s, is_ok, tpot_ms
from roofbook.validity.whole import FAILED_SHARE, minutes_for


@dataclass(frozen=True)
class Point:
    """One point of one experiment. Times in ms, rates in tokens a second; unknown is None."""

    experiment: str | None
    kind: str | None
    point: str | None
    run_ids: tuple[str, ...]
    prompt_tokens: float | None
    """Median of what the server counted."""
    prompt_tokens_wanted: int | None
    contexts: tuple[int, ...]
    concurrency: int | None
    rate_per_s: float | None
    requests: int
    failures: Mapping[str, int]
    """Requests that did not finish, by status."""
    doubtful: int
    """Finished requests that at least one finding keeps out of at least one figure."""
    ttft: Summary
    prefill: Summary
    tpot: Summary
    """Null under two output tokens: ``tpot.rows`` of ``finished`` says for how many it exists."""
    decode: Summary
    e2e: Summary
    waited: Summary
    """What TTFT has beyond load and prefill, doubtful rows included: waiting for a slot is no fault of the row."""
    output_tokens: int | None
    """Generated in all, over the requests whose wanted length is known ..."""
    output_tokens_wanted: int | None
    """... and what was planned for them."""
    minutes_to_p99: float | None
    """How long the requests that a 99th percentile still lacks would take, one after the other."""
    rows: tuple[int, ...] = field(default=(), repr=False)
    """The rows' ``order_index``."""

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    @property
    def finished(self) -> int:
        return self.requests - self.failed

    @property
    def failure_share(self) -> float | None:
        """The failed share, which stands beside every latency; None without requests."""
        return self.failed / self.requests if self.requests else None

    @property
    def reliable(self) -> bool:
        """False where so many requests failed that the rest must not be ranked."""
        return self.failure_share is not None and self.failure_share <= FAILED_SHARE


def latency_points(rows: pd.DataFrame, found: Iterable[Finding]) -> list[Point]:
    """Return the measured points of *rows* in order of appearance; what is unknown in a key is a group of its own."""
    return points_of(records(rows), found)


def points_of(rows: Iterable[Row], found: Iterable[Finding]) -> list[Point]:
    """Return the measured points of rows that are plain values already."""
    spoilt: dict[tuple[str | None, int | None], set[Measure]] = {}
    for finding in found:
        if finding.order_index is not None:
            spoilt.setdefault((finding.run_id, finding.order_index), set()).update(finding.spoils)
    cells: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.get("phase") in ("measured", None):
            cells.setdefault(tuple(row.get(name) for name in ("experiment", "kind", "point")), []).append(row)
    return [_point(cell, spoilt) for cell in cells.values()]


def _point(cell: list[Row], spoilt: Mapping[tuple[str | None, int | None], set[Measure]]) -> Point:
    first = cell[0]
    done = [row for row in cell if is_ok(row)]

    def over(figure: Callable[[Row], float | None], of: Measure | None) -> Summary:
        kept = [row for row in done if of is None or of not in spoilt.get(_key(row), ())]
        return _summary(kept, figure)

    ttft = over(_ttft_ms, "ttft")
    planned = [row for row in done if row.get("output_tokens") is not None and row.get("output_tokens_wanted")]
    counted = [row["prompt_tokens"] for row in done if row.get("prompt_tokens") is not None]
    return Point(
        experiment=first.get("experiment"),
        kind=first.get("kind"),
        point=first.get("point"),
        run_ids=tuple(dict.fromkeys(str(row["run_id"]) for row in cell if row.get("run_id") is not None)),
        prompt_tokens=float(np.median(counted)) if counted else None,
        prompt_tokens_wanted=first.get("prompt_tokens_wanted"),
        contexts=tuple(sorted({row["context_limit_tokens"] for row in cell if row.get("context_limit_tokens")})),
        concurrency=first.get("concurrency"),
        rate_per_s=first.get("rate_per_s"),
        requests=len(cell),
        failures=dict(Counter(str(row.get("status") or "unknown") for row in cell if not is_ok(row))),
        doubtful=sum(bool(spoilt.get(_key(row))) for row in done),
        ttft=ttft,
        prefill=over(_prefill_ms, "prefill"),
        tpot=over(tpot_ms, "tpot"),
        decode=over(decode_tok_per_s, "tpot"),
        e2e=over(_e2e_ms, "e2e"),
        waited=over(beyond_service_ms, None),
        output_tokens=sum(row["output_tokens"] for row in planned) if planned else None,
        output_tokens_wanted=sum(row["output_tokens_wanted"] for row in planned) if planned else None,
        minutes_to_p99=minutes_for(max(0, REQUESTS_FOR_P99 - ttft.rows), done),
        rows=tuple(row["order_index"] for row in cell),
    )


def _summary(rows: list[Row], figure: Callable[[Row], float | None]) -> Summary:
    singles: list[float] = []
    medians: list[tuple[float, int]] = []
    for row in rows:
        value = figure(row)
        if value is None:
            continue
        if row.get("aggregate_of") is None:
            singles.append(value)
        else:
            medians.append((value, row["aggregate_of"]))
    return summary(singles, medians)


def _key(row: Row) -> tuple[str | None, int | None]:
    return row.get("run_id"), row.get("order_index")


def _ttft_ms(row: Row) -> float | None:
    return row.get("ttft_ms")


def _prefill_ms(row: Row) -> float | None:
    return row.get("server_prefill_ms")


def _e2e_ms(row: Row) -> float | None:
    return row.get("e2e_ms")
