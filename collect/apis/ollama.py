"""Ollama's own /api/generate: a raw prompt, num_ctx set by us, and its clock in nanoseconds; JSON lines."""

from typing import Final

from collect.apis.api import Api, Ask, Request
from collect.apis.events import Event, as_dict, as_object, json_lines
from collect.apis.tally import Answer, Tally, as_number
from collect.exchange import Exchange
from roofbook.units import NS_PER_MS

# Its default of five minutes is shorter than a long pause; a model that leaves in mid-run is a cold load.
KEEP_ALIVE: Final = "1h"


def _request(ask: Ask) -> Request:
    return Request("/api/generate", {
        "model": ask.model,
        "prompt": ask.prompt,
        "raw": True,
        "stream": True,
        "keep_alive": KEEP_ALIVE,
        # A prompt that does not fit is an error to be seen; by default it is cut to about half of num_ctx in silence.
        "truncate": False,
        "shift": False,
        "options": {"temperature": 0, **ask.options, "num_predict": ask.output_tokens},
    })  # fmt: skip


def unload(model: str) -> Request:
    """Return the request that makes Ollama unload *model* at once."""
    return Request("/api/generate", {"model": model, "keep_alive": 0, "stream": False})


def _read(exchange: Exchange) -> Answer:
    tally = Tally()
    for event in json_lines(exchange.pieces):
        _feed(tally, event)
    return tally.answer(exchange)


def _feed(tally: Tally, event: Event) -> None:
    said = as_object(event.data)
    if said is None:
        tally.unreadable(event.data)
        return
    if said.get("error"):
        tally.fail(said["error"])
        return
    spoken = as_dict(said.get("message")) or said  # /api/chat wraps what /api/generate says plainly
    tally.token(event.at_ms, spoken.get("thinking"), thinking=True)
    tally.token(event.at_ms, spoken.get("response", spoken.get("content")))
    tally.saw(said, spoken)
    if said.get("done") is True:
        tally.done = True
        tally.finish(said.get("done_reason"))
        tally.usage(prompt=said.get("prompt_eval_count"), output=said.get("eval_count"))
        tally.server = {
            "server_load_ms": as_number(said.get("load_duration"), divide_by=NS_PER_MS),
            "server_prefill_ms": as_number(said.get("prompt_eval_duration"), divide_by=NS_PER_MS),
            "server_decode_ms": as_number(said.get("eval_duration"), divide_by=NS_PER_MS),
            "server_total_ms": as_number(said.get("total_duration"), divide_by=NS_PER_MS),
        }


OLLAMA = Api("ollama", raw_prompt=True, fixes_output=False, request=_request, read=_read)
