"""A GGUF header: real files, files of every family written here, and damaged ones."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofbook.errors import ReaderError
from roofbook.readers import Reading, from_json, read_gguf, read_gguf_header, to_json
from roofbook.readers.gguf_metadata import TensorInfo
from roofbook.theory.kv import token_bytes
from roofbook.theory.shapes import Layer, Mla, Model, Moe, Range, Recurrent, Tensors
from roofbook.theory.weights import weights


def test_smollm2_is_read_to_the_byte(smollm2: Path) -> None:
    """96,576,768 bytes of tensors, as llama.cpp's /v1/models says; its embedding is Q8_0."""
    # embedding: 576 / 32 blocks a row x 34 bytes = 612 bytes, x 49,152 rows = 30,081,024
    head = Layer("global", heads=9, kv_heads=3, key_dim=64, value_dim=64)
    assert read_gguf(smollm2) == Reading(
        source="gguf",
        model=Model(
            id="SmolLM2-135M-Instruct.Q4_1",
            architecture="llama",
            layers=(head,) * 30,
            hidden=576,
            ffn=1536,
            vocab=49152,
            tied=True,
            context_limit_tokens=8192,
            params=134_515_008,
            tensors=Tensors(
                quantization="Q4_1",
                total_bytes=96_576_768,
                embedding_bytes=30_081_024,
                expert_bytes=0,
                file_bytes=98_362_432,
            ),
        ),
        names=("SmolLM2-135M-Instruct.Q4_1.gguf",),
        assumed=("layers.key_dim", "layers.value_dim"),
    )


def test_a_tied_embedding_is_read_in_full_each_step(smollm2: Path) -> None:
    """SmolLM2: all 96,576,768 bytes a step."""
    model = read_gguf(smollm2).model
    assert weights(model).step_bytes(model) == Range.of(96_576_768)


def test_the_header_lists_what_the_gguf_package_lists(smollm2: Path) -> None:
    """Tensor by tensor, against the format's own reader."""
    own = gguf.GGUFReader(smollm2)
    expected = tuple(
        TensorInfo(tensor.name, tuple(int(length) for length in tensor.shape), int(tensor.n_bytes))
        for tensor in own.tensors
    )
    assert read_gguf_header(smollm2.read_bytes(), "file").tensors == expected


def test_the_header_alone_is_enough(smollm2: Path) -> None:
    """Whoever has fetched only the front of a file knows its bytes: the tensors' data is not touched."""
    whole = smollm2.read_bytes()
    front = whole[: len(whole) - 96_576_768]
    assert read_gguf_header(front, "file") == read_gguf_header(whole, "file")


