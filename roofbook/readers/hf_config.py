"""A Hugging Face config.json: the dimensions of a model, and how its checkpoint is quantized. No bytes.

Keys as transformers writes them (src/transformers/models/*/configuration_*.py); what a family leaves out has that
family's default, and is named in ``Reading.assumed``.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from roofbook.errors import ReaderError
from roofbook.readers.fields import Fields
from roofbook.readers.layers import attention, kinds_of_pattern
from roofbook.readers.reading import Reading, check_layer_count
from roofbook.theory.kv import delta_state, mamba_state
from roofbook.theory.shapes import Layer, LayerKind, Mla, Model, Moe, Recurrent, Tensors

_SOURCE: Final = "config.json"

# model_type -> the architecture's name in GGUF, where the two differ.
_ARCHITECTURES: Final = {
    "mistral": "llama",
    "mixtral": "llama",
    "smollm3": "smollm3",
    "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
    "qwen3_next": "qwen3next",
    "qwen3_5": "qwen35",
    "qwen3_5_text": "qwen35",
    "qwen3_5_moe": "qwen35moe",
    "qwen3_5_moe_text": "qwen35moe",
    "gemma3_text": "gemma3",
    "gpt_oss": "gpt-oss",
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
    "kimi_k2": "deepseek2",
    "granitemoehybrid": "granitehybrid",
}

# Whether the output matrix is the embedding, where config.json does not say: each class's own default.
_TIED_BY_DEFAULT: Final = {
    "llama": False, "mistral": False, "mixtral": False, "qwen2": False, "qwen2_moe": False, "qwen3": False,
    "qwen3_moe": False, "qwen3_next": False, "phi3": False, "gpt_oss": False, "deepseek_v2": False,
    "deepseek_v3": False, "kimi_k2": False, "jamba": False, "gemma": True, "gemma2": True, "gemma3": True,
    "gemma3_text": True, "cohere": True, "cohere2": True,
}  # fmt: skip

_KINDS: Final[Mapping[str, LayerKind]] = {
    "full_attention": "global",
    "attention": "global",
    "sliding_attention": "local",
    "chunked_attention": "local",
    "linear_attention": "recurrent",
    "mamba": "recurrent",
}

_DTYPES: Final = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}


def read_config(text: str | bytes) -> Reading:
    """Return what a config.json holds.

    Raises ReaderError, naming the key, where it is no config.json or a value makes no sense.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ReaderError("config.json is not JSON: %(problem)s", problem=problem) from problem
    outer = Fields.of(document, _SOURCE)
    # A model that sees or hears keeps its language model's keys in an object of their own.
    config = outer.inner("text_config", "llm_config", "language_config") or outer
    count = config.whole("num_hidden_layers", "n_layer", "num_layers")
    if count is None:
        raise ReaderError("config.json has no num_hidden_layers: it describes no language model")
    check_layer_count(count, _SOURCE)

    family = config.text("model_type") or outer.text("model_type") or ""
    assumed: list[str] = []
    kinds = _kinds(config, family, count)
    mla = _mla(config)
    moe = _moe(config)
    tied = _tied(config, outer, family, assumed)
    model = Model(
        id=_name(outer) or family or "config.json",
        architecture=_ARCHITECTURES.get(family, family) or None,
        layers=_layers(config, kinds, mla, moe, assumed),
        hidden=config.whole("hidden_size", "n_embd", "d_model"),
        ffn=config.whole("intermediate_size", "n_inner", "ffn_dim"),
        vocab=config.whole("vocab_size"),
        tied=tied,
        window_tokens=config.whole("sliding_window", "attention_chunk_size") if "local" in kinds else None,
        mla=mla,
        moe=moe,
        recurrent=_recurrent(config) if "recurrent" in kinds else None,
        context_limit_tokens=config.whole("max_position_embeddings", "n_positions", "n_ctx"),
        rope_factors=_rope_factors(config),
        tensors=Tensors(quantization=_quantization(config, outer)),
    )
    return Reading(_SOURCE, model, names=tuple(filter(None, [_name(outer)])), assumed=tuple(assumed))


def _name(config: Fields) -> str | None:
    """Return the model's name, of which a local path keeps its last part only."""
    name = config.text("_name_or_path")
    if not name:
        return None
    local = name.startswith(("/", ".", "~")) or "\\" in name or name.count("/") > 1
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2] if local else name


