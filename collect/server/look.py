"""Gathering what is known of a server and of one of its models: from its API, its process and the plan."""

import hashlib
import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psutil

from collect.engine import Engine
from collect.scrub import of_this_process
from collect.server import ollama, process
from collect.server.ask import Asker
from collect.server.facts import Api, ListedModel, ServerFacts
from collect.server.openai import MLX_LM_DEFAULT
from collect.server.recognise import base_url, recognised, shown
from roofbook.errors import ModelError, ReaderError, ServerError
from roofbook.readers import read_llamacpp, read_ollama, with_gguf_at_its_path

_PULL: Final = "ollama pull "


def inspect(
    url: str, *, api: Api | None = None, model: str | None = None, key: str | None = None,
    stated: Mapping[str, Any] | None = None,
) -> ServerFacts:  # fmt: skip
    """Return all that is known of the server at *url* and of *model* (default: what `chosen` takes).

    Raises ServerError as `identify` does, and where it does not speak *api*; ModelError where it does not have *model*,
    naming those it has.
    """
    ask = Asker(base_url(url), key)
    if api in ("openai", "sse") and _has_its_own_path(ask, api):
        # A front of somebody's own, with no list of models: what is known is what the plan says.
        bare = ServerFacts(api=api, url=ask.url, model=model, host_is_server=is_here(ask.url))
        return bare.states(stated or {})
    kind, found = recognised(ask)
    # Every one of these servers speaks OpenAI's API too; the other APIs are one server's own.
    if api not in (None, "openai", "sse", found.api):
        raise ServerError(
            "The server at %(url)s does not speak the API '%(api)s'. Write api: %(right)s, or api: auto",
            url=shown(ask.url), api=api, right=found.api,
        )  # fmt: skip
    if only := _of_mlx_lm(found, model):
        found = replace(found, models=(ListedModel(only),))
    name = chosen(found, only or model).name
    facts = kind.describe(ask, replace(found, api=api or found.api, model=name, host_is_server=is_here(ask.url)))
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
    listed, pulls = facts.models, facts.server == "ollama"
    if not listed and pulls:
        raise ModelError(
            "The server at %(url)s has no model. Add one: %(command)s",
            url=shown(facts.url), command=_PULL + (model or "MODEL"),
        )  # fmt: skip
    if not listed:
        raise ModelError("The server at %(url)s has no model. Load or pull one first", url=shown(facts.url))
    if model is None:
        loaded = [one for one in listed if one.loaded]
        return min(loaded or listed, key=lambda one: one.size_bytes if one.size_bytes is not None else float("inf"))
    wanted = ollama.full_name(model) if facts.server == "ollama" else model
    for one in listed:
        if wanted in (one.name, of_this_process().model_name(one.name)):
            return one
    clean = of_this_process()
    told = {
        "url": shown(facts.url), "model": clean.line(model),
        "models": ", ".join(clean.model_name(one.name) for one in listed),
    }  # fmt: skip
    if pulls:
        raise ModelError(
            "The server at %(url)s does not have the model '%(model)s'. It has: %(models)s. To add it: %(command)s",
            **told, command=_PULL + clean.line(model),
        )  # fmt: skip
    raise ModelError("The server at %(url)s does not have the model '%(model)s'. It has: %(models)s", **told)


def _has_its_own_path(ask: Asker, api: Api) -> bool:
    if api == "sse":
        return ask.get("/").status is not None
    # A path that wants a POST says so to a GET; it is there, then, though the list of models is not.
    return ask.get("/v1/models").status == 404 and ask.get("/v1/chat/completions").status in (400, 405, 422)


def _of_mlx_lm(facts: ServerFacts, model: str | None) -> str | None:
    """Return the model of an mlx_lm.server that cannot list any: the plan's, else the one it was started with."""
    if [one.name for one in facts.models] != [MLX_LM_DEFAULT] or facts.server != "mlx_lm":
        return None
    return model or (process.mlx_lm_model(_port(facts.url)) if is_here(facts.url) else None)


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
        "api", weights_bytes=tensors.total_bytes or None, quantization=tensors.quantization
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


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def is_here(url: str) -> bool:
    """Whether *url* leads to this machine: its loopback, or an address of one of its interfaces."""
    host = urlsplit(url).hostname or ""
    try:
        addresses = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    own = {address.address.partition("%")[0] for interface in psutil.net_if_addrs().values() for address in interface}
    return any(str(one) in own or _is_ours(ipaddress.ip_address(str(one).partition("%")[0])) for one in addresses)


def _is_ours(address: "ipaddress.IPv4Address | ipaddress.IPv6Address") -> bool:
    # 0.0.0.0 is what a server listens on; whoever connects to it reaches his own machine.
    return address.is_loopback or address.is_unspecified
