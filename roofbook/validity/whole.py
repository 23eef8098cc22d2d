"""What only many rows together show: drift, mixed conditions, odd rows, failures, and too few of them."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np

from roofbook.record import Row
from roofbook.units import MS_PER_S
from roofbook.validity.derived import beyond_service_ms, decode_tok_per_s, is_ok
from roofbook.validity.finding import MEASURES, Finding, Measure, Value, of_point, of_row
from roofbook.validity.server import LOAD_KINDS

DRIFT_SHARE: Final = 0.05
"""Repeats of one cell in one warm session differ by 1 to 3 %, so a change of 5 % between start and end is the run's."""

DRIFT_SCATTERS: Final = 2.0
"""And it must be twice what the anchors scatter around their own trend: a noisy machine is not a drifting one."""

OUTLIER_SCATTERS: Final = 5.0
"""Robust standard deviations; in normal noise one row in a million lies so far out."""

OUTLIER_SHARE: Final = 0.1
"""And this share of the median: five equal repeats have no scatter, and the sixth is no outlier for one ms."""

ROWS_FOR_AN_OUTLIER: Final = 5
"""With fewer rows the scatter itself is a guess."""

DIP_SHARE: Final = 0.15
"""Each decode step reads the whole context, so a shorter prompt does not decode slower than a longer one; two sessions
differed by 11 %."""

OVERHEAD_FACTOR: Final = 2.0
"""Times the curve's usual time between prefill and first token: that does not depend on the prompt's length."""

OVERHEAD_MS: Final = 100.0
"""And this much more: on a fast server twice of nearly nothing is nothing."""

FAILED_SHARE: Final = 0.1
"""A server that refuses a tenth of its work is not measured by the rest."""

ROWS_FOR_A_SPREAD: Final = 3
"""A median of fewer rows is a single measurement."""

CONDITIONS: Final = (
    "machine", "server", "server_version", "model_digest", "answered_model", "quantization", "kv_cache_type",
    "flash_attention", "context_limit_tokens", "parallel_slots", "gpu_fraction", "pause_before_ms", "proxy",
    "power_source",
)  # fmt: skip
"""What must be one thing within an experiment; unknown differs from nothing."""

POINT_CONDITIONS: Final = (*CONDITIONS, "concurrency", "rate_per_s", "request_options", "server_options")
"""And what may change from point to point, but not within one."""

SHARE_DIGITS: Final = 2
"""Of a share on the GPU: a layer is a hundredth of a model or more, but for a few of the largest."""

DRIFT_CAUSES: Final = ("throttled", "swapping")
"""Doubts about a row that are reasons of a drift, and none to look away from it."""

ANCHORED: Final = ("point", "model", "request_options")
"""What makes anchors repeats of one another."""

_NOT_SENT: Final = ("refused", "interrupted")

_Figure = Callable[[Row], float | None]


def drifted(anchors: list[Row], spoilt: Mapping[Measure, Collection[object]]) -> Iterator[Finding]:
    """Find a run whose anchor (one fixed point, repeated through the run) changed from its first third to its last.

    *spoilt* holds the ``order_index`` of those that stand for nothing, by measure. A plan of several models or options
    has an anchor with each: they are no repeats of one another.
    """
    alike: dict[tuple[Value, ...], list[Row]] = {}
    for row in anchors:
        if is_ok(row):
            alike.setdefault(tuple(row.get(name) for name in ANCHORED), []).append(row)
    for done in alike.values():
        yield from _drifted(done, spoilt)


