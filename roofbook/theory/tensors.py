"""The weight tensors of a model, from its dimensions: names as in GGUF, shapes as they are stored."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from roofbook.errors import EstimateError
from roofbook.theory.shapes import Layer, Mla, Model, Moe

Role = Literal[
    "token_embd", "output", "attn_q", "attn_k", "attn_v", "attn_qkv", "attn_kv_b", "attn_output", "attn_other",
    "ffn_gate", "ffn_up", "ffn_down", "router", "vector",
]  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """One tensor: *copies* matrices (experts) of *rows* rows, each of *columns* values, which lie side by side."""

    role: Role
    columns: int
    rows: int = 1
    copies: int = 1
    layer: int | None = None
    routed: bool = False
    """True for the experts that a token may pass by."""

    @property
    def elements(self) -> int:
        return self.columns * self.rows * self.copies

    @property
    def matrix(self) -> bool:
        """True for what multiplies a token's vector, the router included; False for norms, biases and the like."""
        return self.role not in ("vector", "token_embd")


@dataclass(frozen=True)
class Layout:
    """How an architecture's blocks differ from Llama's: what its vectors are, and what it keeps in one matrix."""

    norms: int = 2
    """Norms of the hidden width in each block."""
    qk_norm: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    sinks: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    shared_gate: bool = False
    """A vector that weighs the shared expert."""
    fused: bool = False
    """Queries, keys and values are one matrix, as in Phi-3."""


# Read from the loaders of llama.cpp (src/llama-model.cpp) and of transformers, architecture by architecture.
LAYOUTS: Final = {
    "llama": Layout(),
    "mistral3": Layout(),
    "granite": Layout(),
    "gemma": Layout(),
    "qwen2": Layout(qkv_bias=True),
    "qwen2moe": Layout(qkv_bias=True, shared_gate=True),
    "qwen3": Layout(qk_norm=True),
    "qwen3moe": Layout(qk_norm=True),
    "gemma2": Layout(norms=4),
    "gemma3": Layout(norms=4, qk_norm=True),
    "phi3": Layout(fused=True),
    "gpt-oss": Layout(qkv_bias=True, output_bias=True, sinks=True, router_bias=True, expert_bias=True),
    "deepseek2": Layout(router_bias=True),
}

# Hugging Face's model_type, where it is not GGUF's architecture.
_ALIASES: Final = {
    "mistral": "llama",
    "mixtral": "llama",
    "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
    "gemma3_text": "gemma3",
    "gpt_oss": "gpt-oss",
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
}


def layout_of(architecture: str | None) -> Layout | None:
    """Return the layout of *architecture* (GGUF's or Hugging Face's name), None where it is not known."""
    if architecture is None:
        return None
    return LAYOUTS.get(_ALIASES.get(architecture, architecture))


def missing_keys(model: Model) -> tuple[str, ...]:
    """Return the names of the fields that ``tensors`` needs and *model* lacks."""
    missing = [] if layout_of(model.architecture) else ["architecture"]
    missing += [name for name in ("layers", "hidden", "vocab", "tied") if getattr(model, name) is None]
    layers = model.layers or ()
    if any(layer.kind == "recurrent" for layer in layers):
        missing.append("tensors of recurrent layers")
    if any(not layer.experts for layer in layers) and model.ffn is None:
        missing.append("ffn")
    if any(layer.experts for layer in layers) and (model.moe is None or model.moe.expert_ffn is None):
        missing.append("moe.expert_ffn")
    if model.mla is None:
        for name in ("heads", "kv_heads", "key_dim", "value_dim"):
            if any(getattr(layer, name) is None for layer in layers if layer.kind != "recurrent"):
                missing.append(f"layers.{name}")
    elif any(layer.heads is None for layer in layers):
        missing.append("layers.heads")
    return tuple(missing)


@lru_cache(maxsize=256)
def tensors(model: Model) -> tuple[Tensor, ...]:
    """Return every tensor of *model*, in the order of the file.

    Raises EstimateError where its architecture is not known or a dimension is missing, and names them.
    """
    missing = missing_keys(model)
    layout = layout_of(model.architecture)
    if missing or layout is None:
        raise EstimateError(
            "Cannot estimate the weights of %(model)s: %(keys)s missing or unknown. "
            "Give its GGUF file or the bytes of its tensors",
            model=model.id,
            keys=", ".join(missing),
        )
    return tuple(_all_tensors(model, layout))


