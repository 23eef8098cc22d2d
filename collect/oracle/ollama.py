"""The oracle as Ollama: /api/generate and /api/chat with their nanoseconds, and what it tells of itself."""

from dataclasses import dataclass
from typing import Any, Final

from collect.oracle.model import Model, Tokens, Turn, tokenize
from collect.oracle.openai import TEMPLATE
from collect.oracle.script import NDJSON, Piece, Request, Script, answer, ndjson, text
from collect.oracle.server import Handler, routes

NAME: Final = "oracle:1b"
VERSION: Final = "0.33.0"
DIGEST: Final = "0123456789abcdef" * 4
SIZE_BYTES: Final = 600_000_000
MS: Final = 1_000_000
"""Ollama's durations are in nanoseconds."""

_NUM_KEEP: Final = 4


@dataclass(frozen=True)
class Placement:
    """Where the loaded model lies, as /api/ps tells it; *in_vram_bytes* null: the field is absent."""

    size_bytes: int = SIZE_BYTES
    in_vram_bytes: int | None = SIZE_BYTES


def ollama(
    model: Model | None = None, *, name: str = NAME, placement: Placement | None = None, version: str = VERSION
) -> Handler:
    """Return a handler that answers as Ollama with *model*; a prompt above num_ctx is cut, silently, as Ollama does."""
    played = model or Model()
    placed = placement or Placement()
    details = {"format": "gguf", "family": "llama", "parameter_size": "1B", "quantization_level": "Q4_0"}
    model_info = {
        "general.architecture": "llama", "general.parameter_count": 1_000_000_000, "general.file_type": 2,
        "llama.block_count": 16, "llama.attention.head_count": 32, "llama.attention.head_count_kv": 8,
        "llama.attention.key_length": 64, "llama.attention.value_length": 64, "llama.context_length": 8192,
        "llama.embedding_length": 2048, "llama.feed_forward_length": 8192, "llama.vocab_size": 32000,
    }  # fmt: skip

    def running(_: Request) -> Script:
        if not played.loaded:
            return answer({"models": []})
        entry: dict[str, Any] = {
            "name": name, "model": name, "size": placed.size_bytes, "digest": DIGEST, "details": details,
            "expires_at": "2030-01-01T00:00:00Z", "context_length": played.context_tokens,
        }  # fmt: skip
        if placed.in_vram_bytes is not None:
            entry["size_vram"] = placed.in_vram_bytes
        return answer({"models": [entry]})

    def show(request: Request) -> Script:
        if request.json.get("model", request.json.get("name")) != name:
            return _unknown(request)
        return answer({"details": details, "model_info": model_info, "capabilities": ["completion"], "template": ""})

    def generate(request: Request) -> Script:
        body = request.json
        if body.get("model") != name:
            return _unknown(request)
        prompt = str(body.get("prompt", ""))
        if not prompt and not body.get("messages"):
            played.loaded = True
            return answer({"model": name, "response": "", "done": True, "done_reason": "load"})
        return talk(request, tokenize(prompt if body.get("raw") else f"{TEMPLATE} {prompt}"), chat=False)

    def chat(request: Request) -> Script:
        if request.json.get("model") != name:
            return _unknown(request)
        return talk(request, tokenize(f"{TEMPLATE} {request.prompt or ''}"), chat=True)

    def talk(request: Request, prompt: Tokens, *, chat: bool) -> Script:
        options: dict[str, Any] = request.json.get("options") or {}
        context = int(options.get("num_ctx", played.context_tokens))
        if len(prompt) > context - 1:
            if request.json.get("shift") is False:
                return answer({"error": "the input length exceeds the context length"}, status=400)
            prompt = prompt[: context - (context - _NUM_KEEP) // 2]
        turn = played.take(prompt, int(options.get("num_predict", 128)), request.received_s)

        def line(word: str, n: int) -> dict[str, Any]:
            thinks = n < played.thinking_tokens
            said = {"thinking": word} if thinks else {}
            answered = "" if thinks else word
            content = (
                {"message": {"role": "assistant", "content": answered, **said}}
                if chat
                else {"response": answered, **said}
            )
            return {"model": name, "created_at": "2030-01-01T00:00:00Z", **content, "done": False}

        end: dict[str, Any] = {
            "model": name, "created_at": "2030-01-01T00:00:00Z",
            **({"message": {"role": "assistant", "content": ""}} if chat else {"response": ""}),
            "done": True, "done_reason": "stop" if turn.stopped else "length", **_durations(turn),
        }  # fmt: skip
        if request.json.get("stream") is False:
            words = "".join(turn.output)
            said = {"message": {"role": "assistant", "content": words}} if chat else {"response": words}
            return answer({**end, **said}, at_ms=turn.end_ms)
        pieces = [
            Piece(at, ndjson(line(word, n)))
            for n, (at, word) in enumerate(zip(turn.times_ms, turn.output, strict=True))
        ]
        return Script((*pieces, Piece(turn.end_ms, ndjson(end))), content_type=NDJSON)

    listed = {"name": name, "model": name, "size": SIZE_BYTES, "digest": DIGEST, "details": details}
    return routes(
        {
            "/": text("Ollama is running"),
            "/api/version": answer({"version": version}),
            "/api/tags": answer({"models": [listed]}),
            "/api/ps": running,
            "POST /api/show": show,
            "POST /api/generate": generate,
            "POST /api/chat": chat,
            "/v1/models": answer({"object": "list", "data": [{"id": name, "object": "model", "owned_by": "library"}]}),
        }
    )


def _unknown(request: Request) -> Script:
    return answer({"error": f"model '{request.json.get('model', '')}' not found"}, status=404)


def _durations(turn: Turn) -> dict[str, Any]:
    """The final line's figures; Ollama leaves out a field that is zero."""
    figures = {
        "total_duration": round(turn.end_ms * MS),
        "load_duration": round((turn.load_ms or 1.5) * MS),  # never 0: warm, it is the time to the scheduler
        "prompt_eval_count": turn.prompt_tokens,
        "prompt_eval_duration": round(turn.prefill_ms * MS),
        "eval_count": len(turn.output),
        "eval_duration": round(turn.decode_ms * MS),
    }
    return {name: value for name, value in figures.items() if value}
