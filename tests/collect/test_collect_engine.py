"""The collector against the real embedded engine: real tokens, counted by a real server."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import psutil
import pytest

from collect import engine, host
from collect.__main__ import main
from collect.client import lookup
from collect.engine import Engine
from collect.prompts import Prompt, make_prompt
from roofbook.facts import load_facts
from roofbook.record import Run, read_runs
from roofbook.theory.shapes import Ceilings, Spread
from roofbook.validity import Finding, findings, known_of, records

ROOT = Path(__file__).parents[2]
DOOMED = Path(__file__).with_name("doomed.py")

PLAN = """
plan: real
server: {api: embedded}
run: {repeats: 2, anchor: {prompt_tokens: 50, output_tokens: 4, every: 10}}
experiments:
  - {kind: prefill_curve, prompt_tokens: [50, 90, 160], output_tokens: 4}
  - {kind: concurrency, concurrency: 2, requests: 4, prompt_tokens: 50, output_tokens: 4}
"""


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


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Engine]:
    """The engine as a server that somebody started: it is met under its address."""
    with engine.start(context_tokens=512, parallel_slots=1, log=tmp_path_factory.mktemp("engine") / "log") as started:
        yield started


def only_run(report: Path) -> Run:
    (run,) = read_runs(report / "data" / "measured")
    return run


def doubts(run: Run) -> list[Finding]:
    return findings(records(run.rows), known_of(records(run.rows), load_facts(ROOT / "data" / "facts"), [run.facts]))


@pytest.mark.engine
def test_a_run_on_the_embedded_engine(report: Path) -> None:
    """Every request is ok, uncached and within 2 % of its length; nothing stays behind."""
    (report / "p.yml").write_text(PLAN)
    assert main(["p.yml"]) == 0
    rows = only_run(report).rows
    assert set(rows["status"]) == {"ok"}
    assert set(rows["api"]) == {"embedded"}
    assert rows["machine"].notna().all()
    measured = rows[rows["phase"].isin(["measured", "anchor"])]
    assert len(measured) == 6 + 4 + 2  # three lengths twice, one level, an anchor before and after
    off = (measured["prompt_tokens"] - measured["prompt_tokens_wanted"]).abs() / measured["prompt_tokens_wanted"]
    assert off.max() <= 0.02
    assert (measured["output_tokens"] == measured["output_tokens_wanted"]).all()
    assert set(rows["cached_tokens"]) == {0}
    alone = measured[measured["concurrency"] == 1]
    assert (alone["server_prefill_ms"] <= alone["ttft_ms"]).all()  # the server's clock starts later and stops sooner
    assert set(measured.loc[measured["concurrency"] == 2, "worker"]) == {0, 1}
    assert not any("engine_process" in " ".join(child.cmdline()) for child in psutil.Process().children(recursive=True))
    assert list((report / ".cache").glob("*")) == []


# ---- the cache

CHAT = """
plan: chat
server: {api: openai, url: '%s'}
run: {repeats: 3, anchor: null}
experiments: [{kind: baseline, prompt_tokens: 150, output_tokens: 2}]
"""


def always_the_same(words: int, source: Any, *, closing: bool) -> Prompt:
    """What a benchmark with one fixed prompt sends; ours has no key to ask for it."""
    del source
    return make_prompt(words, random.Random(1), closing=closing)


@pytest.mark.engine
def test_b01_a_prompt_that_repeats_is_seen_by_what_the_engine_counts(
    report: Path, running: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """B01: the same 150 tokens each time, through the API that lets the server cache: its cache_n is in the rows,
    every row is named for it with its numbers, and the terminal says so."""
    monkeypatch.setattr("collect.dispatch.make_prompt", always_the_same)
    (report / "p.yml").write_text(CHAT % running.url)
    assert main(["p.yml"]) == 0
    run = only_run(report)
    measured = run.rows[run.rows["phase"] == "measured"]
    assert (measured["cached_tokens"] > 0.9 * measured["prompt_tokens"]).all()  # all but the end of the template
    assert (measured["prompt_tokens"] - measured["cached_tokens"]).min() >= 1
    named = {one.order_index for one in doubts(run) if one.kind == "cached_prefix"}
    assert named == set(measured["order_index"])
    said = capsys.readouterr().out
    assert "cache hit (3 rows)" in said


@pytest.mark.engine
def test_b01_the_same_api_with_our_own_prompts_is_not_called_cached(report: Path, running: Engine) -> None:
    """B01, its look-alike: the engine finds the template's few tokens again, the prompt itself is new each time."""
    (report / "p.yml").write_text(CHAT % running.url)
    assert main(["p.yml"]) == 0
    run = only_run(report)
    measured = run.rows[run.rows["phase"] == "measured"]
    assert (measured["cached_tokens"] <= measured["template_tokens"] + 4).all()
    assert [one for one in doubts(run) if one.kind.startswith("cached")] == []


