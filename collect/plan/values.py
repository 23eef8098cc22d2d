"""What a plan says, as values: everything resolved, every default filled in."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from roofbook.errors import PlanError

Api = Literal["ollama", "llamacpp", "openai", "sse", "embedded", "auto"]
Order = Literal["shuffled", "interleaved", "as_written"]
Connection = Literal["fresh", "reused"]
Kind = Literal["baseline", "prefill_curve", "cold_load", "prefix_cache", "concurrency", "request_rate", "soak"]
Option = str | int | float | bool | None

APIS: Final = ("ollama", "llamacpp", "openai", "sse", "embedded", "auto")
ORDERS: Final = ("shuffled", "interleaved", "as_written")
CONNECTIONS: Final = ("fresh", "reused")
KINDS: Final = ("baseline", "prefill_curve", "cold_load", "prefix_cache", "concurrency", "request_rate", "soak")
KINDS_NOT_BUILT: Final = ("prefix_cache", "request_rate", "soak")
ARRIVALS: Final = ("poisson", "constant")


@dataclass(frozen=True)
class Anchor:
    """The cell that is measured again at the start, after *every* requests and at the end: what drifts shows there."""

    prompt_tokens: int = 512
    output_tokens: int = 32
    every: int = 10


@dataclass(frozen=True)
class RunSettings:
    """How requests are sent; *seed* None is drawn when the run starts, *anchor* None means no anchor."""

    order: Order = "shuffled"
    seed: int | None = None
    warmups: int = 1
    repeats: int = 5
    pause_s: float = 0.0
    timeout_s: float = 600.0
    connection: Connection = "fresh"
    anchor: Anchor | None = field(default_factory=Anchor)


@dataclass(frozen=True)
class ServerWanted:
    """The server a plan asks for; *stated* holds what only the user knows."""

    api: Api = "auto"
    url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    stated: Mapping[str, Option] = field(default_factory=dict[str, Option])


@dataclass(frozen=True)
class Slo:
    """The service level wanted: *share* of the requests within *ttft_ms* and *tpot_ms*."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    share: float = 0.95


@dataclass(frozen=True)
class Experiment:
    """One series: which cells it has, and the settings they are measured with."""

    name: str
    kind: Kind
    prompt_tokens: tuple[int, ...]
    output_tokens: int
    run: RunSettings
    model: str | None
    options: Mapping[str, Option]
    concurrency: tuple[int, ...] = (1,)
    requests: int | None = None
    shared_share: tuple[float, ...] = ()
    rate_per_s: tuple[float, ...] = ()
    arrival: str | None = None
    duration_s: float | None = None
    max_in_flight: int | None = None

    @property
    def longest_tokens(self) -> int:
        """The most tokens, prompt and output, that one of its requests needs."""
        return max(self.prompt_tokens) + self.output_tokens


@dataclass(frozen=True)
class Plan:
    """One experiment series; *warnings* are doubts about the plan itself, told before anything is sent."""

    plan: str
    machine: str
    server: ServerWanted
    run: RunSettings
    slo: Slo | None
    experiments: tuple[Experiment, ...]
    warnings: tuple[PlanError, ...] = field(default=(), compare=False)

    @property
    def longest_tokens(self) -> int:
        """The most tokens that one request of the plan needs, its anchors included."""
        anchors = [
            one.run.anchor.prompt_tokens + one.run.anchor.output_tokens for one in self.experiments if one.run.anchor
        ]
        return max([*(one.longest_tokens for one in self.experiments), *anchors])

    @property
    def most_concurrency(self) -> int:
        return max(max(one.concurrency) for one in self.experiments)

    def as_dict(self) -> dict[str, Any]:
        """Return the resolved plan as JSON-able values, without its warnings."""
        described = asdict(replace(self, warnings=()))  # an error cannot be copied field by field
        del described["warnings"]
        return described
