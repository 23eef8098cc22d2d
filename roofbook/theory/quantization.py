"""What a weight or a cached value costs in bytes: block sizes, flat formats, KV cache types.

Block sizes: ggml/src/ggml-common.h of llama.cpp, the same in gguf-py's GGML_QUANT_SIZES.
"""

from dataclasses import dataclass
from typing import Final

from roofbook.theory.shapes import Range


@dataclass(frozen=True)
class Block:
    """The smallest piece a format stores: *values* elements in *size_bytes*, scales included."""

    values: int
    size_bytes: int

    @property
    def bytes_per_value(self) -> float:
        return self.size_bytes / self.values

    @property
    def bits_per_value(self) -> float:
        return 8 * self.size_bytes / self.values


BLOCKS: Final = {
    "F32": Block(1, 4),
    "F16": Block(1, 2),
    "BF16": Block(1, 2),
    "Q4_0": Block(32, 18),
    "Q4_1": Block(32, 20),
    "Q5_0": Block(32, 22),
    "Q5_1": Block(32, 24),
    "Q8_0": Block(32, 34),
    "Q2_K": Block(256, 84),
    "Q3_K": Block(256, 110),
    "Q4_K": Block(256, 144),
    "Q5_K": Block(256, 176),
    "Q6_K": Block(256, 210),
    "IQ1_S": Block(256, 50),
    "IQ1_M": Block(256, 56),
    "IQ2_XXS": Block(256, 66),
    "IQ2_XS": Block(256, 74),
    "IQ2_S": Block(256, 82),
    "IQ3_XXS": Block(256, 98),
    "IQ3_S": Block(256, 110),
    "IQ4_NL": Block(32, 18),
    "IQ4_XS": Block(256, 136),
    "TQ1_0": Block(256, 54),
    "TQ2_0": Block(256, 66),
    "Q1_0": Block(128, 18),
    "MXFP4": Block(32, 17),
    "NVFP4": Block(64, 36),
}


@dataclass(frozen=True)
class Format:
    """A checkpoint format that treats all matrices alike, outside GGUF.

    *linear_bits* a weight of the blocks' matrices, scales included; *table_bits* of the input embedding and the output
    matrix; *dense_bits* of the matrices outside the routed experts, where they differ. Vectors (norms, biases) and the
    experts' router stay at 16 bits.
    """

    linear_bits: float
    table_bits: float = 16.0
    dense_bits: float | None = None


def _grouped(bits: float, group: int, side_bits: float) -> float:
    """Return the bits a weight of a format that keeps *side_bits* of scale and zero for each *group* of weights."""
    return bits + side_bits / group


# AWQ, GPTQ: an fp16 scale and a 4-bit zero for 128 weights. MLX: an fp16 scale and bias for 64, the tables too
# (mlx.nn.quantize walks over the embedding as well). FP8: one fp32 scale for a block of 128 x 128 at most.
# NVFP4: an FP8 scale for 16; MXFP4: an 8-bit exponent for 32, and as gpt-oss is published in the experts alone.
FORMATS: Final = {
    "FP16": Format(16.0),
    "FLOAT16": Format(16.0),
    "BFLOAT16": Format(16.0),
    "AWQ": Format(_grouped(4, 128, 16 + 4)),
    "GPTQ": Format(_grouped(4, 128, 16 + 4)),
    "GPTQ-SYM": Format(_grouped(4, 128, 16)),
    "MLX-4BIT": Format(_grouped(4, 64, 32), _grouped(4, 64, 32)),
    "MLX-8BIT": Format(_grouped(8, 64, 32), _grouped(8, 64, 32)),
    "FP8": Format(_grouped(8, 128 * 128, 32)),
    "NVFP4": Format(_grouped(4, 16, 8)),
    "MXFP4": Format(_grouped(4, 32, 8), dense_bits=16.0),
}

# What a server may be told to keep keys and values in, as ggml or as a plain element.
_KV_BLOCKS: Final = {
    "f32": BLOCKS["F32"],
    "f16": BLOCKS["F16"],
    "fp16": BLOCKS["F16"],
    "bf16": BLOCKS["BF16"],
    "float16": BLOCKS["F16"],
    "bfloat16": BLOCKS["BF16"],
    "q8_0": BLOCKS["Q8_0"],
    "q5_1": BLOCKS["Q5_1"],
    "q5_0": BLOCKS["Q5_0"],
    "q4_1": BLOCKS["Q4_1"],
    "q4_0": BLOCKS["Q4_0"],
    "iq4_nl": BLOCKS["IQ4_NL"],
    "fp8": Block(1, 1),
    "fp8_e4m3": Block(1, 1),
    "fp8_e5m2": Block(1, 1),
    "nvfp4": Block(16, 9),
    "fp8_ds_mla": Block(576, 656),  # vLLM, one latent vector of DeepSeek's MLA
}
# vLLM, vllm/v1/kv_cache_interface.py: one fp32 scale for each head, of keys and of values.
_SCALE_A_HEAD: Final = {"int8_per_token_head": Block(1, 1), "fp8_per_token_head": Block(1, 1)}
_HEAD_SCALE_BYTES: Final = 4

UNKNOWN_KV_LOW: Final = "q4_0"
"""The smallest type that servers offer by name; an unknown one lies between it and f16, the usual default."""
UNKNOWN_KV_HIGH: Final = "f16"


def known_kv_type(kv_type: str | None) -> bool:
    """True where the bytes of *kv_type* are known; ``K/V`` names the two apart: ``q8_0/f16``."""
    if kv_type is None:
        return False
    return all(part in _KV_BLOCKS or part in _SCALE_A_HEAD for part in _parts(kv_type))


def kv_block(kv_type: str) -> Block | None:
    """Return how the one type *kv_type* stores values; None where it is not known, or has more beside its blocks."""
    return _KV_BLOCKS.get(kv_type)


def head_bytes(kv_type: str | None, key_dim: int, value_dim: int) -> Range:
    """Return the bytes of one head's key and value vectors of one token; an unknown type is a range, q4_0 to f16."""
    if kv_type is None or not known_kv_type(kv_type):
        smallest, usual = (head_bytes(name, key_dim, value_dim) for name in (UNKNOWN_KV_LOW, UNKNOWN_KV_HIGH))
        return Range(smallest.low, usual.high)
    key_type, value_type = _parts(kv_type)
    return Range.of(_vector_bytes(key_type, key_dim) + _vector_bytes(value_type, value_dim))


def _parts(kv_type: str) -> tuple[str, str]:
    """Return the types of keys and values: the two sides of a slash, else the same for both."""
    key, _, value = kv_type.strip().lower().partition("/")
    return key, value or key


def _vector_bytes(kv_type: str, dim: int) -> float:
    if dim == 0:
        return 0.0
    if kv_type in _SCALE_A_HEAD:
        return dim * _SCALE_A_HEAD[kv_type].bytes_per_value + _HEAD_SCALE_BYTES
    return dim * _KV_BLOCKS[kv_type].bytes_per_value
