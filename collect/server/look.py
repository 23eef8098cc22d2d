"""Finding a server, asking it what it is, and gathering what is known of it and of its model."""

import hashlib
import ipaddress
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psutil

from collect.client import lookup
from collect.engine import Engine
from collect.scrub import of_this_process
from collect.server import llamacpp, ollama, openai, process
from collect.server.ask import Asker
from collect.server.facts import Api, ListedModel, ServerFacts
from roofbook.errors import ModelError, ReaderError, ServerError
from roofbook.readers import read_llamacpp, read_ollama, with_gguf_at_its_path


@dataclass(frozen=True)
class _Kind:
    recognise: Callable[[Asker], ServerFacts | None]
    describe: Callable[[Asker, ServerFacts], ServerFacts]


# In this order: llama.cpp also lists its models as Ollama and OpenAI do, and Ollama also as OpenAI does.
_KINDS: Final = {
    "llamacpp": _Kind(llamacpp.recognise, llamacpp.describe),
    "ollama": _Kind(ollama.recognise, ollama.describe),
    "openai": _Kind(openai.recognise, openai.describe),
}

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
    return _recognised(Asker(_base(url), key))[1]


def inspect(
    url: str, *, api: Api | None = None, model: str | None = None, key: str | None = None,
    stated: Mapping[str, Any] | None = None,
) -> ServerFacts:  # fmt: skip
    """Return all that is known of the server at *url* and of *model* (default: what `chosen` takes).

    Raises ServerError as `identify` does, and where it does not speak *api*; ModelError where it does not have *model*,
    naming those it has.
    """
    ask = Asker(_base(url), key)
    if api in ("openai", "sse") and _has_its_own_path(ask, api):
        # A front of somebody's own, with no list of models: what is known is what the plan says.
        bare = ServerFacts(api=api, url=ask.url, model=model, host_is_server=_is_here(ask.url))
        return bare.states(stated or {})
    kind, found = _recognised(ask)
    # Every one of these servers speaks OpenAI's API too; the other APIs are one server's own.
    if api not in (None, "openai", "sse", found.api):
        raise ServerError(
            "The server at %(url)s does not speak the API '%(api)s'. Write api: %(right)s, or api: auto",
            url=_shown(ask.url), api=api, right=found.api,
        )  # fmt: skip
    name = chosen(found, model).name
    facts = kind.describe(ask, replace(found, api=api or found.api, model=name, host_is_server=_is_here(ask.url)))
    if facts.host_is_server:
        facts = _with_process(ask, facts)
    return _with_reading(ask, facts).states(stated or {})


def of_engine(engine: Engine, *, stated: Mapping[str, Any] | None = None) -> ServerFacts:
    """Return the facts of the embedded engine; its version is the one of the package that it comes in.

    Raises ServerError where it does not answer.
    """
    facts = inspect(engine.url, api="llamacpp", model=engine.model)
    return facts.learn(
        "process",
        server_version=engine.version,
        gpu_fraction=None if engine.gpus else 0.0,
        model_digest=_sha256(engine.model_path),
    ).states(stated or {})


def chosen(facts: ServerFacts, model: str | None = None) -> ListedModel:
    """Return the listed *model*; without one the loaded model, else the smallest, else the first.

    Raises ModelError where the server does not have it, or has none.
    """
    listed = facts.models
    if not listed:
        raise ModelError("The server at %(url)s has no model. Load or pull one first", url=_shown(facts.url))
    if model is None:
        loaded = [one for one in listed if one.loaded]
        return min(loaded or listed, key=lambda one: one.size_bytes if one.size_bytes is not None else float("inf"))
    wanted = ollama.full_name(model) if facts.server == "ollama" else model
    for one in listed:
        if wanted in (one.name, of_this_process().model_name(one.name)):
            return one
    clean = of_this_process()
    raise ModelError(
        "The server at %(url)s does not have the model '%(model)s'. It has: %(models)s",
        url=_shown(facts.url), model=clean.line(model), models=", ".join(clean.model_name(one.name) for one in listed),
    )  # fmt: skip


def _recognise(ask: Asker) -> tuple[_Kind, ServerFacts] | None:
    for kind in _KINDS.values():
        if facts := kind.recognise(ask):
            return kind, facts
        if not ask.statuses:  # nothing answers: the others need not ask
            return None
    return None


def _recognised(ask: Asker) -> tuple[_Kind, ServerFacts]:
    if found := _recognise(ask):
        return found
    url = _shown(ask.url)
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


def _has_its_own_path(ask: Asker, api: Api) -> bool:
    if api == "sse":
        return ask.get("/").status is not None
    # A path that wants a POST says so to a GET; it is there, then, though the list of models is not.
    return ask.get("/v1/models").status == 404 and ask.get("/v1/chat/completions").status in (400, 405, 422)


def _with_reading(ask: Asker, facts: ServerFacts) -> ServerFacts:
    """Add what the server says of the model's shape; a description that cannot be read is a fact less, no failure."""
    try:
        if facts.server == "llama.cpp":
            props = ask.get("/props").json()
            reading = read_llamacpp(ask.get("/v1/models").json(), props, model=facts.model)
            if facts.host_is_server:
                reading = with_gguf_at_its_path(reading, props)
        elif facts.server == "ollama":
            show = ask.post("/api/show", {"model": facts.model}).json()
            reading = read_ollama(show, name=facts.model, digest=facts.model_digest)
        else:
            return facts
    except ReaderError as problem:
        return replace(facts, unread=str(problem))
    tensors = reading.model.tensors
    return replace(facts, reading=reading).learn(
        "api", weights_bytes=tensors.total_bytes, quantization=tensors.quantization
    )


def _with_process(ask: Asker, facts: ServerFacts) -> ServerFacts:
    file = ollama.model_file(ask, facts.model or "") if facts.server == "ollama" else None
    flags = process.of_port(_port(ask.url), model_file=file)
    if flags is None:
        return facts
    slots = flags.integer("parallel_slots") or flags.integer("max_num_seqs")
    return facts.learn(
        "process",
        kv_cache_type=flags.kv_cache_type,
        flash_attention=flags.flash_attention,
        parallel_slots=slots,
    ).with_options(flags.values)


@cache
def _sha256(path: Path) -> str:
    """The digest of the engine's model: it is small, and it does not change while we run."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _base(url: str) -> str:
    """Scheme, host and port, as requests are sent to; a path that leads to the API is its own business."""
    full = url if "://" in url else f"http://{url}"
    return full.rstrip("/").removesuffix("/v1")


def _shown(url: str) -> str:
    """The address for a message: the user typed it, so the host stays, but not a key before it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _is_here(url: str) -> bool:
    """Whether *url* leads to this machine: its loopback, or an address of one of its interfaces."""
    host = urlsplit(url).hostname or ""
    try:
        addresses = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    own = {address.address.partition("%")[0] for interface in psutil.net_if_addrs().values() for address in interface}
    return any(str(one) in own or ipaddress.ip_address(str(one).partition("%")[0]).is_loopback for one in addresses)
