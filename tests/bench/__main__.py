"""``python -m tests.bench [NAME ...]``: how fast things are, as ratios within this one run; nothing passes or fails.

A bench is a file in this folder with a TITLE and a function ``lines()`` that yields what it measured: text, or a Goal.
"""

import importlib
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.goal import Goal, table

NO_BENCH = ("__main__", "folder", "goal")


def names() -> list[str]:
    """Return the benches of this folder."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NO_BENCH)


def main(wanted: Sequence[str]) -> int:
    """Run the benches that are *wanted*, or all of them, and then say what has a target."""
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no bench {', '.join(unknown)}; there are: {', '.join(names())}")
        return 2
    start = time.perf_counter()
    print(f"on {machine()}; load average before {load()}", flush=True)
    goals: list[Goal] = []
    for name in wanted or names():
        bench = importlib.import_module(f"tests.bench.{name}")
        print(f"\n{name}: {bench.TITLE}", flush=True)
        for line in bench.lines():
            goals += [line] if isinstance(line, Goal) else []
            print(f"  {line}", flush=True)
    if goals:
        print("\nwhat has a target", *table(goals), sep="\n  ")
    print(f"\n{time.perf_counter() - start:.0f} s in all; load average after {load()}")
    return 0


def machine() -> str:
    """Return what the figures were measured on, nothing personal in it."""
    chip = platform.processor() or platform.machine()
    told = Path("/proc/cpuinfo")
    if told.is_file():
        named = (
            line.partition(":")[2].strip() for line in told.read_text().splitlines() if line.startswith("model name")
        )
        chip = next(named, chip)
    return f"{os.cpu_count()} cores, {chip}; {platform.system()}, Python {platform.python_version()}"


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
