"""The bytes of weights, held against files, logs and published sizes."""

from dataclasses import replace

import pytest

from roofbook.errors import EstimateError
from roofbook.theory.mixtures import MAKERS, MIXTURES, block_name
from roofbook.theory.quantization import BLOCKS, FORMATS
from roofbook.theory.shapes import Layer, Model, Moe, Range, Tensors
from roofbook.theory.tensors import tensors
from roofbook.theory.weights import counted_params, matmul_params, touched_share, weights
from roofbook.units import GB, GIB, MIB


def test_block_sizes_are_those_of_ggml() -> None:
    """Each block's bits a weight are those that llama.cpp's quantizer prints in its help."""
    bits = {"Q4_0": 4.5, "Q4_1": 5.0, "Q5_0": 5.5, "Q5_1": 6.0, "Q8_0": 8.5, "Q2_K": 2.625, "Q3_K": 3.4375, "Q4_K": 4.5,
            "Q5_K": 5.5, "Q6_K": 6.5625, "IQ4_NL": 4.5, "IQ4_XS": 4.25, "MXFP4": 4.25, "NVFP4": 4.5, "IQ1_S": 1.5625,
            "TQ1_0": 1.6875, "F16": 16.0, "F32": 32.0}  # fmt: skip
    assert {name: BLOCKS[name].bits_per_value for name in bits} == bits


def test_formats_outside_gguf_count_their_scales() -> None:
    """AWQ with groups of 128 is 4 + 20/128 bits, MLX with groups of 64 is 4 + 32/64, NVFP4 4 + 8/16."""
    names = ("AWQ", "GPTQ-SYM", "MLX-4BIT", "MLX-8BIT", "NVFP4", "MXFP4")
    assert [FORMATS[name].linear_bits for name in names] == [4.15625, 4.125, 4.5, 8.5, 4.5, 4.25]


def test_qwen_7b_q4_k_m_to_the_byte(qwen_7b: Model) -> None:
    """Buffers in llama.cpp's log: 4168.09 MiB on the device, 292.36 MiB (token_embd) in host memory."""
    found = weights(qwen_7b, "Q4_K_M")
    # token_embd: 152064 x 3584 values in Q4_K, 144 bytes for 256: 306,561,024
    assert found.total_bytes == Range.of(4_677_120_000)
    assert found.embedding_bytes == Range.of(306_561_024)
    assert round(found.device_bytes.low / MIB, 2) == 4168.09
    assert round(found.embedding_bytes.low / MIB, 2) == 292.36
    assert found.basis == "rules"


def test_llama_8b_q4_k_m_to_the_byte(llama_8b: Model) -> None:
    """The size that llama.cpp's README prints for /v1/models; 256 of its bytes are rope_freqs."""
    assert weights(llama_8b, "Q4_K_M").total_bytes == Range.of(4_912_898_304)
    assert weights(replace(llama_8b, rope_factors=0), "Q4_K_M").total_bytes == Range.of(4_912_898_304 - 256)


def test_smollm_q4_1_to_the_byte_and_read_in_full(smollm_135m: Model) -> None:
    """Its file: 66,355,200 bytes of Q4_1, 30,081,024 of Q8_0 (token_embd, tied, so read each step), 140,544 of F32."""
    found = weights(smollm_135m, "Q4_1")
    assert found.total_bytes == Range.of(96_576_768)
    assert found.step_bytes(smollm_135m) == Range.of(96_576_768)


def test_qwen3_4b_q4_k_m_as_llama_bench_prints_it(qwen3_4b: Model) -> None:
    """A llama-bench log has 2.32 GiB."""
    assert round(weights(qwen3_4b, "Q4_K_M").total_bytes.low / GIB, 2) == 2.32


def test_an_importance_matrix_nobody_mentions_is_a_range() -> None:
    """Qwen3 0.6B Q4_0 made with one is 358.78 MiB in logs: Q4_1 in ffn_down of the first eighth of the layers."""
    model = Model("qwen3-0.6b", "qwen3", 28 * (Layer("global", 16, 8, 128, 128),), 1024, 3072, 151936, True)
    found = weights(model, "Q4_0").total_bytes
    # 3 layers x 1024 x 3072 values x (20 - 18) / 32 bytes
    assert found.high - found.low == 3 * 1024 * 3072 * 2 / 32
    assert round(found.high / MIB, 2) == 358.78


def test_gpt_oss_20b_as_llama_bench_prints_it(gpt_oss_20b: Model) -> None:
    """llama-bench: gpt-oss 20B MXFP4 MoE, 11.27 GiB, 20.91 B parameters."""
    assert round(weights(gpt_oss_20b, "MXFP4_MOE").total_bytes.low / GIB, 2) == 11.27
    assert round(counted_params(gpt_oss_20b) / 1e9, 2) == 20.91


