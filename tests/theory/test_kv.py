"""What a sequence keeps, held against logs and case values."""

from dataclasses import replace

import pytest

from roofbook.errors import EstimateError
from roofbook.theory.kv import Pages, Slots, cache_bytes, delta_state, mamba_state, state_bytes, token_bytes
from roofbook.theory.quantization import head_bytes, known_kv_type
from roofbook.theory.shapes import Layer, Model, Range, Recurrent
from roofbook.units import KIB, MIB


def test_b09_bytes_per_token(qwen_7b: Model, llama_8b: Model, qwen3_4b: Model) -> None:
    """2 x layers x KV heads x head dimension x bytes; Qwen3-4B's dimension is 128, not 2560 / 32 (which gave 92160)."""
    found = [
        token_bytes(llama_8b, "f16"),
        token_bytes(qwen_7b, "f16"),
        token_bytes(qwen_7b, "q8_0"),
        token_bytes(qwen3_4b, "f16"),
    ]
    assert found == [Range.of(131_072), Range.of(57_344), Range.of(30_464), Range.of(147_456)]


def test_qwen_7b_buffers_as_llama_cpp_logs_them(qwen_7b: Model) -> None:
    """KV buffer size = 476.00 MiB (16,384 cells, q8_0), 448.00 MiB (8,192, f16), 224.00 MiB (4,096, f16)."""
    sizes = [(16_384, "q8_0"), (8_192, "f16"), (4_096, "f16")]
    found = [cache_bytes(qwen_7b, tokens, kv_type, cells=Slots()) for tokens, kv_type in sizes]
    assert found == [Range.of(476 * MIB), Range.of(448 * MIB), Range.of(224 * MIB)]


def test_b42_an_unknown_type_is_a_range(qwen_7b: Model) -> None:
    """8,192 tokens: null is 126 to 448 MiB; f16 448, q8_0 238, q4_0 126."""
    found = {name: cache_bytes(qwen_7b, 8_192, name) for name in (None, "some_new_type", "f16", "q8_0", "q4_0")}
    unknown = Range(126 * MIB, 448 * MIB)
    assert found == {
        None: unknown,
        "some_new_type": unknown,
        "f16": Range.of(448 * MIB),
        "q8_0": Range.of(238 * MIB),
        "q4_0": Range.of(126 * MIB),
    }
    assert [known_kv_type(name) for name in (None, "some_new_type", "q8_0", "Q8_0/f16")] == [False, False, True, True]


def test_keys_and_values_may_differ(qwen_7b: Model) -> None:
    """--cache-type-k q8_0 --cache-type-v f16: 14,336 values at 34/32 bytes and as many at 2."""
    assert token_bytes(qwen_7b, "q8_0/f16") == Range.of(14_336 * 34 / 32 + 14_336 * 2)


def test_deepseek_keeps_one_latent_vector_a_layer(deepseek_v3: Model) -> None:
    """61 x (512 + 64) x 2 bytes = 70,272; in vLLM's fp8_ds_mla 656 bytes a layer."""
    assert token_bytes(deepseek_v3, "bf16") == Range.of(70_272)
    assert token_bytes(deepseek_v3, "fp8_ds_mla").low == pytest.approx(61 * 656)


def test_decompressed_latent_attention_would_be_71_times_that(deepseek_v3: Model) -> None:
    """128 heads of 192 + 128 elements in 61 layers, 2 bytes each: 4,997,120."""
    naive = replace(deepseek_v3, mla=None, layers=61 * (Layer(heads=128, kv_heads=128, key_dim=192, value_dim=128),))
    assert token_bytes(naive, "bf16") == Range.of(4_997_120)


def test_vllm_scales_for_each_token_and_head() -> None:
    """fp8_per_token_head: 128 + 4 bytes for keys, the same for values; nvfp4: 128/2 + 128/16 each."""
    assert head_bytes("fp8_per_token_head", 128, 128) == Range.of(264)
    assert head_bytes("nvfp4", 128, 128) == Range.of(144)
    assert head_bytes("fp8", 128, 128) == Range.of(256)


def test_gemma_local_layers_hold_a_window_and_a_ubatch(gemma_12b: Model) -> None:
    """65,536 bytes a token in 8 global layers; 40 local ones: (1,024 + 512) cells x 327,680 bytes = 480 MiB."""
    assert token_bytes(gemma_12b, "f16") == Range.of(65_536)
    kept = cache_bytes(gemma_12b, 131_072, "f16", cells=Slots())
    assert kept == Range.of(131_072 * 65_536 + 480 * MIB)