def _kinds(config: Fields, family: str, count: int) -> tuple[LayerKind, ...]:
    """Return the kind of each layer."""
    listed = config.texts("layer_types") or config.texts("layers_block_type")
    if listed:
        return _listed_kinds(listed, count)
    spelled = config.text("hybrid_override_pattern")
    if spelled is not None:
        return _spelled_kinds(spelled, count)
    every = config.whole("full_attention_interval")
    if every:
        return tuple("global" if (index + 1) % every == 0 else "recurrent" for index in range(count))
    period = config.whole("attn_layer_period")
    if period:
        offset = config.whole("attn_layer_offset") or 0
        return tuple("global" if index % period == offset else "recurrent" for index in range(count))
    return _windowed_kinds(config, family, count)


def _listed_kinds(listed: tuple[str, ...], count: int) -> tuple[LayerKind, ...]:
    unknown = sorted(set(listed) - set(_KINDS))
    if unknown:
        raise ReaderError("config.json: layer_types has kinds that are not known: %(kinds)s", kinds=", ".join(unknown))
    if len(listed) != count:
        raise ReaderError(
            "config.json: layer_types lists %(listed)d layers, num_hidden_layers says %(count)d",
            listed=len(listed),
            count=count,
        )
    return tuple(_KINDS[one] for one in listed)


def _spelled_kinds(spelled: str, count: int) -> tuple[LayerKind, ...]:
    """Return the kinds that Nemotron-H spells: M Mamba, * attention, - a feed-forward part alone."""
    known: Mapping[str, LayerKind] = {"M": "recurrent", "*": "global", "-": "global", "E": "global"}
    if len(spelled) != count or set(spelled) - set(known):
        raise ReaderError(
            "config.json: hybrid_override_pattern '%(pattern)s' does not describe %(count)d layers",
            pattern=spelled[:80],
            count=count,
        )
    return tuple(known[letter] for letter in spelled)


def _windowed_kinds(config: Fields, family: str, count: int) -> tuple[LayerKind, ...]:
    """Return which layers look back a window only: by a pattern, from a layer on, or all."""
    window, limit = config.whole("sliding_window"), config.whole("max_position_embeddings")
    if not window or config.flag("use_sliding_window") is False or (limit is not None and window >= limit):
        return ("global",) * count
    if config.flag("use_sliding_window"):  # Qwen2: the first max_window_layers attend to everything
        first = config.whole("max_window_layers") or 0
        return tuple("global" if index < first else "local" for index in range(count))
    default = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4, "gpt_oss": 2}.get(family, 0)
    every = config.whole("sliding_window_pattern", "_sliding_window_pattern") or default
    return kinds_of_pattern(every, count) if every else ("local",) * count


def _layers(
    config: Fields, kinds: tuple[LayerKind, ...], mla: Mla | None, moe: Moe | None, assumed: list[str]
) -> tuple[Layer, ...]:
    heads = config.whole("num_attention_heads", "n_head")
    kv_heads = config.whole("num_key_value_heads")
    if kv_heads is None and mla is None:
        kv_heads = 1 if config.flag("multi_query") else heads
        assumed.append("layers.kv_heads")
    key_dim = config.whole("head_dim", "attention_head_dim")
    hidden = config.whole("hidden_size", "n_embd", "d_model")
    if key_dim is None and mla is None and heads and hidden:
        key_dim = hidden // heads
        assumed += ["layers.key_dim", "layers.value_dim"]
    value_dim = config.whole("v_head_dim") or key_dim
    routed: frozenset[int] = frozenset() if moe is None else _routed(config, len(kinds))
    spelled = config.text("hybrid_override_pattern")
    layers: list[Layer] = []
    for index, kind in enumerate(kinds):
        if spelled is not None and spelled[index] in "-E":
            layers.append(Layer("global", heads, 0, key_dim, value_dim, experts=spelled[index] == "E"))
        elif mla is not None:
            layers.append(Layer(kind, heads=heads, experts=index in routed))
        else:
            layers.append(attention(kind, heads, kv_heads, key_dim, value_dim, experts=index in routed))
    return tuple(layers)


