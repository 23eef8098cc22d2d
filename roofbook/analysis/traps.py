"""Rows that look like results and are none: what was measured, and beside it the nearest point without a doubt."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import pandas as pd

from roofbook.errors import EstimateError
from roofbook.record import Row
from roofbook.theory.roofline import implied_flops_per_s
from roofbook.theory.shapes import Model
from roofbook.validity import Finding, clean, records

TRAPS: Final = ("cold_load", "reload", "cached_prefix", "cached_prefix_implied", "above_compute_peak")
"""The kinds of doubt that every first benchmark falls into: a load within the request, a prompt read from a cache."""

_NEAR: Final = math.log(4)
"""A row of more than four times the tokens, or less than a quarter, is no comparison."""


@dataclass(frozen=True)
class Beside:
    """The trusted point of the nearest prompt length: the medians of its rows."""

    prompt_tokens: float
    prefill_ms: float
    rows: int


@dataclass(frozen=True)
class Trap:
    """A doubtful row; *beside* is what it is compared with, None where no trusted length is near."""

    finding: Finding
    row: Row
    beside: Beside | None

    @property
    def load_share(self) -> float | None:
        """Which share of load and prefill together the load is."""
        load, prefill = self.row.get("server_load_ms"), self.row.get("server_prefill_ms")
        return None if load is None or prefill is None or load + prefill <= 0 else load / (load + prefill)

    @property
    def factor(self) -> float | None:
        """How many times faster than *beside* a prompt token seems to be read."""
        here = _ms_per_token(self.row)
        return None if not here or self.beside is None else self.beside.prefill_ms / self.beside.prompt_tokens / here


def traps(rows: pd.DataFrame, found: Sequence[Finding]) -> list[Trap]:
    """Return the measured rows of *rows* that fell into a trap, in their order, each by the first kind of TRAPS."""
    plain = {(row.get("run_id"), row.get("order_index")): row for row in records(rows)}
    trusted = _points(records(rows[clean(rows, found)]))
    told: dict[tuple[object, object], Finding] = {}
    for kind in TRAPS:
        for finding in found:
            key = (finding.run_id, finding.order_index)
            if finding.kind == kind and key in plain and plain[key].get("phase") in ("measured", None):
                told.setdefault(key, finding)
    return [
        Trap(finding, plain[key], _nearest(plain[key], trusted))
        for key, finding in sorted(told.items(), key=lambda pair: (str(pair[0][0]), pair[0][1] or 0))
    ]


@dataclass(frozen=True)
class Reading:
    """One row's prompt, and the operations a second that reading it in that time would take."""

    tokens: int
    prefill_ms: float
    flops_per_s: float
    doubted: bool


def readings(rows: pd.DataFrame, found: Sequence[Finding], model: Model | None) -> list[Reading]:
    """Return every finished row with a prefill time; those whose prefill is in doubt are marked.

    Empty where the operations of *model* are not known.
    """
    if model is None:
        return []
    doubted = {(one.run_id, one.order_index) for one in found if "prefill" in one.spoils}
    told: list[Reading] = []
    for row in records(rows):
        tokens, prefill_ms = row.get("prompt_tokens"), row.get("server_prefill_ms")
        if not tokens or not prefill_ms or row.get("status") != "ok" or row.get("phase") not in ("measured", None):
            continue
        try:
            flops = implied_flops_per_s(model, tokens, prefill_ms)
        except EstimateError:
            return []
        if math.isfinite(flops.high):
            key = (row.get("run_id"), row.get("order_index"))
            told.append(Reading(tokens, prefill_ms, (flops.low + flops.high) / 2, key in doubted))
    return told


def _points(trusted: Sequence[Row]) -> list[Beside]:
    """Return the points of the *trusted* rows that have a prefill time; rows without a point stand for themselves."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for place, row in enumerate(trusted):
        if _ms_per_token(row):
            point = row.get("point")
            groups.setdefault((row.get("run_id"), row.get("experiment"), place if point is None else point), []).append(
                row
            )
    return [
        Beside(
            float(median(row["prompt_tokens"] for row in group)),
            float(median(row["server_prefill_ms"] for row in group)),
            len(group),
        )
        for group in groups.values()
    ]


def _nearest(row: Row, trusted: Sequence[Beside]) -> Beside | None:
    tokens = row.get("prompt_tokens")
    if not tokens:
        return None
    near = [(abs(math.log(other.prompt_tokens / tokens)), other) for other in trusted]
    distance, other = min(near, key=lambda pair: pair[0], default=(math.inf, None))
    return other if distance <= _NEAR else None


def _ms_per_token(row: Row) -> float | None:
    tokens, prefill_ms = row.get("prompt_tokens"), row.get("server_prefill_ms")
    return prefill_ms / tokens if tokens and prefill_ms else None
