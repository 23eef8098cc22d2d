"""How many floating-point operations a prefill or a decode step takes. A multiplication and its addition are two."""

import math
from dataclasses import dataclass

from roofbook.errors import EstimateError
from roofbook.theory.shapes import Layer, LayerKind, Model, Range
from roofbook.theory.weights import head_params, matmul_params


@dataclass(frozen=True)
class PrefillWork:
    """FLOPs of one prefill by part: the layers' matrices, the output matrix for the last token, attention.

    Attention that the model's known dimensions do not give is open: 0 to infinity.
    """

    linear: Range
    head: Range
    attention: Range

    @property
    def total(self) -> Range:
        return self.linear + self.head + self.attention


def prefill_work(
    model: Model, prompt_tokens: int, cached_tokens: int = 0, *, chunk_tokens: int | None = None
) -> PrefillWork:
    """Return the FLOPs of a prompt whose first *cached_tokens* are in the cache already.

    2 N (T-P) for the matrices, 2 h V once, and for each pair of tokens and query head 2 (key + value dimension):
    queries are not shared, so GQA saves bytes and no attention FLOPs. Causal attention has (T^2 - P^2) / 2 pairs; in
    chunks of *chunk_tokens* every token of a chunk meets the whole chunk, (T^2 + uT) / 2 at P = 0. A local layer of
    window w counts min(t, w) for token t. Raises EstimateError where the multiplied weights are not known.
    """
    table = head_params(model)
    return PrefillWork(
        linear=matmul_params(model) * (2 * (prompt_tokens - cached_tokens)),
        # Where the table is not known, matmul_params may hold it already.
        head=Range.of(0) if table is None else Range.of(2 * table),
        attention=_attention(model, prompt_tokens, cached_tokens, chunk_tokens),
    )


def decode_flops(model: Model, context_tokens: int = 0, batch: int = 1) -> Range:
    """Return the FLOPs of one decode step of *batch* sequences, each with *context_tokens* behind it."""
    table = head_params(model) or 0
    flops = (matmul_params(model) + table) * 2
    for kind in ("global", "local"):
        flops = flops + _open_pair_flops(model, kind) * _seen(model, kind, context_tokens)
    return flops * batch


def pair_flops(model: Model, kind: LayerKind) -> float:
    """Return the FLOPs of one query token with one kept token in all layers of *kind*: 2 heads (d_key + d_value) each.

    MLA multiplies decompressed keys of nope + rope dimensions and values of its own. Raises EstimateError where heads
    or dimensions are missing.
    """
    if model.layers is None:
        raise EstimateError("Cannot count the attention of %(model)s: layers are missing", model=model.id)
    return sum(_layer_pair_flops(model, layer) for layer in model.layers if layer.kind == kind)


def _layer_pair_flops(model: Model, layer: Layer) -> float:
    if layer.kind == "recurrent" or layer.kv_heads == 0:
        return 0.0
    key_dim, value_dim = layer.key_dim, layer.value_dim
    if model.mla is not None:
        key_dim, value_dim = model.mla.nope_dim + model.mla.rope_dim, model.mla.value_dim
    if layer.heads is None or key_dim is None or value_dim is None:
        raise EstimateError(
            "Cannot count the attention of %(model)s: layers.heads, layers.key_dim or layers.value_dim is missing",
            model=model.id,
        )
    return 2.0 * layer.heads * (key_dim + value_dim)


def _open_pair_flops(model: Model, kind: LayerKind) -> Range:
    try:
        return Range.of(pair_flops(model, kind))
    except EstimateError:
        return Range(0, math.inf)


def _seen(model: Model, kind: LayerKind, context_tokens: int) -> int:
    """Return how many kept tokens a layer of *kind* looks at."""
    if kind == "local" and model.window_tokens is not None:
        return min(context_tokens, model.window_tokens)
    return context_tokens


def _attention(model: Model, prompt_tokens: int, cached_tokens: int, chunk_tokens: int | None) -> Range:
    if prompt_tokens == cached_tokens:
        return Range.of(0)
    flops = Range.of(0)
    for kind in ("global", "local"):
        if model.layers is None or model.count(kind):
            window = model.window_tokens if kind == "local" else None
            flops = flops + _open_pair_flops(model, kind) * _pairs(prompt_tokens, cached_tokens, chunk_tokens, window)
    return flops


def _pairs(prompt_tokens: int, cached_tokens: int, chunk_tokens: int | None, window_tokens: int | None) -> float:
    """Return the pairs of query and kept token of one layer."""
    if chunk_tokens is None:
        return _causal_pairs(prompt_tokens, window_tokens) - _causal_pairs(cached_tokens, window_tokens)
    pairs = 0
    for start in range(cached_tokens, prompt_tokens, chunk_tokens):
        end = min(start + chunk_tokens, prompt_tokens)
        seen = end if window_tokens is None else min(end, window_tokens + end - start)
        pairs += (end - start) * seen
    return pairs


def _causal_pairs(tokens: int, window_tokens: int | None) -> float:
    if window_tokens is None or tokens <= window_tokens:
        return tokens**2 / 2
    return window_tokens * tokens - window_tokens**2 / 2
