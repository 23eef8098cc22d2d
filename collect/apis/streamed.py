"""A stream of events that each carry a JSON object, as llama.cpp and OpenAI's front ends send it."""

from collections.abc import Iterator
from typing import Any

from collect.apis.events import as_object, sse_events
from collect.apis.tally import Tally
from collect.exchange import Exchange


def streamed_objects(exchange: Exchange, tally: Tally) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield when each object came (ms), and the object; its end mark, errors and what is no JSON go to *tally*."""
    for event in sse_events(exchange.pieces):
        if event.data.strip() == "[DONE]":
            tally.done = True
            continue
        said = as_object(event.data)
        if said is None:
            tally.unreadable(event.data)
        elif event.type == "error" or said.get("error") or said.get("object") == "error":
            tally.fail(said.get("error") or said)
        else:
            yield event.at_ms, said