def _routed(config: Fields, count: int) -> frozenset[int]:
    """Return the layers that have routed experts in a model that has some."""
    listed = config.wholes("moe_layers")
    if listed is not None:
        return frozenset(listed)
    period = config.whole("expert_layer_period")  # Jamba
    if period:
        offset = config.whole("expert_layer_offset") or 0
        return frozenset(index for index in range(count) if index % period == offset)
    step = config.whole("decoder_sparse_step", "interleave_moe_layer_step")  # Qwen, Llama 4
    if step:
        dense = config.wholes("mlp_only_layers") or ()
        return frozenset(index for index in range(count) if index not in dense and (index + 1) % step == 0)
    first, step = config.whole("first_k_dense_replace") or 0, config.whole("moe_layer_freq") or 1  # DeepSeek
    return frozenset(index for index in range(first, count) if index % step == 0)


def _moe(config: Fields) -> Moe | None:
    experts = config.whole("num_local_experts", "num_experts", "n_routed_experts")
    used = config.whole("num_experts_per_tok", "num_experts_per_token", "moe_topk")
    if not experts or not used:
        return None
    if used > experts:
        raise ReaderError("config.json: %(used)d of %(experts)d experts a token", used=used, experts=experts)
    width = config.whole("moe_intermediate_size") or config.whole("intermediate_size")
    shared = config.whole("shared_expert_intermediate_size", "shared_intermediate_size")
    if shared is None:
        shared = (config.whole("n_shared_experts", "num_shared_experts") or 0) * (width or 0)
    return Moe(experts, used, width, shared)


def _mla(config: Fields) -> Mla | None:
    if config.whole("kv_lora_rank") is None:
        return None
    return Mla(
        kv_rank=config.needed("kv_lora_rank"),
        rope_dim=config.needed("qk_rope_head_dim"),
        nope_dim=config.needed("qk_nope_head_dim"),
        value_dim=config.needed("v_head_dim"),
        query_rank=config.whole("q_lora_rank"),
    )


def _recurrent(config: Fields) -> Recurrent | None:
    """Return the state of the recurrent layers: a gated delta net, else Mamba; None where a dimension is missing."""
    delta = [config.whole(f"linear_{name}") for name in _DELTA]
    if all(delta):
        return delta_state(*(value or 0 for value in delta))
    state = config.whole("mamba_d_state", "ssm_state_size", "state_size")
    conv = config.whole("mamba_d_conv", "conv_kernel")
    inner = _mamba_width(config)
    if not state or not conv or not inner:
        return None
    return mamba_state(inner, state, conv, config.whole("mamba_n_groups", "n_groups") or 0)


_DELTA: Final = ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim", "conv_kernel_dim")


def _mamba_width(config: Fields) -> int | None:
    heads = config.whole("mamba_n_heads", "mamba_num_heads")
    width = config.whole("mamba_d_head", "mamba_head_dim")
    if heads and width:
        return heads * width
    hidden, expand = config.whole("hidden_size"), config.whole("mamba_expand", "expand")
    return hidden * expand if hidden and expand else None


def _tied(config: Fields, outer: Fields, family: str, assumed: list[str]) -> bool | None:
    tied = config.flag("tie_word_embeddings")
    if tied is None:
        tied = outer.flag("tie_word_embeddings")
    if tied is None and family in _TIED_BY_DEFAULT:
        assumed.append("tied")
        return _TIED_BY_DEFAULT[family]
    return tied


def _rope_factors(config: Fields) -> int:
    """Return the rotary factors that a GGUF of this model carries: half a head's dimension for Llama 3's scaling."""
    scaling = config.inner("rope_scaling", "rope_parameters")
    if scaling is None or scaling.text("rope_type", "type") != "llama3":
        return 0
    heads, hidden = config.whole("num_attention_heads"), config.whole("hidden_size")
    head_dim = config.whole("head_dim") or (hidden // heads if heads and hidden else 0)
    return head_dim // 2


def _quantization(config: Fields, outer: Fields) -> str | None:
    """Return the checkpoint's format in the names that theory knows: AWQ, GPTQ, FP8, MLX-4bit, BF16 ..."""
    method = outer.inner("quantization_config") or config.inner("quantization_config")
    if method is not None:
        name = method.text("quant_method")
        return None if name is None else _METHODS.get(name.lower(), name.upper())
    grouped = outer.inner("quantization")
    if grouped is not None and grouped.whole("bits"):
        return f"MLX-{grouped.whole('bits')}bit"
    kind = config.text("torch_dtype", "dtype") or outer.text("torch_dtype", "dtype")
    return None if kind is None else _DTYPES.get(kind)


_METHODS: Final[Mapping[str, Any]] = {"awq": "AWQ", "gptq": "GPTQ", "fp8": "FP8", "mxfp4": "MXFP4", "nvfp4": "NVFP4"}
