"""What is known of a server: the columns of the contract that it fills, each with where it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from roofbook.record import Row

Source = Literal["api", "process", "stated"]
"""Who said it: the server, its process line, or the plan's author."""

Api = Literal["ollama", "llamacpp", "openai", "sse"]


@dataclass(frozen=True)
class ListedModel:
    """A model that the server names; *loaded* is null where it does not tell."""

    name: str
    size_bytes: int | None = None
    loaded: bool | None = None
    digest: str | None = None


@dataclass(frozen=True)
class ServerFacts:
    """A server as it stands; null is unknown. Every text in it has passed the scrubber, *url* and *model* aside."""

    api: Api
    url: str
    """Where to send to; scheme, host and port only."""
    server: str | None = None
    """What it is: ollama, llama.cpp, vllm, lm-studio, mlx_lm, sglang; null for one that only speaks the API."""
    server_version: str | None = None
    model: str | None = None
    """The model's name as the server wants it in a request; `columns` gives the base name."""
    models: tuple[ListedModel, ...] = ()
    model_digest: str | None = None
    quantization: str | None = None
    weights_bytes: int | None = None
    kv_cache_type: str | None = None
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
    stated: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the plan states; it fills what is unknown and never overrides what the server says."""
    disputed: Mapping[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    """Column -> (what the server says, what the plan states), where the two differ."""
    description: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The model as the server describes it: what `roofbook.readers` turns into a Model."""
    host_is_server: bool | None = None

    def columns(self) -> Row:
        """Return the row's columns that the server fills, ready for the record."""
        raise NotImplementedError

    def as_json(self) -> dict[str, Any]:
        """Return all of it as a JSON object for the run's metadata."""
        raise NotImplementedError
