"""The collector against real servers with a tiny model of random weights; `make test-servers` installs them.

What a server answers is its own; what is held here is that a plan runs and that the columns say what happened.
"""

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from collect import host, server
from collect.__main__ import main
from roofbook.record import Run, read_runs, read_samples
from roofbook.theory.shapes import Ceilings, Spread

pytestmark = [pytest.mark.optional, pytest.mark.servers, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
SERVERS = Path(os.environ.get("ROOFBOOK_SERVERS", "/nowhere"))
UP_WITHIN_S = 600

PLAN = """
plan: real
server: {{api: openai, url: '{url}'}}
run: {{repeats: 3, anchor: {{prompt_tokens: 128, output_tokens: 8, every: 8}}}}
experiments:
  - {{kind: prefill_curve, prompt_tokens: [128, 512, 1024], output_tokens: 8}}
  - {{kind: concurrency, concurrency: [1, 4], requests: 8, prompt_tokens: 256, output_tokens: 16}}
"""


@dataclass(frozen=True)
class Command:
    """How a server is started: its words, and what it wants in its environment."""

    words: tuple[str, ...]
    ready_path: str
    environment: dict[str, str]


def command_of(name: str, port: int, folder: Path) -> Command:
    model = str(SERVERS / name / "model")
    binaries = SERVERS / name / "bin"
    if name == "mlx_lm":
        return Command(
            (str(binaries / "mlx_lm.server"), "--model", model, "--port", str(port)), "/health",
            {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(folder / "nothing-downloaded-yet")},
        )  # fmt: skip
    return Command(
        (
            str(binaries / "vllm"), "serve", model, "--load-format", "dummy", "--served-model-name", "tiny", "--port",
            str(port), "--max-model-len", "2048", "--dtype", "float32", "--enforce-eager",
            "--enable-prompt-tokens-details",
        ),
        "/health",
        {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"},
    )  # fmt: skip


@pytest.fixture(scope="module", params=["mlx_lm", "vllm"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, str]]:
    """Start one server and yield its name and address."""
    name: str = request.param
    if not (SERVERS / name / ".ready").is_file():
        pytest.skip(f"{name} is not installed: make test-servers")
    folder = tmp_path_factory.mktemp(name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = command_of(name, port, folder)
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(Path(command.words[0]).absolute()), *command.words[1:]], stdout=out, stderr=out,
            env={**os.environ, **command.environment}, start_new_session=True,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(url + command.ready_path, process, log)
        yield name, url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + UP_WITHIN_S
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text("utf-8", "replace")[-2000:]
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise AssertionError(log.read_text("utf-8", "replace")[-2000:])


@pytest.fixture(scope="module")
def run(running: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Measure PLAN once on the running server."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "mkdocs.yml").touch()
    (folder / "data").mkdir()
    (folder / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (folder / "templates").symlink_to(ROOT / "templates")
    (folder / "p.yml").write_text(PLAN.format(url=running[1]))
    rate = Spread(1e9, 1e9, 1e9, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(host, "measure_ceilings", lambda: Ceilings(rate, rate, "cpu", "a test"))
        assert main(["p.yml"]) == 0
    (found,) = read_runs(folder / "data" / "measured")
    return found


def of(run: Run, kind: str) -> pd.DataFrame:
    return run.rows[(run.rows["kind"] == kind) & (run.rows["phase"] == "measured")]


def test_each_is_known_for_what_it_is(running: tuple[str, str]) -> None:
    """The server is recognised by what it answers; mlx_lm's list of models fails before anything was downloaded."""
    name, url = running
    facts = server.inspect(url)
    assert (facts.server, facts.api, facts.host_is_server) == (name, "openai", True)
    assert facts.columns()["model"] == ("model" if name == "mlx_lm" else "tiny")
    assert facts.context_limit_tokens == (None if name == "mlx_lm" else 2048)
    assert (facts.server_version is not None) == (name == "vllm")


def test_every_request_of_the_plan_is_a_good_row(run: Run) -> None:
    """3 lengths x 3 repeats and 2 levels x 8; 25 requests, an anchor before, after, and after each eighth or more."""
    assert set(run.rows["status"]) == {"ok"}
    phases = Counter(run.rows["phase"])
    # Warm-ups: one for each of 3 lengths, of the anchor's own cell, and of the levels 1 and 4: 3 + 1 + 1 + 4.
    assert (phases["calibration"], phases["measured"], phases["warmup"]) == (2, 25, 9)
    assert phases["anchor"] >= 3


def test_counts_are_the_servers_and_lengths_as_wanted(run: Run) -> None:
    """Prompt and output tokens come from the server; prompts are within 2 % or two tokens of the wanted length."""
    rows = run.rows[run.rows["phase"] == "measured"]
    assert set(rows["prompt_token_source"]) == set(rows["output_token_source"]) == {"server"}
    away = (rows["prompt_tokens"] - rows["prompt_tokens_wanted"]).abs()
    assert (away <= (0.02 * rows["prompt_tokens_wanted"]).clip(lower=3)).all()
    assert (rows["output_tokens"] == rows["output_tokens_wanted"]).all()


def test_no_prompt_came_from_a_cache(running: tuple[str, str], run: Run) -> None:
    """Nonces keep prompts apart: mlx_lm finds a few tokens of the template again, vLLM no whole block of 128."""
    cached = run.rows[run.rows["phase"] == "measured"]["cached_tokens"]
    assert cached.notna().all()
    assert cached.max() <= (16 if running[0] == "mlx_lm" else 0)


def test_times_are_in_order_and_role_only_chunks_are_no_token(run: Run) -> None:
    """first byte <= first token < last token <= end; no more chunks with text than tokens."""
    rows = run.rows[run.rows["phase"] == "measured"]
    assert (rows["first_byte_ms"] <= rows["ttft_ms"]).all()
    assert (rows["ttft_ms"] <= rows["last_token_ms"]).all()
    assert (rows["last_token_ms"] <= rows["e2e_ms"]).all()
    assert (rows["chunks"] <= rows["output_tokens"]).all()


def test_long_prompts_take_longer(run: Run) -> None:
    """The median time to the first token grows with the prompt: 1024 tokens against 128."""
    medians = of(run, "prefill_curve").groupby("prompt_tokens_wanted")["ttft_ms"].median()
    assert medians[1024] > medians[128]


def test_four_at_once_were_four_at_once(run: Run) -> None:
    """At concurrency 4 the requests of four workers overlap."""
    rows = of(run, "concurrency").query("concurrency == 4").sort_values("sent_at_ms")
    assert set(rows["worker"]) == {0, 1, 2, 3}
    assert rows["sent_at_ms"].iloc[3] < (rows["sent_at_ms"] + rows["e2e_ms"]).iloc[0]


def test_samples_lie_beside_the_run(running: tuple[str, str], run: Run) -> None:
    """The host's memory always; of vLLM also what its /metrics counts: all output tokens of the run among it."""
    samples = read_samples(run.path.parent, run.run_id)
    names = {sample["name"] for sample in samples}
    assert "memory_free_bytes" in names
    counted = [sample["value"] for sample in samples if sample["name"] == "vllm:generation_tokens_total"]
    if running[0] == "vllm":
        assert counted[-1] - counted[0] == run.rows["output_tokens"].sum()
