"""Any front that streams text as events: POST {prompt, max_tokens}, events of text or of JSON with a text in it.

It ends with ``[DONE]``, with an event of type done or end, or with a JSON that says "done": true.
"""

from typing import Any, Final

from collect.apis.api import Api, Ask, Request
from collect.apis.events import Event, as_object, sse_events
from collect.apis.tally import Answer, Tally
from collect.exchange import Exchange

_TEXTS: Final = ("token", "text", "content", "response", "delta")
_ENDS: Final = ("done", "end", "complete")


def _request(ask: Ask) -> Request:
    body: dict[str, Any] = {"prompt": ask.prompt, "max_tokens": ask.output_tokens, "stream": True, **ask.options}
    if ask.model:
        body["model"] = ask.model
    return Request("", body)


def _read(exchange: Exchange) -> Answer:
    tally = Tally()
    for event in sse_events(exchange.pieces):
        _feed(tally, event)
    return tally.answer(exchange)


def _feed(tally: Tally, event: Event) -> None:
    said = as_object(event.data)
    if event.type == "error":
        tally.fail(event.data if said is None else said)
    elif event.data.strip() == "[DONE]":
        tally.done = True
    elif said is None:
        if event.type in _ENDS:
            tally.done = True
        else:
            tally.token(event.at_ms, event.data)
    elif said.get("error"):
        tally.fail(said["error"])
    else:
        text = next((said[key] for key in _TEXTS if isinstance(said.get(key), str)), None)
        tally.token(event.at_ms, text)
        tally.saw(said)
        tally.finish(said.get("finish_reason"))
        tally.usage(prompt=said.get("prompt_tokens"), output=said.get("output_tokens"))
        if said.get("done") is True or event.type in _ENDS:
            tally.done = True


SSE = Api("sse", raw_prompt=False, fixes_output=False, request=_request, read=_read)
