"""The contract: the columns of a run, their version and history, and the only code that writes or reads them.

A run is one parquet file with one row a request; null means unknown. What every column means is written in
``data/README.md``. Nothing here is a median, a flag or a verdict: those are computed when the rows are read.

    History of the format
    1  the first: columns as in SCHEMA; metadata schema_version, run (RunFacts as JSON). Since November 2026 also
       answered_model: a column more is no new version, for older files read as null there, and older programs leave it
"""

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, cast

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from roofbook.errors import RecordError, WriteError

SCHEMA_VERSION: Final = 1

PHASES: Final = ("calibration", "warmup", "prime", "measured", "anchor")

Row = dict[str, Any]
"""One request: column name to value. Columns that are left out are null."""

_TEXT, _COUNT, _FLAG, _NUMBER = pa.string(), pa.int64(), pa.bool_(), pa.float64()
_TIME, _TIMES = pa.timestamp("us", tz="UTC"), pa.list_(pa.float64())

SCHEMA: Final = pa.schema(
    [
        # which
        ("run_id", _TEXT),
        ("segment", _COUNT),
        ("plan", _TEXT),
        ("experiment", _TEXT),
        ("kind", _TEXT),
        ("point", _TEXT),
        ("phase", _TEXT),
        ("order_index", _COUNT),
        ("repeat", _COUNT),
        ("worker", _COUNT),
        ("started_at", _TIME),
        ("imported_from", _TEXT),
        ("aggregate_of", _COUNT),
        # conditions
        ("machine", _TEXT),
        ("api", _TEXT),
        ("server", _TEXT),
        ("server_version", _TEXT),
        ("model", _TEXT),
        ("answered_model", _TEXT),
        ("model_digest", _TEXT),
        ("quantization", _TEXT),
        ("weights_bytes", _COUNT),
        ("kv_cache_type", _TEXT),
        ("flash_attention", _TEXT),
        ("context_limit_tokens", _COUNT),
        ("parallel_slots", _COUNT),
        ("gpu_fraction", _NUMBER),
        ("server_options", _TEXT),
        ("request_options", _TEXT),
        ("sources", _TEXT),
        ("concurrency", _COUNT),
        ("rate_per_s", _NUMBER),
        ("shared_prefix_tokens", _COUNT),
        ("template_tokens", _COUNT),
        ("nonce", _TEXT),
        ("seed", _COUNT),
        ("pause_before_ms", _NUMBER),
        ("connection", _TEXT),
        ("proxy", _TEXT),
        # wanted
        ("prompt_tokens_wanted", _COUNT),
        ("output_tokens_wanted", _COUNT),
        # counted
        ("prompt_tokens", _COUNT),
        ("cached_tokens", _COUNT),
        ("output_tokens", _COUNT),
        ("thinking_tokens", _COUNT),
        ("chunks", _COUNT),
        ("prompt_token_source", _TEXT),
        ("output_token_source", _TEXT),
        # client clock, ms
        ("planned_at_ms", _NUMBER),
        ("sent_at_ms", _NUMBER),
        ("first_byte_ms", _NUMBER),
        ("ttft_ms", _NUMBER),
        ("first_answer_ms", _NUMBER),
        ("last_token_ms", _NUMBER),
        ("e2e_ms", _NUMBER),
        ("chunk_times_ms", _TIMES),
        ("connect_ms", _NUMBER),
        # server clock
        ("server_load_ms", _NUMBER),
        ("server_prefill_ms", _NUMBER),
        ("server_decode_ms", _NUMBER),
        ("server_total_ms", _NUMBER),
        ("server_queue_ms", _NUMBER),
        ("server_decode_tok_per_s", _NUMBER),
        # outcome
        ("status", _TEXT),
        ("error", _TEXT),
        ("finish_reason", _TEXT),
        ("attempts", _COUNT),
        # client and host
        ("loop_lag_ms", _NUMBER),
        ("client_cpu_share", _NUMBER),
        ("selftest_ttft_ms", _NUMBER),
        ("wall_elapsed_ms", _NUMBER),
        ("host_is_server", _FLAG),
        ("swap_in_bytes", _COUNT),
        ("memory_free_bytes", _COUNT),
        ("thermal_level", _TEXT),
        ("power_source", _TEXT),
        ("gpu_power_w", _NUMBER),
        ("gpu_clock_mhz", _NUMBER),
        ("throttle_reason", _TEXT),
    ]
)
COLUMNS: Final = tuple(SCHEMA.names)

