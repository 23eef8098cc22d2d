"""Every finished request on disk at once: one JSON line a row, so that a run can be killed at any moment and taken up.

RUN_ID.jsonl begins with the run's facts. A line that a kill cut short is dropped when the run is taken up; whatever
stands before it was finished. The lock dies with the process that holds it, so nothing has to be cleaned up.

Beside it lies a reserve of disk space. Where the disk is full it is given up, so that what was in flight is still kept.
"""

import contextlib
import errno
import fcntl
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from roofbook.errors import RecordError, UsageError, WriteError
from roofbook.record import Row, RunFacts, sync_folder

FOLDER: Final = ".journal"

# The rows of a hundred requests in flight, with the times of hundreds of chunks each.
RESERVE_BYTES: Final = 2**20

# Another collector looks whether a journal is held by holding it for a moment.
_LOCK_TRIES: Final = 5
_LOCK_PAUSE_S: Final = 0.02


@dataclass
class Journal:
    """The journal of one run, open and locked; a context manager. *rows* are those on disk, *segment* is this life.

    *torn* tells of a last line that a kill cut short: it was dropped, and its request will be sent again.
    """

    path: Path
    facts: RunFacts
    rows: list[Row]
    segment: int
    _file: int = field(repr=False)
    torn: bool = False
    _half_a_line: bool = field(default=False, repr=False)
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
            journal._reserve_space()
            journal._write({"run": asdict(facts)})
            with _told(path):
                sync_folder(path.parent)
        except BaseException:
            os.close(file)
            journal.remove()
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
            if (measured / f"{run_id}.parquet").is_file():
                raise UsageError("The run %(run_id)s is finished: there is nothing to take up", run_id=run_id)
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
            if os.fstat(file).st_nlink == 0:  # its collector came to the end just now
                raise UsageError("The run %(run_id)s is finished: there is nothing to take up", run_id=run_id)
            journal._read()
            journal._reserve_space()
        except BaseException:
            os.close(file)
            raise
        return journal

    def append(self, row: Row) -> None:
        """Keep *row*: it is on the disk when this returns.

        Raises WriteError where the disk refuses; the row is kept all the same where giving up the reserve makes room.
        """
        entry = {"row": {**row, "started_at": _written(row.get("started_at"))}}
        with self._one_at_a_time:
            try:
                self._write(entry)
            except WriteError:
                self._give_up_reserve()
                self._write(entry)
                self.rows.append(row)
                raise
            self.rows.append(row)

    def amend(self, **facts: Mapping[str, Any]) -> None:
        """Add to what is known of the run, such as the server once it was seen loaded."""
        self.facts = replace(self.facts, **{name: dict(value) for name, value in facts.items()})
        self._write({"run": asdict(self.facts)})

    def remove(self) -> None:
        """Remove the journal: its rows are safe in the run's file."""
        self._give_up_reserve()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the journal; it stays where it is."""
        self._give_up_reserve()
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self) -> None:
        for _ in range(_LOCK_TRIES):
            with _told(self.path), contextlib.suppress(BlockingIOError):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_LOCK_PAUSE_S)
        raise UsageError("The run %(run_id)s is being measured by another collector right now", run_id=self.path.stem)

    def _reserve_space(self) -> None:
        with _told(self._reserve), self._reserve.open("wb") as file:
            file.write(os.urandom(RESERVE_BYTES))  # zeros take no space on a disk that packs them
            file.flush()
            os.fsync(file.fileno())

    def _give_up_reserve(self) -> None:
        with contextlib.suppress(OSError):
            self._reserve.unlink(missing_ok=True)

    @property
    def _reserve(self) -> Path:
        return self.path.with_suffix(".reserve")

    def _read(self) -> None:
        """Read what is there and cut off a last line that was not finished."""
        with _told(self.path):
            raw = self.path.read_bytes()
            whole = raw[: raw.rfind(b"\n") + 1]
            if len(whole) < len(raw):
                self.torn = True
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
        with _told(self.path):
            if self._half_a_line:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            before = os.fstat(self._file).st_size
            try:
                while data:  # a disk that is nearly full takes a part
                    data = data[os.write(self._file, data) :]
                os.fsync(self._file)
            except OSError:
                # Nothing may follow half a line: where it cannot be taken back, it is the last.
                self._half_a_line = True
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, before)
                    self._half_a_line = False
                raise


def new_run_id(plan: str, now: datetime, token: Callable[[int], str] = secrets.token_hex) -> str:
    """Return an id that sorts by time and is safe as a file name: 20261130T024500Z-first-1a2b."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{plan}-{token(2)}"


def plan_of(run_id: str) -> str:
    """Return the id of the plan that *run_id* has in its middle."""
    return run_id.partition("-")[2].rpartition("-")[0]


def left_over(measured: Path) -> list[str]:
    """Return the ids of the runs that were stopped before their end.

    Those being measured now are none of them, nor those that were stopped before their first line was whole.
    """
    return [path.stem for path in sorted((measured / FOLDER).glob("*.jsonl")) if _is_left(path)]


def being_measured(measured: Path) -> list[str]:
    """Return the ids of the runs that a collector measures right now."""
    return [path.stem for path in sorted((measured / FOLDER).glob("*.jsonl")) if _is_held(path)]


def _path(measured: Path, run_id: str) -> Path:
    if Path(run_id).name != run_id or run_id.startswith("."):
        raise UsageError("%(run_id)s is not the id of a run", run_id=run_id)
    return measured / FOLDER / f"{run_id}.jsonl"


def _is_left(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return file.readline().endswith(b"\n")
    except OSError:
        return False


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
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
