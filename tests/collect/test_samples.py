"""Samples are on disk as they are seen, and come back through a kill, a torn line and a full disk."""

import errno
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collect.samples import SampleLog
from roofbook.record import Row

AT = datetime(2026, 11, 30, 2, 45, tzinfo=UTC)
FREE: Row = {"time": AT, "name": "memory_free_bytes", "value": 5.0}
POWER: Row = {"time": AT, "name": "gpu_power_w", "value": 60.5}


def test_each_look_is_on_disk_at_once(tmp_path: Path) -> None:
    """Read by another life before this one closed its file, as after a kill."""
    with SampleLog(tmp_path / "r.samples") as log:
        log.add(AT, {"memory_free_bytes": 5.0, "gpu_power_w": 60.5})
        assert SampleLog(tmp_path / "r.samples").rows == [FREE, POWER]
        assert log.rows == [FREE, POWER]
    log.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_torn_line_costs_one_look(tmp_path: Path) -> None:
    """Cut in the middle of its last line: the one before is there, and what the next life adds is not glued to it."""
    path = tmp_path / "r.samples"
    with SampleLog(path) as log:
        log.add(AT, {"memory_free_bytes": 5.0})
        log.add(AT, {"gpu_power_w": 1.0})
    path.write_bytes(path.read_bytes()[:-9])
    with SampleLog(path) as again:
        assert again.rows == [FREE]
        again.add(AT, {"gpu_power_w": 60.5})
    assert SampleLog(path).rows == [FREE, POWER]


def test_earlier_lives_stand_in_where_their_log_is_gone(tmp_path: Path) -> None:
    """What the run's file has is taken over, and is in the log from then on; a log that is there is the better one."""
    with SampleLog(tmp_path / "r.samples", [FREE]) as log:
        log.add(AT, {"gpu_power_w": 60.5})
    assert SampleLog(tmp_path / "r.samples", [FREE]).rows == [FREE, POWER]


class Full:
    """A file on a full disk."""

    def write(self, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", len(data))

    def close(self) -> None:
        pass


def test_a_full_disk_costs_only_what_a_kill_would_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is raised while a request is measured; the samples are still there for the run's file."""
    log = SampleLog(tmp_path / "r.samples", [FREE])
    monkeypatch.setattr(Path, "open", lambda *_, **__: Full())
    with log:
        log.add(AT, {"gpu_power_w": 60.5})
    assert log.rows == [FREE, POWER]


def test_what_is_no_line_of_ours_is_left_out(tmp_path: Path) -> None:
    """Broken JSON, other JSON, a value that is no number: a look less each, no failure."""
    path = tmp_path / "r.samples"
    path.write_bytes(
        b'\n{"at": "no day", "seen": {}}\n[1]\n\xff\n{"at": "2026-11-30T02:45:00+00:00", "seen": {"a": "b"}}\n7'
    )
    assert SampleLog(path).rows == []
