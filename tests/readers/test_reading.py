"""A reading as JSON: what inspect prints, the report's commands read, and the collector stores."""

import json
from dataclasses import fields
from typing import Any

import pytest

from roofbook.errors import ReaderError
from roofbook.readers import Reading, from_json, to_json
from roofbook.theory.shapes import Layer, Mla, Model, Moe, Recurrent, Tensors

FULL = Reading(
    source="gguf",
    model=Model(
        id="m",
        architecture="novel",
        layers=(Layer("local", 8, 2, 64, 32), Layer("local", 8, 2, 64, 32), Layer("recurrent", experts=True)),
        hidden=512,
        ffn=1024,
        vocab=1000,
        tied=False,
        window_tokens=128,
        mla=Mla(1, 2, 3, 4, 5),
        moe=Moe(8, 2, 16, 32),
        recurrent=Recurrent(100, 10),
        context_limit_tokens=4096,
        rope_factors=64,
        params=10**9,
        active_params=10**8,
        tensors=Tensors("Q4_K_M", 1, 2, 3, 4, 5, 6),
    ),
    names=("a", "b"),
    digests=("0" * 64,),
    assumed=("layers.key_dim",),
)


def test_nothing_is_lost_on_the_way_through_json() -> None:
    """Every field of every shape, none of them at its default; equal layers stand once with their count."""
    for shape in (FULL.model, FULL.model.tensors):
        unset = [field.name for field in fields(shape) if getattr(shape, field.name) in (None, field.default)]
        assert unset == []
    written = json.loads(json.dumps(to_json(FULL)))
    assert from_json(written) == FULL
    assert [(run["count"], run["kind"]) for run in written["shape"]["layers"]] == [(2, "local"), (1, "recurrent")]


def test_an_empty_reading_names_all_that_is_missing() -> None:
    """Null is unknown, and stays null."""
    empty = Reading("llamacpp", Model(id="m"))
    assert from_json(to_json(empty)) == empty
    assert to_json(empty)["missing"] == [
        "architecture", "layers", "hidden", "vocab", "tied", "context_limit_tokens", "tensors.quantization",
        "tensors.total_bytes", "tensors.embedding_bytes",
    ]  # fmt: skip


def changed(**keys: Any) -> dict[str, Any]:
    written = to_json(FULL)
    return {**written, "shape": {**written["shape"], **keys}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "inspect: the whole is no JSON object"),
        ({}, "inspect: the key 'shape' is missing"),
        ({"shape": []}, "inspect: shape is no JSON object"),
        ({"shape": {}, "names": "m"}, "inspect: names is 'm', not a list"),
        (changed(hidden="wide"), "inspect: shape.hidden is 'wide', not a whole number"),
        (changed(tied=0), "inspect: shape.tied is 0, not true or false"),
        (changed(mla={"kv_rank": 1}), "inspect: the key 'shape.mla.rope_dim' is missing"),
        (changed(layers=[{"count": 1, "kind": "odd"}]), "inspect: a layer's kind is none of global, local, recurrent"),
        (changed(layers=[{"count": 10**9, "kind": "global"}]), "inspect: 1000000000 layers"),
        (changed(layers=[{"count": 1500, "kind": "global"}] * 2), "inspect: 3000 layers"),
        (changed(layers=[{"kind": "global"}]), "inspect: the key 'shape.layers[0].count' is missing"),
    ],
)
def test_other_json_is_said_with_its_key(value: object, expected: str) -> None:
    """One message of ours."""
    with pytest.raises(ReaderError) as caught:
        from_json(value)
    assert expected in str(caught.value)
