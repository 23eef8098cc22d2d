"""Ollama's /api/show, as docs/api.md has it."""

from typing import Any

import pytest

from roofbook.errors import ReaderError
from roofbook.readers import Reading, read_ollama
from roofbook.theory.shapes import Layer, Model, Tensors

BLOB = "2bada8a7450677000f678be90653b85d364de7db25eb5ea54136ada5f3933730"
MANIFEST = "845dbda0ea48ed749caafd9e6037047aa19acfcfd82e704d7ca97d631a0b697e"
SHOW: dict[str, Any] = {
    "modelfile": f"# Modelfile\nFROM /Users/someone/.ollama/models/blobs/sha256-{BLOB}\nTEMPLATE x\n",
    "details": {"family": "qwen2", "format": "gguf", "parameter_size": "7.6B", "quantization_level": "Q4_K_M"},
    "model_info": {
        "general.architecture": "qwen2",
        "general.parameter_count": 7615616512,
        "general.file_type": 15,
        "qwen2.block_count": 28,
        "qwen2.context_length": 32768,
        "qwen2.embedding_length": 3584,
        "qwen2.feed_forward_length": 18944,
        "qwen2.attention.head_count": 28,
        "qwen2.attention.head_count_kv": 4,
        "tokenizer.ggml.tokens": None,
    },
}


def test_what_show_holds_and_what_it_does_not() -> None:
    """The shape and the quantization; no bytes, no vocabulary, and whether the output is tied not either."""
    reading = read_ollama(SHOW, name="qwen2.5:7b", digest=f"sha256:{MANIFEST}")
    assert reading == Reading(
        source="ollama",
        model=Model(
            id="qwen2.5:7b",
            architecture="qwen2",
            layers=(Layer("global", 28, 4, 128, 128),) * 28,
            hidden=3584,
            ffn=18944,
            context_limit_tokens=32768,
            params=7_615_616_512,
            tensors=Tensors(quantization="Q4_K_M"),
        ),
        names=("qwen2.5:7b",),
        digests=(BLOB, MANIFEST),
        assumed=("layers.key_dim", "layers.value_dim"),
    )
    assert reading.missing == ("vocab", "tied", "tensors.total_bytes", "tensors.embedding_bytes")


def test_a_verbose_answer_lists_the_tensors() -> None:
    """Q4_K: 256 values in 144 bytes; 3,584 x 152,064 of them are 306,561,024."""
    tensors = [
        {"name": "token_embd.weight", "type": "Q4_K", "shape": [3584, 152064]},
        {"name": "output.weight", "type": "Q6_K", "shape": [3584, 152064]},
    ]
    model = read_ollama(SHOW | {"tensors": tensors}).model
    # Q6_K: 256 values in 210 bytes: 3584 / 256 x 210 x 152064 = 447,068,160
    assert model.tensors == Tensors("Q4_K_M", 306_561_024 + 447_068_160, 306_561_024, 0)
    assert (model.vocab, model.tied) == (152064, False)


def test_an_unknown_quantization_is_unknown() -> None:
    """Ollama's own word for a mixture it does not know."""
    assert read_ollama(SHOW | {"details": {"quantization_level": "unknown"}}).model.tensors.quantization is None


@pytest.mark.parametrize(
    ("show", "expected"),
    [
        ([], "/api/show: the whole is no JSON object"),
        ({}, "/api/show has no model_info"),
        ({"model_info": {}}, "/api/show has no general.architecture"),
        ({"model_info": []}, "/api/show: model_info is no JSON object"),
        (SHOW | {"details": {"quantization_level": 4}}, "/api/show: details.quantization_level is 4, not text"),
        (SHOW | {"tensors": [{"name": "a", "type": "Q9", "shape": [1]}]}, "the tensor 'a' has no known type"),
        (
            SHOW | {"model_info": SHOW["model_info"] | {"qwen2.block_count": "28"}},
            "/api/show: qwen2.block_count is '28', not a whole number",
        ),
    ],
)
def test_another_answer_is_said_with_its_key(show: Any, expected: str) -> None:
    """One message of ours."""
    with pytest.raises(ReaderError) as caught:
        read_ollama(show)
    assert expected in str(caught.value)


def test_the_path_of_the_blob_is_not_kept() -> None:
    """The modelfile holds somebody's home folder."""
    assert "someone" not in repr(read_ollama(SHOW, name="qwen2.5:7b"))
