"""Is a figure possible: bytes/s and FLOP/s against what the chip has, in bands learnt from published runs.

An open or disputed figure counts in the measurement's favour: only what no end of the ranges allows is impossible.
"""

from typing import Final, Literal

from roofbook.theory.shapes import Range

Band = Literal["impossible", "high", "ordinary", "low"]

IMPOSSIBLE_ABOVE: Final = 1.0
"""Of the datasheet's peak: no memory reads faster, no kernel multiplies faster."""

DECODE_HIGH_ABOVE: Final = 0.92
"""Of the bandwidth's peak at batch 1: the highest believable one of some 500 published runs is 0.89."""

DECODE_LOW_BELOW: Final = 0.25
"""Below it something other than the memory decides: layers on the CPU, a slow path, wrong settings."""
DECODE_LOW_BELOW_HBM: Final = 0.08
"""The same for memory so fast that overhead per step decides: 7B Q4_0 on HBM cards reaches 0.17 to 0.37."""
HBM_FROM_BYTES_PER_S: Final = 2e12

STEP_OVERHEAD_S: Final = 0.0082
"""What a step costs beside its bytes at most: 3.3 to 8.2 ms on 28 Apple GPUs. A small model may spend nearly all its
time on it, so a low share of the bandwidth counts only after this is taken off."""
STEP_OVERHEAD_DISCRETE_S: Final = 0.0031
"""The same on a graphics card: 2.4 to 3.1 ms on RTX 3090, 4080, 4090."""

PREFILL_LOW_BELOW: Final = 0.05
"""Of the usual arithmetic peak: ordinary prefill of 512 tokens and more reaches 0.1 to 0.9."""
PREFILL_LOW_FROM_TOKENS: Final = 128
"""A shorter prompt is bound by reading the weights once, and by overhead."""


def decode_band(
    implied_bytes_per_s: Range, bandwidth_bytes_per_s: Range, step_s: float, overhead_s: float = STEP_OVERHEAD_S
) -> Band:
    """Return the band of a decode at batch 1 that took *step_s* a token and so read *implied_bytes_per_s*."""
    least = implied_bytes_per_s.low / bandwidth_bytes_per_s.high
    if least > IMPOSSIBLE_ABOVE:
        return "impossible"
    if least > DECODE_HIGH_ABOVE:
        return "high"
    most = implied_bytes_per_s.high / bandwidth_bytes_per_s.low
    low_below = DECODE_LOW_BELOW_HBM if bandwidth_bytes_per_s.low >= HBM_FROM_BYTES_PER_S else DECODE_LOW_BELOW
    reading_s = step_s - overhead_s
    return "low" if reading_s > 0 and most * step_s / reading_s < low_below else "ordinary"


def prefill_band(implied_flops_per_s: Range, peak_flops_per_s: Range, new_tokens: int) -> Band:
    """Return the band of a prefill of *new_tokens* against ``peaks.arithmetic_peak``."""
    if implied_flops_per_s.low > IMPOSSIBLE_ABOVE * peak_flops_per_s.high:
        return "impossible"
    slow = implied_flops_per_s.high < PREFILL_LOW_BELOW * peak_flops_per_s.low
    return "low" if slow and new_tokens >= PREFILL_LOW_FROM_TOKENS else "ordinary"
