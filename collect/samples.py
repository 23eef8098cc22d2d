"""What is sampled beside the requests, on disk as it is seen: a life that is killed keeps all but its last look.

RUN_ID.samples lies beside the run's journal, one JSON line a look, appended by the thread that looked. It is not
synced: a kill loses nothing that was written, only a power cut would, and a sync a second would stand in the way of
the journal's own, which requests wait for. Where the disk refuses, samples are kept in memory alone.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from roofbook.record import Row

Keep = Callable[[datetime, Mapping[str, float]], None]
"""Takes what was seen at one moment, in UTC: name to value."""


class SampleLog:
    """The samples of one run at *path*; a context manager, to which threads may add at once.

    *earlier* are those of former lives, for a run whose log is not there. *rows* are all of them, as
    RUN_ID.samples.parquet has them: time, name, value.
    """

    def __init__(self, path: Path, earlier: Iterable[Row] = ()) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: FileIO | None = None
        known = _read(path)
        self._unwritten = () if known else tuple(earlier)
        self.rows: list[Row] = [*known, *self._unwritten]

    def add(self, moment: datetime, seen: Mapping[str, float]) -> None:
        """Keep what was seen at *moment*."""
        with self._lock:
            self.rows += _rows(moment, seen)
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.write(_line(moment, seen))

    def remove(self) -> None:
        """Remove the log: its samples are safe in the run's file."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):
            # Unbuffered: what is written has left this process.
            self._file = self._path.open("ab", buffering=0)
            self._file.write(b"".join(_line(row["time"], {row["name"]: row["value"]}) for row in self._unwritten))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


def _line(moment: datetime, seen: Mapping[str, float]) -> bytes:
    # The line break comes first, so that a line that a kill cut short spoils no other.
    return b"\n" + json.dumps({"at": moment.astimezone(UTC).isoformat(), "seen": dict(seen)}).encode()


def _rows(moment: datetime, seen: Mapping[str, float]) -> list[Row]:
    return [{"time": moment, "name": name, "value": value} for name, value in seen.items()]


def _read(path: Path) -> list[Row]:
    """Return what is there; a broken line is a look less, no failure."""
    rows: list[Row] = []
    with contextlib.suppress(OSError):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
                entry: dict[str, Any] = json.loads(line)
                rows += _rows(
                    datetime.fromisoformat(entry["at"]),
                    {str(name): float(value) for name, value in entry["seen"].items()},
                )
    return rows
