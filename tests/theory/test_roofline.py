"""Ceilings: bytes over bandwidth, operations over their peak."""

import math
from dataclasses import replace

import pytest

from roofbook.errors import EstimateError
from roofbook.theory.peaks import arithmetic_peak
from roofbook.theory.roofline import (
    Bound,
    crossover_batch,
    decode_ceiling,
    implied_bytes_per_s,
    implied_flops_per_s,
    prefill_floor_ms,
    step_bytes,
)
from roofbook.theory.shapes import Ceilings, Chip, Machine, Model, Moe, Peaks, Range, Spread, Tensors
from roofbook.units import GB, TFLOP


def card(fp16_tflops: float, bandwidth_gb_s: float, acc16_tflops: float | None = None) -> Machine:
    """Return a machine with one NVIDIA card."""
    acc16 = None if acc16_tflops is None else Range.of(acc16_tflops * TFLOP)
    peaks = Peaks(fp16=Range.of(fp16_tflops * TFLOP), fp16_acc16=acc16)
    chip = Chip(
        "card",
        vendor="nvidia",
        memory_kind="discrete",
        bandwidth_bytes_per_s=Range.of(bandwidth_gb_s * GB),
        peaks=peaks,
    )
    return Machine("box", chip)


def test_decode_ceiling_of_qwen_7b_on_an_m4(qwen_7b: Model, m4: Machine) -> None:
    """120e9 / (4,370,558,976 + 108 tokens x 30,464) = 27.4 tok/s; by the measured 100 GB/s 22.9."""
    found = decode_ceiling(qwen_7b, m4, "Q4_K_M", context_tokens=108, kv_type="q8_0")
    assert found.datasheet is not None
    assert found.measured is not None
    assert (round(found.datasheet.low, 1), round(found.datasheet.high, 1)) == (27.4, 27.4)
    assert round(found.measured.high, 1) == 22.9


def test_an_untied_embedding_is_not_read_but_a_tied_one_is(qwen_7b: Model, smollm_135m: Model) -> None:
    """Qwen2.5-7B: 4,677,120,000 - 306,561,024; SmolLM2-135M Q4_1: all 96,576,768."""
    assert step_bytes(qwen_7b, "Q4_K_M") == Range.of(4_370_558_976)
    assert step_bytes(smollm_135m, "Q4_1") == Range.of(96_576_768)


def test_keys_and_values_are_read_for_each_sequence(qwen_7b: Model) -> None:
    """Eight sequences of 1,000 tokens add 8 x 1,000 x 57,344 bytes; an unknown type a range."""
    assert step_bytes(qwen_7b, "Q4_K_M", context_tokens=1_000, kv_type="f16", batch=8) == Range.of(
        4_370_558_976 + 8 * 1_000 * 57_344
    )
    found = step_bytes(qwen_7b, "Q4_K_M", context_tokens=1_000, batch=8)
    assert found == Range(4_370_558_976 + 8_000 * 16_128, 4_370_558_976 + 8_000 * 57_344)


def test_local_layers_read_their_window(gemma_12b: Model) -> None:
    """At 8,192 tokens: 8,192 x 65,536 bytes of global layers, 1,024 x 327,680 of local ones."""
    near, far = step_bytes(gemma_12b, "Q4_K_M"), step_bytes(gemma_12b, "Q4_K_M", context_tokens=8_192, kv_type="f16")
    assert far.low - near.low == 8_192 * 65_536 + 1_024 * 327_680


def test_b39_the_ceiling_of_a_mixture_of_experts_counts_active_weights() -> None:
    """B39: 273e9 / (3.3e9 x 4.85 / 8) = 136.5 tok/s, of which 60 is 44.0 %; by all weights it would be 14.8."""
    model = Model(
        "30b-a3b", tied=True, params=30_500_000_000, active_params=3_300_000_000,
        tensors=Tensors(total_bytes=round(30.5e9 * 4.85 / 8)),
    )  # fmt: skip
    ceiling = decode_ceiling(model, card(100, 273)).datasheet
    assert ceiling is not None
    assert round(ceiling.high, 1) == 136.5
    # its layers are not known, so neither is what its cache adds: the ceiling is the upper end
    assert round(60 / ceiling.high, 3) == 0.440


