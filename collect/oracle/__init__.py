"""A loopback server of known times: the client's self-test, and the scripted server of the tests.

`Oracle(handler)` plays the scripts that its handler chooses and notes what it heard and when each piece left;
`ollama`, `llamacpp` and `openai` are handlers that imitate whole servers, on a `Model` whose times follow a known law.
"""

from collect.oracle.llamacpp import llamacpp
from collect.oracle.model import Model, Speed, tokenize
from collect.oracle.ollama import Placement, ollama
from collect.oracle.openai import openai
from collect.oracle.script import (
    EVENT_STREAM,
    JSON,
    NDJSON,
    Heard,
    Piece,
    Request,
    Script,
    answer,
    buffered,
    coalesced,
    ended_after,
    ndjson,
    split_bytes,
    sse,
    stream,
    text,
)
from collect.oracle.server import Handler, Oracle, Twist, always, routes

__all__ = [
    "EVENT_STREAM",
    "JSON",
    "NDJSON",
    "Handler",
    "Heard",
    "Model",
    "Oracle",
    "Piece",
    "Placement",
    "Request",
    "Script",
    "Speed",
    "Twist",
    "always",
    "answer",
    "buffered",
    "coalesced",
    "ended_after",
    "llamacpp",
    "ndjson",
    "ollama",
    "openai",
    "routes",
    "split_bytes",
    "sse",
    "stream",
    "text",
    "tokenize",
]
