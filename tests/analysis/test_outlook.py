"""Predictions before their measurements: the same law as the fit, and the arithmetic of a pencil beside it."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from roofbook.analysis.latency import Point, latency_points
from roofbook.analysis.outlook import (
    batches,
    cached_prompts,
    pauses,
    predicted,
    repeat_spread,
    smaller_model,
    two_at_once,
)
from roofbook.analysis.prefill import Curve, prefill_curve
from roofbook.analysis.regression import Fit
from roofbook.facts import Facts, load_facts
from roofbook.record import Row, read_run
from roofbook.theory.shapes import Machine, Model
from roofbook.validity import records

DATA = Path(__file__).parents[2] / "data"

Frame = Callable[[list[Row]], pd.DataFrame]


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts(DATA / "facts")


@pytest.fixture(scope="module")
def model(facts: Facts) -> Model:
    return facts.model("qwen2.5:7b").model.quantized("Q4_K_M")


@pytest.fixture
def curve(frame: Frame, published_curve: list[Row]) -> Curve:
    return prefill_curve(frame(published_curve))


@pytest.fixture
def law(curve: Curve) -> Fit:
    """a 4.526 ms, b 2.003e-4 ms."""
    assert curve.chosen is not None
    return curve.chosen.fit


@pytest.fixture(scope="module")
def point() -> Point:
    """Five runs of 74 tokens: 21.3 x 68/69 = 20.99 tok/s."""
    rows = read_run(DATA / "measured" / "article-2026-08-31.parquet").rows
    return next(point for point in latency_points(rows, []) if point.point == "baseline-74")


def test_a_prediction_of_a_whole_prompt_is_the_fits_own(law: Fit) -> None:
    assert predicted(law, {1: 16384.0, 2: 16384.0**2}) == law.prediction(16384)


def test_a_cached_front_saves_its_own_part_of_both_terms(law: Fit) -> None:
    """a (T - P) + b (T^2 - P^2): half cached is 1.9 times as fast, 0.8 4.5, 0.9 8.9, 0.95 18 times."""
    prompts = cached_prompts(law, 3505, overhead_ms=100, step_ms=47.6)
    cold = prompts[0].prefill_ms.mid
    assert cold == pytest.approx(law.value(3505))
    factors = [round(cold / prompt.prefill_ms.mid, 1) for prompt in prompts[:5]]
    assert factors == [1.0, 1.9, 4.5, 8.9, pytest.approx(17.7, abs=0.3)]


def test_a_prompt_that_is_all_cached_takes_one_step(law: Fit) -> None:
    whole = cached_prompts(law, 3505, overhead_ms=100, step_ms=47.6)[-1]
    assert (whole.share, whole.cached_tokens) == (1.0, 3504)
    assert whole.prefill_ms.mid == 47.6
    assert whole.ttft_ms.mid == pytest.approx(147.6)


def test_the_interval_shrinks_with_what_is_left_to_read(law: Fit) -> None:
    prompts = cached_prompts(law, 3505, overhead_ms=100, step_ms=47.6)
    widths = [prompt.prefill_ms.high - prompt.prefill_ms.low for prompt in prompts]
    assert widths == sorted(widths, reverse=True)


def test_each_term_of_another_model_shrinks_with_its_own_arithmetic(
    law: Fit, point: Point, model: Model, facts: Facts
) -> None:
    """3B: 2,774,532,096 of 6,525,288,448 multiplied weights, 147,456 of 200,704 FLOP/T^2 (36 x 16 x 128 x 2).

    At 4,096 tokens: 4.526 x 0.4252 x 4096 + 2.003e-4 x 0.7347 x 4096^2 = 7,883 + 2,469 ms.
    """
    other = facts.model("qwen2.5:3b").model.quantized("Q4_K_M")
    found = smaller_model(law, point, model, other, 4096, step_overhead_ms=0, kv_type="q8_0")
    assert found is not None
    assert found.prefill_ms.mid == pytest.approx(10352, rel=0.001)
    assert 0.43 < found.work < 0.46
    assert found.tok_per_s.low == pytest.approx(found.tok_per_s.high)
    assert found.tok_per_s.high == pytest.approx(20.99 / found.bytes, rel=0.001)


def test_a_step_that_keeps_its_overhead_gains_less(law: Fit, point: Point, model: Model, facts: Facts) -> None:
    """Of 47.64 ms a step 4 stay: 4 + 43.64 x 0.4403 = 23.2 ms, 43 tok/s."""
    other = facts.model("qwen2.5:3b").model.quantized("Q4_K_M")
    found = smaller_model(law, point, model, other, 4096, step_overhead_ms=4, kv_type="q8_0")
    assert found is not None
    assert found.tok_per_s.low == pytest.approx(1000 / (4 + 43.64 * found.bytes), rel=0.001)


def test_an_unknown_model_is_not_predicted(law: Fit, point: Point, model: Model) -> None:
    assert smaller_model(law, point, model, Model("unknown"), 4096, step_overhead_ms=0, kv_type="q8_0") is None


def test_decode_stops_gaining_about_ten_requests(curve: Curve, point: Point, model: Model, facts: Facts) -> None:
    """2.43 TFLOPS over 2 x 7.07e9 FLOP a token: 171 tok/s at most, whatever the batch; 8 requests are still bound by
    91.8 GB/s.
    """
    machine = facts.machine("mac-mini-m4-32gb").machine
    together = {one.requests: one.together for one in batches(curve, point, model, machine, 512, "q8_0")}
    assert together[1].low == pytest.approx(20.9, abs=0.1)
    assert together[8].low == pytest.approx(8 * 20.4, rel=0.01)
    assert together[16].low == together[32].low == pytest.approx(169, abs=2)
    assert all(one.low <= one.high for one in together.values())


def test_batches_of_an_unknown_model_are_not_predicted(curve: Curve, point: Point) -> None:
    assert batches(curve, point, Model("unknown"), Machine("box"), 512, "q8_0") == ()


def test_the_second_of_two_waits_for_the_answer_or_for_the_prompt_alone(law: Fit, point: Point) -> None:
    """512 tokens: 2,370 ms of prefill, 100 of overhead; an answer of 128 tokens at 20.99 tok/s: 6,098 ms.

    One slot: 2,470 + 6,098 + 2,470 = 11,038 ms; two slots: 2 x 2,370 + 100 = 4,840 ms.
    """
    found = two_at_once(law, point, 512, 128, overhead_ms=100)
    assert found is not None
    assert found.first_ttft_s == pytest.approx(2.470, abs=0.002)
    assert found.one_slot_ttft_s == pytest.approx(11.038, abs=0.005)
    assert found.two_slots_ttft_s == pytest.approx(4.840, abs=0.003)


def test_pauses_decide_between_the_fit_and_arithmetic(curve: Curve, model: Model) -> None:
    """8,016 tokens by arithmetic: 4.526 x 8016 + 4.526 x 1.538e-5 x 8016^2 = 36,283 + 4,473 ms.

    Two arms of five with 1.16 % scatter, a standard error of 1.16 % x sqrt(2/5) = 0.734 %: a power of 0.8 takes about
    t(8; 0.975) + t(8; 0.8) = 2.306 + 0.889 = 3.195 of them, 2.34 %.
    """
    found = pauses(curve, 0.0116, model, 5)
    assert found is not None
    assert found.tokens == 8016
    assert found.by_arithmetic_ms == pytest.approx(40756, rel=0.001)
    assert found.as_measured_ms.mid == pytest.approx(curve.chosen.fit.value(8016) if curve.chosen else 0)
    assert found.detectable_share == pytest.approx(0.0234, abs=0.0002)


def test_without_repeats_nobody_knows_what_would_show(curve: Curve, model: Model) -> None:
    found = pauses(curve, None, model, 5)
    assert found is not None
    assert found.detectable_share is None


def test_the_scatter_is_that_of_the_longest_prompt_sent_again() -> None:
    """Five prefills of 3,505 tokens: mean 17,825 ms, standard deviation 207 ms. Published medians do not count."""
    rows = records(read_run(DATA / "measured" / "article-2026-08-31.parquet").rows)
    assert repeat_spread(rows) == pytest.approx(207 / 17825, rel=0.005)
    assert repeat_spread([row for row in rows if row.get("aggregate_of") is not None]) is None
