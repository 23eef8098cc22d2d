"""What is known of a server: the columns of the contract that it fills, each with where it came from."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from collect.scrub import Scrubber, of_this_process
from roofbook.readers.reading import Reading, to_json
from roofbook.record import Row

Source = Literal["api", "process", "stated"]
"""Who said it: the server, its process line, or the plan's author."""

Api = Literal["ollama", "llamacpp", "openai", "sse"]

FACT_COLUMNS: Final = (
    "server", "server_version", "model_digest", "quantization", "weights_bytes", "kv_cache_type", "flash_attention",
    "context_limit_tokens", "parallel_slots", "gpu_fraction",
)  # fmt: skip
"""The columns that one of several sources can fill."""


@dataclass(frozen=True)
class ListedModel:
    """A model that the server names; *size_bytes* and *loaded* are null where it does not tell."""

    name: str
    size_bytes: int | None = None
    loaded: bool | None = None
    digest: str | None = None


@dataclass(frozen=True)
class ServerFacts:
    """A server as it stands; null is unknown. *url* and *model* are as requests need them: `columns` and `as_json`
    give what may be kept."""

    api: Api
    url: str
    server: str | None = None
    """What it is: ollama, llama.cpp, vllm, sglang, lm-studio, mlx_lm ...; null for one that only speaks the API."""
    server_version: str | None = None
    model: str | None = None
    """The model's name as the server wants it in a request."""
    models: tuple[ListedModel, ...] = ()
    model_digest: str | None = None
    quantization: str | None = None
    weights_bytes: int | None = None
    """Of all tensors, without the file's metadata."""
    kv_cache_type: str | None = None
    """Of keys and values; "f16/q8_0" where the two differ."""
    flash_attention: str | None = None
    """on, off or auto."""
    context_limit_tokens: int | None = None
    """Of one slot, prompt and answer together."""
    parallel_slots: int | None = None
    gpu_fraction: float | None = None
    """The share of the model's bytes that lie on the GPU."""
    server_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sources: Mapping[str, Source] = field(default_factory=dict[str, Source])
    """Column -> who said it; a column that is not here is unknown."""
    disputed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Column -> what the plan states, where the server or its process says something else."""
    reading: Reading | None = None
    """The model as the server, and its file where that is readable, describe it."""
    unread: str | None = None
    """Why that description could not be read."""
    host_is_server: bool | None = None

    def learn(self, source: Source, **columns: Any) -> "ServerFacts":
        """Return these facts with those of *columns* that were unknown and are not null; the first source stays."""
        new = {name: value for name, value in columns.items() if value is not None and getattr(self, name) is None}
        return replace(self, **new, sources={**self.sources, **dict.fromkeys(new, source)})

    def with_options(self, options: Mapping[str, Any]) -> "ServerFacts":
        """Return these facts with more of the server's settings; those that are known stay."""
        return replace(self, server_options={**options, **self.server_options})

    def states(self, stated: Mapping[str, Any]) -> "ServerFacts":
        """Return these facts with what the plan's author states; it fills gaps and overrides nobody."""
        known = {name: value for name, value in stated.items() if name in FACT_COLUMNS and value is not None}
        disputed = {name: value for name, value in known.items() if getattr(self, name) not in (None, value)}
        return replace(self.learn("stated", **known), disputed={**self.disputed, **disputed})

    def columns(self, scrubber: Scrubber | None = None) -> Row:
        """Return the row's columns that the server fills; every text in them has passed the scrubber."""
        clean = scrubber or of_this_process()
        facts = {name: getattr(self, name) for name in FACT_COLUMNS}
        texts = {name: clean.line(value) if isinstance(value, str) else value for name, value in facts.items()}
        return {
            **texts,
            "api": self.api,
            "model": None if self.model is None else clean.model_name(self.model),
            "server_options": json.dumps(clean.json(self.server_options), ensure_ascii=False, sort_keys=True),
            "sources": json.dumps(dict(self.sources), sort_keys=True),
            "host_is_server": self.host_is_server,
        }

    def as_json(self, scrubber: Scrubber | None = None) -> dict[str, Any]:
        """Return all of it as a JSON object that may be kept: for the run's metadata, and what `inspect` prints."""
        clean = scrubber or of_this_process()
        columns = self.columns(clean)
        described: Any = None if self.reading is None else clean.json(to_json(self.reading))
        return {
            **columns,
            "server_options": clean.json(self.server_options),
            "sources": dict(self.sources),
            "disputed": clean.json(self.disputed),
            "url": clean.url(self.url),
            "models": [{**asdict(listed), "name": clean.model_name(listed.name)} for listed in self.models],
            "model": described,
            "model_name": columns["model"],
            "unread": None if self.unread is None else clean.line(self.unread),
        }
