"""Ollama: /api/version, /api/tags, /api/ps, /api/show, and the flags of the runner below it."""

import re
from typing import Any

from collect.fields import count, digest, first, objects, positive, text
from collect.server.ask import Asker
from collect.server.facts import ListedModel, ServerFacts


def recognise(ask: Asker) -> ServerFacts | None:
    """Return what it is; None where this is no Ollama. Others imitate its API, but not its greeting."""
    version = text(ask.get("/api/version").json(), "version")
    if version is None or "ollama is running" not in ask.get("/").text.lower():
        return None
    running = {text(entry, "name") for entry in objects(ask.get("/api/ps").json(), "models")}
    models = tuple(
        ListedModel(name, positive(entry, "size"), loaded=name in running, digest=digest(entry, "digest"))
        for entry in objects(ask.get("/api/tags").json(), "models")
        if (name := text(entry, "name")) and _generates_here(entry)
    )
    return ServerFacts(api="ollama", url=ask.url, models=models).learn("api", server="ollama", server_version=version)


def describe(ask: Asker, facts: ServerFacts) -> ServerFacts:
    """Return *facts* with what Ollama tells of the model: its listing, and how it lies if it is loaded."""
    listed = first(ask.get("/api/tags").json(), "models", name=facts.model)
    running = first(ask.get("/api/ps").json(), "models", name=facts.model)
    return facts.learn(
        "api",
        model_digest=digest(listed, "digest") or digest(running, "digest"),
        quantization=text(listed, "details", "quantization_level"),
        # Of one sequence; nothing before the model is loaded, and nothing from versions that do not tell.
        context_limit_tokens=positive(running, "context_length"),
        gpu_fraction=gpu_fraction(running),
    )


def _generates_here(entry: dict[str, Any]) -> bool:
    """Whether a listed model runs on this server and writes text: not one of the cloud's, not an embedding model."""
    return text(entry, "remote_host") is None and not (text(entry, "details", "family") or "").endswith("bert")


def gpu_fraction(running: dict[str, Any]) -> float | None:
    """Return the share of a loaded model's bytes that lie on the GPU; None where it is not told, or makes no sense."""
    size, in_vram = positive(running, "size"), count(running, "size_vram")
    return None if size is None or in_vram is None or in_vram > size else in_vram / size


def model_file(ask: Asker, model: str) -> str | None:
    """Return the base name of the model's file, which its runner has on its command line."""
    described = text(ask.post("/api/show", {"model": model}).json(), "modelfile") or ""
    found = re.search(r"(?m)^FROM\s+\S*[/\\](sha256-[0-9a-f]{64})\s*$", described)
    return found and found.group(1)


def full_name(model: str) -> str:
    """Return the name with its tag, as the lists have it."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"
