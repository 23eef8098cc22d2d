"""A plan against whole servers that we do not have: their answers, written by us in the formats that they document.

Each sends its role-only chunk 20 ms after the request and its first token not before 60 ms.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from collect import host
from collect.__main__ import main
from collect.oracle import (
    Handler,
    Model,
    Oracle,
    Piece,
    Request,
    Script,
    Speed,
    answer,
    ollama,
    routes,
    sse,
    text,
    tokenize,
)
from roofbook.record import Run, read_runs
from roofbook.theory.shapes import Ceilings, Spread

ROOT = Path(__file__).parents[2]
ROLE_MS, FIRST_MS, STEP_MS = 20.0, 60.0, 5.0
SPEED = Speed(fixed_ms=FIRST_MS, linear_ms=0.02, step_ms=STEP_MS)

Chunk = Callable[[dict[str, Any], str | None], dict[str, Any]]
"""A delta and a reason to one event, in a server's own dress."""


@dataclass(frozen=True)
class Dress:
    """How one server streams: its chunks, the delta of a token, the usage at its end, and why it says it ended."""

    chunk: Chunk
    token: Callable[[str], dict[str, Any]] = lambda word: {"content": word}
    last: Callable[[str], dict[str, Any]] = lambda _: {}
    usage: Callable[[int, int, int], dict[str, Any]] | None = None
    reason: str = "length"
    role_only: bool = True


def chat(model: Model, dress: Dress) -> Handler:
    """Return a handler of chat completions in one server's dress."""

    def handle(request: Request) -> Script:
        body = request.json
        turn = model.take(
            tokenize(f"system user {request.prompt} assistant"), int(body["max_tokens"]), request.received_s
        )

        def pieces() -> Iterator[Piece]:
            if dress.role_only:
                yield Piece(ROLE_MS, sse(dress.chunk({"role": "assistant", "content": ""}, None)))
            for at, word in zip(turn.times_ms, turn.output, strict=True):
                yield Piece(at, sse(dress.chunk(dress.token(word), None)))
            yield Piece(turn.end_ms, sse(dress.chunk(dress.last(""), dress.reason)))
            if dress.usage is not None and body.get("stream_options", {}).get("include_usage"):
                counts = dress.usage(turn.prompt_tokens, turn.cached_tokens, len(turn.output))
                yield Piece(turn.end_ms, sse({**dress.chunk({}, None), "choices": [], "usage": counts}))
            yield Piece(turn.end_ms, sse("[DONE]"))

        return Script(tuple(pieces()))

    return handle


def event(model: str, choice: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1767225600, "model": model,
        "choices": [{"index": 0, **choice}], **more,
    }  # fmt: skip


def usage(prompt: int, cached: int, output: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }  # fmt: skip


def usage_without_details(prompt: int, cached: int, output: int) -> dict[str, Any]:
    del cached  # not told
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


def sglang(model: Model) -> Handler:
    """SGLang: every delta has all its fields, null where empty; cached tokens only with --enable-cache-report."""

    def chunk(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        full = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None, **delta}
        matched = None if reason is None else 0
        return event(
            "qwen3-8b", {"delta": full, "logprobs": None, "finish_reason": reason, "matched_stop": matched}, usage=None
        )

    def counts(prompt: int, cached: int, output: int) -> dict[str, Any]:
        return {**usage_without_details(prompt, cached, output), "prompt_tokens_details": None, "reasoning_tokens": 0}

    card = {"id": "qwen3-8b", "object": "model", "owned_by": "sglang", "root": "qwen3-8b", "max_model_len": 32768}
    info = {
        "version": "0.5.6", "kv_cache_dtype": "fp8_e5m2", "quantization": "fp8", "page_size": 1, "tp_size": 1,
        "max_total_num_tokens": 411_000, "max_running_requests": 64, "disable_radix_cache": False,
        "api_key": "never-to-be-kept",
    }  # fmt: skip
    return routes(
        {
            "/v1/models": answer({"object": "list", "data": [card]}),
            "/get_server_info": answer(info),
            "/metrics": text('# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{tp_rank="0"} 1.0\n'),
            "POST /v1/chat/completions": chat(model, Dress(chunk, usage=counts)),
        }
    )


