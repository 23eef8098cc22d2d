"""The contract: what is written is read back, whatever the order, the version or the state of the files."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roofbook.errors import RecordError, WriteError
from roofbook.record import COLUMNS, SCHEMA, RunFacts, all_rows, read_run, read_runs, write_run

FACTS = RunFacts(run_id="20260101T003000Z-first-ab12", plan={"plan": "first"}, host={"cores": 2})
ROWS = [
    {"run_id": FACTS.run_id, "started_at": datetime(2026, 1, 1, 0, 30, tzinfo=UTC), "quantization": "Q4_K_M",
     "output_tokens": 69, "ttft_ms": 384.5, "chunk_times_ms": [384.5, 404.0], "host_is_server": True},
    {"run_id": FACTS.run_id},
    {"run_id": FACTS.run_id, "quantization": "Q8_0", "output_tokens": 71},
]  # fmt: skip


def test_a_run_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """Values, nulls, conditions and the order of the columns survive the file."""
    run = read_run(write_run(tmp_path, ROWS, FACTS))

    assert run.facts == FACTS
    assert tuple(run.rows.columns) == COLUMNS
    assert run.rows["output_tokens"].tolist() == [69, pd.NA, 71]
    assert run.rows["started_at"][0] == pd.Timestamp("2026-01-01T00:30:00Z")
    assert run.rows["chunk_times_ms"][0].tolist() == [384.5, 404.0]


def test_an_unknown_text_is_missing_and_a_count_stays_a_count(tmp_path: Path) -> None:
    """B51: three groups including the unknown one, and 69, never 69.0."""
    rows = read_run(write_run(tmp_path, ROWS, FACTS)).rows

    assert len(rows.groupby("quantization", dropna=False)) == 3
    assert [str(count) for count in rows["output_tokens"]] == ["69", "<NA>", "71"]


def test_a_column_outside_the_contract_is_refused(tmp_path: Path) -> None:
    """A misspelt column would be lost in silence."""
    with pytest.raises(RecordError, match="'ttft'"):
        write_run(tmp_path, [{"ttft": 1.0}], FACTS)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(tmp_path: Path, value: float) -> None:
    """Unknown is null: a NaN in a file would pass for a measurement."""
    with pytest.raises(RecordError, match="'ttft_ms' holds"):
        write_run(tmp_path, [{"ttft_ms": value}], FACTS)


def test_a_value_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    """The schema is explicit, so a text does not become a number column's first value."""
    with pytest.raises(RecordError, match="does not fit the contract"):
        write_run(tmp_path, [{"ttft_ms": "fast"}], FACTS)


def test_files_of_other_orders_and_with_missing_columns_become_one_frame(tmp_path: Path) -> None:
    """An older file lacks columns, another program orders them otherwise: the frame is the same."""
    whole = pq.read_table(write_run(tmp_path, ROWS, FACTS))
    turned = whole.select(list(reversed(COLUMNS))).drop_columns(["swap_in_bytes", "throttle_reason"])
    pq.write_table(turned.append_column("of_tomorrow", pa.nulls(3, pa.string())), tmp_path / "b.parquet")

    rows = all_rows(read_runs(tmp_path))

    assert tuple(rows.columns) == COLUMNS
    assert rows["output_tokens"].tolist() == [69, pd.NA, 71] * 2
    assert rows["swap_in_bytes"].isna().all()


def test_no_runs_are_a_frame_without_rows(tmp_path: Path) -> None:
    """A folder that is not there yet is a report with nothing measured, not an error."""
    rows = all_rows(read_runs(tmp_path / "none"))

    assert (len(rows), tuple(rows.columns)) == (0, COLUMNS)


def test_a_newer_format_asks_for_a_newer_program(tmp_path: Path) -> None:
    """A file of tomorrow is not read by guessing."""
    table = SCHEMA.empty_table().replace_schema_metadata({"schema_version": "99", "run": '{"run_id": "x"}'})
    pq.write_table(table, tmp_path / "x.parquet")

    with pytest.raises(RecordError, match=r"format 99.*update roofbook"):
        read_run(tmp_path / "x.parquet")


def test_a_parquet_file_of_another_program_is_named(tmp_path: Path) -> None:
    """A table without our metadata is no run."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")

    with pytest.raises(RecordError, match=r"other\.parquet is a parquet file, but no run"):
        read_run(tmp_path / "other.parquet")


def test_a_broken_file_is_named_wherever_it_was_cut(tmp_path: Path) -> None:
    """A file cut at any place is one message with its name, never a traceback of a library."""
    whole = write_run(tmp_path, ROWS, FACTS).read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 97)):
        cut = tmp_path / "cut.parquet"
        cut.write_bytes(whole[:length])
        with pytest.raises(RecordError, match=r"cut\.parquet"):
            read_run(cut)


def test_a_column_of_another_type_is_named(tmp_path: Path) -> None:
    """A text where the contract has a number is told with file and column."""
    whole = pq.read_table(write_run(tmp_path, ROWS, FACTS))
    place = whole.schema.get_field_index("ttft_ms")
    pq.write_table(whole.set_column(place, "ttft_ms", pa.array(["a", "b", "c"])), tmp_path / "t.parquet")

    with pytest.raises(RecordError, match=r"t\.parquet: column 'ttft_ms'"):
        read_run(tmp_path / "t.parquet")


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rename is the last step: what stood there before still stands, and nothing is left beside it."""
    path = write_run(tmp_path, ROWS, FACTS)
    before = path.read_bytes()

    def full_disk(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(WriteError, match="No space left on device"):
        write_run(tmp_path, ROWS[:1], FACTS)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_a_file_cannot_be_written(tmp_path: Path) -> None:
    """An unwritable place is told in one sentence."""
    (tmp_path / "data").write_text("in the way")

    with pytest.raises(WriteError, match="Cannot write"):
        write_run(tmp_path / "data", ROWS, FACTS)


def test_every_column_is_explained_to_the_reader() -> None:
    """data/README.md explains the columns of the contract, all of them and no others, in their order."""
    text = (Path(__file__).parents[1] / "data" / "README.md").read_text(encoding="utf-8")
    explained = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]

    assert explained == list(COLUMNS)