def written(
    path: Path, architecture: str, keys: dict[str, Any], tensors: dict[str, tuple[int, ...]] | None = None, **split: int
) -> Path:
    """Write a small GGUF with *keys* ({arch}. before them) and F32 *tensors* of these shapes (rows first)."""
    writer = gguf.GGUFWriter(path, architecture, **split)
    for name, value in keys.items():
        key = name if name.startswith("general.") else f"{architecture}.{name}"
        if isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_uint32(key, value)
    for name, shape in (tensors or {}).items():
        writer.add_tensor(name, np.zeros(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


COMMON = {"block_count": 4, "context_length": 8192, "embedding_length": 64, "feed_forward_length": 128}


def model(tmp_path: Path, architecture: str, keys: dict[str, Any], **tensors: tuple[int, ...]) -> Model:
    named = {f"{name.replace('__', '.')}.weight": shape for name, shape in tensors.items()}
    return read_gguf(written(tmp_path / "m.gguf", architecture, COMMON | keys, named or {"output": (4, 4)})).model


def test_grouped_heads_with_a_width_of_their_own(tmp_path: Path) -> None:
    """Qwen3-4B's heads are 128 wide although hidden / heads is 80: key_length says so."""
    keys = {
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "attention.key_length": 32,
        "attention.value_length": 32,
    }
    found = model(tmp_path, "qwen3", keys)
    assert found.layers == (Layer("global", 4, 2, 32, 32),) * 4
    # 4 layers x 2 heads x (32 + 32) x 2 bytes
    assert token_bytes(found, "f16") == Range.of(1024)


def test_no_kv_heads_means_as_many_as_heads(tmp_path: Path) -> None:
    """head_count_kv absent: every head keeps its own keys and values."""
    path = written(tmp_path / "m.gguf", "llama", COMMON | {"attention.head_count": 4}, {"a.weight": (2, 2)})
    reading = read_gguf(path)
    assert reading.model.layers == (Layer("global", 4, 4, 16, 16),) * 4
    assert reading.assumed == ("layers.kv_heads", "layers.key_dim", "layers.value_dim")


def test_heads_that_differ_from_layer_to_layer(tmp_path: Path) -> None:
    """An array of KV heads; 0 is a layer that does not attend."""
    keys = {
        "attention.head_count": 4,
        "attention.head_count_kv": [2, 0, 2, 1],
        "attention.key_length": 16,
        "attention.value_length": 16,
    }
    found = model(tmp_path, "llama", keys)
    assert [layer.kv_heads for layer in found.layers or ()] == [2, 0, 2, 1]
    # 5 KV heads in all x (16 + 16) x 2 bytes
    assert token_bytes(found, "f16") == Range.of(320)


def test_a_listed_window_pattern(tmp_path: Path) -> None:
    """sliding_window_pattern: true for the layers that look back a window."""
    keys = {"attention.head_count": 4, "attention.head_count_kv": 2, "attention.sliding_window": 512,
            "attention.sliding_window_pattern": [True, True, True, False]}  # fmt: skip
    found = model(tmp_path, "gemma4", keys)
    assert [layer.kind for layer in found.layers or ()] == ["local", "local", "local", "global"]
    assert found.window_tokens == 512


@pytest.mark.parametrize(
    ("architecture", "kinds"),
    [
        ("gemma2", ["local", "global", "local", "global"]),
        ("gpt-oss", ["local", "global", "local", "global"]),
        ("gemma3", ["local"] * 4),  # every sixth attends to all, and here are four
        ("phi3", ["local"] * 4),
        ("llama", ["global"] * 4),
    ],
)
def test_a_window_without_a_pattern_follows_its_family(tmp_path: Path, architecture: str, kinds: list[str]) -> None:
    """Files of these families give the window and leave its layers to the program."""
    keys = {"attention.head_count": 4, "attention.head_count_kv": 2, "attention.sliding_window": 512}
    found = model(tmp_path, architecture, keys)
    assert [layer.kind for layer in found.layers or ()] == kinds


def test_latent_attention(tmp_path: Path) -> None:
    """DeepSeek-V3: 512 + 64 cached, heads of 128 + 64 and 128; key_length 576 is the cache's width."""
    keys = {
        "attention.head_count": 128, "attention.head_count_kv": 1, "attention.kv_lora_rank": 512,
        "attention.q_lora_rank": 1536, "rope.dimension_count": 64, "attention.key_length": 576,
        "attention.value_length": 512, "attention.key_length_mla": 192, "attention.value_length_mla": 128,
        "expert_count": 256, "expert_used_count": 8, "expert_feed_forward_length": 2048, "expert_shared_count": 1,
        "leading_dense_block_count": 3,
    }  # fmt: skip
    found = model(tmp_path, "deepseek2", keys, blk__3__ffn_up_exps=(2, 4, 4))
    assert found.mla == Mla(kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128, query_rank=1536)
    assert found.moe == Moe(experts=256, used=8, expert_ffn=2048, shared_ffn=2048)
    assert [layer.experts for layer in found.layers or ()] == [False, False, False, True]
    # 4 layers x 576 x 2 bytes
    assert token_bytes(found, "bf16") == Range.of(4608)


def test_experts_are_weighed_apart(tmp_path: Path) -> None:
    """gguf's shape of ffn_up_exps is (hidden, width, experts): 8 experts of 32 x 64 F32 values are 65,536 bytes."""
    keys = {"attention.head_count": 4, "attention.head_count_kv": 2, "expert_count": 8, "expert_used_count": 2}
    found = model(tmp_path, "llama", keys, blk__0__ffn_up_exps=(8, 32, 64), token_embd=(100, 64), output=(100, 64))
    assert found.moe == Moe(experts=8, used=2, expert_ffn=32)
    assert found.tensors == Tensors(
        total_bytes=65_536 + 2 * 25_600,
        embedding_bytes=25_600,
        expert_bytes=65_536,
        file_bytes=(tmp_path / "m.gguf").stat().st_size,
    )
    assert (found.vocab, found.tied, found.params) == (100, False, 8 * 32 * 64 + 2 * 6400)


def test_a_delta_net_hybrid(tmp_path: Path) -> None:
    """Qwen3-Next: every fourth layer attends; 32 value heads of 128 x 128, 3 columns of 8,192 channels."""
    keys = {
        "attention.head_count": 16, "attention.head_count_kv": 2, "attention.key_length": 256,
        "attention.value_length": 256, "full_attention_interval": 4, "ssm.conv_kernel": 4, "ssm.inner_size": 4096,
        "ssm.state_size": 128, "ssm.group_count": 16, "ssm.time_step_rank": 32,
    }  # fmt: skip
    found = model(tmp_path, "qwen3next", keys)
    assert [layer.kind for layer in found.layers or ()] == ["recurrent", "recurrent", "recurrent", "global"]
    assert found.recurrent == Recurrent(32 * 128 * 128, 3 * 8192)


def test_a_mamba_hybrid(tmp_path: Path) -> None:
    """Granite 4 H: layers without KV heads are Mamba-2; 8,192 x 128, and 3 x (8,192 + 2 x 128)."""
    keys = {
        "attention.head_count": 32, "attention.head_count_kv": [0, 8, 0, 0], "ssm.conv_kernel": 4,
        "ssm.inner_size": 8192, "ssm.state_size": 128, "ssm.group_count": 1,
    }  # fmt: skip
    found = model(tmp_path, "granitehybrid", keys)
    assert [layer.kind for layer in found.layers or ()] == ["recurrent", "global", "recurrent", "recurrent"]
    assert found.recurrent == Recurrent(1_048_576, 25_344)


def test_rotary_factors_are_counted(tmp_path: Path) -> None:
    """Llama 3.1's rope_freqs: 64 values."""
    found = model(tmp_path, "llama", {"attention.head_count": 4, "attention.head_count_kv": 2}, rope_freqs=(64,))
    assert found.rope_factors == 64


def test_a_split_file_is_read_whole_from_any_part(tmp_path: Path) -> None:
    """Three parts of one tensor each; the metadata stands in the first."""
    tensors = {"a.weight": (16, 64), "b.weight": (16, 64), "c.weight": (16, 64)}
    keys = COMMON | {"attention.head_count": 4, "attention.head_count_kv": 2}
    written(tmp_path / "big.gguf", "llama", keys, tensors, split_max_tensors=1)
    parts = sorted(tmp_path.glob("big-*.gguf"))
    assert [part.name for part in parts][:2] == ["big-00001-of-00003.gguf", "big-00002-of-00003.gguf"]
    first, last = read_gguf(parts[0]), read_gguf(parts[2])
    assert first == last
    assert first.model.id == "big"
    assert first.model.tensors.total_bytes == 3 * 16 * 64 * 4
    assert first.model.tensors.file_bytes == sum(part.stat().st_size for part in parts)


def test_a_lost_part_is_named(tmp_path: Path) -> None:
    """The sum over the parts that are there would be a wrong number."""
    tensors = {"a.weight": (16, 64), "b.weight": (16, 64)}
    written(tmp_path / "big.gguf", "llama", COMMON, tensors, split_max_tensors=1)
    (tmp_path / "big-00002-of-00002.gguf").unlink()
    with pytest.raises(ReaderError, match=r"big-00001-of-00002\.gguf is one part of 2: big-00002-of-00002\.gguf"):
        read_gguf(tmp_path / "big-00001-of-00002.gguf")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"PK\x03\x04", "m.gguf is no GGUF file"),
        (b"GGUF", "m.gguf ends within its header"),
        (b"GGUF" + (1).to_bytes(4, "little"), r"m.gguf is GGUF version 1 \(huge"),
        (b"GGUF" + (3).to_bytes(4, "big"), "m.gguf is GGUF version 50331648 "),
        (b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 16, "m.gguf ends within its header"),
        (b"", "Cannot read m.gguf: "),
    ],
)
def test_what_is_no_gguf_is_said_so(tmp_path: Path, content: bytes, expected: str) -> None:
    """By its base name: the folders are nobody's business."""
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(ReaderError, match=expected) as caught:
        read_gguf(path)
    assert str(tmp_path) not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    """A sentence, not a traceback."""
    with pytest.raises(ReaderError, match=r"Cannot read gone\.gguf: No such file or directory"):
        read_gguf(tmp_path / "gone.gguf")


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "m.gguf"
    keys = COMMON | {"attention.head_count": 4, "attention.head_count_kv": [2, 2, 2, 2], "general.file_type": 15}
    written(path, "llama", keys, {"token_embd.weight": (8, 64), "output.weight": (8, 64)})
    return path.read_bytes()


@given(cut=st.integers(0, 400), place=st.integers(0, 399), value=st.integers(0, 255))
def test_damaged_headers_give_our_error_or_a_header(small: bytes, cut: int, place: int, value: int) -> None:
    """Any front of a header, and any byte of it changed: never another exception."""
    damaged = bytearray(small)
    damaged[min(place, len(damaged) - 1)] = value
    for data in (bytes(damaged), small[:cut]):
        with suppress(ReaderError):
            read_gguf_header(data, "m.gguf")


@given(place=st.integers(0, 799), value=st.integers(0, 255))
def test_damaged_files_give_our_error_or_a_reading(
    small: bytes, tmp_path_factory: pytest.TempPathFactory, place: int, value: int
) -> None:
    """The same for the whole way from the file to the model, and to its JSON."""
    damaged = bytearray(small)
    damaged[min(place, len(damaged) - 1)] = value
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(bytes(damaged))
    with suppress(ReaderError):
        reading = read_gguf(path)
        assert from_json(json.loads(json.dumps(to_json(reading)))) == reading
