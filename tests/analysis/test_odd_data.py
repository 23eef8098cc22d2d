"""Odd rows: whatever is missing, zero, negative or enormous, the numbers say what they lack and nothing breaks."""

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofbook.analysis.ceilings import ceilings
from roofbook.analysis.latency import latency_points
from roofbook.analysis.subjects import conditions, curve_of, subjects, versions
from roofbook.facts import Facts, load_facts
from roofbook.record import SCHEMA, Row, RunFacts, all_rows, read_run, write_run
from roofbook.validity import KINDS, clean, findings, known_of, records

Frame = Callable[[list[Row]], pd.DataFrame]

FACTS: Facts = load_facts(Path(__file__).parents[2] / "data" / "facts")


def not_finite(value: object) -> bool:
    """Return whether a number somewhere in *value* is none."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if is_dataclass(value):
        return any(not_finite(getattr(value, one.name)) for one in fields(value))
    if isinstance(value, (tuple, list)):
        return any(not_finite(one) for one in value)
    return isinstance(value, dict) and any(not_finite(one) for one in value.values())


def everything(frame: pd.DataFrame) -> list[object]:
    """Return all that the analysis makes of *frame*."""
    plain = records(frame)
    known = known_of(plain, FACTS)
    found = findings(plain, known)
    assert all(set(finding.values) == set(KINDS[finding.kind]) for finding in found)
    made: list[object] = [finding.values for finding in found]
    made.append(list(clean(frame, found)))
    for subject in subjects(frame):
        points = latency_points(subject.rows, found)
        made += [*points, curve_of(subject, found), *versions(subject)]
        made += conditions(subject)
        row = records(subject.rows)[0]
        model, machine = known.model(row), known.machine(row)
        if model is not None and machine is not None:
            made += ceilings(points, model, machine, subject.quantization, subject.kv_cache_type)
    return made


CURVE: Row = {"run_id": "test", "experiment": "e", "kind": "prefill_curve", "point": "p"}
OK: Row = CURVE | {"phase": "measured", "status": "ok"}
ZERO: Row = dict.fromkeys(("prompt_tokens", "server_prefill_ms", "output_tokens", "ttft_ms", "last_token_ms"), 0)
READ: Row = {"prompt_tokens": 512, "server_prefill_ms": 2500.0, "ttft_ms": 2600.0}


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{}],
        [OK],
        [OK | READ],
        [OK | {"status": "timeout"}, OK | {"status": "connect_error"}],
        [OK | ZERO] * 6,
        [OK | ZERO | {"phase": "anchor"}] * 3,
        [OK | {"machine": "nobody-knows", "model": "x" * 60, "quantization": "Q9_Z"}],
        [OK | {"machine": "mac-mini-m4-32gb", "model": "<script>alert(1)</script>", "sources": "[1, 2]"}],
        [OK | {"sources": "not json", "phase": "anchor", "ttft_ms": 5.0}] * 3,
        [OK | {"prompt_tokens": n, "server_prefill_ms": 1.0, "prompt_tokens_wanted": n} for n in range(1, 12)],
    ],
)  # fmt: skip
def test_whatever_is_missing_is_said_by_what_is_not_there(frame: Frame, rows: list[Row]) -> None:
    """Nothing, one point, all failed, all zero, unknown names, broken JSON, a flat curve."""
    assert not not_finite(everything(frame([row | {"order_index": i} for i, row in enumerate(rows)])))


def test_numbers_that_are_none_are_unknown(frame: Frame) -> None:
    """Another program's file may hold NaN and infinity: they count as null."""
    rows = [OK | READ | {"order_index": i} for i in range(3)]
    strange = frame(rows)
    strange["server_prefill_ms"] = pd.array([float("nan"), float("inf"), 2500.0], dtype="Float64")
    assert not not_finite(everything(strange))
    (point,) = latency_points(strange, [])
    assert (point.prefill.rows, point.prefill.median) == (1, 2500)


_VALUES = {
    "int64": st.sampled_from([None, 0, 1, 2, 40, 512, 8192, 10**9]),
    "double": st.sampled_from([None, 0.0, -3.0, 1e-9, 1.5, 250.0, 48000.0, 1e12]),
    "bool": st.sampled_from([None, True, False]),
    "list<item: double>": st.sampled_from([None, [], [5.0], [5.0] * 30, [9.0, 2.0, 40.0]]),
    "timestamp[us, tz=UTC]": st.sampled_from([None, pd.Timestamp("2026-01-01T00:30Z")]),
}
_TEXTS = {
    "run_id": st.sampled_from(["a", "b"]),
    "kind": st.sampled_from([None, "baseline", "prefill_curve", "prefix_cache", "concurrency", "soak", "cold_load"]),
    "phase": st.sampled_from(["measured", "measured", "anchor", "warmup", None]),
    "status": st.sampled_from(["ok", "ok", "ok", "timeout", "refused", None]),
    "point": st.sampled_from([None, "p", "q"]),
    "machine": st.sampled_from([None, "mac-mini-m4-32gb", "nvidia-rtx-4090"]),
    "model": st.sampled_from([None, "qwen2.5:7b", "x"]),
    "quantization": st.sampled_from([None, "Q4_K_M", "F16", "?"]),
    "kv_cache_type": st.sampled_from([None, "q8_0"]),
    **dict.fromkeys(("server", "model_digest", "flash_attention", "api"), st.none()),
    "prompt_token_source": st.sampled_from([None, "server", "estimate"]),
    "output_token_source": st.sampled_from([None, "server", "estimate"]),
}
_COLUMNS = {
    column.name: _TEXTS.get(column.name, _VALUES.get(str(column.type), st.sampled_from([None, "x", "{}"])))
    for column in SCHEMA
    if column.name not in ("order_index", "parallel_slots")
}


@given(st.lists(st.fixed_dictionaries(_COLUMNS), max_size=12))
@settings(max_examples=40, deadline=None)
def test_any_rows_of_the_contract_can_be_read(rows: list[Row]) -> None:
    """Rows with any mixture of nulls, zeros, negatives and large numbers give numbers or None, never an exception."""
    with TemporaryDirectory() as folder:
        path = write_run(
            Path(folder), [row | {"order_index": i} for i, row in enumerate(rows)], RunFacts(run_id="test")
        )
        assert not not_finite(everything(all_rows([read_run(path)])))
