"""The metadata of GGUF, whoever tells it: the file's header, or Ollama's /api/show, which passes it on.

Keys: docs/gguf.md of ggml and gguf-py's constants; {arch}. stands before those of the model. A number that differs from
layer to layer is an array.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import PurePath
from typing import Any, Final, cast

from roofbook.errors import ReaderError
from roofbook.readers.fields import Fields
from roofbook.readers.layers import attention, kinds_of_pattern
from roofbook.readers.reading import Reading, check_layer_count
from roofbook.theory.kv import delta_state, mamba_state
from roofbook.theory.shapes import Layer, LayerKind, Mla, Model, Moe, Recurrent, Tensors


@dataclass(frozen=True)
class TensorInfo:
    """One tensor as a header lists it: *shape* as in GGUF, the row's length first."""

    name: str
    shape: tuple[int, ...]
    size_bytes: int

    @property
    def elements(self) -> int:
        return prod(self.shape)


TensorTable = Mapping[str, TensorInfo]


@dataclass(frozen=True)
class Length:
    """A long array of the metadata, of which only the number of items is kept."""

    items: int


# Of sliding-window architectures whose files do not say which layers look back a window: every how many attends to all.
_EVERY: Final = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4}
_LOCAL_BY_DEFAULT: Final = (*_EVERY, "phi3")

_SPLIT: Final = re.compile(r"(-\d{5}-of-\d{5})?\.gguf$")
_EMBEDDING: Final = "token_embd.weight"
_ROUTED: Final = ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_up_exps")


def model_of(
    metadata: Mapping[str, Any],
    file: str,
    *,
    tensors: TensorTable | None = None,
    file_type: str | None = None,
    source: str = "gguf",
) -> Reading:
    """Return what GGUF's *metadata* and, where known, the *tensors* of *file* say.

    Raises ReaderError, naming the key, where the architecture is missing or a value makes no sense.
    """
    keys = Fields(metadata, file)
    architecture = keys.text("general.architecture")
    if not architecture:
        raise ReaderError("%(file)s has no general.architecture", file=file)
    own = _Own(keys, architecture)
    count = own.whole("block_count")
    # Blocks that only predict ahead (multi-token prediction) lie behind the model's own and are not run.
    layers = None if count is None else check_layer_count(count - (own.whole("nextn_predict_layers") or 0), file)
    assumed: list[str] = []
    mla = _mla(own)
    built = None if layers is None else _layers(own, layers, mla, tensors, assumed)
    model = Model(
        id=_SPLIT.sub("", PurePath(file).name),
        architecture=architecture,
        layers=built,
        hidden=own.whole("embedding_length"),
        ffn=own.first("feed_forward_length"),
        vocab=_vocab(own, keys, tensors),
        tied=None if tensors is None else "output.weight" not in tensors,
        window_tokens=own.whole("attention.sliding_window") if _any(built, "local") else None,
        mla=mla,
        moe=_moe(own, tensors),
        recurrent=_recurrent(own) if _any(built, "recurrent") else None,
        context_limit_tokens=own.whole("context_length"),
        rope_factors=_rope_factors(tensors),
        params=_params(keys, tensors),
        tensors=_bytes(tensors, file_type),
    )
    names = [PurePath(file).name] if source == "gguf" else []
    return Reading(source, model, names=tuple(names), assumed=tuple(assumed))


class _Own:
    """The keys of the model's own architecture."""

    def __init__(self, keys: Fields, architecture: str) -> None:
        self._keys = keys
        self._architecture = architecture

    def whole(self, name: str) -> int | None:
        """Return the number *name*; None where it is missing or an array."""
        value = self._keys.values.get(f"{self._architecture}.{name}")
        return None if isinstance(value, list) else self._keys.whole(f"{self._architecture}.{name}")

    def each(self, name: str, count: int) -> list[int | None]:
        """Return the number of each of *count* layers, which the file gives once or one by one."""
        key = f"{self._architecture}.{name}"
        value = self._keys.values.get(key)
        if not isinstance(value, list):
            return [self._keys.whole(key)] * count
        listed = self._keys.wholes(key) or ()
        if len(listed) < count:
            raise ReaderError(
                "%(file)s: %(key)s lists %(listed)d layers of %(count)d",
                file=self._keys.source,
                key=key,
                listed=len(listed),
                count=count,
            )
        return list(listed[:count])

    def first(self, name: str) -> int | None:
        """Return the number, of an array its largest: blocks without a feed-forward part say 0."""
        key = f"{self._architecture}.{name}"
        value = self._keys.values.get(key)
        return max(self._keys.wholes(key) or (0,)) or None if isinstance(value, list) else self._keys.whole(key)

    def items(self, name: str) -> list[Any] | None:
        value = self._keys.values.get(f"{self._architecture}.{name}")
        return cast("list[Any]", value) if isinstance(value, list) else None

    @property
    def architecture(self) -> str:
        return self._architecture


def _layers(
    own: _Own, count: int, mla: Mla | None, tensors: TensorTable | None, assumed: list[str]
) -> tuple[Layer, ...]:
    heads = own.each("attention.head_count", count)
    kv_heads = own.each("attention.head_count_kv", count)
    if own.whole("attention.head_count_kv") is None and all(one is None for one in kv_heads) and mla is None:
        kv_heads = heads
        assumed.append("layers.kv_heads")
    kinds = _kinds(own, count, kv_heads)
    hidden = own.whole("embedding_length")
    key_dim, value_dim = own.whole("attention.key_length"), own.whole("attention.value_length")
    if key_dim is None and mla is None and hidden and heads[0]:
        key_dim = hidden // heads[0]
        value_dim = value_dim or key_dim
        assumed += ["layers.key_dim", "layers.value_dim"]
    local_key = own.whole("attention.key_length_swa") or key_dim
    local_value = own.whole("attention.value_length_swa") or value_dim
    layers: list[Layer] = []
    for index, kind in enumerate(kinds):
        routed = _has_experts(own, index, tensors)
        if mla is not None:
            layers.append(Layer(kind, heads=heads[index], experts=routed))
            continue
        dims = (local_key, local_value) if kind == "local" else (key_dim, value_dim)
        layers.append(attention(kind, heads[index], kv_heads[index], *dims, experts=routed))
    return tuple(layers)