def test_b39_a_dense_measurement_above_its_ceiling() -> None:
    """B39: 4.68 GB at 120 GB/s: 25.64 tok/s; 31.0 would be 121 %."""
    model = Model("dense", tied=True, tensors=Tensors(total_bytes=4_680_000_000))
    ceiling = decode_ceiling(model, card(100, 120)).datasheet
    assert ceiling is not None
    assert round(ceiling.high, 2) == 25.64
    assert round(31.0 / ceiling.high, 2) == 1.21


def test_experts_at_batch_one_and_many(qwen3_30b: Model) -> None:
    """128 experts, 8 used: a batch of 8 reads 1 - (15/16)^8 = 40 % of them, eight users get less than eightfold."""
    one, eight = (decode_ceiling(qwen3_30b, card(989, 3350), "Q4_K_M", batch=batch).datasheet for batch in (1, 8))
    assert one is not None
    assert eight is not None
    assert eight.low < 2 * one.low


@pytest.mark.parametrize(
    ("fp16_tflops", "bandwidth_gb_s", "batch_q4", "batch_f16"),
    [(44.1, 288, 47, 153), (165, 1008, 51, 164), (312, 2039, 47, 153), (989, 3350, 91, 295), (989, 4800, 64, 206)],
)
def test_batch_at_which_decode_turns_compute_bound(
    qwen_7b: Model, fp16_tflops: float, bandwidth_gb_s: float, batch_q4: int, batch_f16: int
) -> None:
    """RTX 4060 Ti, RTX 4090, A100, H100, H200: ridge / (2 N / W) by the FP16 (FP32-accumulate) peak, the lower end.

    E.g. 44.1e12 / 288e9 = 153 FLOP/byte; 2 x 7,070,285,824 / 4,370,558,976 = 3.24 FLOP/byte: 47.
    """
    machine = card(fp16_tflops, bandwidth_gb_s)
    for quantization, batch in (("Q4_K_M", batch_q4), ("F16", batch_f16)):
        found = crossover_batch(qwen_7b, machine, quantization).datasheet
        assert found is not None
        assert found.low == pytest.approx(batch, abs=0.6)


def test_a_disputed_peak_makes_the_crossover_a_range(qwen_7b: Model, m4: Machine) -> None:
    """M4: ridge 31.3 to 38.3, so 9.7 to 11.8 sequences; by the measured 2.9 TFLOPS and 100 GB/s 9.0."""
    found = crossover_batch(qwen_7b, m4, "Q4_K_M")
    assert found.datasheet is not None
    assert found.measured is not None
    assert (round(found.datasheet.low, 1), round(found.datasheet.high, 1)) == (9.7, 11.8)
    assert round(found.measured.low, 1) == 9.0


def test_long_contexts_may_never_turn_compute_bound(qwen_7b: Model) -> None:
    """On an H100 a token computes as long as 92 MB take to read; 32,768 tokens of f16 keys and values are 1.9 GB."""
    found = crossover_batch(qwen_7b, card(989, 3350), "F16", context_tokens=32_768, kv_type="f16")
    assert found.datasheet == Range.of(math.inf)


def test_routed_experts_move_the_crossover(qwen3_30b: Model) -> None:
    """At the crossing, reading takes as long as computing, with as many experts read as that batch chooses."""
    machine = card(989, 3350)
    found = crossover_batch(qwen3_30b, machine, "BF16").datasheet
    assert found is not None
    batch = round(found.low)
    read_s = step_bytes(qwen3_30b, "BF16", batch=batch).low / 3350e9
    # 2 x (2,730,491,904 active weights + 311,164,928 of the output matrix) FLOPs a token
    computed_s = batch * 2 * 3_041_656_832 / 989e12
    assert read_s == pytest.approx(computed_s, rel=0.01)


