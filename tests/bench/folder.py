"""Reports to build, and what a build costs."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from roofbook.record import Row, RunFacts, write_run

ROOT = Path(__file__).parents[2]
MB = 10**6


@dataclass(frozen=True)
class Cost:
    """What one process took: seconds on the wall, seconds of computing, and the most memory it held.

    Of the two times the second hardly depends on what else the machine is doing, so ratios are made of it.
    """

    wall_s: float
    cpu_s: float
    memory_mb: float


@contextmanager
def report(runs: dict[str, list[Row]] | None = None) -> Generator[Path]:
    """Lay out a report's folder with this repository's form, and its data or the given *runs*; no figure drawn yet."""
    with TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        shutil.copy(ROOT / "mkdocs.yml", folder)
        for part in ("templates", "site_src", "data/facts" if runs is not None else "data"):
            shutil.copytree(ROOT / part, folder / part)
        for run_id, rows in (runs or {}).items():
            named = [{"run_id": run_id, "order_index": index} | row for index, row in enumerate(rows)]
            write_run(folder / "data" / "measured", named, RunFacts(run_id))
        yield folder


def build(folder: Path, *arguments: str) -> Cost:
    """Build the site of *folder* in a process of its own."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", *arguments]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"the build of {folder} failed: run `mkdocs build --strict` to see why")
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on a Mac, KiB elsewhere
    return Cost(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss * unit / MB)


def curve(number: int, *, repeats: int = 3) -> list[Row]:
    """Return the rows of a subject of its own: eight prompt lengths, *repeats* requests each."""
    start = datetime(2026, 10, 1, tzinfo=UTC)
    lengths = (128, 256, 512, 1024, 2048, 4096, 8192, 12_288)
    wanted = [(length, repeat) for length in lengths for repeat in range(repeats)]
    return [
        {
            "machine": "mac-mini-m4-32gb", "api": "ollama", "server": "ollama", "model": f"model-{number}:7b",
            "quantization": "Q4_K_M", "kind": "prefill_curve", "experiment": "curve", "point": f"prefill-{length}",
            "phase": "measured", "status": "ok", "repeat": repeat, "prompt_tokens": length, "output_tokens": 32,
            "prompt_tokens_wanted": length, "output_tokens_wanted": 32, "prompt_token_source": "server",
            "output_token_source": "server", "started_at": start + timedelta(hours=number, seconds=order),
            "server_prefill_ms": (ms := length * (4.5 + length * 2e-4) * (1 + 0.01 * (repeat % 3 - 1))),
            "ttft_ms": ms + 100,
        }
        for order, (length, repeat) in enumerate(wanted)
    ]  # fmt: skip
