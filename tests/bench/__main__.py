"""``python -m tests.bench [NAME ...]``: how fast things are, as ratios within this one run; nothing passes or fails.

A bench is a file in this folder with a TITLE and a function ``lines()`` that yields what it measured, line by line.
"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

NO_BENCH = ("__main__", "folder")


def names() -> list[str]:
    """Return the benches of this folder."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NO_BENCH)


def main(wanted: Sequence[str]) -> int:
    """Run the benches that are *wanted*, or all of them."""
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no bench {', '.join(unknown)}; there are: {', '.join(names())}")
        return 2
    for name in wanted or names():
        bench = importlib.import_module(f"tests.bench.{name}")
        print(f"\n{name}: {bench.TITLE}", flush=True)
        for line in bench.lines():
            print(f"  {line}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
