"""Memory arithmetic on other models and machines, with look-alikes: B09, B27, B39, B40, B42."""

import json
from dataclasses import replace

import pytest

from roofbook.readers.hf_config import read_config
from roofbook.theory.kv import cache_bytes, token_bytes
from roofbook.theory.limits import Limit, gpu_limit
from roofbook.theory.memory import Budget
from roofbook.theory.roofline import decode_ceiling
from roofbook.theory.shapes import Chip, Layer, Machine, Model, Range, Tensors
from roofbook.units import GIB, MB, MIB


def config(layers: int, heads: int, hidden: int, **more: int) -> dict[str, object]:
    return {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": layers,
        "num_attention_heads": heads, "hidden_size": hidden, "intermediate_size": 4 * hidden, "vocab_size": 32000,
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "bytes_a_token"),
    [
        # Mistral-7B: 2 x 32 x 8 x 128 x 2.
        (config(32, 32, 4096, num_key_value_heads=8), 131_072),
        # Qwen3-0.6B: heads of 128 though 1024 / 16 is 64: 2 x 28 x 8 x 128 x 2.
        (config(28, 16, 1024, num_key_value_heads=8, head_dim=128), 114_688),
        # One KV head for all (multi-query): 2 x 32 x 1 x 64 x 2.
        (config(32, 71, 4544, num_key_value_heads=1), 8_192),
        # Harmless: Llama 1 has no num_key_value_heads, and as many as heads: 2 x 32 x 32 x 128 x 2.
        (config(32, 32, 4096), 524_288),
        # Harmless: a head_dim that is what the division gives.
        (config(32, 32, 4096, num_key_value_heads=8, head_dim=128), 131_072),
    ],
)
def test_b09_what_a_token_keeps(shape: dict[str, object], bytes_a_token: int) -> None:
    """2 x layers x KV heads x head dimension x 2 bytes; the dimension is divided out only where it is not given."""
    assert token_bytes(read_config(json.dumps(shape)).model, "f16") == Range.of(bytes_a_token)


def mac(memory_gib: int, **more: int) -> Machine:
    chip = Chip("apple-m", vendor="apple", memory_kind="unified")
    return replace(Machine("mac", chip, memory_bytes=memory_gib * GIB), **more)


@pytest.mark.parametrize(
    ("machine", "macos", "limit_bytes", "basis"),
    [
        (mac(16), 15, 16 * GIB * 2 / 3, "rule"),  # 10.67 GiB, not 16
        (mac(128), 14, 96 * GIB, "rule"),  # three quarters from 36 GiB on, not two thirds
        (mac(64, wired_limit_mib=57_344), 15, 57_344 * MIB, "wired_limit"),  # MiB: 56 GiB
        # 107.52 GiB as Metal says; a wired limit beside it is what it was computed from.
        (mac(128, gpu_limit_bytes=round(115_448.7 * MB), wired_limit_mib=0), 26, round(115_448.7 * MB), "reported"),
        # Harmless: an Intel-free Linux machine with unified memory has no such rule.
        (Machine("box", Chip("gb10", vendor="nvidia", memory_kind="unified"), memory_bytes=128 * GIB), None, 128 * GIB,
         "memory"),
        # Harmless: 0 and absent are one: the system's default.
        (mac(16, wired_limit_mib=0), 15, 16 * GIB * 2 / 3, "rule"),
    ],
)  # fmt: skip
def test_b27_what_a_gpu_may_use(machine: Machine, macos: int | None, limit_bytes: float, basis: str) -> None:
    """As reported, else as set, else by rule, which is an estimate; never nothing, never all of a Mac's memory."""
    found = gpu_limit(machine, macos)
    assert (found.limit_bytes, found.basis) == (Range.of(limit_bytes), basis)
    assert found.estimated is (basis == "rule")


def reads(bandwidth: float) -> Machine:
    return Machine("m", Chip("c", memory_kind="unified", bandwidth_bytes_per_s=Range.of(bandwidth)))


