"""The APIs that servers speak, one file each: a request's body, and stamped bytes to an answer. All of it is pure."""

from typing import Final

from collect.apis.api import Api, Ask, Request
from collect.apis.llamacpp import LLAMACPP
from collect.apis.ollama import OLLAMA, unload
from collect.apis.openai import OPENAI
from collect.apis.sse import SSE
from collect.apis.tally import Answer

APIS: Final = {api.name: api for api in (OLLAMA, LLAMACPP, OPENAI, SSE)}

__all__ = ["APIS", "Answer", "Api", "Ask", "Request", "unload"]