SAMPLES_SCHEMA: Final = pa.schema([("time", _TIME), ("name", _TEXT), ("value", _NUMBER)])

# Nullable types, so that a count with a gap stays a count: 69, null, 71 and never 69.0, nan, 71.0.
_PANDAS_TYPES: Final = {
    _TEXT: pd.StringDtype(),
    _COUNT: pd.Int64Dtype(),
    _FLAG: pd.BooleanDtype(),
    _NUMBER: pd.Float64Dtype(),
}


@dataclass(frozen=True)
class RunFacts:
    """What holds for the whole run, stored beside its rows: each a JSON object, empty where unknown."""

    run_id: str
    plan: Mapping[str, Any] = field(default_factory=dict[str, Any])
    host: Mapping[str, Any] = field(default_factory=dict[str, Any])
    server: Mapping[str, Any] = field(default_factory=dict[str, Any])
    origin: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of an import: its source, its date, and what was claimed; of a measurement: the program and its version."""


@dataclass(frozen=True)
class Run:
    """One run as read: *rows* has every column of SCHEMA in its order, whatever the file had."""

    facts: RunFacts
    rows: pd.DataFrame
    path: Path

    @property
    def run_id(self) -> str:
        return self.facts.run_id


def to_table(rows: Iterable[Row], facts: RunFacts) -> pa.Table:
    """Return the rows as a table of SCHEMA, its metadata included.

    Raises RecordError for a column that SCHEMA does not have, a value of the wrong type, or a number that is no number.
    """
    kept = list(rows)
    for row in kept:
        for name, value in row.items():
            if name not in SCHEMA.names:
                raise RecordError("A row has the column '%(name)s', which the contract does not know", name=name)
            if isinstance(value, float) and not math.isfinite(value):
                raise RecordError("Column '%(name)s' holds %(value)s: unknown is null", name=name, value=value)
    try:
        table = pa.Table.from_pylist(kept, schema=SCHEMA)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as problem:
        raise RecordError("A row does not fit the contract: %(problem)s", problem=problem) from problem
    described = {"schema_version": str(SCHEMA_VERSION), "run": json.dumps(asdict(facts), ensure_ascii=False)}
    return table.replace_schema_metadata(described)


def write_run(folder: Path, rows: Iterable[Row], facts: RunFacts) -> Path:
    """Write FOLDER/RUN_ID.parquet, whole or not at all, and return its path.

    Raises RecordError for rows that do not fit, WriteError where the disk refuses.
    """
    path = folder / f"{facts.run_id}.parquet"
    _write_whole(path, to_table(rows, facts))
    return path


def write_samples(folder: Path, run_id: str, samples: Iterable[Row]) -> Path:
    """Write FOLDER/RUN_ID.samples.parquet: what was sampled beside the requests (time, name, value)."""
    path = folder / f"{run_id}.samples.parquet"
    _write_whole(path, pa.Table.from_pylist(list(samples), schema=SAMPLES_SCHEMA))
    return path


def read_samples(folder: Path, run_id: str) -> list[Row]:
    """Read FOLDER/RUN_ID.samples.parquet; none where it is missing or broken: a run stands without them."""
    try:
        return pq.ParquetFile(folder / f"{run_id}.samples.parquet").read().cast(SAMPLES_SCHEMA).to_pylist()
    except (pa.ArrowException, OSError, ValueError):
        return []


def read_run(path: Path) -> Run:
    """Read one run, of this version or an older one, with its columns completed and ordered.

    Raises RecordError, naming the file, where it is broken, newer than this program, or no run at all.
    """
    try:
        # Opened alone: a folder's other files say nothing about this one.
        table = pq.ParquetFile(path).read()
        described = table.schema.metadata or {}
        version = int(described[b"schema_version"])
        facts = _facts_from_json(described[b"run"])
    except KeyError as problem:
        raise RecordError("%(path)s is a parquet file, but no run of this program", path=path) from problem
    except (pa.ArrowException, OSError, ValueError, TypeError, RecursionError, MemoryError) as problem:
        raise _unreadable(path, problem) from problem
    if version > SCHEMA_VERSION:
        raise RecordError(
            "%(path)s has format %(version)d, this program knows up to %(known)d: update roofbook",
            path=path,
            version=version,
            known=SCHEMA_VERSION,
        )
    return Run(facts=facts, rows=_to_frame(table, path), path=path)


def read_runs(folder: Path) -> list[Run]:
    """Read every run of *folder*, ordered by id; no runs where the folder is missing or empty."""
    return [read_run(path) for path in sorted(folder.glob("*.parquet")) if not path.name.endswith(".samples.parquet")]


def all_rows(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the rows of all runs in one frame (every column of SCHEMA, zero rows where there are no runs)."""
    if not runs:
        return _to_frame(SCHEMA.empty_table(), Path())
    return pd.concat([run.rows for run in runs], ignore_index=True)


