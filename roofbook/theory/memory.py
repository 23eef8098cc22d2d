"""Does it fit, how many at once, what runs out first: weights, caches, buffers and reserve against a limit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from roofbook.errors import EstimateError
from roofbook.theory.counts import most
from roofbook.theory.kv import Cells, cache_bytes
from roofbook.theory.limits import Limit
from roofbook.theory.shapes import NOTHING, Model, Range
from roofbook.units import GIB

RESERVE_BYTES: Final = Range(1 * GIB, 2 * GIB)
"""What a machine holds besides the model: its desktop, the engine's buffers and graphs. An assumption, never a fact."""

VLLM_SHARE: Final = 0.92
"""vLLM's gpu_memory_utilization when nobody sets it (0.9 before 2026)."""
VLLM_PEAK_BYTES: Final = Range(0.5 * GIB, 1.5 * GIB)
"""What vLLM's profiling run keeps back for activations and CUDA graphs: an assumption, for some 7e9 weights."""


@dataclass(frozen=True)
class Budget:
    """The items of a machine's memory in bytes, each a range where it is not known to the byte."""

    limit: Limit
    weights_bytes: Range
    kv_bytes: Range = NOTHING
    compute_bytes: Range = NOTHING
    projector_bytes: Range = NOTHING
    reserve_bytes: Range = NOTHING

    @property
    def fixed_bytes(self) -> Range:
        """All but the caches: what is held before the first sequence."""
        return self.weights_bytes + self.compute_bytes + self.projector_bytes + self.reserve_bytes

    @property
    def needed_bytes(self) -> Range:
        return self.fixed_bytes + self.kv_bytes

    @property
    def spare_bytes(self) -> Range:
        """What is left; below 0, what is lacking."""
        return self.limit.limit_bytes - self.needed_bytes

    @property
    def fits(self) -> bool | None:
        """True or False where that is certain, None where it depends on what is not known."""
        spare = self.spare_bytes
        if spare.low >= 0:
            return True
        return False if spare.high < 0 else None

    def sequences(self, caches: Callable[[int], Range]) -> Range:
        """Return how many sequences fit beside all but the caches, where *caches* says the bytes of so many."""
        pool = self.limit.limit_bytes - self.fixed_bytes
        return Range(
            most(lambda count: caches(count).high <= pool.low), most(lambda count: caches(count).low <= pool.high)
        )


def sequences_that_fit(budget: Budget, model: Model, tokens: int, kv_type: str | None, cells: Cells) -> Range:
    """Return how many sequences of *tokens* (prompt and output) fit at once: as slots or as pages, by *cells*.

    Raises EstimateError where the model's cache is not known.
    """
    return budget.sequences(lambda count: cache_bytes(model, tokens, kv_type, sequences=count, cells=cells))


def paged_budget(
    card_bytes: float,
    weights_bytes: Range,
    *,
    share: float = VLLM_SHARE,
    peak_bytes: Range = VLLM_PEAK_BYTES,
    projector_bytes: Range = NOTHING,
) -> Budget:
    """Return the budget of a vLLM server: *share* of the card, less weights and what its profiling run keeps back."""
    limit = Limit(Range.of(card_bytes * share), "share")
    return Budget(limit, weights_bytes, compute_bytes=peak_bytes, projector_bytes=projector_bytes)


Scarcity = Literal["context", "weights", "memory", "slots", "arithmetic"]
"""What runs out first: the model's context, memory before the first sequence, memory for more sequences, the server's
slots, or the arithmetic rate (more sequences fit, but decode gains nothing from them)."""


def runs_out_first(
    budget: Budget,
    sequences: Range,
    *,
    tokens: int,
    context_limit_tokens: int | None = None,
    slots: int | None = None,
    crossover_batch: Range | None = None,
) -> Scarcity:
    """Return what ends first as sequences of *tokens* are added; of ranges, what ends first at their lower end."""
    if context_limit_tokens is not None and tokens > context_limit_tokens:
        return "context"
    if (budget.limit.limit_bytes - budget.fixed_bytes).low < 0:
        return "weights"
    ends: list[tuple[float, Scarcity]] = [(sequences.low, "memory")]
    if slots is not None:
        ends.append((slots, "slots"))
    if crossover_batch is not None:
        ends.append((crossover_batch.low, "arithmetic"))
    return min(ends)[1]


def compute_buffer(
    model: Model, context_tokens: int, *, ubatch_tokens: int = 512, flash_attention: bool | None = None
) -> Range:
    """Return the bytes of llama.cpp's compute buffer: logits and hidden states of one ubatch, in F32.

    The least is what logs show with flash attention (Llama 3 8B: 258.5 MiB); without it the attention scores of one
    layer come on top at most. Unknown flash attention spans both. Raises EstimateError where dimensions are missing.
    """
    if model.hidden is None or model.vocab is None:
        raise EstimateError(
            "Cannot estimate the compute buffer of %(model)s: hidden or vocab is missing", model=model.id
        )
    least = 4 * ubatch_tokens * (model.vocab + model.hidden)
    if flash_attention:
        return Range.of(least)
    heads = max((layer.heads or 0 for layer in model.layers or ()), default=0)
    scores = 4 * ubatch_tokens * context_tokens * heads
    return Range(least, least + scores)
