"""The collector as a person calls it: plans against servers of known times, exit codes, a kill, and a resume."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from collect import engine, host, server
from collect.__main__ import main
from collect.measure import finished_keys
from collect.oracle import (
    Handler,
    Model,
    Oracle,
    Piece,
    Request,
    Script,
    Speed,
    always,
    answer,
    llamacpp,
    ollama,
    openai,
    routes,
    sse,
)
from collect.scrub import of_this_process
from roofbook.record import Run, read_runs, read_samples
from roofbook.theory.shapes import Ceilings, Spread

ROOT = Path(__file__).parents[2]
FAST = Speed(fixed_ms=2, linear_ms=0.01, step_ms=0.5)

Collect = Callable[..., tuple[int, str]]


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report's folder, in which the commands are called."""
    (tmp_path / "mkdocs.yml").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def collect(report: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Collect:
    """Call the collector with a plan's text; return the exit code and what it said."""
    rate = Spread(1e9, 1e9, 1e9, 1)
    monkeypatch.setattr(host, "measure_ceilings", lambda: Ceilings(rate, rate, "cpu", "a test"))

    def call(plan: str, *arguments: str) -> tuple[int, str]:
        (report / "p.yml").write_text(plan)
        code = main(["p.yml", *arguments])
        return code, capsys.readouterr().out

    return call


def plan_for(api: str, url: str, experiments: str, *, run: str = "{repeats: 3, anchor: null}", more: str = "") -> str:
    return f"plan: p\nserver: {{api: {api}, url: '{url}'{more}}}\nrun: {run}\nexperiments:\n{experiments}"


BASELINE = "  - {kind: baseline, prompt_tokens: [64, 400], output_tokens: 8}\n"


def only_run(report: Path) -> Run:
    (run,) = read_runs(report / "data" / "measured")
    return run


def measured(run: Run, phase: str = "measured") -> pd.DataFrame:
    return run.rows[run.rows["phase"] == phase]


SERVERS: dict[str, Callable[[Model], Handler]] = {"llamacpp": llamacpp, "ollama": ollama, "openai": openai}


@pytest.mark.parametrize("api", ["llamacpp", "ollama", "openai"])
def test_a_plan_becomes_rows(api: str, report: Path, collect: Collect) -> None:
    """Two lengths, three repeats, a warm-up each: every row is ok, its counts are the server's, its length is right."""
    with Oracle(SERVERS[api](Model(FAST))) as oracle:
        code, said = collect(
            plan_for(api, oracle.url, BASELINE, run="{repeats: 3, anchor: {prompt_tokens: 64, every: 4}}")
        )
    assert code == 0, said
    run = only_run(report)
    rows = run.rows
    assert Counter(rows["phase"]) == {"calibration": 2, "warmup": 3, "measured": 6, "anchor": 3}
    assert set(rows["status"]) == {"ok"}
    assert list(rows["order_index"]) == list(range(14))
    assert set(rows["api"]) == {api}
    assert set(rows["prompt_token_source"]) == set(rows["output_token_source"]) == {"server"}
    good = measured(run)
    assert (good["prompt_tokens"] - good["prompt_tokens_wanted"]).abs().max() <= 8  # 2 % of 400
    assert set(good["output_tokens"]) == {8}
    assert rows["nonce"].is_unique
    assert (rows["ttft_ms"] > 0).all()
    assert (rows["connection"] == "new").all()
    assert set(rows["proxy"]) == {"none"}
    assert run.facts.plan["run"]["seed"] == rows["seed"].iloc[0]
    assert "make site" in said
    assert str(report) not in json.dumps(run.facts.plan)


def test_b01_the_cache_is_never_asked_for_and_no_nonce_comes_twice(report: Path, collect: Collect) -> None:
    """B01: one cell of 512 tokens, six repeats, twice: 12 prompts without a common front, and 0 cached tokens."""
    text = "  - {kind: baseline, prompt_tokens: 512, output_tokens: 4, repeats: 6}\n"
    with Oracle(llamacpp(Model(FAST))) as oracle:
        for _ in range(2):
            assert collect(plan_for("llamacpp", oracle.url, text))[0] == 0
        prompts = oracle.prompts
    rows = pd.concat([measured(run) for run in read_runs(report / "data" / "measured")])
    fronts = [prompt[:16] for prompt in prompts]
    assert len(set(fronts)) == len(prompts)
    assert len(set(rows["nonce"])) == len(rows) == 12
    assert rows["prompt_tokens"].max() - rows["prompt_tokens"].min() <= 2
    assert set(rows["cached_tokens"]) == {0}


def test_b08_failures_are_rows_and_no_success(report: Path, collect: Collect) -> None:
    """B08: of ten requests two get 503 and one 429: exit code 4, three rows say so, medians are over the seven."""
    bad = {2: 503, 5: 429, 7: 503}
    sent = [0]

    def twist(request: Request, script: Script) -> Script:
        if request.path != "/completion" or request.json["n_predict"] != 6:
            return script
        sent[0] += 1
        status = bad.get(sent[0] - 1)  # the first one is the warm-up
        return script if status is None else answer({"error": {"message": "no room"}}, status=status)

    text = "  - {kind: baseline, prompt_tokens: 64, output_tokens: 6, repeats: 10}\n"
    with Oracle(llamacpp(Model(FAST)), twist=twist) as oracle:
        code, said = collect(plan_for("llamacpp", oracle.url, text))
    assert code == 4
    rows = measured(only_run(report))
    assert Counter(rows["status"]) == {"ok": 7, "http_503": 2, "http_429": 1}
    assert set(rows.loc[rows["status"] != "ok", "error"]) == {"no room"}
    assert rows.loc[rows["status"] != "ok", "ttft_ms"].isna().all()
    assert "1 x http_429, 2 x http_503" in said
    assert sent[0] == 11  # nothing was sent again


def test_b11_an_early_end_is_kept_as_it_is(report: Path, collect: Collect) -> None:
    """B11: a model that stops after 5 of 8 tokens: the rows say 5, and stop; no ignore_eos was sent to Ollama."""
    with Oracle(ollama(Model(FAST, stops_after=5))) as oracle:
        assert collect(plan_for("ollama", oracle.url, BASELINE))[0] == 0
        bodies = [heard.request.json for heard in oracle.heard if heard.request.path == "/api/generate"]
    rows = measured(only_run(report))
    assert set(rows["output_tokens"]) == {5}
    assert set(rows["output_tokens_wanted"]) == {8}
    assert set(rows["finish_reason"]) == {"stop"}
    assert not any("ignore_eos" in json.dumps(body) for body in bodies)


def test_b02_ollama_always_gets_a_num_ctx_and_never_a_cut_prompt(report: Path, collect: Collect) -> None:
    """B02: num_ctx is in every request and the same, large enough for the longest cell; shift and truncate are off."""
    with Oracle(ollama(Model(FAST))) as oracle:
        assert collect(plan_for("ollama", oracle.url, BASELINE))[0] == 0
        bodies = [heard.request.json for heard in oracle.heard if heard.request.path == "/api/generate"]
    assert {body["options"]["num_ctx"] for body in bodies} == {
        1024
    }  # 408 tokens, 3 % and 64 to spare, in steps of 1,024
    assert {(body["truncate"], body["shift"]) for body in bodies} == {(False, False)}
    assert json.loads(only_run(report).rows["request_options"].iloc[0])["options"]["num_ctx"] == 1024


def test_b38_a_cell_that_no_slot_holds_is_refused_before_it_is_sent(report: Path, collect: Collect) -> None:
    """B38: four slots of 2,048: 3,000 + 128 is refused, naming both numbers, and not sent; 1,500 + 128 runs."""
    text = "  - {kind: baseline, prompt_tokens: [3000, 1500], output_tokens: 128, repeats: 1}\n"
    with Oracle(llamacpp(Model(FAST, context_tokens=2048, slots=4))) as oracle:
        code, said = collect(plan_for("llamacpp", oracle.url, text))
        longest = max(len(prompt.split()) for prompt in oracle.prompts)
    assert code == 4
    assert "3128 tokens do not fit into the 2048" in said
    assert "4 slots" in said
    rows = measured(only_run(report))
    assert dict(zip(rows["prompt_tokens_wanted"], rows["status"], strict=True)) == {3000: "refused", 1500: "ok"}
    assert rows.loc[rows["status"] == "refused", "attempts"].tolist() == [0]
    assert longest < 1500


def test_b07_a_refused_stream_options_is_found_out_before_measuring(report: Path, collect: Collect) -> None:
    """B07: a server that answers 400 to stream_options: one refused probe, then none has the field."""

    def twist(request: Request, script: Script) -> Script:
        if "stream_options" in request.json:
            return answer({"error": {"message": "unknown field stream_options"}}, status=400)
        return script

    with Oracle(openai(Model(FAST)), twist=twist) as oracle:
        code, said = collect(plan_for("openai", oracle.url, BASELINE))
    run = only_run(report)
    assert code == 0, said
    assert "stream_options" in said
    statuses = run.rows["status"].tolist()
    assert statuses[0] == "http_400"
    assert set(statuses[1:]) == {"ok"}
    rows = measured(run)
    assert set(rows["output_token_source"]) == {"estimate"}
    assert rows["prompt_tokens"].isna().all()


def test_b30_every_worker_is_warm_before_a_level_is_measured(report: Path, collect: Collect) -> None:
    """B30: at concurrency 4 there are four warm-ups, though the plan asks for one; then closed loops of four."""
    text = "  - {kind: concurrency, concurrency: 4, requests: 12, prompt_tokens: 64, output_tokens: 8}\n"
    with Oracle(llamacpp(Model(Speed(fixed_ms=40, step_ms=1), slots=4))) as oracle:
        assert collect(plan_for("llamacpp", oracle.url, text))[0] == 0
        assert oracle.most_in_flight == 4
    run = only_run(report)
    assert len(measured(run, "warmup")) == 4
    rows = measured(run)
    assert sorted(rows["repeat"]) == list(range(1, 13))
    assert set(rows["worker"]) == {0, 1, 2, 3}
    assert set(rows["concurrency"]) == {4}


def test_b05_a_cold_load_is_made_by_unloading(report: Path, collect: Collect) -> None:
    """B05: before each request Ollama is told keep_alive 0, and its load time of 30 ms is in each row."""
    model = Model(Speed(fixed_ms=2, step_ms=1, load_ms=30))
    inner = ollama(model)
    text = "  - {kind: cold_load, prompt_tokens: 64, output_tokens: 4, repeats: 3}\n"

    def unloading(request: Request) -> Script:
        if request.path == "/api/generate" and request.json.get("keep_alive") == 0:
            model.loaded = False
            return answer({"done": True, "done_reason": "unload"})
        return inner(request)

    with Oracle(unloading) as oracle:
        code, said = collect(plan_for("ollama", oracle.url, text))
    assert code == 0, said
    rows = measured(only_run(report))
    assert [round(load) for load in rows["server_load_ms"]] == [30, 30, 30]
    assert measured(only_run(report), "warmup").empty


def test_a_cold_load_that_cannot_be_made_is_said(collect: Collect) -> None:
    """llama.cpp cannot be told to unload: exit code 2, and the way out."""
    text = "  - {kind: cold_load, prompt_tokens: 64, repeats: 1}\n"
    with Oracle(llamacpp(Model(FAST))) as oracle:
        code, said = collect(plan_for("llamacpp", oracle.url, text))
    assert code == 2
    assert "api: ollama" in said


def test_b43_a_pause_is_kept_and_noted(report: Path, collect: Collect) -> None:
    """B43: a pause of 50 ms stands in each row of the cell, and is really made."""
    text = "  - {kind: baseline, prompt_tokens: 64, output_tokens: 4, repeats: 4, pause_s: 0.05}\n"
    with Oracle(llamacpp(Model(FAST))) as oracle:
        assert collect(plan_for("llamacpp", oracle.url, text))[0] == 0
    rows = measured(only_run(report))
    assert set(rows["pause_before_ms"]) == {50.0}
    ends = rows["sent_at_ms"] + rows["e2e_ms"]
    assert ((rows["sent_at_ms"].iloc[1:].to_numpy() - ends.iloc[:-1].to_numpy()) >= 49).all()


# What cannot be measured


def test_a_plan_with_faults_names_them_all(collect: Collect) -> None:
    """Exit code 2, each fault on its own line, nothing else."""
    code, said = collect("plan: p\nrun: {repeats: [3], timeout_s: 1e3}\nexperiments: []\n")
    assert code == 2
    assert [line.partition(":")[0] for line in said.splitlines()] == [f"p.yml, line {n}" for n in (2, 2, 3)]


def test_a_server_that_does_not_answer_is_named_with_its_start(collect: Collect) -> None:
    """Exit code 3 and the command that starts it; the embedded engine is not started instead."""
    code, said = collect(plan_for("ollama", "http://127.0.0.1:9", BASELINE))
    assert code == 3
    assert "ollama serve" in said


def test_a_port_that_answers_something_else_is_named(collect: Collect) -> None:
    """A web server is no LLM server: exit code 3."""
    with Oracle(routes({"/": answer({"hello": "world"})})) as oracle:
        code, said = collect(plan_for("ollama", oracle.url, BASELINE))
    assert code == 3
    assert "no LLM server" in said


def test_a_model_that_the_server_lacks_names_those_it_has(collect: Collect) -> None:
    """Exit code 2."""
    with Oracle(ollama(Model(FAST), name="here:1b")) as oracle:
        code, said = collect(plan_for("ollama", oracle.url, BASELINE, more=", model: 'gone:7b'"))
    assert code == 2
    assert "here:1b" in said


def test_a_folder_that_cannot_be_written_ends_before_sending(collect: Collect, report: Path) -> None:
    """Exit code 5; no prompt was sent."""
    (report / "data" / "measured").write_text("a file stands where the folder belongs")
    with Oracle(llamacpp(Model(FAST))) as oracle:
        code, said = collect(plan_for("llamacpp", oracle.url, BASELINE))
        assert oracle.prompts == []
    assert code == 5
    assert "Cannot write" in said


def test_a_key_that_is_wrong_ends_at_the_first_request(collect: Collect, report: Path) -> None:
    """A server that answers 401 to a request: exit code 2, and no run is left behind."""

    def twist(request: Request, script: Script) -> Script:
        return answer({"error": {"message": "bad key"}}, status=401) if request.method == "POST" else script

    with Oracle(openai(Model(FAST)), twist=twist) as oracle:
        code, said = collect(plan_for("openai", oracle.url, BASELINE))
    assert code == 2
    assert "bad key" in said
    assert list((report / "data" / "measured").rglob("*.*")) == [report / "data" / "measured" / ".journal"]


@pytest.mark.parametrize("body", ["<html>please log in</html>", '{"error": {"message": "out of credit"}}', ""])
def test_an_answer_without_any_text_ends_at_the_first_request(body: str, collect: Collect, report: Path) -> None:
    """200 and a page, an error or nothing: exit code 3 with what was said, instead of a run without one good row."""

    def twist(request: Request, script: Script) -> Script:
        return Script((Piece(0, body.encode()),)) if request.method == "POST" else script

    with Oracle(openai(Model(FAST)), twist=twist) as oracle:
        code, said = collect(plan_for("openai", oracle.url, BASELINE))
        assert len(oracle.prompts) == 1
    assert code == 3, said
    assert ("please log in" in said, "out of credit" in said) == ("log" in body, "credit" in body)
    assert list((report / "data" / "measured").rglob("*.parquet")) == []


@pytest.mark.parametrize("key", ["zz9plain.alicepass!0042", "ab!12"])
def test_the_plans_key_is_nowhere_whatever_its_variable_is_called(
    key: str, collect: Collect, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that sends the key back in its stream, cut or not: neither the file nor the terminal has any of it."""
    monkeypatch.setattr("collect.scrub._keys", set[str]())
    monkeypatch.setenv("MY_LLM", key)
    asked = itertools.count(1)

    def twist(request: Request, script: Script) -> Script:
        if request.method != "POST" or next(asked) <= 3:  # calibration and warm-up
            return script
        assert request.headers["authorization"] == f"Bearer {key}"
        return Script((Piece(0, f"data: oops {'y' * 55} {key} tail\n\n".encode()),))

    more = ", api_key_env: MY_LLM"
    with Oracle(openai(Model(FAST)), twist=twist) as oracle:
        text = "  - {kind: baseline, prompt_tokens: 64, output_tokens: 4}\n"
        code, said = collect(plan_for("openai", oracle.url, text, more=more))
    of_this_process.cache_clear()
    assert code == 4, said
    kept = str(only_run(report).rows.to_dict("records")) + str(only_run(report).facts)
    assert "oops" in kept
    assert key[:5] not in said + kept


def test_of_a_models_path_only_its_name_is_kept(collect: Collect, report: Path) -> None:
    """A server that wants a file's path as the model's name: its folders stand in no row, option or plan."""
    path = "/mnt/alicedisk/ACME-client/qwen7b.gguf"
    text = "  - {kind: baseline, prompt_tokens: 64, output_tokens: 4}\n"
    with Oracle(openai(Model(FAST), name=path)) as oracle:
        code, said = collect(plan_for("openai", oracle.url, text, more=f", model: {path}"))
        assert {heard.request.json["model"] for heard in oracle.heard if heard.request.method == "POST"} == {path}
    assert code == 0, said
    run = only_run(report)
    assert {json.loads(sent)["model"] for sent in run.rows["request_options"]} == {"qwen7b.gguf"}
    assert set(run.rows["model"]) == set(run.rows["answered_model"]) == {"qwen7b.gguf"}
    assert "alicedisk" not in str(run.rows.to_dict("records")) + str(run.facts)


def test_a_connection_that_stays_open_costs_no_answer(collect: Collect, report: Path) -> None:
    """B21: everything came, only the end of the body never does: ok rows, and what to know is said."""

    def twist(request: Request, script: Script) -> Script:
        return replace(script, ending="stall") if request.method == "POST" else script

    text = "  - {kind: baseline, prompt_tokens: 64, output_tokens: 4, repeats: 1}\n"
    with Oracle(openai(Model(FAST)), twist=twist) as oracle:
        code, said = collect(plan_for("openai", oracle.url, text, run="{timeout_s: 0.4, anchor: null}"))
    assert code == 0, said
    rows = measured(only_run(report))
    assert (rows["status"].tolist(), rows["e2e_ms"].isna().all()) == (["ok"], True)
    assert "the answer was complete, but the connection was not closed" in said


@pytest.mark.parametrize("url", ["http://[::1", "http://ex ample/", "http://a:99999999", "ftp://a", "http://[zz]:1"])
@pytest.mark.usefixtures("report")
def test_what_is_no_address_is_said_so(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and one line, not a traceback."""
    assert main(["inspect", url]) == 2
    assert "is no address of a server" in capsys.readouterr().err


def test_a_dry_run_sends_nothing(collect: Collect, report: Path) -> None:
    """It says how much would be sent."""
    code, said = collect(plan_for("ollama", "http://127.0.0.1:9", BASELINE), "--dry-run")
    assert code == 0
    assert "6 requests" in said
    assert not (report / "data" / "measured").exists()


def test_outside_of_a_report_it_says_where_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2, not a traceback."""
    monkeypatch.chdir(tmp_path)
    assert main(["plans/first.yml"]) == 2


# Stopped and taken up


def subprocess_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


# The collector in a process of its own, without the seconds that measuring the machine takes.
COLLECT = """
from collect import engine, host, server
from collect.__main__ import process
from roofbook.theory.shapes import Ceilings, Spread
rate = Spread(1e9, 1e9, 1e9, 1)
host.measure_ceilings = lambda: Ceilings(rate, rate, "cpu", "a test")
process()
"""


def start(report: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", COLLECT, "p.yml", *arguments],
        cwd=report, env=subprocess_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def wait_for(what: Callable[[], Any], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


TWELVE = "  - {kind: baseline, prompt_tokens: 64, output_tokens: 6, repeats: 12}\n"


def asked(oracle: Oracle) -> int:
    return sum(heard.request.json.get("n_predict") == 6 for heard in oracle.heard)


def test_a_server_that_goes_away_ends_the_run_and_keeps_it(report: Path, holding: Callable[..., Handler]) -> None:
    """The server dies in mid-run: exit code 3, the rows are written, and only what never reached it is sent again."""
    with Oracle(holding(6)) as oracle:
        (report / "p.yml").write_text(plan_for("llamacpp", oracle.url, TWELVE))
        process = start(report)
        wait_for(lambda: asked(oracle) == 6)  # the warm-up and five
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "--resume" in said
    rows = measured(only_run(report))
    # Four were answered, the fifth was cut off; so many that find nobody in a row mean that it is gone.
    assert Counter(rows["status"]) == {"ok": 4, "read_error": 1, "connect_error": 5}
    done = finished_keys(rows.to_dict("records"))
    assert {key[3] for key in done} == set(rows.loc[rows["status"] != "connect_error", "repeat"])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_run_loses_nothing_and_is_taken_up(
    report: Path, number: signal.Signals, holding: Callable[..., Handler]
) -> None:
    """Stopped by any signal in mid-run and resumed: each of the twelve requests is there once."""
    with Oracle(holding(6)) as oracle:
        (report / "p.yml").write_text(plan_for("llamacpp", oracle.url, TWELVE))
        process = start(report)
        wait_for(lambda: asked(oracle) == 6)  # the warm-up and five, the last of them in flight
        process.send_signal(number)
        said, _ = process.communicate(timeout=30)
        assert process.returncode == {signal.SIGKILL: -9, signal.SIGINT: 130}.get(number, 143), said
        (journal,) = (report / "data" / "measured" / ".journal").glob("*.jsonl")
        kept = [json.loads(line)["row"] for line in journal.read_text().splitlines() if "row" in json.loads(line)]
        assert sum(row["output_tokens_wanted"] == 6 and row["status"] == "ok" for row in kept) == 5
        if number != signal.SIGKILL:
            assert f"--resume {journal.stem}" in said
            assert only_run(report).run_id == journal.stem
        again = start(report, "--resume", journal.stem)
        said, _ = again.communicate(timeout=60)
        assert again.returncode == 0, said
    run = only_run(report)
    rows = measured(run)
    ok = rows[rows["status"] == "ok"]
    assert sorted(ok["repeat"]) == list(range(1, 13))
    assert set(ok["segment"]) == {0, 1}
    assert set(rows["status"]) <= {"ok", "interrupted"}
    assert list(run.rows["order_index"]) == list(range(len(run.rows)))
    assert not journal.exists()


def test_more_than_one_ctrl_c_changes_nothing(report: Path, holding: Callable[..., Handler]) -> None:
    """Somebody who is impatient, up to the end of the process: exit code 130, the way on, and no traceback."""
    with Oracle(holding(6)) as oracle:
        (report / "p.yml").write_text(plan_for("llamacpp", oracle.url, TWELVE))
        process = start(report)
        wait_for(lambda: asked(oracle) == 6)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.002)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert "--resume" in said
    assert "Traceback" not in said


def test_a_run_is_not_taken_up_with_another_plan(
    report: Path, collect: Collect, holding: Callable[..., Handler]
) -> None:
    """The plan changed since: exit code 2, and what differs is named."""
    with Oracle(holding(3)) as oracle:
        plan = plan_for("llamacpp", oracle.url, TWELVE)
        (report / "p.yml").write_text(plan)
        process = start(report)
        wait_for(lambda: asked(oracle) == 3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        run_id = only_run(report).run_id
        code, said = collect(plan.replace("repeats: 12", "repeats: 9"), "--resume", run_id)
        assert code == 2
        assert "experiments" in said
        code, said = collect(plan)
        assert f"--resume {run_id}" in said  # a new run mentions the old one
        assert code == 0


def test_korean_is_spoken_where_it_is_asked_for(collect: Collect) -> None:
    """Every sentence of a good run has its translation; numbers and names stay."""
    with Oracle(llamacpp(Model(FAST))) as oracle:
        code, said = collect(plan_for("llamacpp", oracle.url, BASELINE), "--lang", "ko")
    assert code == 0
    assert "make site" in said
    assert "서버" in said


# Which server


def found_at(monkeypatch: pytest.MonkeyPatch, *urls: str) -> None:
    """Let the search on loopback find the servers at *urls*."""
    monkeypatch.setattr(server, "find", lambda: [server.identify(url) for url in urls])


AUTO = "plan: p\nserver: {api: auto}\nrun: {repeats: 1, anchor: null}\nexperiments:\n" + BASELINE


def test_auto_takes_the_server_with_a_loaded_model_and_says_how_to_choose(
    report: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers, one with a model loaded: that one is measured, the other named with the key that chooses it."""
    with Oracle(ollama(Model(FAST, loaded=False))) as cold, Oracle(llamacpp(Model(FAST))) as warm:
        found_at(monkeypatch, cold.url, warm.url)
        code, said = collect(AUTO)
        assert code == 0, said
        assert cold.prompts == []
        assert f"Also found: ollama ({cold.url}); choose one with server.url" in said
    assert set(only_run(report).rows["api"]) == {"llamacpp"}


def test_auto_takes_the_server_that_has_the_model_of_the_plan(
    report: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that names a model gets the server that has it."""
    with Oracle(llamacpp(Model(FAST))) as other, Oracle(ollama(Model(FAST), name="mine:1b")) as wanted:
        found_at(monkeypatch, other.url, wanted.url)
        code, said = collect(AUTO.replace("api: auto", "api: auto, model: 'mine:1b'"))
        assert code == 0, said
    assert set(only_run(report).rows["model"]) == {"mine:1b"}


def test_no_server_and_no_engine_says_how_to_get_one(collect: Collect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3 with both ways out."""
    found_at(monkeypatch)
    monkeypatch.setattr(engine, "installed", lambda: False)
    code, said = collect(AUTO)
    assert code == 3
    assert "ollama serve" in said
    assert "pip install" in said


def test_a_remote_server_leaves_the_machine_unknown_unless_it_is_named(
    report: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A front elsewhere: the machine stays null, and the plan's author is told to name it."""
    monkeypatch.setattr(server, "is_here", lambda _: False)
    words = [Piece(float(n), f"data: w{n}\n\n".encode()) for n in range(3)]
    with Oracle(always(Script((*words, Piece(3, sse("[DONE]")))))) as oracle:
        text = plan_for("sse", f"{oracle.url}/chat", BASELINE, run="{repeats: 1, anchor: null}")
        code, said = collect(text)
        assert code == 0, said
        assert {heard.request.path for heard in oracle.heard} == {"/chat"}
    assert "'machine'" in said
    assert only_run(report).rows["machine"].isna().all()


def test_connections_are_reused_across_requests_where_the_plan_says_so(report: Path, collect: Collect) -> None:
    """connection: reused keeps a worker's connection from request to request; only the first one connects."""
    text = "  - {kind: baseline, prompt_tokens: 64, output_tokens: 4, repeats: 4}\n"
    with Oracle(llamacpp(Model(FAST))) as oracle:
        plan = plan_for("llamacpp", oracle.url, text, run="{connection: reused, anchor: null}")
        assert collect(plan)[0] == 0
    rows = only_run(report).rows
    assert rows["connection"].tolist() == ["new"] + ["reused"] * 6
    assert rows["connect_ms"].isna().tolist() == [False] + [True] * 6


def test_a_run_stopped_before_its_first_measurement_writes_no_file(report: Path) -> None:
    """Stopped in the warm-up: the journal is kept to go on from, and no run without a figure is published."""
    with Oracle(llamacpp(Model(Speed(fixed_ms=5000)))) as oracle:
        (report / "p.yml").write_text(plan_for("llamacpp", oracle.url, TWELVE))
        process = start(report)
        wait_for(lambda: oracle.heard and oracle.heard[-1].request.path == "/completion")
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 143, said
    assert "--resume" in said
    assert read_runs(report / "data" / "measured") == []


def test_doubts_are_told_with_the_way_out(collect: Collect) -> None:
    """A model that ends after 5 of 8 tokens: said after its first row and summed up at the end, in Korean if asked."""
    with Oracle(openai(Model(FAST, stops_after=5))) as oracle:
        plan = plan_for("openai", oracle.url, BASELINE)
        code, said = collect(plan)
        _, in_korean = collect(plan, "--lang", "ko")
    assert code == 0
    first, total = re.findall(r"^! (.*?): The answer ended after 5 of 8 tokens\. The model ended", said, re.MULTILINE)
    assert re.fullmatch(r"p(64|400)-o8, short output", first)
    assert total == "short output (6 rows)"  # 2 lengths x 3 repeats
    assert said.index("What is doubtful about these rows:") < said.index("! short output (6 rows)")
    assert "! 짧은 출력 (6행): " in in_korean


def test_a_clean_run_is_said_to_be_clean(collect: Collect, monkeypatch: pytest.MonkeyPatch) -> None:
    """No doubt found: that is said too, and no line of warning stands anywhere."""
    monkeypatch.setattr("collect.run.finder", lambda *_: lambda _rows: [])
    with Oracle(llamacpp(Model(FAST))) as oracle:
        code, said = collect(plan_for("llamacpp", oracle.url, BASELINE))
    assert code == 0
    assert "Nothing known to spoil a measurement was found in these rows" in said
    assert "! " not in said


def test_host_and_server_are_sampled_beside_the_rows(report: Path, collect: Collect) -> None:
    """RUN_ID.samples.parquet: the host's free memory and the server's metrics; it is no run of its own."""
    with Oracle(llamacpp(Model(FAST))) as oracle:
        assert collect(plan_for("llamacpp", oracle.url, BASELINE))[0] == 0
    run = only_run(report)
    samples = read_samples(report / "data" / "measured", run.run_id)
    assert {"memory_free_bytes", "llamacpp:requests_processing"} <= {sample["name"] for sample in samples}
    assert (run.rows["started_at"].min() - samples[0]["time"]).total_seconds() < 60


@pytest.mark.parametrize(
    ("api", "handler", "said"),
    [
        ("auto", llamacpp, "num_ctx is not sent: only Ollama takes a context with each request"),
        ("llamacpp", llamacpp, "num_ctx is not sent: llama.cpp takes its context when it starts"),
        ("openai", openai, "the OpenAI API has no num_ctx"),
        ("ollama", ollama, None),
    ],
)
def test_a_context_that_cannot_be_set_is_said_before_sending(
    api: str, handler: Callable[[Model], Handler], said: str | None, report: Path, collect: Collect
) -> None:
    """num_ctx under an API that has no such field: one sentence before the first request, and the run goes on."""
    with Oracle(handler(Model(FAST))) as oracle:
        code, out = collect(plan_for(api, oracle.url, BASELINE, more=", options: {num_ctx: 2048}"))
    assert code == 0
    assert out.count("num_ctx") == (said is not None)
    if said is not None:
        assert out.index(said) < out.index("finding the length of prompts")
    options = only_run(report).rows["request_options"]
    assert options.str.contains("num_ctx").all() == (api == "ollama")


def test_a_server_that_changed_during_a_block_is_noticed(report: Path, collect: Collect) -> None:
    """Its version is another at the end than when it was warm: said, and kept as it is in the end."""
    looks = [0]

    def changing(request: Request) -> Script:
        if request.path == "/api/version":
            looks[0] += 1
        return ollama(Model(FAST), version="0.33.0" if looks[0] < 4 else "0.34.0")(request)

    with Oracle(changing) as oracle:
        code, said = collect(plan_for("ollama", oracle.url, BASELINE))
    assert code == 0
    assert "Not as when the run began: server_version was 0.33.0 and is 0.34.0" in said
    assert only_run(report).facts.server["server_version"] == "0.34.0"