def _all_tensors(model: Model, layout: Layout) -> Iterator[Tensor]:
    hidden, vocab, layers = model.hidden or 0, model.vocab or 0, model.layers or ()
    yield Tensor("token_embd", hidden, vocab)
    if model.rope_factors:
        yield Tensor("vector", model.rope_factors)
    for index, layer in enumerate(layers):
        yield Tensor("vector", hidden, copies=layout.norms, layer=index)
        if model.mla is not None:
            yield from _latent_attention(hidden, layer.heads or 0, model.mla, index)
        else:
            yield from _attention(hidden, layer, layout, index)
        if layer.experts and model.moe is not None:
            yield from _experts(hidden, model.moe, layout, index)
        else:
            yield from _feed_forward(hidden, model.ffn or 0, index)
    yield Tensor("vector", hidden)
    if not model.tied:
        yield Tensor("output", hidden, vocab)


def _attention(hidden: int, layer: Layer, layout: Layout, index: int) -> Iterator[Tensor]:
    heads, kv_heads = layer.heads or 0, layer.kv_heads or 0
    if kv_heads == 0:
        return
    query_rows, key_rows = heads * (layer.key_dim or 0), kv_heads * (layer.key_dim or 0)
    value_rows, mixed = kv_heads * (layer.value_dim or 0), heads * (layer.value_dim or 0)
    if layout.fused:
        yield Tensor("attn_qkv", hidden, query_rows + key_rows + value_rows, layer=index)
    else:
        yield Tensor("attn_q", hidden, query_rows, layer=index)
        yield Tensor("attn_k", hidden, key_rows, layer=index)
        yield Tensor("attn_v", hidden, value_rows, layer=index)
    yield Tensor("attn_output", mixed, hidden, layer=index)
    vectors = 0
    vectors += (query_rows + key_rows + value_rows) if layout.qkv_bias else 0
    vectors += hidden if layout.output_bias else 0
    vectors += 2 * (layer.key_dim or 0) if layout.qk_norm else 0
    vectors += heads if layout.sinks else 0
    if vectors:
        yield Tensor("vector", vectors, layer=index)


def _latent_attention(hidden: int, heads: int, mla: Mla, index: int) -> Iterator[Tensor]:
    """Yield the projections of MLA: down to the latent ranks, and up again for each head."""
    query_rows = heads * (mla.nope_dim + mla.rope_dim)
    if mla.query_rank is None:
        yield Tensor("attn_q", hidden, query_rows, layer=index)
    else:
        yield Tensor("attn_other", hidden, mla.query_rank, layer=index)
        yield Tensor("attn_other", mla.query_rank, query_rows, layer=index)
        yield Tensor("vector", mla.query_rank, layer=index)
    yield Tensor("attn_other", hidden, mla.kv_rank + mla.rope_dim, layer=index)
    yield Tensor("vector", mla.kv_rank, layer=index)
    yield Tensor("attn_kv_b", mla.kv_rank, heads * (mla.nope_dim + mla.value_dim), layer=index)
    yield Tensor("attn_output", heads * mla.value_dim, hidden, layer=index)


def _feed_forward(hidden: int, width: int, index: int) -> Iterator[Tensor]:
    yield Tensor("ffn_gate", hidden, width, layer=index)
    yield Tensor("ffn_up", hidden, width, layer=index)
    yield Tensor("ffn_down", width, hidden, layer=index)


def _experts(hidden: int, moe: Moe, layout: Layout, index: int) -> Iterator[Tensor]:
    width = moe.expert_ffn or 0
    yield Tensor("router", hidden, moe.experts, layer=index)
    yield Tensor("ffn_gate", hidden, width, moe.experts, layer=index, routed=True)
    yield Tensor("ffn_up", hidden, width, moe.experts, layer=index, routed=True)
    yield Tensor("ffn_down", width, hidden, moe.experts, layer=index, routed=True)
    if moe.shared_ffn:
        yield from _feed_forward(hidden, moe.shared_ffn, index)
        if layout.shared_gate:
            yield Tensor("vector", hidden, layer=index)
    if layout.router_bias:
        yield Tensor("vector", moe.experts, layer=index)
    if layout.expert_bias:
        yield Tensor("vector", 2 * width + hidden, copies=moe.experts, layer=index, routed=True)
