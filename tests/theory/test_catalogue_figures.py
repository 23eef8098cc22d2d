"""Every model of the catalogue, against figures worked out from its dimensions without this code.

``catalogue_figures.csv``: an empty cell is a figure that nobody worked out. Where a source has a figure of its own it
agrees: 8,030,261,248 parameters of Llama-3.1-8B (Ollama's docs/api.md), 23,572,403,200 of Mistral-Small-24B (a public
registry), and in llama-bench 7.62 B of Qwen2.5-7B, 46.70 B of Mixtral-8x7B, 2.32 GiB of Qwen3-4B Q4_K_M and 8.43 GiB of
Phi-4 Q4_K_M. *matmul_params* counts what multiplies a token: no biases, not the router's either.
"""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from roofbook.facts import Facts, load_facts
from roofbook.theory.kv import Slots, cache_bytes, state_bytes, token_bytes
from roofbook.theory.shapes import Model, Range
from roofbook.theory.weights import counted_params, matmul_params, weights

HERE = Path(__file__).parent
with (HERE / "catalogue_figures.csv").open(encoding="utf-8", newline="") as file:
    FIGURES = {row["id"]: {key: int(value) for key, value in row.items() if key != "id" and value} for row in
               csv.DictReader(file)}  # fmt: skip


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts(HERE.parents[1] / "data" / "facts")


def shape(facts: Facts, name: str) -> Model:
    """Return the model as its dimensions have it; the figures leave out a file's rotary factors."""
    return replace(facts.models[name].shape, rope_factors=0)


def having(key: str) -> list[str]:
    return [name for name, figures in FIGURES.items() if key in figures]


def test_the_catalogue_and_the_figures_have_the_same_models(facts: Facts) -> None:
    """A model that is added to one is missed in the other."""
    assert set(facts.models) == set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_kv_bytes_of_every_model(facts: Facts, name: str) -> None:
    """What a token adds in global and in local layers, in f16 and in q8_0, and the state that none adds to."""
    model, figures = shape(facts, name), FIGURES[name]
    assert token_bytes(model, "f16", "global") == Range.of(2 * figures["kv_elements_global"])
    assert token_bytes(model, "f16", "local") == Range.of(2 * figures["kv_elements_local"])
    assert token_bytes(model, "q8_0", "global").low == pytest.approx(figures["kv_elements_global"] * 34 / 32)
    assert state_bytes(model) == figures["state_bytes"]
    assert cache_bytes(model, 4_096, "f16", cells=Slots()).low > 0


@pytest.mark.parametrize("name", having("params"))
def test_parameters_of_every_model(facts: Facts, name: str) -> None:
    """All weights, and those that multiply a token."""
    model, figures = shape(facts, name), FIGURES[name]
    assert counted_params(model) == figures["params"]
    assert matmul_params(model) == Range.of(figures["matmul_params"])


@pytest.mark.parametrize("name", having("q4_k_m_bytes"))
def test_q4_k_m_bytes_of_every_model(facts: Facts, name: str) -> None:
    """To the byte; of models with a fused QKV matrix by the quantizer's rule before 2026 and since."""
    model, figures = shape(facts, name), FIGURES[name]
    found = weights(model, "Q4_K_M")
    assert found.total_bytes == Range(figures["q4_k_m_bytes"], figures["q4_k_m_bytes_since_2026"])
    if "q4_k_m_step_bytes" in figures:
        assert found.step_bytes(model).low == figures["q4_k_m_step_bytes"]
