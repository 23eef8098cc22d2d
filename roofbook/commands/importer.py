"""Published measurements become rows of the contract: ``python -m roofbook import article``.

Each published run is a row; a published median is a row that stands for its runs (``aggregate_of``, 0 where their
number was not published). What was not published is null, a printed rate stays a printed rate, and what the author
concluded is kept beside the rows as claims, to be recomputed. The same source gives the same bytes.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import yaml

from roofbook.errors import FactsError, UsageError
from roofbook.places import places_here
from roofbook.record import Row, RunFacts, write_run

SOURCES: Final = {"article": "article-2026-08-31.yml"}
"""What can be imported: a name, and its file in data/sources."""

ARTICLE_TITLE: Final = "맥미니 M4로 LLM 서빙 시작하기"

NOTE_KO: Final = "약 17분 동안 쉬지 않고 이어서 쟀습니다. 뒤쪽 값에는 발열로 느려진 영향이 섞였을 수 있습니다."
"""The source's note on its conditions, for readers of Korean."""

CONTEXT_CONTROL: Final = "context_control"
"""The kind of the article's own control: one prompt under two context sizes. No experiment of a plan, and no curve."""

_SAID_BY: Final = {"kv_cache_type": "process"} | dict.fromkeys(
    ("machine", "model", "quantization", "context_limit_tokens", "request_options"), "stated"
)
"""The author read the KV type from the running process's flags and states the rest."""


def run(arguments: Sequence[str]) -> int:
    """Import the named source into data/measured and return the exit code.

    Raises UsageError for a name that is not known, FactsError for a source that lacks what it should have.
    """
    parser = argparse.ArgumentParser(prog="python -m roofbook import", description="Turn published figures into rows.")
    parser.add_argument("source", choices=sorted(SOURCES))
    wanted = parser.parse_args(list(arguments))
    places = places_here()
    print(import_article(places.sources / SOURCES[wanted.source], places.measured))
    return 0


def import_article(source: Path, folder: Path) -> Path:
    """Read *source* and write its rows as FOLDER/NAME.parquet; return that path."""
    try:
        read = yaml.safe_load(source.read_text(encoding="utf-8"))
    except OSError as problem:
        raise UsageError("Cannot read %(path)s: restore it from the repository", path=source) from problem
    except yaml.YAMLError as problem:
        raise FactsError("%(path)s is not YAML: %(problem)s", path=source, problem=problem) from problem
    try:
        document = _json_keys(read)
        rows = [
            row | {"run_id": source.stem, "order_index": index, "imported_from": source.name, "sources": _said_by(row)}
            for index, row in enumerate(_rows(document))
        ]
        facts = _facts(source, document)
    except (KeyError, TypeError, AttributeError) as problem:
        raise FactsError("%(path)s lacks %(key)s", path=source, key=problem) from problem
    return write_run(folder, rows, facts)


def _facts(source: Path, document: Mapping[str, Any]) -> RunFacts:
    conditions = document["conditions"]
    origin = {
        "source": ARTICLE_TITLE,
        "file": source.name,
        "date": conditions["date"],
        "note": conditions["note"],
        "note_ko": NOTE_KO,
        "kv_cache_type": "read by the author from the running process's flags",
        "order_index": "the order of publication; the order of measuring was not published",
        "claims": document["published_claims"],
    }
    return RunFacts(run_id=source.stem, origin=origin)


def _rows(document: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the rows in the order of publication."""
    common = _conditions(document["conditions"])
    yield common | _first_run(document["first_run_cold"])
    for published in document["same_prompt_repeated"]:
        yield common | _repeated_prompt(published)
    for published in document["baseline"]:
        yield common | _baseline_run(published)
    curve = document["prefill_curve"]
    for published in curve["rows"]:
        yield common | _curve_median(published, curve["conditions"])
    for published in curve["control"]:
        yield common | _control(published)


def _conditions(published: Mapping[str, Any]) -> Row:
    return {
        "phase": "measured",
        "status": "ok",
        "machine": published["machine"],
        "api": published["runtime"],
        "server": published["runtime"],
        "model": published["model"],
        "quantization": published["quantization"],
        "kv_cache_type": published["kv_cache_type"],
        "prompt_token_source": "server",
    }


def _first_run(published: Mapping[str, Any]) -> Row:
    """The model was loaded from disk within it."""
    return {
        "experiment": "first-run",
        "kind": "baseline",
        "point": f"first-run-{published['prompt_tokens']}",
        "prompt_tokens": published["prompt_tokens"],
        "output_tokens": published["gen_tokens"],
        "output_token_source": "server",
        "server_load_ms": published["load_ms"],
        "server_prefill_ms": float(published["prefill_ms"]),
        "server_decode_ms": published["gen_ms"],
        "server_decode_tok_per_s": published["tok_per_s"],
    }


def _repeated_prompt(published: Mapping[str, Any]) -> Row:
    """One prompt sent again and again: its prefix came from the cache, how much of it the server did not say."""
    return {
        "experiment": "same-prompt",
        "kind": "baseline",
        "point": f"same-prompt-{published['prompt_tokens']}",
        "aggregate_of": 0,
        "prompt_tokens": published["prompt_tokens"],
        "server_prefill_ms": float(published["prefill_ms"]),
    }


def _baseline_run(published: Mapping[str, Any]) -> Row:
    return {
        "experiment": "baseline",
        "kind": "baseline",
        "point": f"baseline-{published['prompt_tokens']}",
        "repeat": published["run"],
        "prompt_tokens": published["prompt_tokens"],
        "output_tokens": published["gen_tokens"],
        "output_token_source": "server",
        "ttft_ms": float(published["ttft_ms"]),
        "e2e_ms": float(published["total_ms"]),
        "server_prefill_ms": float(published["prefill_ms"]),
        "server_decode_tok_per_s": published["tok_per_s"],
    }


def _curve_median(published: Mapping[str, Any], conditions: Mapping[str, Any]) -> Row:
    context = published.get("num_ctx", conditions["num_ctx"])
    options = {"num_ctx": context, "num_predict": conditions["num_predict"]}
    return {
        "experiment": "prefill-curve",
        "kind": "prefill_curve",
        "point": f"prefill-{published['wanted_tokens']}",
        "aggregate_of": conditions["repeats"],
        "context_limit_tokens": context,
        "request_options": json.dumps(options, sort_keys=True),
        "prompt_tokens_wanted": published["wanted_tokens"],
        "output_tokens_wanted": conditions["num_predict"],
        "prompt_tokens": published["prompt_tokens"],
        "ttft_ms": float(published["ttft_ms"]),
        "server_prefill_ms": float(published["prefill_ms"]),
        "server_decode_tok_per_s": published["tok_per_s"],
    }


def _control(published: Mapping[str, Any]) -> Row:
    """One prompt under two context sizes; over how many runs was not published."""
    context = published["num_ctx"]
    return {
        "experiment": "context-control",
        "kind": CONTEXT_CONTROL,
        "point": f"context-{context}",
        "aggregate_of": 0,
        "context_limit_tokens": context,
        "request_options": json.dumps({"num_ctx": context}),
        "prompt_tokens": published["prompt_tokens"],
        "server_prefill_ms": float(published["prefill_ms"]),
    }


def _said_by(row: Row) -> str:
    return json.dumps({name: who for name, who in _SAID_BY.items() if name in row}, sort_keys=True)


def _json_keys(value: object) -> Any:
    """Return *value* as JSON would keep it: keys are text, a date is its ISO form."""
    return cast("dict[str, Any]", json.loads(json.dumps(value, default=str)))
