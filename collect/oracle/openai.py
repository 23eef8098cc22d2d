"""The oracle as a server that speaks OpenAI's chat completions and nothing else."""

from typing import Any, Final

from collect.oracle.model import Model, Tokens, Turn, tokenize
from collect.oracle.script import Piece, Request, Script, answer, sse
from collect.oracle.server import Handler, routes

NAME: Final = "oracle-1b"
TEMPLATE: Final = "<|start|> system You are helpful <|end|> <|start|> user"
"""What the chat template puts before the first message."""


def openai(model: Model | None = None, *, name: str = NAME, knows_stream_options: bool = True) -> Handler:
    """Return a handler that answers as a plain OpenAI server; an older one refuses `stream_options` with 400."""
    played = model or Model()

    def chat(request: Request) -> Script:
        body = request.json
        if "stream_options" in body and not knows_stream_options:
            return answer({"error": {"message": "Unrecognized request argument: stream_options"}}, status=400)
        if body.get("model") not in (None, name):
            return answer({"error": {"message": f"The model `{body['model']}` does not exist"}}, status=404)
        limit = int(body.get("max_completion_tokens") or body.get("max_tokens") or 128)
        prompt = chat_tokens(request)
        if len(prompt) + limit > played.context_tokens:
            message = f"This model's maximum context length is {played.context_tokens} tokens."
            return answer({"error": {"message": message, "type": "BadRequestError", "code": 400}}, status=400)
        turn = played.take(prompt, limit, request.received_s, ignore_eos=bool(body.get("ignore_eos")))
        return chat_chunks(request, turn, name, thinking=played.thinking_tokens)

    return routes(
        {
            "/v1/models": answer({"object": "list", "data": [{"id": name, "object": "model", "owned_by": "oracle"}]}),
            "POST /v1/chat/completions": chat,
        }
    )


def chat_tokens(request: Request) -> Tokens:
    """Return the tokens of the request's messages inside the template."""
    return tokenize(f"{TEMPLATE} {request.prompt or ''} <|end|> <|start|> assistant")


def chat_chunks(
    request: Request, turn: Turn, name: str, *, thinking: int = 0, timings: dict[str, Any] | None = None
) -> Script:
    """Return the answer to a chat: a role-only chunk, one chunk a token, the reason, and the usage where asked for."""
    reason = "stop" if turn.stopped else "length"
    usage: dict[str, Any] = {
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": len(turn.output),
        "total_tokens": turn.prompt_tokens + len(turn.output),
        "prompt_tokens_details": {"cached_tokens": turn.cached_tokens},
    }
    extra = {} if timings is None else {"timings": timings}
    if not request.json.get("stream"):
        message = {"role": "assistant", "content": "".join(turn.output[thinking:])}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return answer(
            {"id": "c", "object": "chat.completion", "model": name, "choices": [choice], "usage": usage, **extra},
            at_ms=turn.end_ms,
        )

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return sse({"id": "c", "object": "chat.completion.chunk", "model": name, "choices": [choice], **more})

    first_ms = turn.times_ms[0] if turn.times_ms else turn.end_ms
    pieces = [Piece(first_ms, chunk({"role": "assistant", "content": ""}))]
    for n, (at, word) in enumerate(zip(turn.times_ms, turn.output, strict=True)):
        pieces.append(Piece(at, chunk({"reasoning_content" if n < thinking else "content": word})))
    pieces.append(Piece(turn.end_ms, chunk({}, reason, **extra)))
    options: dict[str, Any] = request.json.get("stream_options") or {}
    if options.get("include_usage"):
        last: dict[str, Any] = {
            "id": "c",
            "object": "chat.completion.chunk",
            "model": name,
            "choices": [],
            "usage": usage,
        }
        pieces.append(Piece(turn.end_ms, sse(last)))
    pieces.append(Piece(turn.end_ms, sse("[DONE]")))
    return Script(tuple(pieces))
