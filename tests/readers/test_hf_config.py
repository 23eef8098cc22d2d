"""config.json of every family whose cache is counted in its own way."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofbook.errors import ReaderError
from roofbook.readers import Reading, from_json, read_config, to_json
from roofbook.theory.kv import state_bytes, token_bytes
from roofbook.theory.shapes import Layer, Mla, Model, Moe, Range, Recurrent, Tensors

QWEN25_7B = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 32768,
    "tie_word_embeddings": False, "sliding_window": 131072, "use_sliding_window": False, "torch_dtype": "bfloat16",
}  # fmt: skip
LLAMA31_8B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN3_4B = {
    "model_type": "qwen3", "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
}  # fmt: skip
GEMMA3_12B = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 48,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 262208,
        "sliding_window": 1024, "sliding_window_pattern": 6, "max_position_embeddings": 131072,
    },
}  # fmt: skip
GPT_OSS_20B = {
    "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088, "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 12, "num_local_experts": 32, "num_experts_per_tok": 4,
    "quantization_config": {"quant_method": "mxfp4"},
}  # fmt: skip
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512, "q_lora_rank": 1536,
    "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "vocab_size": 129280, "n_routed_experts": 256,
    "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "first_k_dense_replace": 3,
    "moe_layer_freq": 1, "quantization_config": {"quant_method": "fp8"},
}  # fmt: skip
QWEN3_NEXT = {
    "model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120, "num_hidden_layers": 48,
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 151936,
    "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "num_experts": 512, "num_experts_per_tok": 10,
    "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "decoder_sparse_step": 1,
}  # fmt: skip
JAMBA_MINI = {
    "model_type": "jamba", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 65536, "attn_layer_period": 8,
    "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 16,
    "num_experts_per_tok": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
}  # fmt: skip
GRANITE_H = {
    "model_type": "granitemoehybrid", "hidden_size": 4096, "intermediate_size": 768, "num_hidden_layers": 40,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 100352,
    "layer_types": ["mamba" if index % 10 != 5 else "attention" for index in range(40)], "mamba_d_state": 128,
    "mamba_d_conv": 4, "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 1, "num_local_experts": 72,
    "num_experts_per_tok": 10, "shared_intermediate_size": 1536, "tie_word_embeddings": True,
}  # fmt: skip
NEMOTRON_H = {
    "model_type": "nemotron_h", "hidden_size": 4096, "num_hidden_layers": 6, "num_attention_heads": 32,
    "num_key_value_heads": 8, "attention_head_dim": 128, "hybrid_override_pattern": "M-M*-M", "vocab_size": 131072,
    "ssm_state_size": 128, "conv_kernel": 4, "mamba_num_heads": 128, "mamba_head_dim": 64, "n_groups": 8,
}  # fmt: skip


def read(config: dict[str, Any]) -> Reading:
    return read_config(json.dumps(config))


def test_a_dense_model_is_read_whole() -> None:
    """Qwen2.5-7B: the window that its config carries is switched off."""
    assert read(QWEN25_7B) == Reading(
        source="config.json",
        model=Model(
            id="qwen2",
            architecture="qwen2",
            layers=(Layer("global", 28, 4, 128, 128),) * 28,
            hidden=3584,
            ffn=18944,
            vocab=152064,
            tied=False,
            context_limit_tokens=32768,
            tensors=Tensors(quantization="BF16"),
        ),
        assumed=("layers.key_dim", "layers.value_dim"),
    )


@pytest.mark.parametrize(
    ("config", "kv_type", "expected"),
    [
        # B09: 2 x layers x KV heads x head dimension x bytes
        (LLAMA31_8B, "f16", 131_072),
        (QWEN25_7B, "f16", 57_344),
        (QWEN25_7B, "q8_0", 30_464),
        (QWEN3_4B, "f16", 147_456),  # 92,160 is hidden / heads for the head's width
        # 8 of 48 layers are global: 8 x 8 x 512 x 2
        (GEMMA3_12B, "f16", 65_536),
        # 12 of 24 x 8 x 128 x 2
        (GPT_OSS_20B, "f16", 24_576),
        # 61 x (512 + 64) x 2, no values
        (DEEPSEEK_V3, "bf16", 70_272),
        # 12 of 48 x 2 x 512 x 2
        (QWEN3_NEXT, "f16", 24_576),
        # 4 of 32 x 8 x 256 x 2
        (JAMBA_MINI, "f16", 16_384),
        # 4 of 40 x 8 x 256 x 2
        (GRANITE_H, "f16", 16_384),
        # one attention layer x 8 x 256 x 2
        (NEMOTRON_H, "f16", 4_096),
    ],
)  # fmt: skip
def test_b09_what_a_token_adds(config: dict[str, Any], kv_type: str, expected: int) -> None:
    """Bytes a token in the layers that attend to everything."""
    assert token_bytes(read(config).model, kv_type) == Range.of(expected)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # layers x (state + convolution) x 4 bytes
        (QWEN3_NEXT, 36 * (32 * 128 * 128 + 3 * (2 * 16 * 128 + 32 * 128)) * 4),
        (JAMBA_MINI, 28 * (8192 * 16 + 3 * 8192) * 4),
        (GRANITE_H, 36 * (8192 * 128 + 3 * (8192 + 2 * 128)) * 4),
        (NEMOTRON_H, 3 * (8192 * 128 + 3 * (8192 + 2 * 8 * 128)) * 4),
        (LLAMA31_8B, 0),
    ],
)
def test_what_a_sequence_keeps_whatever_its_length(config: dict[str, Any], expected: int) -> None:
    """The state of the recurrent layers: 79 MB in Qwen3-Next, 155 MB in Granite 4.0 H small."""
    assert state_bytes(read(config).model) == expected


def test_experts_and_latent_attention() -> None:
    """DeepSeek-V3: three dense layers, 58 of 256 experts with one shared."""
    model = read(DEEPSEEK_V3).model
    assert model.mla == Mla(512, 64, 128, 128, 1536)
    assert model.moe == Moe(experts=256, used=8, expert_ffn=2048, shared_ffn=2048)
    assert [layer.experts for layer in model.layers or ()] == [False] * 3 + [True] * 58
    assert model.tensors.quantization == "FP8"


@pytest.mark.parametrize(
    ("config", "layers_with_experts", "moe"),
    [
        (GPT_OSS_20B, range(24), Moe(32, 4, 2880)),
        (QWEN3_NEXT, range(48), Moe(512, 10, 512, 512)),
        (JAMBA_MINI, range(1, 32, 2), Moe(16, 2, 14336)),
        (GRANITE_H, range(40), Moe(72, 10, 768, 1536)),
        (QWEN3_NEXT | {"decoder_sparse_step": 2, "mlp_only_layers": [1]}, range(3, 48, 2), Moe(512, 10, 512, 512)),
    ],
)
def test_which_layers_have_experts(config: dict[str, Any], layers_with_experts: range, moe: Moe) -> None:
    """Each family says it in keys of its own."""
    model = read(config).model
    assert [index for index, layer in enumerate(model.layers or ()) if layer.experts] == list(layers_with_experts)
    assert model.moe == moe


@pytest.mark.parametrize(
    ("keys", "kinds"),
    [
        ({"sliding_window": None}, "gggg"),
        ({"sliding_window": 64}, "llll"),  # Mistral 7B v0.1
        ({"sliding_window": 4096}, "gggg"),  # Phi-4-mini: a window as wide as the context is none
        ({"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 3}, "gggl"),
        ({"sliding_window": 64, "sliding_window_pattern": 2}, "lglg"),
        ({"sliding_window": 64, "model_type": "gemma2"}, "lglg"),
    ],
)
def test_which_layers_look_back_a_window(keys: dict[str, Any], kinds: str) -> None:
    """By a pattern, from a layer on, all, or none."""
    config = LLAMA31_8B | {"num_hidden_layers": 4, "max_position_embeddings": 4096} | keys
    model = read(config).model
    assert "".join(layer.kind[0] for layer in model.layers or ()) == kinds
    assert model.window_tokens == (64 if "l" in kinds else None)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"torch_dtype": "float16"}, "F16"),
        ({"torch_dtype": None, "dtype": "bfloat16"}, "BF16"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, "AWQ"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "GPTQ"),
        ({"quantization": {"group_size": 64, "bits": 4}}, "MLX-4bit"),
        ({"quantization_config": {"quant_method": "odd"}}, "ODD"),
        ({"torch_dtype": None}, None),
    ],
)
def test_how_the_checkpoint_is_quantized(keys: dict[str, Any], expected: str | None) -> None:
    """In the names that theory knows; another method keeps its own."""
    assert read(LLAMA31_8B | keys).model.tensors.quantization == expected


def test_what_is_missing_is_named() -> None:
    """A config.json knows no bytes; this one lacks its vocabulary too."""
    config = {name: value for name, value in QWEN3_4B.items() if name != "vocab_size"}
    reading = read(config)
    assert reading.missing == (
        "vocab", "context_limit_tokens", "tensors.quantization", "tensors.total_bytes", "tensors.embedding_bytes",
    )  # fmt: skip
    # its class ties nothing, which is what leaving the key out means
    assert (reading.model.tied, reading.assumed) == (False, ("tied",))


def test_a_family_nobody_knows_keeps_its_name_and_leaves_open_what_it_does_not_say() -> None:
    """No default is taken from another family."""
    reading = read({"model_type": "novel", "num_hidden_layers": 2})
    assert reading.model.architecture == "novel"
    assert "tied" in reading.missing
    assert "layers.heads" in reading.missing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "config.json is not JSON"),
        ("[" * 100_000, "config.json is not JSON"),
        ("[]", "config.json: the whole is no JSON object"),
        ("{}", "config.json has no num_hidden_layers"),
        (json.dumps(QWEN3_4B | {"num_hidden_layers": 0}), "config.json: 0 layers; a model has between 1 and 2000"),
        (json.dumps(QWEN3_4B | {"num_hidden_layers": 10**12}), "config.json: 1000000000000 layers"),
        (json.dumps(QWEN3_4B | {"num_hidden_layers": "36"}), "num_hidden_layers is '36', not a whole number"),
        (json.dumps(QWEN3_4B | {"hidden_size": -1}), "hidden_size is -1, not a whole number"),
        (json.dumps(QWEN3_4B | {"tie_word_embeddings": 0}), "tie_word_embeddings is 0, not true or false"),
        (json.dumps(QWEN3_4B | {"layer_types": ["full_attention"]}), "lists 1 layers, num_hidden_layers says 36"),
        (json.dumps(QWEN3_4B | {"layer_types": ["odd"] * 36}), "kinds that are not known: odd"),
        (json.dumps(DEEPSEEK_V3 | {"v_head_dim": None}), "the key 'v_head_dim' is missing"),
        (json.dumps(GPT_OSS_20B | {"num_experts_per_tok": 33}), "33 of 32 experts a token"),
        (json.dumps(NEMOTRON_H | {"hybrid_override_pattern": "MM"}), "'MM' does not describe 6 layers"),
    ],
)
def test_what_makes_no_sense_is_said_with_its_key(text: str, expected: str) -> None:
    """One message of ours."""
    with pytest.raises(ReaderError) as caught:
        read_config(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("path", "kept"),
    [("Qwen/Qwen2.5-7B-Instruct", ("Qwen/Qwen2.5-7B-Instruct",)), ("/home/someone/models/mine", ("mine",)), ("", ())],
)
def test_no_folder_of_anybody_is_kept(path: str, kept: tuple[str, ...]) -> None:
    """_name_or_path is a repository's name, or the path where somebody trained."""
    assert read(QWEN25_7B | {"_name_or_path": path}).names == kept


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 10**6)
    | st.floats()
    | st.sampled_from(["", "x", "36"])
    | st.just([])
    | st.just({})
)


@given(
    changed=st.dictionaries(st.sampled_from(sorted({*DEEPSEEK_V3, *QWEN3_NEXT, *GEMMA3_12B["text_config"]})), VALUES)
)
def test_any_value_gives_our_error_or_a_reading(changed: dict[str, Any]) -> None:
    """Keys of three families with anything in them: never another exception, and JSON brings the reading back."""
    for config in (DEEPSEEK_V3, QWEN3_NEXT):
        try:
            reading = read(config | changed)
        except ReaderError:
            continue
        assert from_json(json.loads(json.dumps(to_json(reading)))) == reading


def test_recurrent_dimensions_that_are_missing_leave_the_state_open() -> None:
    """Not zero: unknown, and named."""
    config = {name: value for name, value in GRANITE_H.items() if name != "mamba_d_state"}
    reading = read(config)
    assert reading.model.recurrent is None
    assert "recurrent" in reading.missing
    assert read(GRANITE_H).model.recurrent == Recurrent(8192 * 128, 3 * (8192 + 256))