def test_a_large_batch_is_bound_by_arithmetic(qwen_7b: Model, m4: Machine) -> None:
    """135 sequences of 4,096 tokens at 2.9 TFLOPS: 2.9e12 / (14.14e9 + 1.644e9) = 184 tok/s together, 1.4 each."""
    found = decode_ceiling(qwen_7b, m4, "Q4_K_M", context_tokens=4_096, kv_type="q8_0", batch=135).measured
    assert found is not None
    assert round(found.low) == 184
    assert round(found.low / 135, 1) == 1.4


def test_prefill_floor_of_the_m4(qwen_7b: Model, m4: Machine) -> None:
    """48.2 TFLOP for 3,505 tokens: 16.6 s at the measured 2.9 TFLOPS; 10.5 to 12.8 s by the disputed datasheet."""
    found = prefill_floor_ms(qwen_7b, m4, 3_505, "Q4_K_M")
    assert found.datasheet is not None
    assert found.measured is not None
    assert round(found.measured.low / 1000, 1) == 16.6
    assert (round(found.datasheet.low / 1000, 1), round(found.datasheet.high / 1000, 1)) == (10.5, 12.8)


def test_a_short_prefill_is_bound_by_reading_the_weights(qwen_7b: Model) -> None:
    """A 4090 and 8 tokens in F16: 14.14 GB / 1,008 GB/s = 14.0 ms, computing them 0.7; in two chunks twice that."""
    machine = card(165.2, 1008)
    once = prefill_floor_ms(qwen_7b, machine, 8, "F16").datasheet
    twice = prefill_floor_ms(qwen_7b, machine, 8, "F16", chunk_tokens=4).datasheet
    assert once is not None
    assert twice is not None
    assert round(once.low, 1) == 14.0
    assert twice.low == pytest.approx(2 * once.low)


def test_a_prompt_all_in_the_cache_still_costs_one_token(qwen_7b: Model, m4: Machine) -> None:
    """4,370,558,976 bytes / 120 GB/s: 36.4 ms."""
    found = prefill_floor_ms(qwen_7b, m4, 3_505, "Q4_K_M", cached_tokens=3_505).datasheet
    assert found is not None
    assert round(found.low, 1) == 36.4


def test_implied_rates_of_the_m4(qwen_7b: Model) -> None:
    """3,505 tokens in 17,846 ms: 2.70 TFLOPS. 21.3 tok/s, of which 68 of 69 tokens were timed: 91.8 GB/s."""
    assert round(implied_flops_per_s(qwen_7b, 3_505, 17_846).low / TFLOP, 2) == 2.70
    read = implied_bytes_per_s(qwen_7b, 21.3 * 68 / 69, "Q4_K_M", context_tokens=108, kv_type="q8_0")
    assert round(read.low / GB, 1) == 91.8


def test_a_cached_prompt_of_40_tokens_implies_more_than_the_machine_has(qwen_7b: Model, m4: Machine) -> None:
    """40 tokens in 51.4 ms would be 10.2 TFLOPS, above every published peak."""
    implied = implied_flops_per_s(qwen_7b, 40, 51.41)
    assert round(implied.low / TFLOP, 1) == 10.2
    assert m4.chip is not None
    peak = arithmetic_peak(m4.chip, "Q4_K_M")
    assert peak == Range(3.76 * TFLOP, 4.6 * TFLOP)
    assert implied.low > peak.high


