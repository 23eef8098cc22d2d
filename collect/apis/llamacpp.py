"""llama.cpp's own /completion: a raw prompt, a fixed output length, and the server's timings of prefill and decode."""

from typing import Any

from collect.apis.api import Api, Ask, Request
from collect.apis.events import as_dict
from collect.apis.streamed import streamed_objects
from collect.apis.tally import Answer, Tally, as_count, as_number
from collect.exchange import Exchange

_FINISH = {"limit": "length", "eos": "stop", "word": "stop"}


def _request(ask: Ask) -> Request:
    body: dict[str, Any] = {
        "prompt": ask.prompt,
        "n_predict": ask.output_tokens,
        "stream": True,
        "cache_prompt": ask.reuse_cache,
        "ignore_eos": True,
        "temperature": 0,
        **{key: value for key, value in ask.options.items() if key != "num_ctx"},
    }
    if ask.model:
        body["model"] = ask.model  # a server with several models chooses by it
    return Request("/completion", body)


def _read(exchange: Exchange) -> Answer:
    tally = Tally()
    for at_ms, said in streamed_objects(exchange, tally):
        tally.token(at_ms, said.get("content"))
        tally.saw(said)
        if said.get("stop") is True:
            tally.finish(_finish_reason(said))
            tally.done = True
            tally.usage(prompt=said.get("tokens_evaluated"), output=said.get("tokens_predicted"))
            if timings := as_dict(said.get("timings")):
                read_timings(tally, timings)
    return tally.answer(exchange)


def _finish_reason(said: dict[str, Any]) -> object:
    kind = said.get("stop_type")
    if isinstance(kind, str):
        return _FINISH.get(kind, kind)
    # Before 2025 three flags said the same.
    return (
        "length"
        if said.get("stopped_limit")
        else "stop"
        if said.get("stopped_eos") or said.get("stopped_word")
        else None
    )


def read_timings(tally: Tally, timings: dict[str, Any]) -> None:
    """Note llama.cpp's ``timings``: prompt_n counts evaluated tokens only, the cached ones stand in cache_n."""
    evaluated, cached, predicted = (as_count(timings.get(key)) for key in ("prompt_n", "cache_n", "predicted_n"))
    if evaluated is not None and cached is not None:
        tally.usage(prompt=evaluated + cached, cached=cached, output=predicted)
    tally.server = {
        "server_prefill_ms": as_number(timings.get("prompt_ms")),
        "server_decode_ms": as_number(timings.get("predicted_ms")),
        "server_decode_tok_per_s": as_number(timings.get("predicted_per_second")),
    }


LLAMACPP = Api("llamacpp", raw_prompt=True, fixes_output=True, request=_request, read=_read)
