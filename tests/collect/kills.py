"""Kill the collector many times and judge by the server's own list of what it answered: lost, repeated, torn.

    python tests/collect/kills.py --kills 200 [--seed 1]

Each run is killed and taken up until it is finished. Every fourth kill strikes inside the writing of a row or of
the parquet file (see doomed.py), the others at any moment. One request may be in the air at a kill: the server has
answered it, and it is not on the disk yet; that is counted, it must have been the last, and it is sent again.
The last line is the verdict; the exit code is 0 where it is good, else 1.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from collect.oracle import Heard, Model, Oracle, Speed, llamacpp
from collect.plan import load_plan
from collect.schedule import schedule
from roofbook.errors import RecordError
from roofbook.record import Row, read_run, read_samples
from roofbook.validity import records

ROOT: Final = Path(__file__).parents[2]
DOOMED: Final = Path(__file__).with_name("doomed.py")
IN_A_WRITE: Final = (
    "half_a_line", "before_its_sync", "after_its_sync",
    "half_a_parquet", "before_the_rename", "after_the_rename", "before_the_removal",
)  # fmt: skip
ANY_MOMENT: Final = "any_moment"

WORKERS: Final = 3
# Requests of the three kinds are told apart by their output length.
ALONE, TOGETHER, ANCHOR = 4, 5, 3
PLAN: Final = f"""
plan: kills
server: {{api: llamacpp, url: '%s'}}
run: {{repeats: 4, warmups: 1, anchor: {{prompt_tokens: 64, output_tokens: {ANCHOR}, every: 5}}}}
experiments:
  - {{kind: baseline, prompt_tokens: [64, 200], output_tokens: {ALONE}}}
  - {{kind: concurrency, concurrency: {WORKERS}, requests: 7, prompt_tokens: 64, output_tokens: {TOGETHER}}}