def test_gpt_oss_local_cells_are_padded(gpt_oss_20b: Model) -> None:
    """24,576 bytes a token; 128 + 512 cells padded to 768, x 24,576 = 18 MiB."""
    assert token_bytes(gpt_oss_20b, "f16") == Range.of(24 * KIB)
    assert cache_bytes(gpt_oss_20b, 4_096, "f16", cells=Slots()) == Range.of(4_096 * 24_576 + 18 * MIB)


def test_unified_slots_share_cells_but_not_windows(gpt_oss_20b: Model) -> None:
    """Four slots of 1,000 tokens: one pool of 4,096 cells (4,000 padded), local 4 x 128 + 512 = 1,024 cells."""
    kept = cache_bytes(gpt_oss_20b, 1_000, "f16", sequences=4, cells=Slots(unified=True))
    assert kept == Range.of(4_096 * 24_576 + 1_024 * 24_576)


def test_full_window_gives_local_layers_the_context(gemma_12b: Model) -> None:
    """--swa-full: all 48 layers, 393,216 bytes a token."""
    assert cache_bytes(gemma_12b, 8_192, "f16", cells=Slots(full_window=True)) == Range.of(8_192 * 393_216)


def test_a_short_context_never_fills_the_window(gemma_12b: Model) -> None:
    """512 tokens take 512 cells in local layers too."""
    assert cache_bytes(gemma_12b, 512, "f16", cells=Slots()) == Range.of(512 * 393_216)


def test_vllm_pages_of_local_layers(gpt_oss_20b: Model) -> None:
    """min(128 - 1 + 2,048, 4,096) = 2,175 tokens, 136 blocks of 16 and one more: 2,192 cells."""
    kept = cache_bytes(gpt_oss_20b, 4_096, "bf16", cells=Pages())
    assert kept == Range.of(4_096 * 24_576 + 2_192 * 24_576)


def test_pages_round_each_sequence_up(qwen_7b: Model) -> None:
    """Three sequences of 100 tokens hold 7 blocks of 16 each: 336 cells."""
    assert cache_bytes(qwen_7b, 100, "f16", sequences=3, cells=Pages()) == Range.of(336 * 57_344)


def test_hybrid_models_keep_a_constant_state(qwen3_next: Model) -> None:
    """Qwen3-Next: 24,576 bytes a token, and 36 x (524,288 + 24,576) x 4 = 79,036,416 bytes whatever the length."""
    assert token_bytes(qwen3_next, "f16") == Range.of(24_576)
    assert state_bytes(qwen3_next) == 79_036_416
    assert cache_bytes(qwen3_next, 1_000, "f16", sequences=2) == Range.of(2 * (1_000 * 24_576 + 79_036_416))


def test_states_from_dimensions() -> None:
    """Granite 4.0-H-small (8,192 x 128, one group), Jamba-1.5-mini (8,192 x 16), Qwen3-Next's delta net."""
    assert mamba_state(inner=8_192, state=128, conv=4, groups=1) == Recurrent(1_048_576, 25_344)
    assert mamba_state(inner=8_192, state=16, conv=4) == Recurrent(131_072, 24_576)
    assert delta_state(key_heads=16, value_heads=32, key_dim=128, value_dim=128, conv=4) == Recurrent(524_288, 24_576)


def test_a_layer_without_attention_keeps_nothing() -> None:
    """GGUF's head_count_kv of 0: that layer has no keys."""
    layers = (Layer(heads=32, kv_heads=0), Layer(heads=32, kv_heads=8, key_dim=128, value_dim=128))
    assert token_bytes(Model("m", layers=layers), "f16") == Range.of(8 * 256 * 2)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Model("m"), "Cannot estimate the KV cache of m: layers are missing"),
        (
            Model("m", layers=(Layer(heads=8),)),
            "Cannot estimate the KV cache of m: layers.kv_heads, layers.key_dim, layers.value_dim missing",
        ),
        (
            Model("m", layers=(Layer("local", 8, 8, 64, 64),)),
            "Cannot estimate the KV cache of m: window_tokens is missing",
        ),
        (Model("m", layers=(Layer("recurrent"),)), "Cannot estimate the state of m: recurrent is missing"),
    ],
)
def test_missing_keys_are_named(model: Model, message: str) -> None:
    """No guess: the error says which fields would allow an estimate."""
    with pytest.raises(EstimateError) as caught:
        cache_bytes(model, 100, "f16")
    assert str(caught.value) == message
