"""The journal keeps what was finished through a kill, a full disk and a second collector."""

import errno
import os
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collect.journal import FOLDER, Journal, left_over, new_run_id
from roofbook.errors import RecordError, UsageError, WriteError
from roofbook.record import Row, RunFacts

FACTS = RunFacts("r1", plan={"plan": "p", "run": {"seed": 3}}, host={"machine": "m"})


def row(number: int, segment: int = 0) -> Row:
    moment = datetime(2026, 11, 30, 2, 45, number, tzinfo=UTC)
    return {"order_index": number, "segment": segment, "started_at": moment, "error": "한글\n", "ttft_ms": 1.5}


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    """Facts, rows, moments and text in any language survive; the next life is the next segment."""
    with Journal.create(tmp_path, FACTS) as journal:
        journal.append(row(0))
        journal.append(row(1))
    with Journal.take_up(tmp_path, "r1") as again:
        assert (again.facts, again.rows, again.segment) == (FACTS, [row(0), row(1)], 1)
        again.append(row(2, segment=1))
    with Journal.take_up(tmp_path, "r1") as third:
        assert (third.rows, third.segment) == ([row(0), row(1), row(2, segment=1)], 2)


def test_what_is_learnt_of_the_server_later_is_kept(tmp_path: Path) -> None:
    """Facts can be added to while the run goes on; the last word holds."""
    with Journal.create(tmp_path, FACTS) as journal:
        journal.amend(server={"server": "ollama"})
        journal.append(row(0))
    with Journal.take_up(tmp_path, "r1") as again:
        assert (again.facts.server, again.facts.plan, again.rows) == ({"server": "ollama"}, FACTS.plan, [row(0)])


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_line_that_a_kill_cut_short_is_dropped(tmp_path: Path, cut: int) -> None:
    """Whatever stands before the torn line was finished, and what is appended later is not glued to it."""
    with Journal.create(tmp_path, FACTS) as journal:
        journal.append(row(0))
        journal.append(row(1))
        path = journal.path
    path.write_bytes(path.read_bytes()[:-cut])
    with Journal.take_up(tmp_path, "r1") as again:
        assert again.rows == [row(0)]
        again.append(row(1))
    with Journal.take_up(tmp_path, "r1") as third:
        assert third.rows == [row(0), row(1)]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    """That is no kill: somebody edited the file, and it says where."""
    with Journal.create(tmp_path, FACTS) as journal:
        journal.append(row(0))
        path = journal.path
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{oops\n" + lines[1])
    with pytest.raises(RecordError, match="line 2 is broken"):
        Journal.take_up(tmp_path, "r1")


def test_a_second_collector_is_refused(tmp_path: Path) -> None:
    """Two processes never write one journal, and a run being measured is no left-over."""
    with Journal.create(tmp_path, FACTS):
        with pytest.raises(UsageError, match="r1 is being measured"):
            Journal.take_up(tmp_path, "r1")
        assert left_over(tmp_path) == []
    assert left_over(tmp_path) == ["r1"]


def test_a_killed_collector_leaves_its_rows_and_no_lock(tmp_path: Path) -> None:
    """kill -9 after two rows: both are on the disk, and the run can be taken up at once."""
    program = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from collect.journal import Journal
        from roofbook.record import RunFacts
        journal = Journal.create(Path({str(tmp_path)!r}), RunFacts("r1", plan={{"plan": "p"}}))
        journal.append({{"order_index": 0, "segment": 0}})
        journal.append({{"order_index": 1, "segment": 0}})
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False).returncode == -9
    with Journal.take_up(tmp_path, "r1") as again:
        assert [kept["order_index"] for kept in again.rows] == [0, 1]


@pytest.mark.parametrize("written", [0, 7])
def test_a_full_disk_leaves_only_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    """ENOSPC after some bytes of a row: our own error, and the rows before it are whole."""
    real = os.write
    with Journal.create(tmp_path, FACTS) as journal:
        journal.append(row(0))
        left = [written]

        def full(file: int, data: bytes) -> int:
            part = data[: left[0]]
            if not part:
                raise OSError(errno.ENOSPC, "No space left on device")
            left[0] -= len(part)
            return real(file, part)

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(WriteError, match="No space left"):
            journal.append(row(1))
        monkeypatch.setattr(os, "write", real)
        assert journal.rows == [row(0)]
    assert journal.path.read_bytes().endswith(b"\n")
    with Journal.take_up(tmp_path, "r1") as again:
        assert again.rows == [row(0)]


def test_a_folder_that_cannot_be_written_is_a_write_error(tmp_path: Path) -> None:
    """Nothing is sent when nothing could be kept."""
    (tmp_path / FOLDER).write_text("a file stands where the folder belongs")
    with pytest.raises(WriteError, match="Cannot write"):
        Journal.create(tmp_path, FACTS)


@pytest.mark.parametrize("run_id", ["missing", "../r1", ".hidden", "a/b", ""])
def test_a_run_that_is_not_there_is_a_usage_error(tmp_path: Path, run_id: str) -> None:
    """An unknown id names the unfinished runs, and no id leads out of the folder."""
    with Journal.create(tmp_path, FACTS):
        pass
    with pytest.raises(UsageError):
        Journal.take_up(tmp_path, run_id)


def test_a_run_id_sorts_by_time_and_is_safe() -> None:
    """UTC without colons, the plan's name, and four digits that two runs of one second do not share."""
    moment = datetime.fromisoformat("2026-11-30T11:45:00+09:00")
    assert new_run_id("first", moment, token=lambda size: "ab" * size) == "20261130T024500Z-first-abab"
