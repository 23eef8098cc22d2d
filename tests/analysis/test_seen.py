"""A measured roof reaches up to the fastest trusted run of the same chip, and no shorter prompt moves it."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from roofbook.analysis.latency import latency_points
from roofbook.analysis.seen import as_seen, fastest_prefill, own_flops_per_s
from roofbook.facts import Facts, load_facts
from roofbook.record import Row
from roofbook.theory.roofline import measured_rates
from roofbook.theory.shapes import Machine, Range

Frame = Callable[[list[Row]], pd.DataFrame]


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts(Path(__file__).parents[2] / "data" / "facts")


def test_the_fastest_published_prefill_is_of_the_same_chip(facts: Facts) -> None:
    """Llama 3.1 8B, 512 tokens at 224.81 tok/s: 3.17 TFLOPS.

    A layer multiplies 2 x 4096^2 + 2 x 4096 x 1024 + 3 x 4096 x 14336 = 218,103,808 weights, 32 of them; the output
    128,256 x 4096; attention 2 x 32 x 128 x 32 operations a token squared: 7.2166 TFLOP in 512 / 224.81 s.
    """
    found = fastest_prefill(facts.published, facts.machine("mac-mini-m4-32gb").machine)
    flops = 2 * 32 * 218_103_808 * 512 + 2 * 128_256 * 4096 + 2 * 32 * 128 * 32 * 512**2

    assert found is not None
    assert (found.model, found.prompt_tokens) == ("Llama 3.1 8B", 512)
    assert found.flops_per_s == pytest.approx(flops * 224.81 / 512, rel=1e-6)


def test_a_chip_that_nobody_published_has_none(facts: Facts) -> None:
    """Neither has a machine without a chip."""
    assert fastest_prefill(facts.published, Machine("a-box")) is None
    assert fastest_prefill(facts.published, None) is None


def test_the_roof_reaches_up_to_what_was_seen(facts: Facts) -> None:
    """2.9 TFLOPS of a matrix product, 3.2 seen: a range; 2.5 seen says nothing new."""
    m4 = facts.machine("mac-mini-m4-32gb").machine

    assert measured_rates(as_seen(m4, None, 3.2e12)).flops_per_s == Range(2.9e12, 3.2e12)
    assert as_seen(m4, 2.5e12) == m4
    assert as_seen(Machine("a-box"), 3.2e12) == Machine("a-box")


def test_short_prompts_and_doubtful_points_move_no_roof(frame: Frame, facts: Facts) -> None:
    """74 tokens in 291 ms are 3.33 TFLOPS, but a part of them may have been cached; 1,096 in 5,137 ms are 2.83."""
    rows: list[Row] = [
        {
            "run_id": "test", "experiment": "e", "point": str(tokens), "kind": "baseline", "phase": "measured",
            "status": "ok", "prompt_tokens": tokens, "server_prefill_ms": prefill_ms, "ttft_ms": prefill_ms + 100,
        }
        for tokens, prefill_ms in ((74, 291.0), (1096, 5137.0), (2091, 10741.0))
    ]  # fmt: skip
    qwen = facts.model("qwen2.5:7b").model.quantized("Q4_K_M")
    # 2 x 6,525,288,448 x 1,096 + 2 x 544,997,376 + 200,704 x 1,096^2 operations
    flops = 2 * 6_525_288_448 * 1096 + 2 * 544_997_376 + 200_704 * 1096**2

    assert own_flops_per_s(latency_points(frame(rows), ()), qwen) == pytest.approx(flops / 5.137, rel=1e-6)