def lm_studio(model: Model) -> Handler:
    """LM Studio: the role stands in every delta, there is no chunk of it alone, and its own list tells the rest."""

    def chunk(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        return event(
            "qwen2.5-7b-instruct", {"delta": delta, "logprobs": None, "finish_reason": reason},
            system_fingerprint="qwen2.5-7b-instruct",
        )  # fmt: skip

    card = {
        "id": "qwen2.5-7b-instruct", "object": "model", "type": "llm", "publisher": "qwen", "arch": "qwen2",
        "compatibility_type": "gguf", "quantization": "Q4_K_M", "state": "loaded", "max_context_length": 32768,
        "loaded_context_length": 8192,
    }  # fmt: skip
    spare = {**card, "id": "text-embedding-nomic", "type": "embeddings", "state": "not-loaded"}
    dress = Dress(
        chunk, token=lambda word: {"role": "assistant", "content": word}, usage=usage_without_details, role_only=False
    )
    listed = [{"id": one["id"], "object": "model", "owned_by": "organization_owner"} for one in (card, spare)]
    return routes(
        {
            "/v1/models": answer({"object": "list", "data": listed}),
            "/api/v0/models": answer({"object": "list", "data": [card, spare]}),
            "POST /v1/chat/completions": chat(model, dress),
        }
    )


def tensorrt_llm(model: Model) -> Handler:
    """trtllm-serve: usage with cached tokens, and its version at /version."""

    def chunk(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        full = {"tool_calls": [], "reasoning_content": None, **delta}
        choice = {"delta": full, "logprobs": None, "finish_reason": reason, "stop_reason": None}
        return event("llama-3.1-8b", {**choice, "disaggregated_params": None})

    card = {"id": "llama-3.1-8b", "object": "model", "created": 1767225600, "owned_by": "tensorrt_llm"}
    return routes(
        {
            "/v1/models": answer({"object": "list", "data": [card]}),
            "/version": answer({"version": "1.2.0"}),
            "/health": text(""),
            "POST /v1/chat/completions": chat(model, Dress(chunk, usage=usage)),
        }
    )


def triton(model: Model) -> Handler:
    """Triton's OpenAI front end: usage is null throughout, and the reason is always stop."""

    def chunk(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        full = {"role": "assistant", "content": "", "tool_calls": None, "function_call": None, **delta}
        return event(
            "llama-3.1-8b", {"delta": full, "logprobs": None, "finish_reason": reason}, usage=None,
            system_fingerprint=None,
        )  # fmt: skip

    card = {"id": "llama-3.1-8b", "object": "model", "created": 1767225600, "owned_by": "Triton Inference Server"}
    return routes(
        {
            "/v1/models": answer({"object": "list", "data": [card]}),
            "/metrics": text('# HELP\nnv_inference_request_success{model="llama",version="1"} 3\n'),
            "POST /v1/chat/completions": chat(model, Dress(chunk, reason="stop")),
        }
    )


@dataclass(frozen=True)
class Expected:
    """What a row of the server must say; *counted*: it tells prompt and output tokens."""

    handler: Callable[[Model], Handler]
    columns: dict[str, Any] = field(default_factory=dict[str, Any])
    api: str = "openai"
    counted: bool = True
    cached: int | None = None
    finish_reason: str = "length"


EXPECTED = {
    "ollama": Expected(
        ollama,
        {"server": "ollama", "server_version": "0.33.0", "model": "oracle:1b", "quantization": "Q4_0",
         "context_limit_tokens": 8192, "gpu_fraction": 1.0},
        api="ollama",
    ),
    "sglang": Expected(
        sglang,
        {"server": "sglang", "server_version": "0.5.6", "model": "qwen3-8b", "quantization": "fp8",
         "kv_cache_type": "fp8_e5m2", "context_limit_tokens": 32768},
    ),
    "lm-studio": Expected(
        lm_studio,
        {"server": "lm-studio", "server_version": None, "model": "qwen2.5-7b-instruct", "quantization": "Q4_K_M",
         "context_limit_tokens": 8192},
    ),
    "tensorrt-llm": Expected(
        tensorrt_llm,
        {"server": "tensorrt-llm", "server_version": "1.2.0", "model": "llama-3.1-8b", "quantization": None},
        # Its template, two words before the prompt, is found in the cache each time.
        cached=2,
    ),
    "triton": Expected(
        triton, {"server": "triton", "server_version": None, "model": "llama-3.1-8b", "context_limit_tokens": None},
        counted=False, finish_reason="stop",
    ),
}  # fmt: skip

PLAN = """
plan: replay
server: {{api: auto, url: '{url}'}}
run: {{repeats: 3, anchor: null}}
experiments:
  - {{kind: prefill_curve, prompt_tokens: [64, 400], output_tokens: 8}}
  - {{kind: concurrency, concurrency: [2], requests: 4, prompt_tokens: 64, output_tokens: 8}}
"""


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mkdocs.yml").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    monkeypatch.chdir(tmp_path)
    rate = Spread(1e9, 1e9, 1e9, 1)
    monkeypatch.setattr(host, "measure_ceilings", lambda: Ceilings(rate, rate, "cpu", "a test"))
    return tmp_path


def measured_on(handler: Handler, report: Path) -> Run:
    with Oracle(handler) as oracle:
        (report / "p.yml").write_text(PLAN.format(url=oracle.url))
        assert main(["p.yml"]) == 0
    (run,) = read_runs(report / "data" / "measured")
    return run


@pytest.mark.parametrize("name", EXPECTED)
def test_a_plan_gives_the_right_columns(name: str, report: Path) -> None:
    """Each server is recognised, its counts are its own or marked as estimates, and a role-only chunk is no token."""
    expected = EXPECTED[name]
    run = measured_on(expected.handler(Model(SPEED, slots=2)), report)
    rows = run.rows[run.rows["phase"] == "measured"]
    assert len(rows) == 10  # 2 lengths x 3, and 4 at concurrency 2
    assert set(rows["status"]) == {"ok"}
    assert set(rows["api"]) == {expected.api}
    for column, value in expected.columns.items():
        assert rows[column].isna().all() if value is None else set(rows[column]) == {value}, column
    assert set(rows["finish_reason"]) == {expected.finish_reason}
    assert set(rows["chunks"]) == {8}
    assert set(rows["output_tokens"]) == {8}
    assert set(rows["output_token_source"]) == {"server" if expected.counted else "estimate"}
    if expected.counted:
        away = (rows["prompt_tokens"] - rows["prompt_tokens_wanted"]).abs()
        assert (away <= 8).all()  # 2 % of 400
    else:
        assert rows["prompt_tokens"].isna().all()
        assert rows["prompt_token_source"].isna().all()
    if expected.cached is None:
        assert rows["cached_tokens"].isna().all()
    else:
        # Two prompts may begin with the same random word: once in a while that one is found there too.
        assert set(rows["cached_tokens"]) <= {expected.cached, expected.cached + 1}
    # Nothing of a token leaves before 60 ms; the role-only chunk does, at 20.
    assert (rows["ttft_ms"] >= FIRST_MS).all()
    early = rows["first_byte_ms"] < FIRST_MS
    # A busy machine may hold the client back for 40 ms in one request, not in most of them.
    assert early.mean() > 0.5 if name in ("sglang", "tensorrt-llm", "triton") else not early.any()
    # Seven steps of 5 ms lie between the first of eight tokens and the last.
    spans = pd.Series(rows["last_token_ms"] - rows["ttft_ms"])
    assert 7 * STEP_MS - 5 <= spans.median() <= 7 * STEP_MS + 25


def test_nothing_of_a_servers_arguments_leaks(report: Path) -> None:
    """SGLang tells all of its arguments, a key among them: no file of the run holds it."""
    measured_on(sglang(Model(SPEED, slots=2)), report)
    for path in (report / "data" / "measured").rglob("*"):
        assert path.is_dir() or b"never-to-be-kept" not in path.read_bytes()
