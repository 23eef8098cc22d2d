"""Subjects: whose numbers they are, what they ran under, and that nothing unknown is lost."""

from collections.abc import Callable

import pandas as pd
import pytest

from roofbook.analysis.subjects import conditions, curve_of, subjects, versions
from roofbook.record import Row
from roofbook.validity import findings, records

Frame = Callable[[list[Row]], pd.DataFrame]

MAC: Row = {
    "run_id": "test", "phase": "measured", "status": "ok", "machine": "mac-mini-m4-32gb", "server": "ollama",
    "api": "ollama", "model": "qwen2.5:7b", "quantization": "Q4_K_M", "kv_cache_type": "q8_0",
}  # fmt: skip


def test_b51_unknown_is_a_group_and_counts_stay_counts(frame: Frame) -> None:
    """Quantization Q4_K_M, unknown, Q8_0 and tokens 69, unknown, 71: three subjects, no row lost, no 69.0."""
    rows = [
        MAC | {"quantization": quant, "output_tokens": n} for quant, n in [("Q4_K_M", 69), (None, None), ("Q8_0", 71)]
    ]
    found = {subject.quantization: records(subject.rows)[0]["output_tokens"] for subject in subjects(frame(rows))}
    assert found == {"Q4_K_M": 69, None: None, "Q8_0": 71}
    assert all(not isinstance(tokens, float) for tokens in found.values())


@pytest.mark.parametrize(
    "other",
    [{"machine": "rtx-4060-ti"}, {"server": "vllm"}, {"model_digest": "abc"}, {"quantization": "Q8_0"},
     {"kv_cache_type": "f16"}, {"flash_attention": "on"}, {"parallel_slots": 4}],
)  # fmt: skip
def test_each_setting_that_matters_makes_another_subject(frame: Frame, other: Row) -> None:
    """Machine, server, digest, quantization, KV type, flash attention and slots."""
    assert len(subjects(frame([MAC, MAC | other]))) == 2


@pytest.mark.parametrize(
    "other", [{"server_version": "0.32.3"}, {"context_limit_tokens": 16384}, {"run_id": "test", "experiment": "second"}]
)
def test_a_context_and_a_version_do_not(frame: Frame, other: Row) -> None:
    """Context length is a condition, the version a history."""
    assert len(subjects(frame([MAC, MAC | other]))) == 1


def test_one_digest_is_one_model_whatever_it_is_called(frame: Frame) -> None:
    """The weights are the model; a tag is a name for them."""
    rows = [MAC | {"model_digest": "845d", "model": name} for name in ("qwen2.5:7b", "qwen2.5:7b-instruct-q4_K_M")]
    assert len(subjects(frame(rows))) == 1


def test_a_slug_is_a_file_name_and_stays(frame: Frame) -> None:
    """It names machine, server, model, quantization and KV type, holds no special character, and adding a subject does
    not change it."""
    strange = MAC | {"model": "../x<script>" + "y" * 60, "kv_cache_type": None}
    alone = subjects(frame([MAC]))[0].slug
    together = [subject.slug for subject in subjects(frame([strange, MAC]))]
    assert alone.startswith("mac-mini-m4-32gb-ollama-qwen2-5-7b-q4-k-m-q8-0-")
    assert alone in together
    assert all(slug.replace("-", "").isalnum() and slug.isascii() and len(slug) < 90 for slug in together)


def test_conditions_show_their_spread_and_who_said_them(frame: Frame) -> None:
    """Two contexts and one unknown: both values, most frequent first, one row without."""
    said = {"sources": '{"context_limit_tokens": "api"}'}
    rows = [MAC | said | {"context_limit_tokens": limit} for limit in (16384, 8192, 8192)] + [MAC]
    context = next(c for c in conditions(subjects(frame(rows))[0]) if c.name == "context_limit_tokens")
    assert (context.values, context.unknown, context.said_by) == ((8192, 16384), 1, ("api",))


def test_versions_are_a_history(frame: Frame) -> None:
    """In the order of their first row; one that nobody dated comes last."""
    day = pd.Timestamp("2026-09-01T10:00", tz="UTC")
    rows = [
        MAC | {"server_version": None},
        MAC | {"server_version": "0.33", "started_at": day + pd.Timedelta(days=1)},
        MAC | {"server_version": "0.32", "started_at": day},
    ]
    history = versions(subjects(frame(rows))[0])
    assert [(v.server_version, v.first) for v in history] == [
        ("0.32", day),
        ("0.33", day + pd.Timedelta(days=1)),
        (None, None),
    ]


def test_the_curve_takes_trusted_rows_and_no_other_kind(frame: Frame, published_curve: list[Row]) -> None:
    """A cached row and a warm-up stay out; a baseline row is held against the fit; a control is neither."""
    base = MAC | {"run_id": "test", "experiment": "curve"}
    rows = [base | row | {"order_index": i, "point": f"p{i}"} for i, row in enumerate(published_curve)]
    cached = rows[5] | {"order_index": 6, "cached_tokens": 8000, "server_prefill_ms": 60.0}
    warm = rows[5] | {"order_index": 7, "phase": "warmup", "server_prefill_ms": 99999.0}
    other = base | {"order_index": 8, "kind": "baseline", "prompt_tokens": 74, "server_prefill_ms": 291.0}
    control = other | {"order_index": 9, "kind": "context_control", "prompt_tokens": 4057, "server_prefill_ms": 21912.0}
    written = frame([*rows, cached, warm, other, control])
    curve = curve_of(subjects(written)[0], findings(records(written)))
    assert [length.tokens for length in curve.lengths] == [205, 578, 1096, 2091, 4056, 8016]
    assert [length.prefill_ms for length in curve.lengths][-1] == 48337
    assert [check.length.tokens for check in curve.unseen] == [74]


def test_the_embedded_engine_is_a_self_test(frame: Frame) -> None:
    """Only where every row is its."""
    assert subjects(frame([MAC | {"api": "embedded"}]))[0].is_self_test
    assert not subjects(frame([MAC]))[0].is_self_test


def test_no_rows_are_no_subjects(frame: Frame) -> None:
    """An empty folder is no error."""
    assert subjects(frame([])) == []
