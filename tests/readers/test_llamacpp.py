"""llama.cpp's /v1/models and /props, and the file behind them."""

from pathlib import Path
from typing import Any

import pytest

from collect.engine import start
from collect.server import inspect
from roofbook.errors import ReaderError
from roofbook.readers import Reading, completed, from_json, read_gguf, read_llamacpp, with_gguf_at_its_path
from roofbook.theory.shapes import Model, Tensors

# tools/server/README.md of llama.cpp
README_MODELS: dict[str, Any] = {
    "object": "list",
    "data": [
        {
            "id": "../models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
            "object": "model",
            "created": 1735142223,
            "owned_by": "llamacpp",
            "meta": {
                "vocab_type": 2,
                "n_vocab": 128256,
                "n_ctx_train": 131072,
                "n_embd": 4096,
                "n_params": 8030261312,
                "size": 4912898304,
            },
        }
    ],
}
SMOLLM2_META = {"n_vocab": 49152, "n_ctx_train": 8192, "n_embd": 576, "n_params": 134515008, "size": 96576768}


def test_the_readmes_example() -> None:
    """4,912,898,304 bytes of tensors; 8,030,261,312 parameters, the 64 rotary factors among them."""
    reading = read_llamacpp(README_MODELS)
    assert reading == Reading(
        source="llamacpp",
        model=Model(
            id="Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
            hidden=4096,
            vocab=128256,
            context_limit_tokens=131072,
            params=8_030_261_312,
            tensors=Tensors(total_bytes=4_912_898_304),
        ),
        names=("Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",),
    )
    assert reading.missing == (
        "architecture", "layers", "tied", "tensors.quantization", "tensors.embedding_bytes",
    )  # fmt: skip


def served(path: str, meta: dict[str, int] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    models = {"data": [{"id": "smol", "meta": SMOLLM2_META if meta is None else meta}]}
    return models, {"model_path": path, "model_alias": "smol", "total_slots": 4}


def test_the_file_completes_what_the_server_says(smollm2: Path) -> None:
    """The server's five numbers agree with the file's; the file adds the rest."""
    models, props = served(str(smollm2))
    reading = with_gguf_at_its_path(read_llamacpp(models, props), props)
    assert reading.missing == ()
    assert reading.source == "llamacpp + gguf"
    assert reading.names == ("smol", "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert reading.model.layers == read_gguf(smollm2).model.layers
    assert str(smollm2.parent) not in repr(reading)


def test_a_file_that_is_not_here_leaves_the_gaps() -> None:
    """A remote server's path means nothing here."""
    models, props = served("/srv/models/m.gguf")
    reading = read_llamacpp(models, props)
    assert with_gguf_at_its_path(reading, props) == reading
    assert reading.names == ("smol", "m.gguf")


def test_a_file_that_cannot_be_read_leaves_the_gaps(tmp_path: Path) -> None:
    """Something else lies at that path on this machine."""
    path = tmp_path / "m.gguf"
    path.write_text("not a model")
    models, props = served(str(path))
    reading = read_llamacpp(models, props)
    assert with_gguf_at_its_path(reading, props) == reading


def test_a_file_of_another_model_is_refused(smollm2: Path) -> None:
    """Both hold the bytes and the width, and they differ: no silent mixture."""
    models, props = served(str(smollm2), SMOLLM2_META | {"size": 1, "n_embd": 577})
    with pytest.raises(ReaderError, match=r"llamacpp and gguf disagree about hidden, tensors\.total_bytes"):
        with_gguf_at_its_path(read_llamacpp(models, props), props)


@pytest.mark.parametrize(
    ("models", "model", "expected"),
    [
        ({}, None, "/v1/models does not list the model 'None'; it lists none"),
        (README_MODELS, "qwen", "does not list the model 'qwen'; it lists ../models/Meta-Llama-3.1-8B"),
        ([], None, "/v1/models: the whole is no JSON object"),
        ({"data": [{"id": 3}]}, None, "/v1/models: data[0].id is 3, not text"),
        ({"data": [{"id": "a", "meta": {"size": -1}}]}, None, "data[0].meta.size is -1, not a whole number"),
    ],
)
def test_another_answer_is_said_with_its_key(models: Any, model: str | None, expected: str) -> None:
    """One message of ours."""
    with pytest.raises(ReaderError) as caught:
        read_llamacpp(models, model=model)
    assert expected in str(caught.value)


def test_a_model_that_is_still_loading_has_no_meta() -> None:
    """Null is unknown."""
    assert read_llamacpp({"data": [{"id": "a", "meta": None}]}).model == Model(id="a")


def test_completing_keeps_the_first_sources_word() -> None:
    """Names and digests of both, gaps filled, nothing overwritten."""
    first = Reading("a", Model(id="x", hidden=8), names=("x",), digests=("d",))
    second = Reading("b", Model(id="y", hidden=8, vocab=9), names=("x", "y"))
    assert completed(first, second) == Reading("a + b", Model(id="x", hidden=8, vocab=9), ("x", "y"), ("d",))


def test_an_assumed_width_is_no_statement() -> None:
    """hidden / heads of a config without head_dim does not contradict a file that says otherwise."""
    first = Reading("a", Model(id="x", hidden=8), assumed=("hidden",))
    second = Reading("b", Model(id="y", hidden=9))
    assert completed(first, second).model.hidden == 8


@pytest.mark.engine
def test_smollm2_from_its_file_and_from_the_embedded_server_agree(smollm2: Path, tmp_path: Path) -> None:
    """Every field that both hold is the same: width, vocabulary, context, parameters, bytes of tensors."""
    with start(log=tmp_path / "engine.log") as engine:
        facts = inspect(engine.url, api="llamacpp", model=engine.model)
    reading = facts.reading
    assert reading is not None
    assert from_json(facts.as_json()["model"]).model == reading.model
    assert reading.model.tensors.total_bytes == 96_576_768
    assert reading.source == "llamacpp + gguf"
    assert reading.missing == ()
    alone = read_gguf(smollm2).model
    assert (reading.model.layers, reading.model.hidden, reading.model.vocab) == (
        alone.layers,
        alone.hidden,
        alone.vocab,
    )
