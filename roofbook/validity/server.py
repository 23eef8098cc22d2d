"""Was the server ready, and working on this request alone, with all of the model where it belongs?"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from roofbook.record import Row
from roofbook.validity.derived import beyond_service_ms, is_judged, is_ok
from roofbook.validity.finding import Finding, Measure, of_point, of_row

WARM_LOAD_MS: Final = 150.0
"""A warm server's ``load`` is its scheduling: 1 to 101 ms in published answers, never quite zero."""

LOAD_FACTOR: Final = 5.0
"""Times the run's usual load: a slow host's warm load is slow each time, a real one stands out."""

SMALL_LOAD_MS: Final = 110.0
"""Just above every warm load that was published; between here and the next bound a load must also be felt."""

LOAD_SHARE: Final = 0.2
"""Of TTFT that such a load takes beyond the usual: a fifth of it is no longer the prompt's."""

LOAD_ALWAYS_MS: Final = 1000.0
"""Nothing that only schedules takes a second: a load even where every row of the run has one."""

QUEUED_SHARE: Final = 0.2
"""Of TTFT. A fifth spent waiting is no longer the prompt's length."""

QUEUED_MS: Final = 250.0
"""Beyond the run's usual: the published runs have 97 to 165 ms between prefill and first token, one 265 ms more."""

SLOT_WAIT_MS: Final = 50.0
"""What a server itself calls queueing counts from here: less is one step of its scheduler."""

WHOLE: Final = 0.999
"""A GPU share from here on is all of the model: sizes are reported in rounded bytes."""

LOAD_KINDS: Final = ("concurrency", "request_rate", "soak")
"""Kinds of experiment that measure waiting: there it is a result."""


def loads(rows: list[Row]) -> Iterator[Finding]:
    """Find requests that held a load of the model: the first one (cold), or one in mid-run (reload).

    *rows* are one run's, in order, warm-ups included. An experiment that measures loads is not doubted for having them.
    """
    for model in {row.get("model") for row in rows}:
        timed = [row for row in rows if row.get("model") == model and row.get("server_load_ms") is not None]
        if not timed:
            continue
        # Loads that were made on purpose are not what this server takes when it is warm.
        warm = [row["server_load_ms"] for row in timed if row.get("kind") != "cold_load"]
        usual = float(np.percentile(warm, 25)) if len(warm) > 1 else 0.0
        for position, row in enumerate(timed):
            load = row["server_load_ms"]
            felt = len(warm) > 1 and load - usual > LOAD_SHARE * (row.get("ttft_ms") or float("inf"))
            enough = SMALL_LOAD_MS if felt else WARM_LOAD_MS
            loaded = load > LOAD_ALWAYS_MS or (load > enough and load > LOAD_FACTOR * usual)
            if loaded and is_judged(row) and is_ok(row) and row.get("kind") != "cold_load":
                kind = "cold_load" if position == 0 else "reload"
                # The first prompt after a load pays for what the load left undone: memory to map, kernels to build.
                spoilt: tuple[Measure, ...] = ("prefill", "ttft", "e2e")
                yield of_row(kind, row, spoilt, load_ms=load, warm_ms=usual if len(warm) > 1 else None)


def queued(rows: list[Row]) -> Iterator[Finding]:
    """Find requests that waited for a slot: by the server's word, else by what TTFT has beyond load and prefill.

    Where waiting is what the experiment measures it is told and spoils nothing.
    """
    apart = [wait for row in rows if is_ok(row) and (wait := beyond_service_ms(row)) is not None]
    usual = min(max(min(apart), 0.0), QUEUED_MS) if apart else 0.0
    for row in rows:
        ttft = row.get("ttft_ms")
        if ttft is None or not is_ok(row):
            continue
        said, derived = row.get("server_queue_ms"), beyond_service_ms(row)
        if said is not None:
            waited, enough = said, SLOT_WAIT_MS
        elif derived is not None:
            waited, enough = derived, QUEUED_MS + usual
        else:
            continue
        if waited > enough and waited > QUEUED_SHARE * ttft:
            spoils: tuple[Measure, ...] = () if row.get("kind") in LOAD_KINDS else ("ttft", "e2e")
            yield of_row("queued", row, spoils, waited_ms=waited, ttft_ms=ttft)


def partial_gpu(rows: list[Row]) -> Iterator[Finding]:
    """Find rows whose model lay in part outside the GPU; told, since a machine may have no other way to run it.

    The embedded engine says 0 where the machine has no GPU that it could use: that is no part left out.
    """
    for row in rows:
        fraction = row.get("gpu_fraction")
        without_gpu = fraction == 0 and row.get("api") == "embedded"
        if fraction is not None and fraction < WHOLE and not without_gpu:
            yield of_row("partial_gpu", row, gpu_fraction=fraction)


def few_warmups(rows: list[Row]) -> Iterator[Finding]:
    """Find points of several requests at once before which fewer were sent to warm up: some slot was cold; told.

    *rows* are one run's, in order, warm-ups included. Warm-ups of as many at once count wherever they were made; those
    before a restart (another segment) do not, and of an import nobody knows.
    """
    firsts: dict[tuple[object, ...], int] = {}
    for place, row in enumerate(rows):
        several = (row.get("concurrency") or 1) > 1 and row.get("imported_from") is None
        if several and row.get("phase") == "measured" and is_ok(row):
            firsts.setdefault(tuple(row.get(name) for name in ("experiment", "point", "segment")), place)
    told: set[tuple[object, ...]] = set()
    for (*point, _), place in firsts.items():
        row = rows[place]
        warmups = sum(_warms(earlier, row) for earlier in rows[:place])
        if warmups < row["concurrency"] and tuple(point) not in told:
            told.add(tuple(point))
            yield of_point("few_warmups", [row], warmups=warmups, concurrency=row["concurrency"])


def _warms(earlier: Row, row: Row) -> bool:
    return (
        earlier.get("phase") == "warmup"
        and is_ok(earlier)
        and (earlier.get("concurrency") or 1) >= row["concurrency"]
        and all(earlier.get(name) == row.get(name) for name in ("segment", "model"))
    )
