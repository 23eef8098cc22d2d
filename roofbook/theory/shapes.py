"""The nouns of the theory: a range, a model, a machine. Whatever nobody said is None; nothing here is computed."""

from dataclasses import dataclass, field
from typing import Final, Literal, Self


@dataclass(frozen=True)
class Range:
    """A quantity between *low* and *high*, both included; a known one has the two equal."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"a range from {self.low} to {self.high}")

    @classmethod
    def of(cls, value: float) -> Self:
        """Return the range that holds *value* alone."""
        return cls(value, value)

    @property
    def known(self) -> bool:
        """True where the two ends are one number."""
        return self.low == self.high

    def __add__(self, other: "Range | float") -> "Range":
        added = as_range(other)
        return Range(self.low + added.low, self.high + added.high)

    def __sub__(self, other: "Range | float") -> "Range":
        taken = as_range(other)
        return Range(self.low - taken.high, self.high - taken.low)

    def __mul__(self, factor: float) -> "Range":
        if factor == 0:  # of an open range too: infinity times nothing is nothing
            return Range(0, 0)
        ends = (self.low * factor, self.high * factor)
        return Range(min(ends), max(ends))


NOTHING: Final = Range(0, 0)


def as_range(value: "Range | float") -> Range:
    """Return *value* as a range."""
    return value if isinstance(value, Range) else Range.of(value)


LayerKind = Literal["global", "local", "recurrent"]


@dataclass(frozen=True)
class Layer:
    """One block: what it keeps of the past, and which heads it has. *kv_heads* 0: no attention at all.

    ``global`` layers attend to every token, ``local`` ones to the last ``Model.window_tokens``, ``recurrent`` ones keep
    a state of constant size (``Model.recurrent``). Dimensions are elements a head.
    """

    kind: LayerKind = "global"
    heads: int | None = None
    kv_heads: int | None = None
    key_dim: int | None = None
    value_dim: int | None = None
    experts: bool = False
    """True where the feed-forward part is the routed experts of ``Model.moe``, else it is the dense one."""


@dataclass(frozen=True)
class Mla:
    """Multi-head latent attention (DeepSeek V2 and V3, Kimi): sizes in elements; *query_rank* None: no compression."""

    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    query_rank: int | None = None


@dataclass(frozen=True)
class Moe:
    """Routed experts: *used* of *experts* a token, each of *expert_ffn* width; *shared_ffn*: the always-used one."""

    experts: int
    used: int
    expert_ffn: int | None = None
    shared_ffn: int = 0


@dataclass(frozen=True)
class Recurrent:
    """One recurrent layer's state of one sequence, in elements (see ``kv.mamba_state``, ``kv.delta_state``)."""

    state_elements: int
    conv_elements: int


@dataclass(frozen=True)
class Tensors:
    """What a real file or a server says about the weights; no rule and no guess."""

    quantization: str | None = None
    """As the file's author calls the mixture: Q4_K_M, F16, AWQ, MLX-4bit ..."""
    total_bytes: int | None = None
    """All tensors, without the file's metadata."""
    embedding_bytes: int | None = None
    """The input embedding table (GGUF: token_embd.weight)."""
    expert_bytes: int | None = None
    """The routed experts of all layers (GGUF: ffn_*_exps); 0 for a dense model."""
    file_bytes: int | None = None
    """On disk, the metadata included."""
    device_bytes: int | None = None
    """The buffer the engine says it holds on the device."""
    projector_bytes: int | None = None
    """The vision or audio projector beside the model (mmproj); 0 where there is none."""


@dataclass(frozen=True)
class Model:
    """One model's shape. Sizes in elements; *params* counts every weight, *active_params* those one token uses.

    Both with the input embedding, as models are published (30B-A3B: 30.5e9 and 3.3e9).
    """

    id: str
    architecture: str | None = None
    """As GGUF's general.architecture says it: llama, qwen2, qwen3, qwen3moe, gemma3, phi3, gpt-oss, deepseek2 ..."""
    layers: tuple[Layer, ...] | None = None
    hidden: int | None = None
    ffn: int | None = None
    """Width of the dense feed-forward part."""
    vocab: int | None = None
    tied: bool | None = None
    """True where the output matrix is the input embedding."""
    window_tokens: int | None = None
    """How far back a local layer looks."""
    mla: Mla | None = None
    moe: Moe | None = None
    recurrent: Recurrent | None = None
    context_limit_tokens: int | None = None
    rope_factors: int = 0
    """F32 elements of rotary factors in a GGUF file (Llama 3.1 and later: half a head's dimension, else mostly 0)."""
    params: int | None = None
    active_params: int | None = None
    tensors: Tensors = field(default_factory=Tensors)

    def count(self, kind: LayerKind) -> int | None:
        """Return how many layers are of *kind*."""
        return None if self.layers is None else sum(layer.kind == kind for layer in self.layers)


@dataclass(frozen=True)
class Peaks:
    """Dense arithmetic peaks in FLOP/s (INT8: operations/s), no sparsity; a disputed one is a range.

    *fp16* accumulates in fp32, as inference does; *fp16_acc16* in fp16 (GeForce: twice as fast).
    """

    fp32: Range | None = None
    fp16: Range | None = None
    fp16_acc16: Range | None = None
    int8: Range | None = None
    fp8: Range | None = None
    fp4: Range | None = None


@dataclass(frozen=True)
class Spread:
    """A measured figure: the median of *n* repeats and their extremes."""

    median: float
    low: float
    high: float
    n: int | None = None


@dataclass(frozen=True)
class Ceilings:
    """What somebody measured on this very kind of machine, with no language model: the second denominator."""

    bandwidth_bytes_per_s: Spread | None = None
    flops_per_s: Spread | None = None
    measured_on: Literal["gpu", "cpu"] = "gpu"
    source: str = ""


MemoryKind = Literal["unified", "discrete", "cpu"]


@dataclass(frozen=True)
class Chip:
    """One accelerator or processor as its datasheet has it."""

    id: str
    name: str = ""
    vendor: str | None = None
    """apple, nvidia, amd, intel, qualcomm ..."""
    memory_kind: MemoryKind | None = None
    memory_bytes: int | None = None
    """Of a discrete card, and of a unified chip sold with one size; a machine states its own."""
    bandwidth_bytes_per_s: Range | None = None
    peaks: Peaks = field(default_factory=Peaks)
    measured: Ceilings | None = None


@dataclass(frozen=True)
class Machine:
    """A chip in a box: *memory_bytes* is the pool that weights and KV cache share (GPU memory on a discrete card)."""

    id: str
    chip: Chip | None = None
    name: str = ""
    memory_bytes: int | None = None
    measured: Ceilings | None = None
    """Of this machine; else its chip's."""
    gpu_limit_bytes: int | None = None
    """What the system itself reports as the GPU's share (Metal's recommendedMaxWorkingSetSize)."""
    wired_limit_mib: int | None = None
    """macOS iogpu.wired_limit_mb, in MiB; 0: the system's default."""

    @property
    def ceilings(self) -> Ceilings | None:
        """The machine's own measured ceilings, else its chip's."""
        return self.measured if self.measured is not None or self.chip is None else self.chip.measured


@dataclass(frozen=True)
class MacLimit:
    """One observed limit: a Mac of *memory_bytes* on *macos* (15: and older) lets its GPU have *limit_bytes*."""

    macos: int
    memory_bytes: int
    limit_bytes: int
    source: str = ""