def _kinds(own: _Own, count: int, kv_heads: list[int | None]) -> tuple[LayerKind, ...]:
    every = own.whole("full_attention_interval")
    if every:
        return tuple("global" if (index + 1) % every == 0 else "recurrent" for index in range(count))
    if own.whole("ssm.conv_kernel"):
        # A hybrid's file gives the layers without attention no KV heads.
        return tuple("recurrent" if not kv_heads[index] else "global" for index in range(count))
    if not own.whole("attention.sliding_window"):
        return ("global",) * count
    listed = own.items("attention.sliding_window_pattern")
    if listed is not None and len(listed) >= count:
        return tuple("local" if windowed else "global" for windowed in listed[:count])
    every = own.whole("attention.sliding_window_pattern") or _EVERY.get(own.architecture)
    if every:
        return kinds_of_pattern(every, count)
    return ("local" if own.architecture in _LOCAL_BY_DEFAULT else "global",) * count


def _mla(own: _Own) -> Mla | None:
    """Return the latent attention's sizes; attention.key_length is then the cached width, the _mla ones a head's."""
    rank, rope = own.whole("attention.kv_lora_rank"), own.whole("rope.dimension_count")
    if rank is None or rope is None:
        return None
    key = own.whole("attention.key_length_mla") or own.whole("attention.key_length")
    value = own.whole("attention.value_length_mla") or own.whole("attention.value_length")
    if key is None or value is None or key <= rope:
        return None
    return Mla(rank, rope, key - rope, value, own.whole("attention.q_lora_rank") or None)


def _moe(own: _Own, tensors: TensorTable | None) -> Moe | None:
    experts, used = own.whole("expert_count"), own.whole("expert_used_count")
    if not experts or not used:
        return None
    width = own.whole("expert_feed_forward_length")
    if width is None and tensors is not None:
        found = next((tensor.shape for tensor in tensors.values() if "ffn_up_exps" in tensor.name), None)
        width = found[1] if found is not None and len(found) == 3 else None
    width = own.first("feed_forward_length") if width is None and own.architecture in ("llama", "jamba") else width
    shared = own.whole("expert_shared_feed_forward_length")
    if shared is None:
        shared = (own.whole("expert_shared_count") or 0) * (width or 0)
    return Moe(experts, used, width, shared)


def _has_experts(own: _Own, index: int, tensors: TensorTable | None) -> bool:
    if not own.whole("expert_count"):
        return False
    if tensors is not None:
        return any(f"blk.{index}.{name}.weight" in tensors for name in _ROUTED)
    return index >= (own.whole("leading_dense_block_count") or 0)


def _recurrent(own: _Own) -> Recurrent | None:
    """Return one layer's state; Qwen3-Next writes its delta net's sizes into the keys of Mamba."""
    conv, inner, state = own.whole("ssm.conv_kernel"), own.whole("ssm.inner_size"), own.whole("ssm.state_size")
    groups, heads = own.whole("ssm.group_count") or 0, own.whole("ssm.time_step_rank")
    if not conv or not inner or not state:
        return None
    if own.architecture.startswith(("qwen3next", "qwen35")) and heads:
        return delta_state(groups, heads, state, inner // heads, conv)
    return mamba_state(inner, state, conv, groups)


def _vocab(own: _Own, keys: Fields, tensors: TensorTable | None) -> int | None:
    """Return the rows of the embedding, else the number of tokens: llama.cpp loads no file where the two differ."""
    embedding = (tensors or {}).get(_EMBEDDING)
    if embedding is not None and len(embedding.shape) == 2:
        return embedding.shape[1]
    tokens = keys.values.get("tokenizer.ggml.tokens")
    if isinstance(tokens, Length):
        return tokens.items
    return len(cast("list[Any]", tokens)) if isinstance(tokens, list) and tokens else own.whole("vocab_size")


def _rope_factors(tensors: TensorTable | None) -> int:
    """Return the elements of the tables of rotary factors (Llama 3: one; Phi-3: a long and a short one)."""
    return sum(tensor.elements for tensor in (tensors or {}).values() if tensor.name.startswith("rope_f"))


def _params(keys: Fields, tensors: TensorTable | None) -> int | None:
    if tensors is None:
        return keys.whole("general.parameter_count")
    return sum(tensor.elements for tensor in tensors.values())


def _bytes(tensors: TensorTable | None, file_type: str | None) -> Tensors:
    if tensors is None:
        return Tensors(quantization=file_type)
    embedding = tensors.get(_EMBEDDING)
    routed = [tensor for tensor in tensors.values() if any(part in tensor.name for part in _ROUTED)]
    return Tensors(
        quantization=file_type,
        total_bytes=sum(tensor.size_bytes for tensor in tensors.values()),
        embedding_bytes=None if embedding is None else embedding.size_bytes,
        expert_bytes=sum(tensor.size_bytes for tensor in routed),
    )


def _any(layers: tuple[Layer, ...] | None, kind: LayerKind) -> bool:
    return layers is not None and any(layer.kind == kind for layer in layers)
