"""What one API is to the collector: a request's body, and stamped bytes read as an answer; both pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from collect.apis.tally import Answer
from collect.exchange import Exchange


@dataclass(frozen=True)
class Ask:
    """What is wanted of a server, whatever its API."""

    prompt: str
    output_tokens: int
    model: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reuse_cache: bool = False
    """False where the plan does not want a prompt cache; only llama.cpp can be told so."""
    include_usage: bool = True
    """Ask for counts in the stream; false where a probe showed that the server refuses the question."""
    ignore_eos: bool = False
    """Generate to the wanted length; only for servers known to have the field."""


@dataclass(frozen=True)
class Request:
    """What is posted: the path below the server's address, and the JSON body."""

    path: str
    body: Mapping[str, Any]

    @property
    def options(self) -> dict[str, Any]:
        """The body without the prompt: what the row keeps."""
        return {key: value for key, value in self.body.items() if key not in ("prompt", "messages")}


@dataclass(frozen=True)
class Api:
    """One API. *raw_prompt*: no template stands before the prompt. *fixes_output*: it generates to a given length."""

    name: str
    raw_prompt: bool
    fixes_output: bool
    request: Callable[[Ask], Request]
    read: Callable[[Exchange], Answer]
