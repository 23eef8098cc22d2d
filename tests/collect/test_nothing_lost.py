"""Whatever happens to the collector, its disk, its terminal or its server: nothing that was finished is lost."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from collect import host
from collect.__main__ import main
from collect.dispatch import next_index
from collect.measure import finished_keys
from collect.oracle import Handler, Model, Oracle, Request, Script, Speed, answer, llamacpp, ollama
from collect.resume import changed
from roofbook.record import Row, RunFacts, read_runs, read_samples
from roofbook.theory.shapes import Ceilings, Spread
from roofbook.validity import records

ROOT = Path(__file__).parents[2]
FAST = Speed(fixed_ms=2, linear_ms=0.01, step_ms=0.5)
SLOW = Speed(fixed_ms=30, step_ms=1)
PLAN = """
plan: p
server: {api: llamacpp, url: '%s'}
run: {repeats: 8, anchor: null}
experiments: [{kind: baseline, prompt_tokens: 64, output_tokens: 6}]
"""
DOOMED = Path(__file__).with_name("doomed.py")


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report's folder, in which the commands are called."""
    (tmp_path / "mkdocs.yml").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    rate = Spread(1e9, 1e9, 1e9, 1)
    monkeypatch.setattr(host, "measure_ceilings", lambda: Ceilings(rate, rate, "cpu", "a test"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(report: Path, *arguments: str, **more: Any) -> "subprocess.Popen[str]":
    """Start the collector as a process that nothing kills but we."""
    return subprocess.Popen(
        [sys.executable, str(DOOMED), "never", "1", "p.yml", *arguments],
        cwd=report, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **more},
    )  # fmt: skip


def wait_for(what: Callable[[], Any], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def asked(oracle: Oracle) -> int:
    """How many requests of the plan the server heard, warm-ups included."""
    return sum(heard.request.json.get("n_predict") == 6 for heard in oracle.heard)


def rows_of(report: Path) -> list[Row]:
    (run,) = read_runs(report / "data" / "measured")
    return records(run.rows)


def unfinished(report: Path) -> str:
    (journal,) = (report / "data" / "measured" / ".journal").glob("*.jsonl")
    return journal.stem


def ok_repeats(report: Path) -> list[int]:
    return sorted(row["repeat"] for row in rows_of(report) if row["status"] == "ok" and row["phase"] == "measured")


def left_behind(report: Path) -> list[str]:
    return [path.name for path in (report / "data" / "measured").rglob("*") if path.suffix != ".parquet"]


# The disk


class FullDisk:
    """Lets the chosen write of a kind fail with ENOSPC, once or from then on; counts those it sees."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: str, number: int, *, stays: bool) -> None:
        self.seen = 0
        real: dict[str, Any] = {"write": os.write, "fsync": os.fsync, "replace": Path.replace}

        def fails(*arguments: Any) -> Any:
            self.seen += 1
            if self.seen == number or (stays and self.seen > number):
                raise OSError(errno.ENOSPC, "No space left on device")
            return real[kind](*arguments)

        monkeypatch.setattr(Path if kind == "replace" else os, kind, fails)


def without_its_file(report: Path, oracle: Oracle, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Measure the plan on a disk that has no room for the parquet file; return the run that is left unfinished."""
    (report / "p.yml").write_text(PLAN % oracle.url)
    with monkeypatch.context() as patch:
        FullDisk(patch, "replace", 1, stays=True)
        assert main(["p.yml", *arguments]) == 5
    return unfinished(report)


# The journal's writes are: 1 the facts, 2-3 calibration, 4 warm-up, 5 the facts again, 6-13 the requests, 14 the facts.
# Syncs: 1 the reserve's, 2 the first write's, 4-16 the others', 17 the rows' file's, 19 the samples'. Those of folders
# (3, 18, 20) may fail: some file systems have none. Renames: the rows' and the samples' file.
@pytest.mark.parametrize(
    ("kind", "number"),
    [
        *(("write", n) for n in range(1, 15)),
        *(("fsync", n) for n in (1, 2, *range(4, 18), 19)),
        ("replace", 1),
        ("replace", 2),
    ],
)
def test_a_disk_that_is_full_for_a_moment_costs_no_request(
    report: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str, number: int
) -> None:
    """ENOSPC at one write: exit code 5 with the way to go on; taken up, each of the eight is there once."""
    with Oracle(llamacpp(Model(FAST))) as oracle:
        (report / "p.yml").write_text(PLAN % oracle.url)
        with monkeypatch.context() as patch:
            disk = FullDisk(patch, kind, number, stays=False)
            code = main(["p.yml"])
            said = capsys.readouterr().out
        assert disk.seen >= number
        assert code == 5, said
        assert "No space left" in said
        journals = list((report / "data" / "measured" / ".journal").glob("*.jsonl"))
        before = asked(oracle)
        code = main(["p.yml", *(["--resume", journals[0].stem] if journals else [])])
        assert code == 0, capsys.readouterr().out
        assert ok_repeats(report) == list(range(1, 9))
        warmups = 1 if before == 0 or before == 9 else 2
        assert asked(oracle) == 8 + warmups  # nothing was asked again but to warm up
    assert left_behind(report) == [".journal"]


def test_a_disk_that_stays_full_keeps_what_is_there(
    report: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENOSPC from the fourth request on, and for the parquet file too: three are kept, and the run is not lost."""
    with Oracle(llamacpp(Model(FAST))) as oracle:
        (report / "p.yml").write_text(PLAN % oracle.url)
        with monkeypatch.context() as patch:
            FullDisk(patch, "write", 9, stays=True)
            FullDisk(patch, "replace", 1, stays=True)
            assert main(["p.yml"]) == 5
        assert list((report / "data" / "measured").glob("*.parquet")) == []
        assert main(["p.yml", "--resume", unfinished(report)]) == 0, capsys.readouterr().out
        assert ok_repeats(report) == list(range(1, 9))
    assert left_behind(report) == [".journal"]


def test_a_run_that_has_all_its_requests_needs_no_server(
    report: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the parquet file could not be written, and the server is gone since: --resume writes it and says so."""
    with Oracle(llamacpp(Model(FAST))) as oracle:
        run_id = without_its_file(report, oracle, monkeypatch)
        heard = len(oracle.heard)
        assert main(["p.yml", "--resume", run_id]) == 0
        assert len(oracle.heard) == heard  # not even asked what it is
    said = capsys.readouterr().out
    assert "Every request of this run is answered: only its file is written now, and nothing is sent" in said
    assert ok_repeats(report) == list(range(1, 9))
    assert {sample["name"] for sample in read_samples(report / "data" / "measured", run_id)} >= {"memory_free_bytes"}
    assert left_behind(report) == [".journal"]
    # Once more there is nothing to take up, server or not.
    assert main(["p.yml", "--resume", run_id]) == 2
    assert f"The run {run_id} is finished" in capsys.readouterr().out


def test_another_plan_is_refused_before_any_server_is_asked(
    report: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan grew since the run was stopped, and no server answers: what is wrong with the call is said, code 2."""
    with Oracle(llamacpp(Model(FAST))) as oracle:
        run_id = without_its_file(report, oracle, monkeypatch)
    (report / "p.yml").write_text(PLAN.replace("repeats: 8", "repeats: 9") % oracle.url)
    assert main(["p.yml", "--resume", run_id]) == 2
    assert "The plan is not the one that the run" in capsys.readouterr().out


def test_the_line_to_resume_keeps_the_language_and_names_a_plan_that_fits(
    report: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copied as it stands it speaks Korean again; of another plan's run only its own plan's place is shown."""
    with Oracle(llamacpp(Model(FAST))) as oracle:
        run_id = without_its_file(report, oracle, monkeypatch, "--lang", "ko")
        assert f"-m collect p.yml --lang ko --resume {run_id}" in capsys.readouterr().out
        (report / "q.yml").write_text(PLAN.replace("plan: p", "plan: other") % oracle.url)
        assert main(["q.yml"]) == 0
    said = capsys.readouterr().out
    assert f"-m collect PLAN --resume {run_id}" in said
    assert f"q.yml --resume {run_id}" not in said


def test_a_killed_life_leaves_its_samples(report: Path, holding: Callable[..., Handler]) -> None:
    """kill -9 of two lives, the second while it warms up: what each saw of the machine is in the finished run."""
    with Oracle(holding(3, 4)) as oracle:
        (report / "p.yml").write_text(PLAN % oracle.url)
        looks: list[str] = []
        for number in (3, 4):
            process = start(report, *(["--resume", unfinished(report)] if looks else []))
            wait_for(lambda: asked(oracle) == number)  # noqa: B023
            process.kill()
            process.communicate(timeout=30)
            log = report / "data" / "measured" / ".journal" / f"{unfinished(report)}.samples"
            looks = [json.loads(line)["at"] for line in log.read_text().split("\n") if line]
        process = start(report, "--resume", unfinished(report))
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    (run,) = read_runs(report / "data" / "measured")
    kept = {str(sample["time"]) for sample in read_samples(report / "data" / "measured", run.run_id)}
    assert len(looks) >= 4  # a first look at the machine and at the metrics in each life
    assert {str(datetime.fromisoformat(look)) for look in looks} < kept
    assert left_behind(report) == [".journal"]


# The terminal


def test_ctrl_c_twice_and_a_closed_terminal_cut_no_writing(report: Path, holding: Callable[..., Handler]) -> None:
    """Ctrl-C, Ctrl-C and SIGHUP at once: one orderly stop by the first of them, with its exit code and its line."""
    with Oracle(holding(4)) as oracle:
        (report / "p.yml").write_text(PLAN % oracle.url)
        process = start(report)
        wait_for(lambda: asked(oracle) == 4)
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            process.send_signal(number)
            time.sleep(0.002)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert f"--resume {unfinished(report)}" in said
    assert len(ok_repeats(report)) == 2


def test_a_pipe_that_nobody_reads_stops_no_run(report: Path) -> None:
    """Standard output is closed in mid-run: the run comes to its end, exit code 0."""
    with Oracle(llamacpp(Model(SLOW))) as oracle:
        (report / "p.yml").write_text(PLAN % oracle.url)
        process = start(report, stderr=subprocess.DEVNULL)
        wait_for(lambda: asked(oracle) >= 3)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 0
    assert ok_repeats(report) == list(range(1, 9))


def test_under_nohup_a_closed_terminal_stops_no_run(report: Path) -> None:
    """A SIGHUP that is ignored from the start stays ignored."""
    with Oracle(llamacpp(Model(SLOW))) as oracle:
        (report / "p.yml").write_text(PLAN % oracle.url)
        process = start(report, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_for(lambda: asked(oracle) >= 3)
        process.send_signal(signal.SIGHUP)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert ok_repeats(report) == list(range(1, 9))


# The server


def test_a_server_that_dies_before_the_last_request_is_said(report: Path, holding: Callable[..., Handler]) -> None:
    """One or two requests before the end nobody listens any more: exit code 3, not a run that somebody stopped."""
    with Oracle(holding(8)) as oracle:
        (report / "p.yml").write_text(PLAN % oracle.url)
        process = start(report)
        wait_for(lambda: asked(oracle) == 8)  # the warm-up and seven of eight
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "answers at" in said or "no longer answers" in said
    assert f"--resume {unfinished(report)}" in said
    assert Counter(row["status"] for row in rows_of(report))["connect_error"] == 1


def test_a_server_that_leaves_after_the_last_request_costs_nothing(
    report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All eight are answered, and then nothing any more: the run is finished, exit code 0."""
    honest = llamacpp(Model(FAST))

    def leaves(request: Request) -> Script:
        return honest(request) if asked(oracle) < 9 or request.method == "POST" else answer({}, status=500)

    oracle = Oracle(leaves)
    with oracle:
        (report / "p.yml").write_text(PLAN % oracle.url)
        code = main(["p.yml"])
    assert code == 0, capsys.readouterr().out
    assert ok_repeats(report) == list(range(1, 9))
    assert left_behind(report) == [".journal"]


def row(repeat: int, status: str, *, segment: int = 0, phase: str = "measured") -> Row:
    return {"phase": phase, "experiment": "e", "point": "p", "repeat": repeat, "status": status, "segment": segment,
            "order_index": 10 * segment + repeat}  # fmt: skip


def test_a_refused_connection_counts_only_where_the_server_lived_on() -> None:
    """1 answered, 2 refused, 3 answered; 4 refused and then nothing: 4 is sent again, 2 was the server's failure."""
    rows = [row(1, "ok"), row(2, "connect_error"), row(3, "ok"), row(4, "connect_error"), row(5, "interrupted")]
    assert {key[3] for key in finished_keys(rows)} == {1, 2, 3}
    # That the next life's server answers says nothing about the last one's.
    again = [*rows, row(1, "ok", segment=1, phase="warmup")]
    assert {key[3] for key in finished_keys(again)} == {1, 2, 3}


def test_a_position_is_never_given_twice() -> None:
    """Three in flight, killed when 0, 1 and 4 were kept: the next is 5, not 3."""
    assert next_index([{"order_index": 0}, {"order_index": 1}, {"order_index": 4}]) == 5
    assert next_index([]) == 0


def test_what_changed_is_said_of_each_model() -> None:
    """Two models: each is held against its own rows, and the second's facts do not make the first a change."""
    before = RunFacts("r", host={"machine": "m4"}, server={"api": "ollama", "model_name": "b:1b", "model_digest": "bb"})
    rows = [{"model": "a:1b", "model_digest": "aa"}, {"model": "b:1b", "model_digest": "bb"}]
    now = {"api": "ollama", "model_name": "a:1b", "model_digest": "aa"}
    assert changed(before, rows, server=now, host={"machine": "m4"}) == []
    other = now | {"model_digest": "cc"}
    assert changed(before, rows, server=other, host={"machine": "m5"}) == [
        ("machine", "m4", "m5"), ("model_digest", "aa", "cc"),
    ]  # fmt: skip


def test_a_second_collector_is_told_of_the_first(
    report: Path, capsys: pytest.CaptureFixture[str], holding: Callable[..., Handler]
) -> None:
    """While one measures, another says so before it begins; once the first is stopped nobody is named any more."""
    named = "Another collector is measuring"
    with Oracle(holding(4)) as oracle:
        (report / "p.yml").write_text(PLAN % oracle.url)
        first = start(report)
        wait_for(lambda: asked(oracle) == 4)
        assert main(["p.yml"]) == 0
        assert f"! {named} {unfinished(report)} right now" in capsys.readouterr().out
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)
        assert main(["p.yml"]) == 0
        assert named not in capsys.readouterr().out


def test_a_resume_on_another_server_or_machine_says_what_changed(
    report: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ollama was updated and the report moved to another machine: both said, measured all the same, and never mixed."""
    version = ["0.33.0"]
    with Oracle(lambda request: ollama(Model(FAST), version=version[0])(request)) as oracle:
        (report / "p.yml").write_text(PLAN.replace("llamacpp", "ollama") % oracle.url)
        with monkeypatch.context() as patch:
            FullDisk(patch, "write", 9, stays=True)
            assert main(["p.yml"]) == 5
        version[0] = "0.34.0"
        monkeypatch.setattr(host, "this_host", lambda **_: host.HostFacts("Other", 4, 8 * 2**30, "Debian", "12"))
        before = capsys.readouterr().out
        assert main(["p.yml", "--resume", unfinished(report)]) == 0
    said = capsys.readouterr().out
    assert "Not as when the run began" not in before
    assert "Not as when the run began: server_version was 0.33.0 and is 0.34.0, so its rows will not be mixed" in said
    assert re.search(r"machine was \S+ and is other-4c-8gb", said)
    assert ok_repeats(report) == list(range(1, 9))
    assert {row["server_version"] for row in rows_of(report)} == {"0.33.0", "0.34.0"}
    assert "other conditions" in said


def test_two_collectors_at_once_keep_their_files_apart(report: Path) -> None:
    """The same plan twice at the same time: two runs, each with its eight requests, and nothing left over."""
    with Oracle(llamacpp(Model(FAST, slots=2))) as oracle:
        (report / "p.yml").write_text(PLAN % oracle.url)
        both = [start(report), start(report)]
        said = [process.communicate(timeout=90)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    runs = read_runs(report / "data" / "measured")
    assert [Counter(run.rows["phase"])["measured"] for run in runs] == [8, 8]
    assert left_behind(report) == [".journal"]