@pytest.mark.parametrize(
    ("quantization", "low", "high"),
    # GeForce: 44.1 with FP32 accumulation, 88.2 with FP16, INT8 twice that
    [("F16", 44.1, 88.2), ("AWQ", 44.1, 88.2), ("Q4_K_M", 44.1, 176.4), (None, 44.1, 176.4)],
)
def test_quantized_weights_are_multiplied_in_int8(
    rtx_4060_ti: Machine, quantization: str | None, low: float, high: float
) -> None:
    """Only above the fastest units that may be at work is a prefill impossible."""
    assert rtx_4060_ti.chip is not None
    found = arithmetic_peak(rtx_4060_ti.chip, quantization)
    assert found is not None
    assert (found.low / TFLOP, found.high / TFLOP) == pytest.approx((low, high))


def test_fp8_weights_have_their_own_peak() -> None:
    """H100: 989 in FP16, 1,978 in FP8."""
    peaks = Peaks(fp16=Range.of(989 * TFLOP), fp8=Range.of(1_978 * TFLOP))
    chip = Chip("nvidia-h100-sxm", vendor="nvidia", peaks=peaks)
    assert arithmetic_peak(chip, "FP8") == Range(989 * TFLOP, 1_978 * TFLOP)
    assert arithmetic_peak(chip, "BF16") == Range.of(989 * TFLOP)


def test_no_peak_is_made_up() -> None:
    """A card of which only the vector units are known, an M5, a chip nobody described."""
    only_fp32 = Peaks(fp32=Range.of(2 * TFLOP))
    assert arithmetic_peak(Chip("jetson", vendor="nvidia", peaks=only_fp32), "Q4_K_M") is None
    assert arithmetic_peak(Chip("apple-m5", vendor="apple"), "F16") is None


def test_an_unknown_machine_has_no_ceiling(qwen_7b: Model) -> None:
    """Neither denominator: two Nones, not a guess."""
    nothing = Machine("box")
    assert decode_ceiling(qwen_7b, nothing, "Q4_K_M") == Bound(None, None)
    assert crossover_batch(qwen_7b, nothing, "Q4_K_M") == Bound(None, None)
    assert prefill_floor_ms(qwen_7b, nothing, 100, "Q4_K_M") == Bound(None, None)


def test_a_measured_machine_has_a_ceiling_without_a_catalogue(smollm_135m: Model) -> None:
    """24.0 to 24.9 GB/s measured on its CPU over 96,576,768 bytes: 249 to 258 tok/s."""
    machine = Machine(
        "this", measured=Ceilings(bandwidth_bytes_per_s=Spread(24.5 * GB, 24.0 * GB, 24.9 * GB, 5), measured_on="cpu")
    )
    found = decode_ceiling(smollm_135m, machine, "Q4_1")
    assert found.datasheet is None
    assert found.measured is not None
    assert (round(found.measured.low), round(found.measured.high)) == (249, 258)


def test_the_machines_own_ceilings_come_before_its_chips(m4: Machine) -> None:
    """What was measured on this very box is nearer than what was measured on one like it."""
    own = Ceilings(bandwidth_bytes_per_s=Spread(95 * GB, 94 * GB, 96 * GB, 5))
    assert replace(m4, measured=own).ceilings is own
    assert m4.chip is not None
    assert m4.ceilings is m4.chip.measured


def test_a_dense_model_ignores_the_batch_in_its_weights(qwen_7b: Model) -> None:
    """Weights are read once a step, however many sequences share it."""
    assert step_bytes(qwen_7b, "Q4_K_M", batch=64) == step_bytes(qwen_7b, "Q4_K_M", batch=1)


def test_a_moe_without_its_counts_cannot_tell_a_batch() -> None:
    """With active parameters alone, batch 1 is known and nothing else."""
    model = Model(
        "m", tied=True, params=100, active_params=10, tensors=Tensors(total_bytes=1_000), moe=None, layers=()
    )  # fmt: skip
    assert step_bytes(model) == Range.of(100)
    with pytest.raises(EstimateError, match=r"moe \(experts, used\) is missing"):
        step_bytes(model, batch=2)
    # with one of ten experts used, 90 left out of 100 are all of them but one: 100 bytes each, none dense
    assert step_bytes(replace(model, moe=Moe(10, 1)), batch=2).low == pytest.approx(190)
