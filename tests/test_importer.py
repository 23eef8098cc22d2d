"""The importer: published figures enter as what they are, and what was not published stays unknown."""

import json
from pathlib import Path

import pandas as pd
import pytest

from roofbook.commands.importer import import_article, run
from roofbook.errors import FactsError, UsageError
from roofbook.record import Run, read_run

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "data" / "sources" / "article-2026-08-31.yml"


@pytest.fixture
def imported(tmp_path: Path) -> Run:
    return read_run(import_article(SOURCE, tmp_path))


def test_every_published_figure_becomes_a_row(imported: Run) -> None:
    """One cold run, two repeated prompts, ten baseline runs, six lengths, two control rows."""
    assert imported.rows.groupby("experiment").size().to_dict() == {
        "first-run": 1, "same-prompt": 2, "baseline": 10, "prefill-curve": 6, "context-control": 2,
    }  # fmt: skip
    assert list(imported.rows["order_index"]) == list(range(21))
    assert set(imported.rows["imported_from"]) == {"article-2026-08-31.yml"}


def test_a_row_says_how_many_runs_it_stands_for(imported: Run) -> None:
    """Single runs: null; medians of three: 3; medians of nobody knows how many: 0."""
    stands_for = imported.rows.groupby("experiment")["aggregate_of"].agg(lambda group: sorted(set(group.fillna(-1))))
    assert stands_for.to_dict() == {
        "first-run": [-1], "same-prompt": [0], "baseline": [-1], "prefill-curve": [3], "context-control": [0],
    }  # fmt: skip


def test_the_cold_run_keeps_its_load(imported: Run) -> None:
    """The first run: 3010.01 ms of load, 296.66 ms of prefill for 40 tokens, 71 tokens in 3456.12 ms, printed 20.54."""
    assert _known(imported.rows.iloc[0]) == {
        "run_id": "article-2026-08-31", "experiment": "first-run", "kind": "baseline", "point": "first-run-40",
        "phase": "measured", "order_index": 0, "imported_from": "article-2026-08-31.yml",
        "machine": "mac-mini-m4-32gb", "api": "ollama", "server": "ollama", "model": "qwen2.5:7b",
        "quantization": "Q4_K_M", "kv_cache_type": "q8_0",
        "sources": '{"kv_cache_type": "process", "machine": "stated", "model": "stated", "quantization": "stated"}',
        "prompt_tokens": 40, "output_tokens": 71, "prompt_token_source": "server", "output_token_source": "server",
        "server_load_ms": 3010.01, "server_prefill_ms": 296.66, "server_decode_ms": 3456.12,
        "server_decode_tok_per_s": 20.54, "status": "ok",
    }  # fmt: skip


def test_a_published_median_keeps_its_conditions(imported: Run) -> None:
    """The longest row ran with another context than the five before it."""
    curve = imported.rows[imported.rows["experiment"] == "prefill-curve"]
    assert list(curve["context_limit_tokens"]) == [8192] * 5 + [16384]
    longest = curve.iloc[-1]
    assert (longest["prompt_tokens_wanted"], longest["prompt_tokens"]) == (8192, 8016)
    assert (longest["ttft_ms"], longest["server_prefill_ms"]) == (48475, 48337)
    assert (longest["server_decode_tok_per_s"], longest["output_tokens_wanted"]) == (17.0, 32)
    assert json.loads(longest["request_options"]) == {"num_ctx": 16384, "num_predict": 32}


def test_what_was_not_published_is_unknown(imported: Run) -> None:
    """No version, digest, slots, times of day, cached tokens or token times: all null."""
    unpublished = [
        "server_version",
        "model_digest",
        "parallel_slots",
        "started_at",
        "cached_tokens",
        "last_token_ms",
        "flash_attention",
        "weights_bytes",
        "gpu_fraction",
        "nonce",
        "sent_at_ms",
        "concurrency",
    ]
    assert imported.rows[unpublished].isna().all().all()
    baseline = imported.rows[imported.rows["experiment"] == "baseline"]
    assert baseline[["context_limit_tokens", "output_tokens_wanted", "prompt_tokens_wanted"]].isna().all().all()


def test_the_claims_stand_beside_the_rows(imported: Run) -> None:
    """What the author concluded is data too, with its source and its date."""
    origin = imported.facts.origin
    assert (origin["source"], origin["date"]) == ("맥미니 M4로 LLM 서빙 시작하기", "2026-08-31")
    assert origin["claims"]["prompt_budget_tokens"] == {"1000": 220, "2000": 435, "5000": 1060}
    assert origin["claims"]["llama31_8b_kv_gb_q8_0"]["32768"] == [2.1, 21.3, None]


def test_the_same_source_gives_the_same_bytes(tmp_path: Path) -> None:
    """Importing twice changes nothing, and the committed file is what the importer writes."""
    first, second = import_article(SOURCE, tmp_path / "a"), import_article(SOURCE, tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    committed = read_run(ROOT / "data" / "measured" / first.name)
    written = read_run(first)
    pd.testing.assert_frame_equal(committed.rows, written.rows)
    assert committed.facts == written.facts


def test_a_source_without_a_key_is_named(tmp_path: Path) -> None:
    """The message names the file and the missing key."""
    broken = tmp_path / "broken.yml"
    broken.write_text("conditions: {machine: x}\n", encoding="utf-8")
    with pytest.raises(FactsError, match=r"broken\.yml lacks 'runtime'"):
        import_article(broken, tmp_path)
    with pytest.raises(UsageError, match="gone"):
        import_article(tmp_path / "gone.yml", tmp_path)


def test_the_command_writes_where_the_report_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``import article`` in a report's folder writes data/measured and prints the path."""
    (tmp_path / "mkdocs.yml").touch()
    sources = tmp_path / "data" / "sources"
    sources.mkdir(parents=True)
    (sources / SOURCE.name).write_bytes(SOURCE.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert run(["article"]) == 0
    assert capsys.readouterr().out == "data/measured/article-2026-08-31.parquet\n"
    assert (tmp_path / "data" / "measured" / "article-2026-08-31.parquet").is_file()


def _known(row: "pd.Series[object]") -> dict[str, object]:
    return {str(name): value for name, value in row.items() if name != "chunk_times_ms" and not pd.isna(value)}
