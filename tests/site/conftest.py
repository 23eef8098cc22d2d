"""A report's folder with rows of our own, and the site built from it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from roofbook.record import Row, RunFacts, write_run

ROOT = Path(__file__).parents[2]

Runs = dict[str, Sequence[Row]]
MakeReport = Callable[[Runs], Path]
Build = Callable[[Path], Path]
CurveRows = Callable[..., list[Row]]


@pytest.fixture(scope="session")
def make_report(tmp_path_factory: pytest.TempPathFactory) -> MakeReport:
    """Return a report's folder with this repository's form and the given runs as its only data."""

    drawings = tmp_path_factory.mktemp("drawings")

    def made(runs: Runs) -> Path:
        folder = tmp_path_factory.mktemp("report")
        # Figures are kept by what they are made from, so one test may use what another has drawn.
        (folder / ".cache").symlink_to(drawings, target_is_directory=True)
        shutil.copy(ROOT / "mkdocs.yml", folder)
        for name in ("templates", "site_src", "data/facts"):
            shutil.copytree(ROOT / name, folder / name)
        for run_id, rows in runs.items():
            named = [{"run_id": run_id, "order_index": index} | dict(row) for index, row in enumerate(rows)]
            write_run(folder / "data" / "measured", named, RunFacts(run_id))
        return folder

    return made


@pytest.fixture(scope="session")
def build() -> Build:
    """Build the site of a folder as a user does, and return where it is."""

    def built(folder: Path) -> Path:
        done = run_mkdocs(folder)
        assert (done.returncode, [line for line in done.stderr.splitlines() if "WARN" in line]) == (0, [])
        return folder / "site"

    return built


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site of this repository itself, with all its pages and figures, and return where it is."""
    site = tmp_path_factory.mktemp("shipped") / "site"
    done = run_mkdocs(ROOT, "--site-dir", str(site), SITE_URL="https://example.com/report/")
    assert (done.returncode, [line for line in done.stderr.splitlines() if "WARN" in line]) == (0, [])
    return site


def run_mkdocs(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", **environment}
    # Not --quiet: it hides warnings from --strict as well.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100
    )


@pytest.fixture(scope="session")
def curve_rows() -> CurveRows:
    """Rows of a prefill curve: for each length, *repeats* requests whose times scatter by half a per cent."""

    def rows(lengths: Sequence[int], *, repeats: int = 3, ms_per_token: float = 4.5, **conditions: Any) -> list[Row]:
        start = datetime(2026, 10, 1, 3, 0, tzinfo=UTC)
        made: list[Row] = []
        for length in lengths:
            for repeat in range(1, repeats + 1):
                prefill_ms = ms_per_token * length * (1 + 0.00004 * length) * (1 + 0.005 * (repeat - 2))
                made.append(
                    {
                        "kind": "prefill_curve",
                        "experiment": "prefill_curve-1",
                        "point": f"prefill-{length}",
                        "phase": "measured",
                        "repeat": repeat,
                        "started_at": start + timedelta(minutes=len(made)),
                        "status": "ok",
                        "prompt_tokens_wanted": length,
                        "prompt_tokens": length,
                        "output_tokens": 32,
                        "output_tokens_wanted": 32,
                        "prompt_token_source": "server",
                        "output_token_source": "server",
                        "server_prefill_ms": prefill_ms,
                        "ttft_ms": prefill_ms + 100,
                    }
                    | conditions
                )
        return made

    return rows


@pytest.fixture(scope="session")
def runs(curve_rows: CurveRows) -> Runs:
    """Two subjects: a Mac with one row that no chip could do, and the embedded engine."""
    mac = {
        "machine": "mac-mini-m4-32gb", "api": "ollama", "server": "ollama", "server_version": "0.12.3",
        "model": "qwen2.5:7b", "quantization": "Q4_K_M", "kv_cache_type": "q8_0", "context_limit_tokens": 16384,
        "sources": '{"machine": "stated", "server_version": "api", "kv_cache_type": "process"}',
    }  # fmt: skip
    engine = {"machine": "x86-64-2-cores-8gb", "api": "embedded", "server": "llama.cpp", "model": "smollm2:135m"}
    # 3,473 tokens in 58 ms: 2 x 7.6e9 x 3473 / 0.058 s = 910 TFLOPS on a chip of 4.3, so a cache did it.
    impossible = curve_rows([3473], repeats=1, **mac)[0] | {"server_prefill_ms": 58.0, "ttft_ms": 160.0}
    return {
        "20261001T030000-mac": [*curve_rows([205, 578, 1096, 2091, 4056, 8016], **mac), impossible],
        "20261002T030000-first": curve_rows([128, 256, 512, 1024, 2048], ms_per_token=3.4, **engine),
    }


@pytest.fixture(scope="session")
def report(make_report: MakeReport, runs: Runs) -> Path:
    return make_report(runs)


@pytest.fixture(scope="session")
def site(report: Path, build: Build) -> Path:
    return build(report)
