"""Rows of a server at which nothing is wrong: no rule has anything to say of them.

Once by a clock of our own, exactly, for each API; once over real sockets, where a row is clean if its stamps are those
that the server's law gives. On a machine that does other things at the time some are not, and what is said of those is
true.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from collect import dispatch, host
from collect.__main__ import main
from collect.exchange import Exchange
from collect.oracle import Handler, Model, Oracle, Request, Speed, llamacpp, ollama, openai
from roofbook.facts import load_facts
from roofbook.record import Row, Run, read_runs
from roofbook.theory.shapes import Ceilings, Spread
from roofbook.validity import Finding, findings, known_of, records

ROOT = Path(__file__).parents[2]

# Long enough for 3 ms to be small beside it, short enough for 500 of them in a quarter of a minute.
FIXED_MS, LINEAR_MS, STEP_MS = 60.0, 0.02, 10.0
NEAR_MS = 3.0

PLAN = """
plan: clean
server: {{api: {api}, url: '{url}'}}
run: {{repeats: 8, anchor: {{prompt_tokens: 64, output_tokens: 8, every: 10}}}}
experiments:
  - {{kind: baseline, prompt_tokens: [64, 400], output_tokens: 8}}
  - {{kind: prefill_curve, prompt_tokens: [64, 256, 1024, 2048], output_tokens: 8}}
  - {{kind: concurrency, concurrency: [8, 16], requests: 225, prompt_tokens: 64, output_tokens: 8}}
"""


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Run]:
    """Run the collector with the plan above against an address; return the run."""
    (tmp_path / "mkdocs.yml").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    monkeypatch.chdir(tmp_path)
    rate = Spread(1e9, 1e9, 1e9, 1)
    monkeypatch.setattr(host, "measure_ceilings", lambda: Ceilings(rate, rate, "cpu", "a test"))

    def run(api: str, url: str) -> Run:
        (tmp_path / "p.yml").write_text(PLAN.format(api=api, url=url))
        assert main(["p.yml"]) == 0
        (found,) = read_runs(tmp_path / "data" / "measured")
        return found

    return run


def judged(run: Run) -> tuple[list[Row], list[Finding]]:
    """Return the rows that stand for something, and all that the rules say of the run."""
    rows = records(run.rows)
    found = findings(rows, known_of(rows, load_facts(ROOT / "data" / "facts"), [run.facts]))
    return [row for row in rows if row["phase"] in ("measured", "anchor")], found


def by_our_clock(handler: Handler) -> type:
    """Return a sender whose answers come from *handler* without any waiting, stamped by a clock of its own.

    With the everyday of a quiet machine: half a millisecond on the way, now and then a pause of three.
    """
    random = Random(4)

    class ByOurClock:
        def __init__(self, *_: Any) -> None:
            self._now_s = 0.0

        async def send(self, path: str, body: Any, **_: Any) -> Exchange:
            data = json.dumps(body).encode()
            script = handler(Request(0, "POST", path, {}, data, self._now_s, 1))
            lag_ms = random.choice([0.2] * 19 + [3.0])
            stamps = [piece.at_ms + random.uniform(0.2, 0.7) for piece in script.pieces]
            pieces = tuple((max(stamps[: at + 1]), piece.data) for at, piece in enumerate(script.pieces))
            e2e_ms = pieces[-1][0] + 0.1
            sent_at_ns, self._now_s = int(self._now_s * 1e9), self._now_s + e2e_ms / 1000
            return Exchange(
                "complete", pieces, script.status, script.content_type, started_at=datetime.now(UTC),
                sent_at_ns=sent_at_ns, connect_ms=0.3, e2e_ms=e2e_ms, loop_lag_ms=lag_ms,
                client_cpu_share=0.05, wall_elapsed_ms=e2e_ms + random.uniform(0, 2),
            )  # fmt: skip

        async def close(self) -> None:
            pass

    return ByOurClock


@pytest.mark.parametrize(("api", "played"), [("llamacpp", llamacpp), ("ollama", ollama), ("openai", openai)])
def test_no_rule_fires_on_500_clean_rows(
    api: str,
    played: Callable[[Model], Handler],
    measure: Callable[[str, str], Run],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole collector, but for the wire: baseline, curve, anchors and two levels, and not one doubt."""
    # A slot for each request: the workers' clocks differ, and nobody must wait for another's time.
    handler = played(Model(Speed(FIXED_MS, LINEAR_MS, step_ms=STEP_MS), slots=1024))
    monkeypatch.setattr(dispatch, "Sender", by_our_clock(handler))
    with Oracle(handler) as oracle:
        rows, found = judged(measure(api, oracle.url))
    assert {row["status"] for row in rows} == {"ok"}
    assert len(rows) >= 500
    assert found == []


@pytest.fixture
def server() -> Iterator[str]:
    """The scripted server in a process of its own, so that it takes no time of ours; its address."""
    speed = ("--fixed-ms", str(FIXED_MS), "--linear-ms", str(LINEAR_MS), "--step-ms", str(STEP_MS), "--slots", "16")
    process = subprocess.Popen(
        [sys.executable, "-m", "collect.oracle", "--api", "llamacpp", *speed],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()
        process.wait(timeout=10)


def is_clean(row: Row) -> bool:
    """Whether the server's tokens came when its law says, and the client was there to see it."""
    first_ms = FIXED_MS + LINEAR_MS * row["prompt_tokens"]
    truth = [first_ms + STEP_MS * step for step in range(8)]
    return row["loop_lag_ms"] < NEAR_MS and all(
        abs(seen - due) < NEAR_MS for seen, due in zip(row["chunk_times_ms"], truth, strict=True)
    )


@pytest.mark.optional
def test_no_rule_fires_on_clean_rows_over_real_sockets(server: str, measure: Callable[[str, str], Run]) -> None:
    """The same requests really sent: no row whose stamps are true is doubted."""
    rows, found = judged(measure("llamacpp", server))
    clean = {row["order_index"] for row in rows if is_clean(row)}
    assert [one for one in found if one.order_index in clean] == []
    if len(clean) < len(rows):
        pytest.skip(f"a busy machine: {len(clean)} of {len(rows)} rows are clean, and no rule fired on one of them")
    assert found == []  # nor on a point, nor on the run
