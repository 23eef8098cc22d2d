"""This machine: what it is, what it can do, and what it is doing while a request runs; nothing personal."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from roofbook.record import Row


@dataclass(frozen=True)
class Gpu:
    """A GPU, or the part of an SoC; memory_bytes is null where it shares the machine's."""

    name: str
    memory_bytes: int | None = None
    cores: int | None = None
    driver: str | None = None


@dataclass(frozen=True)
class MemoryLimit:
    """What the GPU may use, in bytes, and who says so; *estimated* where only a rule of thumb does."""

    bytes: int
    source: str
    estimated: bool


@dataclass(frozen=True)
class HostFacts:
    """A machine as the run's metadata keeps it."""

    machine: str
    """An id of the catalogue where chip and memory match one, else a slug of chip, cores and memory."""
    chip: str | None
    cores: int | None
    memory_bytes: int | None
    os: str
    os_version: str
    gpus: tuple[Gpu, ...]
    gpu_memory_limit: MemoryLimit | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Ceiling:
    """A measured rate of this machine: its median, its spread and how often it was measured."""

    median: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Ceilings:
    """What this machine's CPU reaches: these are no figures of a GPU."""

    device: str  # always "cpu"
    read_bytes_per_s: Ceiling
    float32_flop_per_s: Ceiling
    threads: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def facts(facts_folder: Path | None = None, *, engine_log: str | None = None) -> HostFacts:
    """Return what this machine is; *facts_folder* (data/facts) gives it its id where the catalogue has it."""
    raise NotImplementedError


def ceilings() -> Ceilings:
    """Measure the memory-read bandwidth and the float32 matrix rate of this machine's CPU; takes a few seconds."""
    raise NotImplementedError


class Sampler:
    """What the machine is doing, as columns of a row; made once a run, cheap enough to call per request."""

    def sample(self) -> Row:
        """Return swap_in_bytes, memory_free_bytes, thermal_level, power_source, gpu_power_w, gpu_clock_mhz and
        throttle_reason; null where unreadable. swap_in_bytes counts since the sample before."""
        raise NotImplementedError


class KeepAwake:
    """A context manager: while it is open, the machine does not go to sleep by itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None
