"""llama.cpp's server: /props, /v1/models, and the flags it was started with."""

from typing import Any

from collect.fields import at, first, objects, positive, text
from collect.server.ask import Asker
from collect.server.facts import ListedModel, ServerFacts


def recognise(ask: Asker) -> ServerFacts | None:
    """Return what it is; None where this is no llama.cpp server."""
    props = ask.get("/props").json()
    listed = ask.get("/v1/models").json()
    by_props = at(props, "default_generation_settings") is not None and at(props, "total_slots") is not None
    # With a key set, /props is closed to us and the list of models is not.
    if not by_props and text(listed, "data", 0, "owned_by") != "llamacpp":
        return None
    build = text(props, "build_info")
    return ServerFacts(api="llamacpp", url=ask.url, models=_models(listed, props)).learn(
        "api", server="llama.cpp", server_version=None if build == "b0-unknown" else build
    )


def describe(ask: Asker, facts: ServerFacts) -> ServerFacts:
    """Return *facts* with what the server tells of its model and its slots."""
    props: Any = ask.get("/props").json()
    return facts.learn(
        "api",
        # /props has the context of one slot: the whole of it divided by the slots is already done there.
        context_limit_tokens=positive(props, "default_generation_settings", "n_ctx"),
        parallel_slots=positive(props, "total_slots"),
        quantization=text(props, "model_ftype"),
        weights_bytes=positive(first(ask.get("/v1/models").json(), "data", id=facts.model), "meta", "size"),
    )


def model_path(ask: Asker) -> str | None:
    """Return the path of the model's file, for reading it, not for keeping."""
    return text(ask.get("/props").json(), "model_path")


def _models(listed: Any, props: Any) -> tuple[ListedModel, ...]:
    found = tuple(
        ListedModel(
            name=name,
            size_bytes=positive(card, "meta", "size"),
            # A router lists models with a status; a server of one model has it loaded.
            loaded=status == "loaded" if (status := text(card, "status", "value")) else True,
        )
        for card in objects(listed, "data")
        if (name := text(card, "id"))
    )
    alias = text(props, "model_alias") or text(props, "model_path")
    return found or ((ListedModel(alias, loaded=True),) if alias else ())