def test_awq_keeps_embedding_and_output_at_16_bits(qwen_7b: Model) -> None:
    """6,525,288,448 weights of 4.15625 bits and 2 x 544,997,376 of 16 are 5.57 GB, as its safetensors are."""
    assert round(weights(qwen_7b, "AWQ").total_bytes.low / GB, 2) == 5.57


def test_mlx_quantizes_the_embedding_too(qwen_7b: Model) -> None:
    """7,615,283,200 weights of 4.5 bits are 4.28 GB."""
    assert round(weights(qwen_7b, "MLX-4bit").total_bytes.low / GB, 2) == 4.28


@pytest.mark.parametrize(
    ("mixture", "bits"),
    [("Q4_0", 4.65), ("IQ4_XS", 4.46), ("Q4_K_S", 4.68), ("Q4_K_M", 4.91), ("Q5_K_M", 5.71), ("Q6_K", 6.56),
     ("Q8_0", 8.50)],
)  # fmt: skip
def test_bits_per_weight_of_qwen_7b(qwen_7b: Model, mixture: str, bits: float) -> None:
    """What its files weigh a weight, made without an importance matrix: IQ4_XS the larger end, Q4_0 the smaller."""
    found = weights(qwen_7b, mixture).total_bytes
    end = found.high if mixture == "IQ4_XS" else found.low
    assert 8 * end / counted_params(qwen_7b) == pytest.approx(bits, abs=0.006)


def test_a_fused_qkv_matrix_depends_on_the_quantizers_age() -> None:
    """Phi-4: 5120 x 7680 in Q5_K before 2026; since then Q6_K in half of 40 layers and Q4_K in the rest."""
    model = Model("phi-4-14b", "phi3", 40 * (Layer("global", 40, 10, 128, 128),), 5120, 17920, 100352, False)
    found = weights(model, "Q4_K_M").total_bytes
    # (20 x 210 + 20 x 144 - 40 x 176) / 256 bytes a value
    assert found.high - found.low == 5120 * 7680 * (20 * 210 + 20 * 144 - 40 * 176) / 256


def test_the_file_itself_comes_before_any_rule(qwen_7b: Model) -> None:
    """Bytes that a header gave are taken as they are; for another quantization the rules stand in."""
    held = replace(
        qwen_7b, tensors=Tensors("Q4_K_M", total_bytes=4_700_000_000, embedding_bytes=300_000_000, expert_bytes=0)
    )
    found = weights(held)
    assert (found.total_bytes, found.device_bytes) == (Range.of(4_700_000_000), Range.of(4_400_000_000))
    assert found.basis == "tensors"
    assert weights(held, "q4_k_m") == found
    assert weights(held, "Q8_0") == weights(qwen_7b, "Q8_0")


def test_a_file_size_alone_is_named_as_such(qwen_7b: Model) -> None:
    """Of a file whose tensors nobody listed the embedding is open: at most a sixth of a model this large."""
    held = Model("mystery", params=7_615_616_512, tensors=Tensors(file_bytes=4_683_073_184))
    found = weights(held)
    assert (found.total_bytes, found.basis) == (Range.of(4_683_073_184), "file")
    truth = weights(qwen_7b, "Q4_K_M").embedding_bytes.low
    assert found.embedding_bytes.low == 0 < truth < found.embedding_bytes.high


@pytest.mark.parametrize("quantization", ["Q4_K_M", "Q4_0", "Q8_0", "F16", "AWQ", "MLX-4bit"])
def test_a_parameter_count_gives_a_range_that_holds_the_truth(qwen_7b: Model, quantization: str) -> None:
    """With only 7.6e9 parameters known, the range spans what the dimensions would give."""
    truth = weights(qwen_7b, quantization).total_bytes
    found = weights(Model("mystery", params=7_615_616_512), quantization)
    assert found.basis == "params"
    assert found.total_bytes.low <= truth.high * 1.001
    assert found.total_bytes.high >= truth.high * 0.999


def test_an_unknown_architecture_names_what_is_missing() -> None:
    """No estimate, and the keys that would allow one."""
    with pytest.raises(EstimateError) as caught:
        weights(Model("mystery", architecture="hyena", hidden=4096, tied=True), "Q4_K_M")
    assert str(caught.value) == (
        "Cannot estimate the weights of mystery: architecture, layers, vocab missing or unknown. "
        "Give its GGUF file or the bytes of its tensors"
    )


def test_a_model_without_any_word_of_its_quantization() -> None:
    """Neither bytes nor a name: the error says so."""
    with pytest.raises(EstimateError, match=r"tensors\.total_bytes and tensors\.quantization are missing"):
        weights(Model("mystery", params=10**9))


