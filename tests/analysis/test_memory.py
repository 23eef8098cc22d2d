"""From usable memory to requests at once, and what the arithmetic leaves of them."""

from pathlib import Path

import pytest

from roofbook.analysis.memory import memory_table, served
from roofbook.analysis.regression import fit
from roofbook.facts import Facts, load_facts
from roofbook.theory.limits import gpu_limit
from roofbook.theory.shapes import Model, Range
from roofbook.units import GIB, MIB

RESERVE = Range.of(1.5 * GIB)


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts(Path(__file__).parents[2] / "data" / "facts")


@pytest.fixture(scope="module")
def qwen(facts: Facts) -> Model:
    return facts.model("qwen2.5-7b").model.quantized("Q4_K_M")


@pytest.mark.parametrize(
    ("macos", "by_file", "q8_by_device"),
    [(15, {"f16": 70, "q8_0": 133, "q4_0": 251}, 135), (26, {"f16": 87, "q8_0": 164, "q4_0": 310}, 166)],
)
def test_the_kv_type_and_the_systems_limit_decide(
    facts: Facts, qwen: Model, macos: int, by_file: dict[str, int], q8_by_device: int
) -> None:
    """21.33 or 24.96 GiB less 4.361 of weights and 1.5 of reserve; a token is 57,344, 30,464 or 16,128 bytes."""
    limit = gpu_limit(facts.machine("mac-mini-m4-32gb").machine, macos, facts.mac_limits)
    table = memory_table(qwen, limit, 4096, quantization="Q4_K_M", reserve_bytes=RESERVE)
    assert {line.kv_type: line.sequences.low for line in table.lines} == by_file
    q8 = table.line("q8_0")
    assert q8 is not None
    assert q8.sequences_by_device == Range.of(q8_by_device)
    assert q8.token_bytes == Range.of(30464)


def test_the_room_is_what_limit_weights_and_reserve_leave(facts: Facts, qwen: Model) -> None:
    """21,845.33 MiB - 4,683,073,952 B - 1.5 GiB = 15.47 GiB; the usual reserve of 1 to 2 GiB makes it a range."""
    limit = gpu_limit(facts.machine("mac-mini-m4-32gb").machine, 15)
    table = memory_table(qwen, limit, 4096, quantization="Q4_K_M", reserve_bytes=RESERVE)
    assert table.room_bytes.low == pytest.approx(15.47 * GIB, rel=3e-4)
    usual = memory_table(qwen, limit, 4096, quantization="Q4_K_M")
    assert usual.room_bytes.high - usual.room_bytes.low == pytest.approx(1024 * MIB)


def test_a_model_that_does_not_fit_leaves_no_requests(facts: Facts) -> None:
    """A 70B in 4 bits on a 32 GB Mac: nothing left, and no negative count."""
    limit = gpu_limit(facts.machine("mac-mini-m4-32gb").machine, 15)
    table = memory_table(facts.model("llama-3.1-70b").model.quantized("Q4_K_M"), limit, 4096, quantization="Q4_K_M")
    assert table.room_bytes.high < 0
    assert {(line.sequences, line.tokens) for line in table.lines} == {(Range.of(0), Range.of(0))}


def test_the_rate_ends_long_before_memory_does(facts: Facts, qwen: Model) -> None:
    """135 prompts of 4,096: 21.9 s each, 0.046 a second (2.7 a minute), 49 minutes inside, 1.4 to 2.2 tok/s each.

    A token takes 2 x 7,070,285,824 + 4 x 28 x 128 x 28 x 4,096 = 15.785 GFLOP: 183.7 a second at the measured 2.9
    TFLOPS, 291.4 at the stated 4.6.
    """
    law = fit([205, 578, 1096, 2091, 4056, 8016], [891, 2790, 5137, 10741, 21891, 48337], (1, 2))
    assert law is not None
    machine = facts.machine("mac-mini-m4-32gb").machine
    found = served(135, 4096, law, qwen, machine, quantization="Q4_K_M", kv_type="q8_0")
    assert found.prefill_s == pytest.approx(21.9, abs=0.05)
    assert found.rate_per_s == pytest.approx(0.0457, abs=5e-5)
    assert found.residence_s / 60 == pytest.approx(49.3, abs=0.05)
    assert found.decode_tok_per_s is not None
    assert found.decode_tok_per_s_each is not None
    assert (found.decode_tok_per_s.low, found.decode_tok_per_s.high) == pytest.approx((183.7, 291.4), abs=0.1)
    assert found.decode_tok_per_s_each.low == pytest.approx(1.36, abs=0.01)
    assert found.decode_tok_per_s_each.high == pytest.approx(2.16, abs=0.01)
