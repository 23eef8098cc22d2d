"""Every finished request on disk at once: one JSON line a row, so that a run can be killed at any moment and taken up.

RUN_ID.jsonl begins with the run's facts. A line that a kill cut short is dropped when the run is taken up; whatever
stands before it was finished. The lock dies with the process that holds it, so nothing has to be cleaned up.
"""

import contextlib
import fcntl
import json
import os
import secrets
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from roofbook.errors import RecordError, UsageError, WriteError
from roofbook.record import Row, RunFacts

FOLDER: Final = ".journal"


@dataclass
class Journal:
    """The journal of one run, open and locked; a context manager. *rows* are those on disk, *segment* is this life."""

    path: Path
    facts: RunFacts
    rows: list[Row]
    segment: int
    _file: int = field(repr=False)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def create(cls, measured: Path, facts: RunFacts) -> Self:
        """Begin the journal of a new run below *measured*.

        Raises WriteError where the disk refuses.
        """
        path = _path(measured, facts.run_id)
        with _told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        journal = cls(path, facts, [], 0, file)
        try:
            journal._lock()
            journal._write({"run": asdict(facts)})
        except BaseException:
            os.close(file)
            path.unlink(missing_ok=True)
            raise
        return journal

    @classmethod
    def take_up(cls, measured: Path, run_id: str) -> Self:
        """Open the journal of a run that was stopped, for its next segment.

        Raises UsageError where there is none or another collector holds it, RecordError where it is broken, WriteError
        where the disk refuses.
        """
        path = _path(measured, run_id)
        if not path.is_file():
            unfinished = ", ".join(left_over(measured))
            if unfinished:
                raise UsageError(
                    "There is no unfinished run %(run_id)s; unfinished are: %(others)s",
                    run_id=run_id,
                    others=unfinished,
                )
            raise UsageError("There is no unfinished run %(run_id)s, nor any other", run_id=run_id)
        with _told(path):
            file = os.open(path, os.O_RDWR | os.O_APPEND)
        try:
            journal = cls(path, RunFacts(run_id), [], 0, file)
            journal._lock()
            journal._read()
        except BaseException:
            os.close(file)
            raise
        return journal

    def append(self, row: Row) -> None:
        """Keep *row*: it is on the disk when this returns.

        Raises WriteError where the disk refuses.
        """
        with self._one_at_a_time:
            self._write({"row": {**row, "started_at": _written(row.get("started_at"))}})
            self.rows.append(row)

    def amend(self, **facts: Mapping[str, Any]) -> None:
        """Add to what is known of the run, such as the server once it was seen loaded."""
        self.facts = replace(self.facts, **{name: dict(value) for name, value in facts.items()})
        self._write({"run": asdict(self.facts)})

    def remove(self) -> None:
        """Remove the journal: its rows are safe in the run's file."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise UsageError(
                "The run %(run_id)s is being measured by another collector right now", run_id=self.path.stem
            ) from problem

    def _read(self) -> None:
        """Read what is there and cut off a last line that was not finished."""
        with _told(self.path):
            raw = self.path.read_bytes()
            whole = raw[: raw.rfind(b"\n") + 1]
            if len(whole) < len(raw):
                os.ftruncate(self._file, len(whole))
                os.fsync(self._file)
        for number, line in enumerate(whole.splitlines(), start=1):
            self._take(line, number)
        if not self.facts.plan:
            raise RecordError("%(path)s does not begin with a run: remove the file", path=self.path)
        self.segment = 1 + max((cast("int", row["segment"]) for row in self.rows), default=-1)

    def _take(self, line: bytes, number: int) -> None:
        try:
            entry: dict[str, Any] = json.loads(line)
            if "run" in entry:
                self.facts = RunFacts(**entry["run"])
            else:
                row = entry["row"]
                self.rows.append({**row, "started_at": _read_moment(row["started_at"])})
        except (ValueError, TypeError, KeyError, RecursionError) as problem:
            raise RecordError(
                "%(path)s, line %(line)d is broken: remove the line, or the file if the run does not matter",
                path=self.path, line=number,
            ) from problem  # fmt: skip

    def _write(self, entry: Mapping[str, Any]) -> None:
        data = json.dumps(entry).encode("ascii") + b"\n"
        before = os.fstat(self._file).st_size
        with _told(self.path):
            try:
                while data:  # a disk that is nearly full takes a part
                    data = data[os.write(self._file, data) :]
                os.fsync(self._file)
            except OSError:
                # Nothing may follow half a line.
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, before)
                raise


def new_run_id(plan: str, now: datetime, token: Callable[[int], str] = secrets.token_hex) -> str:
    """Return an id that sorts by time and is safe as a file name: 20261130T024500Z-first-1a2b."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{plan}-{token(2)}"


def left_over(measured: Path) -> list[str]:
    """Return the ids of the runs that were stopped before their end; those being measured now are none of them."""
    return [path.stem for path in sorted((measured / FOLDER).glob("*.jsonl")) if not _is_held(path)]


def _path(measured: Path, run_id: str) -> Path:
    if Path(run_id).name != run_id or run_id.startswith("."):
        raise UsageError("%(run_id)s is not the id of a run", run_id=run_id)
    return measured / FOLDER / f"{run_id}.jsonl"


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


@contextlib.contextmanager
def _told(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as problem:
        raise WriteError("Cannot write %(path)s: %(problem)s", path=path, problem=problem.strerror) from problem


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()


def _read_moment(written: str | None) -> datetime | None:
    return None if written is None else datetime.fromisoformat(written)