# ---- its context


@pytest.mark.engine
def test_b38_what_the_engine_cannot_hold_is_refused_before_it_is_sent(
    report: Path, running: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """B38: 600 + 8 tokens and a context of 512: exit code 4, said with both numbers, and the engine computed nothing
    of it; the cell that fits is measured."""
    text = "plan: long\nserver: {api: llamacpp, url: '%s'}\nrun: {repeats: 1, anchor: null, warmups: 0}\n"
    text += "experiments: [{kind: baseline, prompt_tokens: [600, 40], output_tokens: 8}]\n"
    (report / "p.yml").write_text(text % running.url)
    before = computed_tokens(running)
    assert main(["p.yml"]) == 4
    rows = only_run(report).rows
    measured = rows[rows["phase"] == "measured"]
    assert dict(zip(measured["prompt_tokens_wanted"], measured["status"], strict=True)) == {600: "refused", 40: "ok"}
    sent = rows.loc[rows["status"] == "ok", "prompt_tokens"]
    assert computed_tokens(running) - before == sent.sum()  # two calibrations and the one of 40
    assert "608 tokens do not fit into the server's context of 512" in capsys.readouterr().out


def computed_tokens(running: Engine) -> int:
    """What the engine itself counts of prompts."""
    for line in lookup.get(running.url, "/metrics").text.splitlines():
        if line.startswith("llamacpp:prompt_tokens_total "):
            return int(float(line.split()[1]))
    raise AssertionError("the engine has no such count")


# ---- its death

LONG = """
plan: long
server: {api: embedded}
run: {repeats: 5, anchor: null}
experiments: [{kind: baseline, prompt_tokens: 24, output_tokens: 40}]
"""


def start(report: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start the collector as a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(DOOMED), "never", "1", "p.yml", *arguments],
        cwd=report, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip


def engine_of(collector: "subprocess.Popen[str]") -> psutil.Process:
    """The engine that a collector has started; what else it started may be dead already."""
    for child in psutil.Process(collector.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "engine_process" in " ".join(child.cmdline()):
                return child
    raise AssertionError("no engine runs")


def decoded_tokens(url: str) -> int:
    """How far the engine is with what it writes now; 0 where it rests."""
    (slot,) = lookup.get(url, "/slots").json()
    return slot["next_token"][0]["n_decoded"] if slot["is_processing"] else 0


def wait_for(what: Callable[[], Any], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.engine
def test_an_engine_that_is_killed_in_mid_stream_costs_one_answer(report: Path) -> None:
    """kill -9 of the engine while it streams: exit code 3 and why, what was finished is kept, and a resume goes on."""
    (report / "p.yml").write_text(LONG)
    process = start(report)
    journals = report / "data" / "measured" / ".journal"
    wait_for(lambda: sum(path.read_text().count('"measured"') for path in journals.glob("*.jsonl")) >= 2)
    child = engine_of(process)
    (port,) = {one.laddr.port for one in child.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
    wait_for(lambda: 5 < decoded_tokens(f"http://127.0.0.1:{port}") < 25)  # of 40: in the middle of the third answer
    child.send_signal(signal.SIGKILL)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "The embedded engine was ended by SIGKILL" in said
    run = only_run(report)
    assert f"--resume {run.run_id}" in said
    rows = run.rows[run.rows["phase"] == "measured"]
    assert rows["status"].tolist() == ["ok", "ok", "read_error"]
    cut = rows.iloc[2]
    assert cut["ttft_ms"] > 0  # it was in mid-stream
    assert 0 < cut["chunks"] < 40
    again = start(report, "--resume", run.run_id)
    said, _ = again.communicate(timeout=60)
    assert again.returncode == 4, said  # finished, and one answer of the first life was cut
    rows = only_run(report).rows
    measured = rows[rows["phase"] == "measured"]
    assert sorted(measured["repeat"]) == [1, 2, 3, 4, 5]
    assert measured["status"].tolist() == ["ok", "ok", "read_error", "ok", "ok"]
    assert measured["segment"].tolist() == [0, 0, 0, 1, 1]
