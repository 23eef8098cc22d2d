"""The arithmetic rate that no kernel can pass on a chip, for weights of a given quantization."""

from typing import Final

from roofbook.theory.shapes import Chip, Range

# Matrix units do INT8 twice as fast as FP16 (T4 130/65, A100 624/312, L40S 733/362; GeForce twice the FP16-accumulate
# rate); an upper bound for the units that do it no faster. Used where a catalogue has no figure for the chip.
_INT8_OVER_FP16: Final = 2.0

_SIXTEEN_BITS: Final = ("F32", "F16", "BF16", "FP16", "FLOAT16", "BFLOAT16", "FLOAT32")
_MULTIPLIED_IN_FP16: Final = ("AWQ", "GPTQ", "GPTQ-SYM")


def usual_peak(chip: Chip) -> Range | None:
    """Return the dense rate usual for inference, FLOP/s: a range where sources dispute it, None where nobody says."""
    peaks = chip.peaks
    if chip.vendor == "apple" or chip.memory_kind == "cpu":
        return peaks.fp16 or peaks.fp32
    return peaks.fp16 or peaks.fp16_acc16


def arithmetic_peak(chip: Chip, quantization: str | None) -> Range | None:
    """Return the dense peak in FLOP/s: from the rate usual for inference to the one only above which is impossible.

    The usual one accumulates FP16 products in FP32. Faster, and seen in practice: FP16 accumulation, and INT8 products
    of quantized weights (llama.cpp's MMQ kernels on CUDA pass the FP16 peak by up to 24 %), FP8 and FP4 where the
    weights are. Apple's GPUs up to M4 have one rate, FP32's. None where the chip's matrix units are not known.
    """
    peaks, usual = chip.peaks, usual_peak(chip)
    if usual is None or chip.vendor == "apple" or chip.memory_kind == "cpu":
        return usual
    fastest = [usual.high] if peaks.fp16_acc16 is None else [usual.high, peaks.fp16_acc16.high]
    name = None if quantization is None else quantization.strip().upper()
    if name not in _SIXTEEN_BITS and name not in _MULTIPLIED_IN_FP16:
        fastest.append(_INT8_OVER_FP16 * max(fastest) if peaks.int8 is None else peaks.int8.high)
        if name is None or "FP" in name:
            fastest += [peak.high for peak in (peaks.fp8, peaks.fp4) if peak is not None]
    return Range(usual.low, max(fastest))
