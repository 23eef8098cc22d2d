"""The oracle as llama.cpp's server: /completion and chat with `timings`, and what it tells of itself."""

from typing import Any, Final

from collect.oracle.model import Model, Tokens, Turn, tokenize
from collect.oracle.openai import chat_chunks, chat_tokens
from collect.oracle.script import Piece, Request, Script, answer, sse, text
from collect.oracle.server import Handler, routes

NAME: Final = "oracle-1b-q4_0.gguf"
BUILD: Final = "b9999-0123abc"


def llamacpp(model: Model | None = None, *, name: str = NAME) -> Handler:
    """Return a handler that answers as llama.cpp's server with *model*."""
    played = model or Model()

    def completion(request: Request) -> Script:
        body = request.json
        prompt = tokenize(str(body.get("prompt", "")))
        if too_long := _too_long(played, prompt):
            return too_long
        turn = _take(played, request, prompt, int(body.get("n_predict", 128)))
        final: dict[str, Any] = {
            "index": 0, "content": "", "tokens": [], "id_slot": 0, "stop": True, "model": name,
            "tokens_predicted": len(turn.output), "tokens_evaluated": turn.prompt_tokens, "truncated": False,
            "stop_type": "eos" if turn.stopped else "limit", "stopping_word": "",
            "tokens_cached": turn.prompt_tokens + len(turn.output) - 1, "timings": _timings(turn),
        }  # fmt: skip
        if not body.get("stream"):
            return answer({**final, "content": "".join(turn.output)}, at_ms=turn.end_ms)
        pieces = [
            Piece(at, sse({"index": 0, "content": word, "tokens": [], "stop": False, "id_slot": 0}))
            for at, word in zip(turn.times_ms, turn.output, strict=True)
        ]
        return Script((*pieces, Piece(turn.end_ms, sse(final))))

    def chat(request: Request) -> Script:
        prompt = chat_tokens(request)
        if too_long := _too_long(played, prompt):
            return too_long
        turn = _take(played, request, prompt, int(request.json.get("max_tokens", 128)))
        return chat_chunks(request, turn, name, thinking=played.thinking_tokens, timings=_timings(turn))

    props = {
        "default_generation_settings": {"n_ctx": played.context_tokens, "params": {"n_predict": -1}},
        "total_slots": played.slots, "model_alias": name, "model_path": f"/srv/models/{name}", "model_ftype": "Q4_0",
        "build_info": BUILD, "chat_template": "",
    }  # fmt: skip
    meta = {
        "vocab_type": 2, "n_vocab": 32000, "n_ctx_train": 8192, "n_embd": 2048, "n_params": 1_000_000_000,
        "size": 562_500_000,
    }  # fmt: skip
    return routes(
        {
            "/health": answer({"status": "ok"}),
            "/props": answer(props),
            "/v1/models": answer(
                {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "llamacpp", "meta": meta}]}
            ),
            "/slots": answer(
                [{"id": n, "n_ctx": played.context_tokens, "is_processing": False} for n in range(played.slots)]
            ),
            "/metrics": text("llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n"),
            "POST /completion": completion,
            "POST /completions": completion,
            "POST /v1/chat/completions": chat,
            "POST /tokenize": lambda request: answer(
                {"tokens": list(range(len(tokenize(request.json.get("content", "")))))}
            ),
        }
    )


def _take(model: Model, request: Request, prompt: Tokens, limit: int) -> Turn:
    body = request.json
    return model.take(
        prompt, limit, request.received_s,
        use_cache=body.get("cache_prompt") is not False, ignore_eos=bool(body.get("ignore_eos")),
    )  # fmt: skip


def _too_long(model: Model, prompt: Tokens) -> Script | None:
    if len(prompt) < model.context_tokens:
        return None
    error = {
        "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": len(prompt), "n_ctx": model.context_tokens,
        "message": "the request exceeds the available context size",
    }  # fmt: skip
    return answer({"error": error}, status=400)


def _timings(turn: Turn) -> dict[str, Any]:
    evaluated, made = turn.prompt_tokens - turn.cached_tokens, len(turn.output)
    decode_ms = max(turn.decode_ms, 0.001)
    return {
        "cache_n": turn.cached_tokens, "prompt_n": evaluated, "prompt_ms": turn.prefill_ms,
        "prompt_per_token_ms": turn.prefill_ms / evaluated, "prompt_per_second": 1000 * evaluated / turn.prefill_ms,
        "predicted_n": made, "predicted_ms": decode_ms, "predicted_per_token_ms": decode_ms / max(made, 1),
        "predicted_per_second": 1000 * made / decode_ms,
    }  # fmt: skip
