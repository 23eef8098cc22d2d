"""The numbers that budgets and ceilings are made of, for whoever combines them elsewhere: the site's calculators.

Nothing is computed here that the other modules do not say; what they cannot say is None.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from roofbook.errors import EstimateError
from roofbook.theory.kv import cache_bytes, state_bytes
from roofbook.theory.shapes import LayerKind, Model, Range
from roofbook.theory.weights import Weights, head_params, matmul_params, weights
from roofbook.theory.work import pair_flops

Found = TypeVar("Found")


@dataclass(frozen=True)
class KeptHeads:
    """*heads* pairs of a key and a value vector that one token adds to all layers of a kind; dimensions in elements.

    MLA's latent vector is a key without a value, one a layer.
    """

    heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True)
class Kept:
    """What one sequence keeps: heads of the layers that look at every token, of the local ones, recurrent state."""

    global_heads: tuple[KeptHeads, ...]
    local_heads: tuple[KeptHeads, ...]
    local_layers: int
    window_tokens: int | None
    state_bytes: int


@dataclass(frozen=True)
class ModelCoefficients:
    """A model's shape as sums: *pair_flops* are FLOPs of one query token with one kept token, by kind of layer."""

    kept: Kept | None
    matmul_params: Range | None
    head_params: int | None
    global_pair_flops: float | None
    local_pair_flops: float | None
    global_layers: int
    local_layers: int
    window_tokens: int | None
    experts: int | None
    experts_used: int | None
    context_limit_tokens: int | None


def model_coefficients(model: Model) -> ModelCoefficients:
    """Return the sums of *model*; a part that its known dimensions do not give is None."""
    return ModelCoefficients(
        kept=_known(lambda: _kept(model)),
        matmul_params=_known(lambda: matmul_params(model)),
        head_params=head_params(model),
        global_pair_flops=_known(lambda: pair_flops(model, "global")),
        local_pair_flops=_known(lambda: pair_flops(model, "local")),
        global_layers=model.count("global") or 0,
        local_layers=model.count("local") or 0,
        window_tokens=model.window_tokens,
        experts=None if model.moe is None else model.moe.experts,
        experts_used=None if model.moe is None else model.moe.used,
        context_limit_tokens=model.context_limit_tokens,
    )


@lru_cache(maxsize=2048)
def weights_or_none(model: Model) -> Weights | None:
    """Return the weights of *model* in its own quantization; None where they cannot be estimated."""
    return _known(lambda: weights(model))


def _kept(model: Model) -> Kept:
    cache_bytes(model, 1, "f16")  # raises where a head, the window or the state is not known
    return Kept(
        _heads(model, "global"), _heads(model, "local"), model.count("local") or 0, model.window_tokens,
        state_bytes(model),
    )  # fmt: skip


def _heads(model: Model, kind: LayerKind) -> tuple[KeptHeads, ...]:
    heads: Counter[tuple[int, int]] = Counter()
    for layer in model.layers or ():
        if layer.kind != kind:
            continue
        if model.mla is not None:
            heads[model.mla.kv_rank + model.mla.rope_dim, 0] += 1
        elif layer.kv_heads:
            heads[layer.key_dim or 0, layer.value_dim or 0] += layer.kv_heads
    return tuple(KeptHeads(count, key_dim, value_dim) for (key_dim, value_dim), count in heads.items())


def _known(counted: Callable[[], Found]) -> Found | None:
    try:
        return counted()
    except EstimateError:
        return None
