"""Published speeds against their chips: what a step costs besides its bytes, how much prefills bend."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import pandas as pd
import pytest

from roofbook.analysis.bends import Bend, bends, measured_bend
from roofbook.analysis.latency import latency_points
from roofbook.analysis.prefill import Curve, prefill_curve
from roofbook.analysis.reference import (
    DecodeStand,
    decode_stands,
    measured_decodes,
    measured_prefills,
    prefill_stands,
)
from roofbook.analysis.steps import StepLaw, one_a_machine, step_laws
from roofbook.facts import Facts, load_facts
from roofbook.record import Row, read_run
from roofbook.theory.shapes import Machine, Model, Range

DATA = Path(__file__).parents[2] / "data"

Frame = Callable[[list[Row]], pd.DataFrame]


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts(DATA / "facts")


@pytest.fixture(scope="module")
def stands(facts: Facts) -> tuple[DecodeStand, ...]:
    return decode_stands(facts.published)


@pytest.fixture
def curve(frame: Frame, published_curve: list[Row]) -> Curve:
    return prefill_curve(frame(published_curve))


@pytest.fixture(scope="module")
def model(facts: Facts) -> Model:
    return facts.model("qwen2.5:7b").model.quantized("Q4_K_M")


@pytest.fixture(scope="module")
def machine(facts: Facts) -> Machine:
    return facts.machine("mac-mini-m4-32gb").machine


def step(quantization: str, ideal_ms: float, step_ms: float) -> DecodeStand:
    return DecodeStand(
        id=quantization, machine="box", chip="chip", vendor="apple", model="7B", quantization=quantization,
        source="one", setting="", read_in_copy=False, tok_per_s=1000 / step_ms, ideal_ms=Range.of(ideal_ms),
        step_ms=step_ms, band="ordinary", flagged=False,
    )  # fmt: skip


def test_a_step_is_its_bytes_over_part_of_the_bandwidth_and_a_constant() -> None:
    """k 0.8 and c 5 ms: reading that ideally takes 8, 16 and 32 ms takes 8/0.8 + 5 = 15, 25 and 45 ms."""
    (law,) = step_laws([step("Q4_0", 8, 15), step("Q8_0", 16, 25), step("F16", 32, 45)])
    assert (law.steps, law.k, law.c_ms) == (3, pytest.approx(0.8), pytest.approx(5.0))
    assert law.worst == pytest.approx(0, abs=1e-9)
    assert law.share(16) == pytest.approx(16 / 25)


def test_two_steps_give_a_law_without_an_error() -> None:
    (law,) = step_laws([step("Q4_0", 8, 15), step("F16", 32, 45)])
    assert (law.k, law.c_ms, law.worst) == (pytest.approx(0.8), pytest.approx(5.0), None)


@pytest.mark.parametrize(
    "steps",
    [
        [step("Q4_0", 8, 15)],
        # 8 and 9 ms of bytes: their difference is within the scatter of a measurement.
        [step("Q4_0", 8, 15), step("Q4_K_M", 9, 16)],
        [step("Q4_0", 8, 15), replace(step("F16", 32, 45), flagged=True)],
        [step("Q4_0", 8, 15), replace(step("F16", 32, 20), band="impossible")],
        # A larger step that is faster: no such law.
        [step("Q4_0", 8, 15), step("F16", 32, 14)],
    ],
)
def test_no_law_from_one_step_from_alike_steps_or_from_doubted_ones(steps: list[DecodeStand]) -> None:
    assert step_laws(steps) == ()


def test_of_several_contexts_the_emptiest_counts() -> None:
    """The second Q4_0 row has more context behind it and took longer; with it the law would not be exact."""
    (law,) = step_laws([step("Q4_0", 8.5, 17), step("Q4_0", 8, 15), step("F16", 32, 45)])
    assert law.c_ms == pytest.approx(5.0)


def test_what_is_usual_rests_on_laws_that_can_be_judged_one_a_machine() -> None:
    """Two steps judge nothing; of one machine's laws the one with most steps counts; c < 0 and k > 1 cannot be."""

    def law(machine: str, steps: int, k: float = 0.9, c_ms: float = 5.0) -> StepLaw:
        return StepLaw("s", machine, "chip", "apple", steps, k, c_ms, None)

    laws = [law("two", 2), law("a", 3), law("a", 5, k=0.8), law("less than nothing", 4, c_ms=-1), law("b", 3, k=1.03)]

    assert [(one.machine, one.steps, one.k) for one in one_a_machine(laws)] == [("a", 5, 0.8)]
    assert [one.doubtful for one in laws] == [True, False, False, True, True]


def test_the_law_fits_28_apple_gpus_within_3_5_per_cent(stands: tuple[DecodeStand, ...]) -> None:
    """Worked out separately, by ordinary least squares: k 0.72..0.95 (median 0.90), c 3.3..8.2 ms (median 5.2)."""
    apple = [law for law in step_laws(stands) if law.source.endswith("4167, section 1a")]
    assert len(apple) == 28
    assert median(law.k for law in apple) == pytest.approx(0.90, abs=0.01)
    assert median(law.c_ms for law in apple) == pytest.approx(5.2, abs=0.15)
    assert min(law.c_ms for law in apple) == pytest.approx(3.3, abs=0.4)
    assert max(law.c_ms for law in apple) == pytest.approx(8.2, abs=0.4)
    assert max(law.worst or 0 for law in apple) <= 0.035


