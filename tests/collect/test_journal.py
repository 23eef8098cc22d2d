"""The journal keeps what was finished through a kill, a full disk and a second collector."""

import errno
import os
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collect.journal import FOLDER, RESERVE_BYTES, Journal, left_over, new_run_id
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
        assert (again.rows, again.torn) == ([row(0)], True)
        again.append(row(1))
    with Journal.take_up(tmp_path, "r1") as third:
        assert (third.rows, third.torn) == ([row(0), row(1)], False)


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


def full_after(written: int, monkeypatch: pytest.MonkeyPatch, reserve: Path | None = None) -> None:
    """Let the disk take *written* bytes more, and then none; giving up *reserve* makes room."""
    real = os.write
    left = [written]

    def full(file: int, data: bytes) -> int:
        roomy = reserve is not None and not reserve.exists()
        part = data if roomy else data[: left[0]]
        if not part:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= len(part)
        return real(file, part)

    monkeypatch.setattr(os, "write", full)


@pytest.mark.parametrize("written", [0, 7])
def test_a_full_disk_leaves_only_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    """ENOSPC after some bytes of a row, and no room to be made: our own error, and the rows before it are whole."""
    with Journal.create(tmp_path, FACTS) as journal:
        journal.append(row(0))
        full_after(written, monkeypatch)
        with pytest.raises(WriteError, match="No space left"):
            journal.append(row(1))
        assert journal.rows == [row(0)]
    monkeypatch.undo()
    assert journal.path.read_bytes().endswith(b"\n")
    with Journal.take_up(tmp_path, "r1") as again:
        assert (again.rows, again.torn) == ([row(0)], False)


def test_on_a_full_disk_the_reserve_still_holds_what_was_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENOSPC in the middle of a row: the run must end, but that row is kept, and the next worker's too."""
    with Journal.create(tmp_path, FACTS) as journal:
        reserve = journal.path.with_suffix(".reserve")
        assert reserve.stat().st_size == RESERVE_BYTES
        journal.append(row(0))
        full_after(7, monkeypatch, reserve)
        with pytest.raises(WriteError, match="No space left"):
            journal.append(row(1))
        journal.append(row(2))
        assert not reserve.exists()
    monkeypatch.undo()
    with Journal.take_up(tmp_path, "r1") as again:
        assert (again.rows, again.torn) == ([row(0), row(1), row(2)], False)
        assert reserve.exists()  # the next life has its own
    assert not reserve.exists()


def test_half_a_line_that_cannot_be_taken_back_is_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails altogether: no other row is glued to the torn line, so what stands before it can be read."""

    def fails(_file: int, _length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Journal.create(tmp_path, FACTS) as journal:
        journal.append(row(0))
        full_after(7, monkeypatch)
        monkeypatch.setattr(os, "ftruncate", fails)
        with pytest.raises(WriteError):
            journal.append(row(1))
        monkeypatch.undo()
        with pytest.raises(WriteError):
            journal.append(row(2))
    with Journal.take_up(tmp_path, "r1") as again:
        assert (again.rows, again.torn) == ([row(0)], True)


def test_a_collector_killed_before_its_first_line_leaves_no_run(tmp_path: Path) -> None:
    """An empty journal, or half a first line, holds nothing: nobody is told to take it up."""
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "empty.jsonl").touch()
    (tmp_path / FOLDER / "half.jsonl").write_bytes(b'{"run": {"run_id"')
    assert left_over(tmp_path) == []


def test_a_run_that_ends_while_it_is_taken_up_is_not_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another collector removes the journal between our opening and our locking it: nothing is measured twice."""
    real = os.open
    with Journal.create(tmp_path, FACTS) as journal:
        path = journal.path

    def opened(name: Path, flags: int, mode: int = 0o777) -> int:
        file = real(name, flags, mode)
        path.unlink(missing_ok=True)
        return file

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(UsageError, match="finished"):
        Journal.take_up(tmp_path, "r1")


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
