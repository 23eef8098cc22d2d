"""The collector as a process that is killed at a chosen write: for the tests of what a kill loses.

    python doomed.py WHERE NUMBER PLAN [the collector's arguments]

WHERE is "never" or one of the places below; the process kills itself with SIGKILL when it comes there for the
NUMBERth time. Measuring what the machine can do is left out, it takes seconds.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from collect import host
from collect.__main__ import main
from roofbook.theory.shapes import Ceilings, Spread

JOURNAL_PLACES = ("half_a_line", "before_its_sync", "after_its_sync")
PARQUET_PLACES = ("half_a_parquet", "before_the_rename", "after_the_rename", "before_the_removal")
PLACES = (*JOURNAL_PLACES, *PARQUET_PLACES)


class Fate:
    """Counts down to the kill."""

    def __init__(self, where: str, number: int) -> None:
        self._where = where
        self._left = number

    def meets(self, where: str) -> bool:
        """Whether this is the moment."""
        if where != self._where:
            return False
        self._left -= 1
        return self._left == 0

    def strikes(self, where: str) -> None:
        """Die here, if this is the moment."""
        if self.meets(where):
            die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def doom(fate: Fate) -> None:
    """Put *fate* into every place where something is written."""
    write, sync, replace, unlink, write_table = os.write, os.fsync, Path.replace, Path.unlink, pq.write_table

    def is_row(data: bytes) -> bool:
        return data.startswith(b'{"row"')

    rows_written = [False]

    def doomed_write(file: int, data: bytes) -> int:
        rows_written[0] = is_row(data)
        if rows_written[0] and fate.meets("half_a_line"):
            write(file, data[: len(data) // 2])
            die()
        return write(file, data)

    def doomed_sync(file: int) -> None:
        row = rows_written[0]
        rows_written[0] = False
        if row:
            fate.strikes("before_its_sync")
        sync(file)
        if row:
            fate.strikes("after_its_sync")

    def doomed_write_table(table: Any, file: Any, **options: Any) -> None:
        if fate.meets("half_a_parquet"):
            file.write(b"PAR1" + b"\0" * 1000)
            file.flush()
            die()
        write_table(table, file, **options)

    def doomed_replace(path: Path, target: Path) -> Path:
        fate.strikes("before_the_rename")
        done = replace(path, target)
        fate.strikes("after_the_rename")
        return done

    def doomed_unlink(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".jsonl":
            fate.strikes("before_the_removal")
        unlink(path, missing_ok=missing_ok)

    doomed: list[tuple[Any, str, Callable[..., Any]]] = [
        (os, "write", doomed_write), (os, "fsync", doomed_sync), (Path, "replace", doomed_replace),
        (Path, "unlink", doomed_unlink), (pq, "write_table", doomed_write_table),
    ]  # fmt: skip
    for owner, name, instead in doomed:
        setattr(owner, name, instead)


if __name__ == "__main__":
    rate = Spread(1e9, 1e9, 1e9, 1)
    host.measure_ceilings = lambda: Ceilings(rate, rate, "cpu", "a test")
    doom(Fate(sys.argv[1], int(sys.argv[2])))
    sys.exit(main(sys.argv[3:]))
