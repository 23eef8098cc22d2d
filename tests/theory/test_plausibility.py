"""Bands of plausible figures, on published ones that are known to be right or wrong."""

import pytest

from roofbook.theory.plausibility import STEP_OVERHEAD_DISCRETE_S, Band, decode_band, prefill_band
from roofbook.theory.shapes import Range
from roofbook.units import GB, TFLOP


@pytest.mark.parametrize(
    ("implied_gb_s", "bandwidth_gb_s", "band"),
    [
        # claims of a web article: Llama 3.1 8B Q4_K_M at 80 tok/s on an M4 Pro, 135 %
        (80 * 4.617, 273, "impossible"),
        # Metal, an M1 with 8 GB, where the run had failed: 1,133 tok/s
        (1_133 * 5.15, 68.25, "impossible"),
        # M3 Pro, 7B F16, llama.cpp discussion 4167: 87 %, believable
        (0.874 * 150, 150, "ordinary"),
        (0.95 * 150, 150, "high"),
        # M2 Ultra, 7B Q4_0: 45 % is that chip's ordinary share
        (0.45 * 800, 800, "ordinary"),
        # RTX 4080 at a fifth of what others measure: something else is wrong
        (0.05 * 716.8, 716.8, "low"),
    ],
)
def test_decode_at_batch_one(implied_gb_s: float, bandwidth_gb_s: float, band: Band) -> None:
    """Shares of the datasheet's bandwidth: above 1 impossible, above 0.92 high, below 0.25 low."""
    step_s = 4.0 / implied_gb_s  # a model of 4 GB
    found = decode_band(Range.of(implied_gb_s * GB), Range.of(bandwidth_gb_s * GB), step_s)
    assert found == band


@pytest.mark.parametrize(
    ("share", "step_ms", "overhead_s", "band"),
    # 10 % of the bandwidth in a step of 5 ms is overhead; in a step of 100 ms it is not
    [(0.10, 5, STEP_OVERHEAD_DISCRETE_S, "ordinary"), (0.10, 100, STEP_OVERHEAD_DISCRETE_S, "low")],
)
def test_overhead_excuses_a_small_model(share: float, step_ms: float, overhead_s: float, band: Band) -> None:
    """A step costs up to 3.1 ms beside its bytes on a card: a 0.5 GB model is mostly that."""
    found = decode_band(Range.of(share * 1000 * GB), Range.of(1000 * GB), step_ms / 1000, overhead_s)
    assert found == band


def test_hbm_has_a_lower_floor() -> None:
    """7B Q4_0 on an H100 reaches 17 to 37 %: 17 % is ordinary there, 5 % in slow steps is not."""
    bandwidth = Range.of(3350 * GB)
    assert decode_band(Range.of(0.17 * 3350 * GB), bandwidth, 0.02) == "ordinary"
    assert decode_band(Range.of(0.05 * 3350 * GB), bandwidth, 0.1) == "low"


def test_what_is_open_counts_in_the_measurements_favour() -> None:
    """An unknown KV type: only when its smallest is too much; a disputed bandwidth: only above its larger one."""
    assert decode_band(Range(110 * GB, 150 * GB), Range.of(120 * GB), 0.04) == "ordinary"
    assert decode_band(Range(101 * GB, 101 * GB), Range(100 * GB, 120 * GB), 0.04) == "ordinary"
    assert decode_band(Range(121 * GB, 150 * GB), Range(100 * GB, 120 * GB), 0.04) == "impossible"


@pytest.mark.parametrize(
    ("implied_tflops", "new_tokens", "band"),
    [
        # quantized prefill on CUDA passes the FP16 peak by up to 24 %: INT8 units
        (1.24 * 71.2, 512, "ordinary"),
        (290, 512, "impossible"),
        (3, 512, "low"),
        # a short prompt is bound by reading the weights
        (3, 32, "ordinary"),
    ],
)
def test_prefill_of_quantized_weights_on_an_rtx_3090(implied_tflops: float, new_tokens: int, band: Band) -> None:
    """71.2 TFLOPS of FP16 with FP32 accumulation, 284.6 TOPS of INT8."""
    found = prefill_band(Range.of(implied_tflops * TFLOP), Range(71.2 * TFLOP, 284.6 * TFLOP), new_tokens)
    assert found == band


def test_a_disputed_peak_is_passed_only_above_its_upper_end() -> None:
    """M4: 3.76 to 4.6 TFLOPS; 4.3 is possible, 10.2 (a cached prompt of 40 tokens) is not."""
    peak = Range(3.76 * TFLOP, 4.6 * TFLOP)
    assert prefill_band(Range.of(4.3 * TFLOP), peak, 40) == "ordinary"
    assert prefill_band(Range.of(10.2 * TFLOP), peak, 40) == "impossible"
