"""Which servers there are, and what each is: it is asked, and the port it listens on says nothing."""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from collect.address import is_address
from collect.client import lookup
from collect.server import llamacpp, ollama, openai
from collect.server.ask import Asker
from collect.server.facts import ServerFacts
from roofbook.errors import ServerError, UsageError


@dataclass(frozen=True)
class Kind:
    """One kind of server: whether this is one, and what else it tells."""

    recognise: Callable[[Asker], ServerFacts | None]
    describe: Callable[[Asker, ServerFacts], ServerFacts]


# In this order: llama.cpp also lists its models as Ollama and OpenAI do, and Ollama also as OpenAI does.
_KINDS: Final = (
    Kind(llamacpp.recognise, llamacpp.describe),
    Kind(ollama.recognise, ollama.describe),
    Kind(openai.recognise, openai.describe),
)

PORTS: Final = {
    11434: "Ollama",
    8080: "llama.cpp, mlx_lm",
    8000: "vLLM, TensorRT-LLM",
    1234: "LM Studio",
    30000: "SGLang",
    9000: "Triton",
    1337: "Jan",
    5001: "KoboldCpp",
    8081: "llama.cpp, beside another",
}
"""Where to look, and who is usually there; what is there is asked, not guessed."""

# What people copy from an example of curl; each API adds its own path.
_API_PATH: Final = re.compile(r"/(?:v1(?:/(?:chat/)?completions)?|api/(?:generate|chat)|completion)$")

# Loopback answers at once; a busy server may need a moment for its list of models.
_PROBE_TIMEOUT_S: Final = 1.5


def find(ports: Sequence[int] = tuple(PORTS)) -> list[ServerFacts]:
    """Return the LLM servers on loopback at *ports*, each asked what it is, in the order of the ports."""

    def probe(port: int) -> ServerFacts | None:
        # A server for "localhost" may listen on one of the two only.
        for host in ("127.0.0.1", "[::1]"):
            ask = Asker(f"http://{host}:{port}", timeout_s=_PROBE_TIMEOUT_S)
            if found := _recognise(ask):
                return found[1]
            if lookup.REFUSED not in ask.reasons:
                return None  # something is there, and it is no LLM server
        return None

    with ThreadPoolExecutor(max_workers=len(ports) or 1) as pool:
        return [found for found in pool.map(probe, ports) if found is not None]


def identify(url: str, *, key: str | None = None) -> ServerFacts:
    """Ask the server at *url* what it is and what models it has.

    Raises ServerError where nothing answers, or what answers is no LLM server.
    """
    return recognised(Asker(base_url(url), key))[1]


def _recognise(ask: Asker) -> tuple[Kind, ServerFacts] | None:
    for kind in _KINDS:
        if facts := kind.recognise(ask):
            return kind, facts
        if not ask.statuses:  # nothing answers: the others need not ask
            return None
    return None


def recognised(ask: Asker) -> tuple[Kind, ServerFacts]:
    """Return what the server is; raises ServerError, by what it did instead of telling."""
    if found := _recognise(ask):
        return found
    url = shown(ask.url)
    if lookup.TIMEOUT in ask.reasons and not ask.statuses:
        raise ServerError(
            "Something listens at %(url)s, but does not answer. Wait until it is up, or restart it", url=url
        )
    if not ask.statuses:
        raise ServerError(
            "No server answers at %(url)s. Start it, or leave out server.url to look for one on this machine", url=url
        )
    if {401, 403} & set(ask.statuses):
        raise ServerError(
            "The server at %(url)s wants a key: name its environment variable under server.api_key_env", url=url
        )
    raise ServerError(
        "Something answers at %(url)s, but it is no LLM server that this program knows (asked for /props, /api/version "
        "and /v1/models)",
        url=url,
    )


def base_url(url: str) -> str:
    """Scheme, host and port, as requests are sent to; a path that leads to the API is its own business.

    Raises UsageError where it is no address.
    """
    full = url if "://" in url else f"http://{url}"
    scheme, _, rest = full.partition("://")
    without_key = f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"
    if not is_address(without_key):
        raise UsageError(
            "'%(url)s' is no address of a server: write one such as http://127.0.0.1:11434", url=without_key
        )
    return _API_PATH.sub("", full.rstrip("/"))


def shown(url: str) -> str:
    """The address for a message: the user typed it, so the host stays, but not a key before it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