def test_exactly_the_rows_that_were_marked_impossible_are(facts: Facts, stands: tuple[DecodeStand, ...]) -> None:
    marked = {run.id for run in facts.published if "decode_impossible" in run.flagged}
    assert {stand.id for stand in stands if stand.impossible} == marked
    assert not any(stand.usable for stand in stands if stand.impossible)


def test_no_believable_row_is_above_89_per_cent(stands: tuple[DecodeStand, ...]) -> None:
    assert 0.85 < max(stand.share for stand in stands if stand.usable) <= 0.89


def test_a_model_shared_by_two_cards_says_nothing_about_one(facts: Facts, stands: tuple[DecodeStand, ...]) -> None:
    """Two RTX 3090 hold 48 GiB between them and work in turn."""
    pair = [stand for stand in stands if stand.machine == "2x RTX 3090 24GB"]
    assert len(pair) == 4
    assert not any(stand.usable for stand in pair)
    assert not [bend for bend in bends(facts.published) if bend.machine == "2x RTX 3090 24GB"]


@pytest.mark.parametrize(
    ("machine", "growth"),
    [
        ("M2 Ultra 76-core GPU 192GB (Mac Studio)", 0.09),
        ("M1 Max 32-core GPU 64GB (MacBook Pro 14)", 0.35),
        ("M3 Max 40-core GPU 64GB (MacBook Pro 16)", 0.37),
        ("RTX 3090 24GB", 0.59),
        ("RTX 3070 8GB", 0.69),
        ("RTX 4090 24GB", 0.77),
    ],
)
def test_time_a_token_grows_on_every_machine(facts: Facts, machine: str, growth: float) -> None:
    """8B Q4_K_M, 512 to 8,192 tokens: for the RTX 3090 4030.4 / 2527.4 - 1 = 0.59."""
    found = [
        bend
        for bend in bends(facts.published)
        if (bend.machine, bend.model, bend.quantization) == (machine, "Llama 3 8B", "Q4_K_M")
    ]
    assert [round(bend.growth, 2) for bend in found] == [growth]
    assert found[0].lengths[0] == 512
    assert found[0].lengths[-1] == 8192


def test_a_series_with_a_failed_length_has_no_bend(facts: Facts) -> None:
    """The 8 GB MacBook Air ran out of memory at 8,192 tokens; its timer says 1,849 tok/s."""
    assert not [bend for bend in bends(facts.published) if bend.machine.startswith("M1 7-core GPU 8GB")]


def test_the_excess_is_the_fitted_ratio_over_that_of_causal_attention(
    curve: Curve, model: Model, machine: Machine
) -> None:
    """b/a = 2.003e-4 / 4.526 = 4.426e-5; by arithmetic 200,704 / (2 x 6,525,288,448) = 1.538e-5: 2.88 times."""
    bend = measured_bend(curve, model, machine)
    assert isinstance(bend, Bend)
    assert bend.excess.mid == pytest.approx(2.88, abs=0.01)
    assert bend.excess.low < 2.83 < bend.excess.high  # the published coefficients' 1.96e-4 / 4.50
    assert bend.source is None
    assert round(bend.growth, 3) == 0.387  # 6.030 / 4.346 ms a token


def test_an_unknown_model_has_no_bend(curve: Curve, machine: Machine) -> None:
    assert measured_bend(curve, Model("unknown"), machine) is None


def test_a_subject_stands_by_its_decode_rate(model: Model, machine: Machine) -> None:
    """21.3 x 68/69 = 20.99 tok/s x (4.3706 GB of weights + 3.3 MB of cache) = 91.8 GB/s of 120."""
    rows = read_run(DATA / "measured" / "article-2026-08-31.parquet").rows
    found = {stand.id: stand for stand in measured_decodes(latency_points(rows, []), model, machine, "q8_0")}
    assert found["baseline/baseline-74"].share == pytest.approx(0.765, abs=0.001)
    assert found["baseline/baseline-74"].band == "ordinary"


def test_without_a_chip_nothing_is_said(model: Model) -> None:
    rows = read_run(DATA / "measured" / "article-2026-08-31.parquet").rows
    assert measured_decodes(latency_points(rows, []), model, Machine("box"), "q8_0") == []
    assert measured_prefills(prefill_curve(rows), model, Machine("box")) == []


def test_a_subject_stands_by_its_prefill(curve: Curve, model: Model, machine: Machine) -> None:
    """Effective TFLOPS by length, worked out by hand from 2 N T + 2 h V + 200,704 T^2; the peak is 3.76 to 4.6."""
    found = {stand.prompt_tokens: stand for stand in measured_prefills(curve, model, machine)}
    assert {tokens: round(stand.flops_per_s / 1e12, 2) for tokens, stand in found.items()} == {
        578: 2.73,
        1096: 2.83,
        2091: 2.62,
        4056: 2.57,
        8016: 2.43,
    }
    # Sources dispute the peak, 3.76 to 4.6: the share is of their middle, 4.18, and at least of the upper end.
    assert found[4056].of_usual == pytest.approx(2.57 / 4.18, abs=0.002)
    assert found[4056].of_fastest == pytest.approx(2.57 / 4.6, abs=0.002)


def test_quantized_prefill_may_pass_the_usual_peak_and_not_the_fastest(facts: Facts) -> None:
    """CUDA's kernels multiply quantized weights in INT8: up to 124 % of the FP16 peak, at most 31 % of INT8's."""
    found = [
        stand
        for stand in prefill_stands(facts.published)
        if stand.usable and stand.vendor == "nvidia" and not stand.sixteen_bits
    ]
    assert round(max(stand.of_usual for stand in found), 2) == 1.24
    assert round(max(stand.of_fastest for stand in found), 2) == 0.31