def _drifted(done: list[Row], spoilt: Mapping[Measure, Collection[object]]) -> Iterator[Finding]:
    for name, figure in _FIGURES.items():
        stand = [row for row in done if row.get("order_index") not in spoilt[_MEASURED_BY[name]]]
        values = [value for row in stand if (value := figure(row)) is not None and value > 0]
        third = max(1, len(values) // 3)
        if len(values) < 2:
            continue
        first, last = float(np.mean(values[:third])), float(np.mean(values[-third:]))
        share = last / first - 1
        if abs(share) > DRIFT_SHARE and abs(last - first) > DRIFT_SCATTERS * _scatter(values) * math.sqrt(2 / third):
            yield Finding(
                "drifted", done[0].get("run_id"),
                values={"figure": name, "share": share, "first": first, "last": last, "anchors": len(values)},
            )  # fmt: skip


def _scatter(values: list[float]) -> float:
    """Return the standard deviation around the straight line through *values*; 0 where three or fewer allow none."""
    if len(values) <= 3:
        return 0.0
    places = np.arange(len(values))
    slope, start = np.polyfit(places, values, 1)
    left = np.asarray(values) - (start + slope * places)
    return float(np.sqrt((left**2).sum() / (len(values) - 2)))


def mixed_in_point(rows: list[Row]) -> Iterator[Finding]:
    """Find rows of one point that ran under another condition than most: they are repeats of something else."""
    for name in POINT_CONDITIONS:
        for row, value, usual in _odd(rows, name):
            yield of_row("mixed_conditions", row, MEASURES, field=name, value=value, usual=usual)


def mixed_in_experiment(rows: list[Row]) -> Iterator[Finding]:
    """Find points of one experiment that ran under another condition than most: told, wherever they are compared.

    A control that changes the context on purpose is not doubted for it.
    """
    for name in CONDITIONS:
        if name == "context_limit_tokens" and rows[0].get("kind") == "context_control":
            continue
        points: dict[Any, set[Any]] = {}
        for row in rows:
            points.setdefault(row.get("point"), set()).add(row.get(name))
        for row, value, usual in _odd(rows, name):
            if len(points[row.get("point")] - {None}) == 1:
                yield of_row("mixed_conditions", row, field=name, value=value, usual=usual)


def _odd(rows: list[Row], name: str) -> Iterator[tuple[Row, Value, Value]]:
    counted = Counter(_alike(name, row[name]) for row in rows if row.get(name) is not None)
    if len(counted) < 2:
        return
    usual = counted.most_common(1)[0][0]
    shown = next(row[name] for row in rows if row.get(name) is not None and _alike(name, row[name]) == usual)
    for row in rows:
        value = row.get(name)
        if value is not None and _alike(name, value) != usual:
            yield row, value, shown


def _alike(name: str, value: Any) -> Any:
    """Return *value* as it is compared: a share on the GPU is a quotient of sizes that a server rounds each time."""
    return round(value, SHARE_DIGITS) if name == "gpu_fraction" else value


def outliers(rows: list[Row]) -> Iterator[Finding]:
    """Find single requests far from their point's median; told, for a median bears them and a tail needs them.

    Where load is what is measured, long tails are its result.
    """
    single = [row for row in rows if is_ok(row) and row.get("aggregate_of") is None]
    if not single or single[0].get("kind") in LOAD_KINDS:
        return
    for name, figure in _FIGURES.items():
        values = [(row, value) for row in single if (value := figure(row)) is not None]
        if len(values) < ROWS_FOR_AN_OUTLIER:
            continue
        median = float(np.median([value for _, value in values]))
        scatter = 1.4826 * float(np.median([abs(value - median) for _, value in values]))
        for row, value in values:
            if abs(value - median) > max(OUTLIER_SCATTERS * scatter, OUTLIER_SHARE * median):
                yield of_row("outlier", row, figure=name, value=value, usual=median, rows=len(values))


def disturbed(rows: list[Row]) -> Iterator[Finding]:
    """Find rows of a prefill curve that its other lengths contradict; told, and left in the curve.

    They decode slower than at longer prompts, or take far more time between prefill and first token.
    """
    done = [row for row in rows if is_ok(row) and row.get("kind") == "prefill_curve" and row.get("prompt_tokens")]
    rates = [(row["prompt_tokens"], rate) for row in done if (rate := decode_tok_per_s(row)) is not None]
    apart = [wait for row in done if (wait := beyond_service_ms(row)) is not None]
    usual_ms = float(np.median(apart)) if len(apart) >= ROWS_FOR_AN_OUTLIER else None
    for row in done:
        rate, waited = decode_tok_per_s(row), beyond_service_ms(row)
        longer = [other for tokens, other in rates if tokens > row["prompt_tokens"]]
        if rate is not None and len(longer) >= 2 and rate < (1 - DIP_SHARE) * float(np.median(longer)):
            yield of_row(
                "outlier", row, figure="decode_tok_per_s", value=rate, usual=float(np.median(longer)), rows=len(longer)
            )
        if waited is None or usual_ms is None:
            continue
        if waited > max(OVERHEAD_FACTOR * usual_ms, usual_ms + OVERHEAD_MS):
            yield of_row("outlier", row, figure="overhead_ms", value=waited, usual=usual_ms, rows=len(apart))


def unreliable(rows: list[Row]) -> Iterator[Finding]:
    """Find a point too many of whose requests failed; those never sent do not count."""
    sent = [row for row in rows if row.get("status") not in _NOT_SENT]
    failed = sum(not is_ok(row) for row in sent)
    if sent and failed / len(sent) > FAILED_SHARE:
        yield of_point("unreliable", sent, failed=failed, requests=len(sent))


def too_few(rows: list[Row], spoilt: Collection[object]) -> Iterator[Finding]:
    """Find a point with too few requests for a median with a spread, and say how long more would take.

    *spoilt* holds the ``order_index`` of those whose first token says nothing.
    """
    done = [row for row in rows if is_ok(row)]
    stands_for = {row.get("order_index"): row.get("aggregate_of") for row in done}
    if 0 in stands_for.values():
        return
    n = sum(1 if runs is None else runs for index, runs in stands_for.items() if index not in spoilt)
    if n >= ROWS_FOR_A_SPREAD:
        return
    yield of_point(
        "too_few", rows, statistic="median", n=n, needed=ROWS_FOR_A_SPREAD,
        missing=ROWS_FOR_A_SPREAD - n, minutes=minutes_for(ROWS_FOR_A_SPREAD - n, done),
    )  # fmt: skip


def minutes_for(requests: int, rows: list[Row]) -> float | None:
    """Return how long *requests* more of the kind of *rows* take, one after the other; None where none was timed."""
    timed = [row["e2e_ms"] + (row.get("pause_before_ms") or 0.0) for row in rows if row.get("e2e_ms") is not None]
    return requests * sum(timed) / len(timed) / MS_PER_S / 60 if timed else None


def _ttft_ms(row: Row) -> float | None:
    return row.get("ttft_ms")


def _prefill_ms(row: Row) -> float | None:
    return row.get("server_prefill_ms")


_MEASURED_BY: Final[Mapping[str, Measure]] = {
    "decode_tok_per_s": "tpot",
    "prefill_ms": "prefill",
    "ttft_ms": "ttft",
}

_FIGURES: Final[dict[str, _Figure]] = {
    "decode_tok_per_s": decode_tok_per_s,
    "prefill_ms": _prefill_ms,
    "ttft_ms": _ttft_ms,
}