def test_an_unknown_quantization_lists_the_known_ones(qwen_7b: Model) -> None:
    """A name that no rule knows is not taken for one that looks like it."""
    with pytest.raises(EstimateError, match=r"UD-Q4_K_XL is not known; those known are F32, .*Q4_K_M.*AWQ"):
        weights(qwen_7b, "UD-Q4_K_XL")


def test_multiplied_weights_of_qwen_7b(qwen_7b: Model) -> None:
    """28 x (2 x 3584 x 3584 + 2 x 3584 x 512 + 3 x 3584 x 18944) = 6,525,288,448, the output matrix apart."""
    assert matmul_params(qwen_7b) == Range.of(6_525_288_448)


def test_multiplied_weights_from_a_count_lie_within_a_range() -> None:
    """With the tables known the count less both of them; without, a range that holds it."""
    params = 7_615_616_512
    near = matmul_params(Model("m", params=params, hidden=3584, vocab=152064, tied=False))
    assert near.known
    # what is left over are biases and norms: 333,312
    assert near.low - 6_525_288_448 == 333_312
    far = matmul_params(Model("m", params=params))
    assert far.low < 6_525_288_448 < far.high


def test_b39_memory_counts_every_expert_and_a_step_the_active_ones() -> None:
    """B39: 30.5e9 weights of 4.85 bits are 18.49 GB; a step reads 3.3e9 of them, 2.0006 GB."""
    model = Model(
        "30b-a3b", tied=True, params=30_500_000_000, active_params=3_300_000_000,
        tensors=Tensors(total_bytes=round(30.5e9 * 4.85 / 8)),
    )  # fmt: skip
    found = weights(model)
    assert round(found.total_bytes.low / GB, 2) == 18.49
    assert found.step_bytes(model).low == pytest.approx(3.3e9 * 4.85 / 8)


def test_a_step_of_many_tokens_reads_more_experts(qwen3_30b: Model) -> None:
    """Uniform routing: 8 of 128 experts at batch 1, 1 - (15/16)^32 = 0.873 of them at 32, nearly all at 256."""
    assert touched_share(128, 8, 1) == pytest.approx(1 / 16)
    assert touched_share(128, 8, 32) == pytest.approx(0.8732, abs=1e-4)
    found = weights(qwen3_30b, "Q4_K_M")
    dense = found.device_bytes.low - found.expert_bytes.low
    assert found.step_bytes(qwen3_30b, 1).low == pytest.approx(dense + found.expert_bytes.low / 16)
    assert found.step_bytes(qwen3_30b, 256).low == pytest.approx(found.device_bytes.low, rel=1e-6)


def test_experts_of_a_file_without_a_list_are_taken_by_count() -> None:
    """total - active are the experts left out, 120 of 128: 30.532e9 - 3.353e9 of 30.532e9, times 128/120."""
    model = Model(
        "m", tied=False, params=30_532_122_624, active_params=3_353_032_704, moe=Moe(128, 8),
        tensors=Tensors(total_bytes=18_550_716_416, embedding_bytes=0),
    )  # fmt: skip
    # 48 layers x 128 experts x 3 x 2048 x 768 weights
    share = 48 * 128 * 3 * 2048 * 768 / 30_532_122_624
    assert weights(model).expert_bytes.low == pytest.approx(share * 18_550_716_416, rel=1e-6)


def test_mixtral_of_eight_experts_has_rules_of_its_own() -> None:
    """Q4_K_M: keys and values in Q8_0, the attention's output in Q5_K."""
    layers = 32 * (Layer("global", 32, 8, 128, 128, experts=True),)
    model = Model("mixtral", "llama", layers, 4096, None, 32000, False, moe=Moe(8, 2, 14336))
    first = {tensor.role: tensor for tensor in tensors(model) if tensor.layer == 9}
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_down", "router")
    chosen = [block_name(first[name], "Q4_K_M", model, MAKERS[0]) for name in names]  # type: ignore[index]
    # layer 9 of 32: (9 - 4) % 3 == 2, one of those with more bits
    assert chosen == ["Q4_K", "Q8_0", "Q8_0", "Q5_K", "Q4_K", "Q6_K", "F32"]


def test_every_mixture_has_a_block() -> None:
    """No mixture is named after a block that nobody sized."""
    assert {MIXTURES[name] for name in MIXTURES} <= set(BLOCKS)


def test_a_shared_expert_has_a_gate_of_its_own() -> None:
    """Qwen1.5-MoE-A2.7B: 14,315,784,192 parameters in its checkpoint's index, 24 x 2,048 of them the shared gates."""
    layers = 24 * (Layer("global", 16, 16, 128, 128, experts=True),)
    model = Model("qwen1.5-moe", "qwen2_moe", layers, 2048, 5632, 151936, False, moe=Moe(60, 4, 1408, 5632))
    assert counted_params(model) == 14_315_784_192
