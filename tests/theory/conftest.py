"""Models and machines by hand, as their config.json and datasheets have them."""

import pytest

from roofbook.theory.shapes import (
    Ceilings,
    Chip,
    Layer,
    Machine,
    Mla,
    Model,
    Moe,
    Peaks,
    Range,
    Recurrent,
    Spread,
)
from roofbook.units import GB, GIB, TFLOP


def gqa(count: int, heads: int, kv_heads: int, dim: int, *, experts: bool = False) -> tuple[Layer, ...]:
    """Return *count* equal layers of grouped-query attention."""
    return count * (Layer(heads=heads, kv_heads=kv_heads, key_dim=dim, value_dim=dim, experts=experts),)


@pytest.fixture(scope="session")
def qwen_7b() -> Model:
    return Model(
        "qwen2.5-7b", "qwen2", gqa(28, 28, 4, 128), hidden=3584, ffn=18944, vocab=152064, tied=False,
        context_limit_tokens=32768,
    )  # fmt: skip


@pytest.fixture(scope="session")
def qwen_3b() -> Model:
    return Model("qwen2.5-3b", "qwen2", gqa(36, 16, 2, 128), hidden=2048, ffn=11008, vocab=151936, tied=True)


@pytest.fixture(scope="session")
def llama_8b() -> Model:
    return Model(
        "llama-3.1-8b", "llama", gqa(32, 32, 8, 128), hidden=4096, ffn=14336, vocab=128256, tied=False, rope_factors=64
    )


@pytest.fixture(scope="session")
def smollm_135m() -> Model:
    return Model("smollm2-135m", "llama", gqa(30, 9, 3, 64), hidden=576, ffn=1536, vocab=49152, tied=True)


@pytest.fixture(scope="session")
def qwen3_4b() -> Model:
    return Model("qwen3-4b", "qwen3", gqa(36, 32, 8, 128), hidden=2560, ffn=9728, vocab=151936, tied=True)


@pytest.fixture(scope="session")
def qwen3_30b() -> Model:
    return Model(
        "qwen3-30b-a3b", "qwen3moe", gqa(48, 32, 4, 128, experts=True), hidden=2048, vocab=151936, tied=False,
        moe=Moe(experts=128, used=8, expert_ffn=768),
    )  # fmt: skip


@pytest.fixture(scope="session")
def gpt_oss_20b() -> Model:
    pair = (
        Layer("local", 64, 8, 64, 64, experts=True),
        Layer("global", 64, 8, 64, 64, experts=True),
    )
    return Model(
        "gpt-oss-20b", "gpt-oss", 12 * pair, hidden=2880, vocab=201088, tied=False, window_tokens=128,
        moe=Moe(experts=32, used=4, expert_ffn=2880),
    )  # fmt: skip


@pytest.fixture(scope="session")
def gemma_12b() -> Model:
    six = (*(5 * (Layer("local", 16, 8, 256, 256),)), Layer("global", 16, 8, 256, 256))
    return Model("gemma-3-12b", "gemma3", 8 * six, hidden=3840, ffn=15360, vocab=262208, tied=True, window_tokens=1024)


@pytest.fixture(scope="session")
def deepseek_v3() -> Model:
    layers = (*(3 * (Layer(heads=128),)), *(58 * (Layer(heads=128, experts=True),)))
    return Model(
        "deepseek-v3", "deepseek2", layers, hidden=7168, ffn=18432, vocab=129280, tied=False,
        mla=Mla(kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128, query_rank=1536),
        moe=Moe(experts=256, used=8, expert_ffn=2048, shared_ffn=2048),
    )  # fmt: skip


@pytest.fixture(scope="session")
def qwen3_next() -> Model:
    four = (*(3 * (Layer("recurrent"),)), Layer("global", 16, 2, 256, 256))
    return Model(
        "qwen3-next-80b-a3b", "qwen3next", 12 * four, hidden=2048, vocab=151936, tied=False,
        recurrent=Recurrent(state_elements=524_288, conv_elements=24_576),
    )  # fmt: skip


@pytest.fixture(scope="session")
def m4() -> Machine:
    """A Mac mini M4 with 32 GB; its FP32 peak is disputed (3.76 to 4.6), its measured ceilings: arXiv 2502.05317."""
    measured = Ceilings(Spread(100 * GB, 100 * GB, 100 * GB), Spread(2.9 * TFLOP, 2.9 * TFLOP, 2.9 * TFLOP))
    chip = Chip(
        "apple-m4",
        vendor="apple",
        memory_kind="unified",
        bandwidth_bytes_per_s=Range.of(120 * GB),
        peaks=Peaks(fp32=Range(3.76 * TFLOP, 4.6 * TFLOP)),
        measured=measured,
    )
    return Machine("mac-mini-m4-32gb", chip, memory_bytes=32 * GIB)


@pytest.fixture(scope="session")
def rtx_4060_ti() -> Machine:
    chip = Chip(
        "nvidia-rtx-4060-ti-8gb",
        vendor="nvidia",
        memory_kind="discrete",
        memory_bytes=8 * GIB,
        bandwidth_bytes_per_s=Range.of(288 * GB),
        peaks=Peaks(
            fp32=Range.of(22.06 * TFLOP), fp16=Range.of(44.1 * TFLOP), fp16_acc16=Range.of(88.2 * TFLOP)
        ),
    )  # fmt: skip
    return Machine("desktop-rtx-4060-ti-8gb", chip)