def _unreadable(path: Path, problem: BaseException) -> RecordError:
    return RecordError(
        "%(path)s cannot be read: %(problem)s. Restore it from a copy, or move it out of the folder",
        path=path,
        problem=_one_line(problem),
    )


def _facts_from_json(text: bytes) -> RunFacts:
    """Return the facts; raises ValueError or TypeError where *text* is no run's."""
    said: Any = json.loads(text)
    if not isinstance(said, dict):
        raise TypeError("the facts of the run are no JSON object")
    known = {name.name for name in fields(RunFacts)}
    facts = RunFacts(**{name: value for name, value in cast("dict[str, Any]", said).items() if name in known})
    for name, value in asdict(facts).items():
        if not isinstance(value, str if name == "run_id" else dict):
            raise TypeError(f"'{name}' among the facts of the run is of another kind")
    return facts


def _to_frame(table: pa.Table, path: Path) -> pd.DataFrame:
    """Complete, order and type the columns; one the contract does not know is left where it was."""
    columns: list[pa.ChunkedArray] = []
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise _unreadable(path, KeyError(f"column '{name}' is there twice"))
    for wanted in SCHEMA:
        if wanted.name in table.column_names:
            try:
                columns.append(table[wanted.name].cast(wanted.type))
            except pa.ArrowException as problem:
                raise RecordError(
                    "%(path)s: column '%(name)s' is not of type %(type)s: %(problem)s",
                    path=path,
                    name=wanted.name,
                    type=wanted.type,
                    problem=_one_line(problem),
                ) from problem
        else:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, wanted.type)]))
    complete = pa.Table.from_arrays(columns, schema=SCHEMA)
    try:
        return complete.to_pandas(types_mapper=_PANDAS_TYPES.get)
    except (pa.ArrowException, ValueError) as problem:
        raise _unreadable(path, problem) from problem


def _write_whole(path: Path, table: pa.Table) -> None:
    """Write through a temporary file in the same folder and a rename: a reader sees the old file or the new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f".{path.name}.*.part"):  # of a process that was killed while it wrote
            left.unlink(missing_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                pq.write_table(table, file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
            sync_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise WriteError("Cannot write %(path)s: %(problem)s", path=path, problem=_one_line(problem)) from problem


def sync_folder(folder: Path) -> None:
    """Put a folder's own entries on the disk, where its file system can: a power cut must not take a name away."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split())
