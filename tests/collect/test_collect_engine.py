"""The collector against the real embedded engine: real tokens, counted by a real server."""

from pathlib import Path

import psutil
import pytest

from collect import host
from collect.__main__ import main
from roofbook.record import read_runs
from roofbook.theory.shapes import Ceilings, Spread

ROOT = Path(__file__).parents[2]

PLAN = """
plan: real
server: {api: embedded}
run: {repeats: 2, anchor: {prompt_tokens: 64, output_tokens: 4, every: 10}}
experiments:
  - {kind: prefill_curve, prompt_tokens: [64, 150, 400], output_tokens: 8}
  - {kind: concurrency, concurrency: 2, requests: 4, prompt_tokens: 64, output_tokens: 8}
"""


@pytest.mark.engine
def test_a_run_on_the_embedded_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request is ok, uncached and within 2 % of its length; nothing stays behind."""
    (tmp_path / "mkdocs.yml").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (tmp_path / "p.yml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    rate = Spread(1e9, 1e9, 1e9, 1)
    monkeypatch.setattr(host, "measure_ceilings", lambda: Ceilings(rate, rate, "cpu", "a test"))
    assert main(["p.yml"]) == 0
    (run,) = read_runs(tmp_path / "data" / "measured")
    rows = run.rows
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
    assert list((tmp_path / ".cache").glob("*")) == []