@pytest.mark.parametrize(
    ("total_bytes", "params", "active", "bandwidth", "tok_per_s"),
    [
        # gpt-oss-120b's kind: 117e9 of which 5.1e9 work, 4.25 bits: 2.709 GB a token, 256 GB/s: 94.5; by all 4.12.
        (117e9 * 4.25 / 8, 117e9, 5.1e9, 256e9, 94.5),
        # Mixtral's kind: 46.7e9, 12.9e9 of them, 4.5 bits: 7.256 GB, 400 GB/s: 55.1.
        (46.7e9 * 4.5 / 8, 46.7e9, 12.9e9, 400e9, 55.1),
        # Harmless: a dense model reads all of it: 8.03e9 at 4.89 bits are 4.908 GB, 273 GB/s: 55.6.
        (8.03e9 * 4.89 / 8, 8.03e9, None, 273e9, 55.6),
        # Harmless: all experts at work is dense too.
        (8.03e9 * 4.89 / 8, 8.03e9, 8.03e9, 273e9, 55.6),
    ],
)
def test_b39_a_ceiling_counts_what_a_token_reads(
    total_bytes: float, params: float, active: float | None, bandwidth: float, tok_per_s: float
) -> None:
    """Bandwidth over the active share of the bytes."""
    model = Model(
        "m", tied=True, params=round(params), active_params=None if active is None else round(active),
        tensors=Tensors(total_bytes=round(total_bytes)),
    )  # fmt: skip
    ceiling = decode_ceiling(model, reads(bandwidth)).datasheet
    assert ceiling is not None
    assert ceiling.high == pytest.approx(tok_per_s, abs=0.1)


def gib(low: float, high: float | None = None) -> Range:
    return Range(low * GIB, (low if high is None else high) * GIB)


@pytest.mark.parametrize(
    ("parts", "limit", "fits"),
    [
        ({"kv_bytes": gib(2.0), "compute_bytes": gib(2.4)}, 9.0, False),  # 4.9 + 2.0 + 2.4: the buffer decides
        ({"kv_bytes": gib(0.5), "projector_bytes": gib(1.3)}, 6.5, False),  # 6.7
        ({"kv_bytes": gib(0.5), "compute_bytes": gib(0.3, 1.5)}, 6.5, None),  # 5.7 to 6.9: nobody knows
        ({"kv_bytes": gib(0.5), "compute_bytes": gib(0.3, 0.9)}, 6.5, True),  # harmless: 6.3 at most
        ({"kv_bytes": gib(0.5), "compute_bytes": gib(0.3)}, 5.7, True),  # harmless: to the last byte
    ],
)
def test_b40_everything_that_lies_in_memory(parts: dict[str, Range], limit: float, fits: bool | None) -> None:
    """Weights of 4.9 GiB and all that stands beside them; where a part is a range the answer may be neither."""
    nothing = Range.of(0)
    budget = Budget(Limit(gib(limit), "memory"), gib(4.9), reserve_bytes=nothing, **parts)
    assert budget.fits is fits


LLAMA = Model("8b", layers=(Layer("global", 32, 8, 128, 128),) * 32)


@pytest.mark.parametrize(
    ("kv_type", "low_mib", "high_mib"),
    [
        # 4,096 tokens x 65,536 values x 2, 34/32 and 18/32 bytes.
        (None, 144, 512),
        ("auto", 144, 512),  # vLLM's word for the model's own type, which nobody told
        ("q8_0", 272, 272),
        ("bf16", 512, 512),
        ("f16", 512, 512),  # harmless
        ("F16", 512, 512),  # harmless: written large
    ],
)
def test_b42_a_cache_of_a_type_that_nobody_told(kv_type: str | None, low_mib: int, high_mib: int) -> None:
    """A range from 4-bit to 16-bit; one number where it is known."""
    assert cache_bytes(LLAMA, 4096, kv_type) == Range(low_mib * MIB, high_mib * MIB)
