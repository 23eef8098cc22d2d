"""What a sequence keeps while it runs: keys and values of every layer, and recurrent state."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Final

from roofbook.errors import EstimateError
from roofbook.theory.quantization import head_bytes
from roofbook.theory.shapes import Layer, LayerKind, Model, Range, Recurrent

_STATE_BYTES: Final = 4
"""Recurrent states are stored as F32 (llama.cpp, src/llama-hparams.cpp and its callers)."""

CELL_PAD: Final = 256
"""llama.cpp rounds the cells of a context up to this (src/llama-context.cpp, src/llama-kv-cache-iswa.cpp)."""


@dataclass(frozen=True)
class Slots:
    """llama.cpp and Ollama: every slot's context is reserved at the start, whatever the prompts are.

    Local layers hold the window and one ubatch (src/llama-kv-cache-iswa.cpp); *unified* slots share one pool of cells,
    *full_window* (--swa-full) gives local layers the whole context.
    """

    ubatch_tokens: int = 512
    unified: bool = False
    full_window: bool = False

    def global_cells(self, tokens: int, sequences: int) -> int:
        """Return the cells a global layer reserves for *sequences* of *tokens* each."""
        if self.unified:
            return _padded(tokens * sequences, CELL_PAD)
        return sequences * _padded(tokens, CELL_PAD)

    def local_cells(self, tokens: int, sequences: int, window_tokens: int) -> int:
        """Return the cells a local layer reserves for *sequences* of *tokens* each."""
        if self.full_window:
            return self.global_cells(tokens, sequences)
        if self.unified:
            wanted = window_tokens * sequences + self.ubatch_tokens
            return _padded(min(self.global_cells(tokens, sequences), wanted), CELL_PAD)
        return sequences * _padded(min(_padded(tokens, CELL_PAD), window_tokens + self.ubatch_tokens), CELL_PAD)


@dataclass(frozen=True)
class Pages:
    """vLLM: blocks handed out as a sequence grows (vllm/v1/kv_cache_interface.py).

    A local layer holds the window and what one step may add, and one block more, for a window seldom starts on a block.
    """

    block_tokens: int = 16
    batched_tokens: int = 2048

    def global_cells(self, tokens: int, sequences: int) -> int:
        """Return the cells a global layer hands to *sequences* of *tokens* each."""
        return sequences * _padded(tokens, self.block_tokens)

    def local_cells(self, tokens: int, sequences: int, window_tokens: int) -> int:
        """Return the cells a local layer hands to *sequences* of *tokens* each."""
        held = min(window_tokens - 1 + self.batched_tokens, tokens)
        return sequences * (_padded(held, self.block_tokens) + self.block_tokens)


Cells = Slots | Pages


def cache_bytes(
    model: Model, tokens: int, kv_type: str | None, *, sequences: int = 1, cells: Cells | None = None
) -> Range:
    """Return the bytes that *sequences* of *tokens* each (prompt and output) take.

    *cells* None counts the tokens alone, without any engine's rounding. An unknown *kv_type* gives a range.
    Raises EstimateError where a layer's heads or the window are missing.
    """
    if cells is None:
        far, near = sequences * tokens, sequences * min(tokens, _window(model, tokens))
    else:
        far = cells.global_cells(tokens, sequences)
        near = cells.local_cells(tokens, sequences, _window(model, tokens))
    kept = token_bytes(model, kv_type, "global") * far
    if model.count("local"):
        kept = kept + token_bytes(model, kv_type, "local") * near
    return kept + sequences * state_bytes(model)


@cache  # asked for at every length and number of requests
def token_bytes(model: Model, kv_type: str | None, kind: LayerKind = "global") -> Range:
    """Return the bytes that one token adds to all layers of *kind*.

    Heads share keys and values (GQA): layers x KV heads x (key + value dimension). MLA keeps one latent vector of
    kv_rank + rope_dim a layer and no values (llama.cpp's K-only cache, vLLM's MLAAttentionSpec).
    """
    if model.layers is None:
        raise EstimateError("Cannot estimate the KV cache of %(model)s: layers are missing", model=model.id)
    total = Range.of(0)
    for layer in model.layers:
        if layer.kind == kind and kind != "recurrent":
            total = total + _layer_bytes(model, layer, kv_type)
    return total


def state_bytes(model: Model) -> int:
    """Return the bytes of all recurrent layers' state of one sequence, which no token adds to."""
    layers = model.count("recurrent")
    if not layers:
        return 0
    if model.recurrent is None:
        raise EstimateError("Cannot estimate the state of %(model)s: recurrent is missing", model=model.id)
    return layers * _STATE_BYTES * (model.recurrent.state_elements + model.recurrent.conv_elements)


def mamba_state(inner: int, state: int, conv: int, groups: int = 0) -> Recurrent:
    """Return a Mamba layer's state: *inner* x *state*, and conv - 1 columns of its convolution's input.

    Mamba-2 convolves B and C of *groups* groups too (llama.cpp, src/llama-hparams.cpp); Mamba-1 has 0.
    """
    return Recurrent(inner * state, (conv - 1) * (inner + 2 * groups * state))


def delta_state(key_heads: int, value_heads: int, key_dim: int, value_dim: int, conv: int) -> Recurrent:
    """Return the state of a gated delta-net layer (Qwen3-Next): a matrix for each value head."""
    channels = 2 * key_heads * key_dim + value_heads * value_dim
    return Recurrent(value_heads * key_dim * value_dim, (conv - 1) * channels)


def _layer_bytes(model: Model, layer: Layer, kv_type: str | None) -> Range:
    if model.mla is not None:
        return head_bytes(kv_type, model.mla.kv_rank + model.mla.rope_dim, 0)
    if layer.kv_heads == 0:
        return Range.of(0)
    if layer.kv_heads is None or layer.key_dim is None or layer.value_dim is None:
        lacking = [name for name in ("kv_heads", "key_dim", "value_dim") if getattr(layer, name) is None]
        raise EstimateError(
            "Cannot estimate the KV cache of %(model)s: %(keys)s missing",
            model=model.id,
            keys=", ".join(f"layers.{name}" for name in lacking),
        )
    return head_bytes(kv_type, layer.key_dim, layer.value_dim) * layer.kv_heads


def _window(model: Model, tokens: int) -> int:
    if not model.count("local"):
        return tokens
    if model.window_tokens is None:
        raise EstimateError("Cannot estimate the KV cache of %(model)s: window_tokens is missing", model=model.id)
    return model.window_tokens


def _padded(tokens: int, step: int) -> int:
    return math.ceil(tokens / step) * step
