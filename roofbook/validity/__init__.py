"""Why a row, a point or a run cannot be trusted: rules over rows and facts, computed whenever they are read.

Each rule is a function over rows that yields findings; each threshold is a constant with its reason beside it. A
finding that spoils a measure keeps its row out of that measure's figures, one that spoils nothing is only told. Nothing
found is ever stored.
"""

from collections.abc import Iterable

import pandas as pd

from roofbook.record import Row
from roofbook.validity import arrivals, clocks, counts, host, physics, prompt, server, stream, whole
from roofbook.validity.derived import is_judged, records
from roofbook.validity.finding import KINDS, MEASURES, Finding, Measure
from roofbook.validity.known import Known, known_of

__all__ = [
    "KINDS",
    "MEASURES",
    "Finding",
    "Known",
    "Measure",
    "clean",
    "findings",
    "known_of",
    "records",
    "spoilt_rows",
]

_ROW_RULES = (
    prompt.cached, prompt.truncated, counts.long_prompt, counts.impossible, clocks.implausible_prefill, stream.output,
    counts.long_output, counts.noted, stream.answer, stream.buffering, arrivals.starts, stream.clock,
    clocks.contradicted, server.partial_gpu, host.client, host.slept, host.swapping, host.throttled,
)  # fmt: skip
_POINT_RULES = (
    prompt.cached_by_its_time, prompt.estimated, counts.other_model, whole.mixed_in_point, whole.outliers,
    whole.unreliable,
)  # fmt: skip
_EXPERIMENT_RULES = (whole.mixed_in_experiment, whole.disturbed)


def findings(rows: Iterable[Row], known: Known | None = None) -> list[Finding]:
    """Return what is doubtful about *rows* (``records(frame)`` makes them of a frame), run by run, in order.

    Measured rows and anchors are judged; the others (warm-ups, calibration) only help to judge them.
    """
    found: list[Finding] = []
    for run in _grouped(rows, "run_id"):
        found += _of_run(sorted(run, key=lambda row: row.get("order_index") or 0), known or Known())
    return found


def clean(rows: pd.DataFrame, found: Iterable[Finding], of: Measure | None = None) -> "pd.Series[bool]":
    """Return which rows may stand for *of* (None: for every measure): measured, finished, and not spoilt."""
    spoilt = spoilt_rows(found, of)
    kept = [
        row.get("status") == "ok"
        and row.get("phase") in ("measured", None)
        and (row.get("run_id"), row.get("order_index")) not in spoilt
        for row in records(rows[["run_id", "order_index", "status", "phase"]])
    ]
    return pd.Series(kept, index=rows.index, dtype=bool)


def spoilt_rows(found: Iterable[Finding], of: Measure | None = None) -> set[tuple[str | None, int]]:
    """Return the ``run_id`` and ``order_index`` of the rows that must not stand for *of* (None: for any measure)."""
    return {
        (finding.run_id, finding.order_index)
        for finding in found
        if finding.order_index is not None and (finding.spoils if of is None else of in finding.spoils)
    }


def _of_run(rows: list[Row], known: Known) -> list[Finding]:
    judged = [row for row in rows if is_judged(row)]
    anchors = [row for row in judged if row.get("phase") == "anchor"]
    measured = [row for row in judged if row.get("phase") != "anchor"]
    found = [finding for rule in _ROW_RULES for finding in rule(judged)]
    found += physics.above_peaks(judged, known)
    found += server.loads(rows)
    found += server.queued(judged)
    found += server.few_warmups(rows)
    found += counts.uncounted(rows)
    for experiment in _grouped(measured, "experiment"):
        found += [finding for rule in _EXPERIMENT_RULES for finding in rule(experiment)]
        for point in _grouped(experiment, "point"):
            found += [finding for rule in _POINT_RULES for finding in rule(point)]
    spoilt = {finding.order_index for finding in found if "ttft" in finding.spoils}
    for experiment in _grouped(measured, "experiment"):
        for point in _grouped(experiment, "point"):
            found += whole.too_few(point, spoilt)
    # A row that a cache or a late client spoilt shows no drift; what the machine itself did is what drifts.
    apart = [finding for finding in found if finding.kind not in whole.DRIFT_CAUSES]
    found += whole.drifted(anchors, {of: {index for _, index in spoilt_rows(apart, of)} for of in MEASURES})
    return found


def _grouped(rows: Iterable[Row], name: str) -> list[list[Row]]:
    """Return the rows by their value of *name*, in order of appearance; unknown is a group of its own."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.get(name), []).append(row)
    return list(groups.values())
