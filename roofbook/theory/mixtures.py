"""Which block each tensor of a GGUF file gets: the mixtures of llama.cpp (src/llama-quant.cpp)."""

from dataclasses import dataclass
from typing import Final

from roofbook.theory.quantization import BLOCKS
from roofbook.theory.shapes import Layer, Model
from roofbook.theory.tensors import Tensor

# The block that a mixture is named after.
MIXTURES: Final = {
    "F32": "F32",
    "F16": "F16",
    "BF16": "BF16",
    "Q4_0": "Q4_0",
    "Q4_1": "Q4_1",
    "Q5_0": "Q5_0",
    "Q5_1": "Q5_1",
    "Q8_0": "Q8_0",
    "Q2_K": "Q2_K",
    "Q3_K_S": "Q3_K",
    "Q3_K_M": "Q3_K",
    "Q3_K_L": "Q3_K",
    "Q4_K_S": "Q4_K",
    "Q4_K_M": "Q4_K",
    "Q5_K_S": "Q5_K",
    "Q5_K_M": "Q5_K",
    "Q6_K": "Q6_K",
    "IQ4_NL": "IQ4_NL",
    "IQ4_XS": "IQ4_XS",
    "MXFP4_MOE": "Q8_0",
}
_UNQUANTIZED: Final = ("F32", "F16", "BF16")

# Rows whose length is no multiple of 256 cannot be cut into K blocks.
_FALLBACKS: Final = {
    "Q2_K": "Q4_0",
    "Q3_K": "Q4_0",
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
    "IQ4_XS": "IQ4_NL",
}


@dataclass(frozen=True)
class Maker:
    """What the rules ask about whoever made the file, and the file's name does not say."""

    imatrix: bool = False
    """An importance matrix was used."""
    fused_like_values: bool = False
    """A fused QKV matrix follows the rule of the values (llama.cpp since 2026), not one of its own (before)."""


MAKERS: Final = tuple(Maker(imatrix, fused) for imatrix in (False, True) for fused in (False, True))


def gguf_bytes(tensor: Tensor, mixture: str, model: Model, maker: Maker) -> int:
    """Return the bytes of *tensor* in a file of *mixture*, to the byte."""
    block = BLOCKS[block_name(tensor, mixture, model, maker)]
    return tensor.columns // block.values * block.size_bytes * tensor.rows * tensor.copies


def block_name(tensor: Tensor, mixture: str, model: Model, maker: Maker) -> str:
    """Return the block that llama.cpp's quantizer chooses for *tensor*."""
    if tensor.role in ("vector", "router"):
        return "F32"
    base = MIXTURES[mixture]
    if base in _UNQUANTIZED:
        return base
    chosen = _chosen(tensor, mixture, model, maker)
    if tensor.columns % BLOCKS[chosen].values:
        chosen = _FALLBACKS.get(chosen, "F16")
    return "F16" if tensor.columns % BLOCKS[chosen].values else chosen


def _chosen(tensor: Tensor, mixture: str, model: Model, maker: Maker) -> str:
    base = MIXTURES[mixture]
    if tensor.role == "output" or (tensor.role == "token_embd" and model.tied):
        return "Q8_0" if base == "Q8_0" or tensor.columns % BLOCKS[base].values else "Q6_K"
    if mixture == "MXFP4_MOE":
        return "MXFP4" if tensor.routed else base
    match tensor.role:
        case "attn_v" | "attn_kv_b":
            return _for_values(tensor, mixture, model)
        case "attn_qkv":
            return _for_values(tensor, mixture, model) if maker.fused_like_values else _for_fused(mixture)
        case "attn_k":
            return "Q8_0" if _eight_experts(model) else base
        case "attn_output":
            return _for_attention_output(mixture, model)
        case "ffn_down":
            return _for_ffn_down(tensor, mixture, model, maker)
        case _:
            return base


def _for_values(tensor: Tensor, mixture: str, model: Model) -> str:
    layer, layers = tensor.layer or 0, len(model.layers or ())
    chosen = MIXTURES[mixture]
    shared = _heads_per_kv_head(model)
    match mixture:
        case "Q2_K":
            chosen = "Q4_K" if shared >= 4 else "Q3_K"
        case "Q3_K_M":
            chosen = "Q5_K" if layer < 2 else "Q4_K"
        case "Q3_K_L":
            chosen = "Q5_K"
        case "IQ4_NL" | "IQ4_XS" if shared >= 4:
            chosen = "Q5_K"
        case "Q4_K_M" | "Q5_K_M" if _gets_more_bits(layer, layers):
            chosen = "Q6_K"
        case "Q4_K_S" if layer < 4:
            chosen = "Q5_K"
        case _:
            pass
    # "70B" is how llama.cpp calls a model of 80 layers with grouped heads, Qwen's 72B too.
    if layers == 80 and shared > 1 and chosen in ("Q3_K", "Q4_K"):
        chosen = "Q5_K"
    return "Q8_0" if _eight_experts(model) else chosen


def _for_fused(mixture: str) -> str:
    own = {"Q3_K_M": "Q4_K", "Q3_K_L": "Q4_K", "Q4_K_M": "Q5_K", "Q5_K_M": "Q6_K"}
    return own.get(mixture, MIXTURES[mixture])


def _for_attention_output(mixture: str, model: Model) -> str:
    if _eight_experts(model):
        low = ("Q2_K", "Q3_K_S", "Q3_K_M", "IQ4_NL", "IQ4_XS", "Q4_K_S", "Q4_K_M")
        return "Q5_K" if mixture in low else MIXTURES[mixture]
    own = {"Q2_K": "Q3_K", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K"}
    return own.get(mixture, MIXTURES[mixture])


def _for_ffn_down(tensor: Tensor, mixture: str, model: Model, maker: Maker) -> str:
    layer, layers = tensor.layer or 0, len(model.layers or ())
    early = layer < layers // 8
    match mixture:
        case "Q2_K":
            return "Q3_K"
        case "Q3_K_M":
            return "Q5_K" if layer < layers // 16 else "Q4_K"
        case "Q3_K_L":
            return "Q5_K"
        case "Q4_K_M" | "Q5_K_M" if _gets_more_bits(layer, layers):
            return "Q6_K"
        case "Q4_K_S" if early:
            return "Q5_K"
        case "IQ4_NL" | "IQ4_XS" if early and not maker.imatrix:
            return "Q5_K"
        case "Q4_0" if early and maker.imatrix:
            return "Q4_1"
        case "Q5_0" if early and maker.imatrix:
            return "Q5_1"
        case _:
            return MIXTURES[mixture]


def _gets_more_bits(layer: int, layers: int) -> bool:
    """True for the first and last eighth of the layers, and every third between them."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def _heads_per_kv_head(model: Model) -> int:
    first = next(iter(model.layers or ()), Layer())
    return (first.heads or 0) // (first.kv_heads or 1)


def _eight_experts(model: Model) -> bool:
    return model.moe is not None and model.moe.experts == 8