"""
_FAST: Final = Speed(fixed_ms=4, linear_ms=0.01, step_ms=1)
_LIFE_TIMEOUT_S: Final = 120.0
# What one life asks at most: 2 to calibrate, 6 to warm up, 15 measured, 4 anchors.
_MOST_ASKED: Final = 27


@dataclass
class Verdict:
    """What became of the requests that the server answered."""

    kills: Counter[str] = field(default_factory=Counter[str])
    runs: int = 0
    answered: int = 0
    in_the_air: int = 0
    lost: list[str] = field(default_factory=list[str])
    repeated: list[str] = field(default_factory=list[str])
    skipped: list[str] = field(default_factory=list[str])
    torn: list[str] = field(default_factory=list[str])

    @property
    def good(self) -> bool:
        return not (self.lost or self.repeated or self.skipped or self.torn)

    def lines(self) -> Iterator[str]:
        inside = sum(count for place, count in self.kills.items() if place != ANY_MOMENT)
        yield f"kills {self.kills.total()} in {self.runs} runs, {inside} of them inside a write:"
        yield from (f"  {place}: {count}" for place, count in sorted(self.kills.items()))
        yield f"answered by the server {self.answered}, in the air at a kill {self.in_the_air} (sent again)"
        for name in ("lost", "repeated", "skipped", "torn"):
            found: list[str] = getattr(self, name)
            yield f"{name} {len(found)}" + "".join(f"\n  {one}" for one in found)
        yield "GOOD: nothing lost, repeated, skipped or torn" if self.good else "BAD: see above"


def kill_until_finished(folder: Path, kills: int, source: random.Random, verdict: Verdict) -> None:
    """Measure one run in *folder*, killed up to *kills* times, and add to *verdict*."""
    measured = folder / "data" / "measured"
    lives: list[tuple[bool, Sequence[Heard]]] = []
    with Oracle(llamacpp(Model(_FAST, slots=WORKERS))) as oracle:
        (folder / "p.yml").write_text(PLAN % oracle.url)
        while True:
            before = len(oracle.heard)
            place = "never" if kills <= 0 else _next_place(verdict.kills.total())
            code, said = _live(folder, oracle, place, source)
            asked = [heard for heard in oracle.heard[before:] if heard.request.path == "/completion"]
            lives.append((code == -9, asked))
            verdict.torn += _torn(measured)
            if code == 0:
                break
            if code != -9:
                raise AssertionError(f"exit code {code}: {said}")
            verdict.kills[place] += 1
            kills -= 1
    verdict.runs += 1
    _judge(lives, measured, verdict)


def _next_place(kills: int) -> str:
    """Every fourth kill strikes inside a write, at each of its places in turn."""
    return IN_A_WRITE[kills // 4 % len(IN_A_WRITE)] if kills % 4 == 3 else ANY_MOMENT


def _live(folder: Path, oracle: Oracle, place: str, source: random.Random) -> tuple[int, str]:
    """Run one life of the collector to its end, or its kill; return its exit code and what it said."""
    journals = sorted((folder / "data" / "measured" / ".journal").glob("*.jsonl"))
    left = [path for path in journals if path.read_bytes().count(b"\n")]
    resume = ["--resume", left[0].stem] if left else []
    where = "never" if place == ANY_MOMENT else place
    # A run has two parquet files, its rows and its samples.
    number = source.randint(1, 20) if place in IN_A_WRITE[:3] else source.randint(1, 2)
    if place == "before_the_removal":
        number = 1
    before = len(oracle.heard)
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(
            [sys.executable, str(DOOMED), where, str(number), "p.yml", *resume],
            cwd=folder, env={"PYTHONPATH": str(ROOT), "PATH": ""}, stdout=said, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            if place == ANY_MOMENT:
                asked = before + source.randint(0, _MOST_ASKED)
                deadline = time.monotonic() + _LIFE_TIMEOUT_S
                while process.poll() is None and len(oracle.heard) < asked and time.monotonic() < deadline:
                    time.sleep(0.001)
                time.sleep(source.uniform(0, 0.02))
                process.kill()
            code = process.wait(_LIFE_TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        return code, said.read()


def _run_files(measured: Path) -> list[Path]:
    return [path for path in measured.glob("*.parquet") if not path.name.endswith(".samples.parquet")]


def _torn(measured: Path) -> list[str]:
    """Return the files that a reader would stumble over: a parquet file is whole or not there."""
    found: list[str] = []
    for path in _run_files(measured):
        try:
            read_run(path)
        except RecordError as problem:
            found.append(str(problem))
    return found


def _judge(lives: Sequence[tuple[bool, Sequence[Heard]]], measured: Path, verdict: Verdict) -> None:
    (path,) = _run_files(measured)
    verdict.torn += [f"left behind: {other}" for other in sorted(measured.rglob("*")) if other.suffix in _LEFTOVERS]
    run = read_run(path)
    rows = records(run.rows)
    looks = {sample["time"] for sample in read_samples(measured, run.run_id)}
    if len(looks) < len({row["segment"] for row in rows}):
        verdict.lost.append(f"samples: {len(looks)} looks in {len(lives)} lives")
    wanted = _wanted(measured.parents[1] / "p.yml", run.facts.plan["run"]["seed"])
    kept = Counter(str(row["nonce"]) for row in rows)
    verdict.repeated += [f"row of {nonce!r} twice" for nonce, count in kept.items() if count > 1]
    for number, (killed, asked) in enumerate(lives):
        missing = [heard for heard in asked if _nonce(heard) not in kept]
        verdict.answered += sum(heard.outcome == "played" for heard in asked)
        verdict.in_the_air += sum(heard.outcome == "played" for heard in missing)
        together = [heard for heard in missing if heard.request.json["n_predict"] == TOGETHER]
        alone = [heard for heard in missing if heard not in together and heard is not asked[-1]]
        if missing and not killed:
            verdict.lost.append(f"life {number}: {len(missing)} rows though nobody killed it")
        # While several are in flight, each of the workers may have one in the air.
        verdict.lost += [f"life {number}: {_nonce(heard)}" for heard in (*alone, *together[WORKERS:])]
    ok = Counter(_key(row) for row in rows if row["status"] == "ok" and row["phase"] in ("measured", "anchor"))
    verdict.repeated += [f"{key} {count} times" for key, count in ok.items() if count > 1]
    verdict.skipped += [f"{key}" for key in sorted(wanted - set(ok))]
    verdict.repeated += [f"{key} was never planned" for key in sorted(set(ok) - wanted)]
    if sorted(row["order_index"] for row in rows) != [row["order_index"] for row in rows]:
        verdict.torn.append("the rows are out of order")
    verdict.repeated += [f"order_index {at}" for at, n in Counter(row["order_index"] for row in rows).items() if n > 1]


_LEFTOVERS: Final = (".part", ".jsonl", ".reserve", ".samples")


def _nonce(heard: Heard) -> str:
    return " ".join((heard.request.prompt or "").split()[:5])


def _key(row: Row) -> tuple[Any, ...]:
    return str(row["phase"]), str(row["point"]), int(row["repeat"])


def _wanted(plan: Path, seed: int) -> set[tuple[Any, ...]]:
    """Return what the plan asks for: 2 x 4 alone and 7 together, counted by hand, and the anchors of its schedule."""
    alone = {("measured", f"p{tokens}-o{ALONE}", repeat) for tokens in (64, 200) for repeat in range(1, 5)}
    together = {("measured", f"p64-o{TOGETHER}-c{WORKERS}", repeat) for repeat in range(1, 8)}
    units = [unit for block in schedule(load_plan(plan), seed) for unit in block.units if unit.phase == "anchor"]
    return alone | together | {("anchor", unit.cell.point, unit.repeats[0]) for unit in units}


def report_folder(folder: Path) -> Path:
    """Make *folder* one in which the collector can be called."""
    (folder / "data").mkdir(parents=True)
    (folder / "mkdocs.yml").touch()
    (folder / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (folder / "templates").symlink_to(ROOT / "templates")
    return folder


def kill(kills: int, seed: int, folder: Path) -> Verdict:
    """Kill *kills* times, several times in each run, and return the verdict."""
    source = random.Random(seed)
    verdict = Verdict()
    while (left := kills - verdict.kills.total()) > 0:
        kill_until_finished(report_folder(folder / f"{verdict.runs}"), min(left, source.randint(1, 8)), source, verdict)
    return verdict


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        verdict = kill(flags.kills, flags.seed, Path(folder))
    print("\n".join(verdict.lines()))
    sys.exit(not verdict.good)


if __name__ == "__main__":
    main()
