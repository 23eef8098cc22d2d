"""Published speeds of other machines against what their chips can do, and where measured subjects stand among them.

The two are kept apart by type: a ``Stand`` is a point of one or the other, never a mean over both. All of it is
computed when it is read; a published figure that its chip cannot do is shown as such and enters no fit and no summary.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from roofbook.analysis.latency import Point
from roofbook.analysis.prefill import Curve
from roofbook.errors import EstimateError
from roofbook.facts import PublishedRun
from roofbook.theory.peaks import arithmetic_peak, usual_peak
from roofbook.theory.plausibility import Band, decode_band, prefill_band
from roofbook.theory.roofline import implied_flops_per_s, step_bytes
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.units import MS_PER_S

LONG_PROMPT_TOKENS: Final = 512
"""A shorter prompt is bound by reading the weights once rather than by arithmetic."""

_NO_DOUBT: Final = ("prefill_above_fp16", "decode_low_share")
"""Passes the FP16 peak, and may: quantized weights are multiplied in INT8; a small share of a very fast memory."""

_SIXTEEN_BITS: Final = ("F32", "F16", "BF16", "FP16", "BFLOAT16", "FLOAT16")


@dataclass(frozen=True)
class DecodeStand:
    """One decode rate: a step of *step_ms*, of which reading at the datasheet's bandwidth would take *ideal_ms*."""

    id: str
    machine: str
    chip: str
    vendor: str | None
    model: str
    quantization: str | None
    source: str
    setting: str
    """Runtime, backend and build, as far as they were published."""
    read_in_copy: bool
    tok_per_s: float
    ideal_ms: Range
    step_ms: float
    band: Band
    flagged: bool
    """Somebody doubted it: its figure is shown and enters no fit."""

    @property
    def share(self) -> float:
        """The share of the bandwidth reached, by the middle of what sources dispute."""
        return middle(self.ideal_ms) / self.step_ms

    @property
    def impossible(self) -> bool:
        return self.band == "impossible"

    @property
    def usable(self) -> bool:
        """True for a figure that may stand in a fit or a summary."""
        return not self.impossible and not self.flagged


@dataclass(frozen=True)
class PrefillStand:
    """One prefill rate as shares of the chip's arithmetic: of the rate usual for inference, of the fastest there is."""

    id: str
    machine: str
    chip: str
    vendor: str | None
    model: str
    quantization: str | None
    source: str
    prompt_tokens: int
    flops_per_s: float
    of_usual: float
    """By the middle of what sources dispute."""
    of_fastest: float
    """By the upper end."""
    band: Band
    flagged: bool

    @property
    def sixteen_bits(self) -> bool:
        return (self.quantization or "").upper() in _SIXTEEN_BITS

    @property
    def usable(self) -> bool:
        return self.band != "impossible" and not self.flagged


@dataclass(frozen=True)
class Spread:
    """A group of shares: how many, their middle, their ends."""

    n: int
    median: float
    low: float
    high: float


def middle(value: Range) -> float:
    """Return the middle of what is disputed."""
    return (value.low + value.high) / 2


def spread(values: Sequence[float]) -> Spread | None:
    """Return the spread of *values*, None of none."""
    return Spread(len(values), median(values), min(values), max(values)) if values else None


def decode_stands(runs: Iterable[PublishedRun]) -> tuple[DecodeStand, ...]:
    """Return the published decode rates whose bytes and bandwidth are known."""
    return tuple(stand for run in runs if (stand := _decode_stand(run)) is not None)


def measured_decodes(points: Iterable[Point], model: Model, machine: Machine, kv_type: str | None) -> list[DecodeStand]:
    """Return a subject's decode rates, one a point, against its own chip; none where bytes or bandwidth are unknown."""
    chip = machine.chip
    if chip is None or chip.bandwidth_bytes_per_s is None:
        return []
    stands: list[DecodeStand] = []
    for point in points:
        if point.decode.median is None or point.prompt_tokens is None:
            continue
        generated = (point.output_tokens or 0) // max(1, point.finished)
        context = round(point.prompt_tokens) + generated // 2
        try:
            read = step_bytes(model, context_tokens=context, kv_type=kv_type)
        except EstimateError:
            return []
        ideal = _ideal_ms(read, chip.bandwidth_bytes_per_s)
        step_s = 1 / point.decode.median
        stands.append(
            DecodeStand(
                id=f"{point.experiment}/{point.point}",
                machine=machine.name or machine.id,
                chip=chip.name or chip.id,
                vendor=chip.vendor,
                model=model.id,
                quantization=model.tensors.quantization,
                source="",
                setting="",
                read_in_copy=False,
                tok_per_s=point.decode.median,
                ideal_ms=ideal,
                step_ms=MS_PER_S * step_s,
                band=decode_band(read * (1 / step_s), chip.bandwidth_bytes_per_s, step_s),
                flagged=False,
            )
        )
    return stands


def prefill_stands(runs: Iterable[PublishedRun]) -> tuple[PrefillStand, ...]:
    """Return the published prefill rates of prompts long enough to be bound by arithmetic."""
    return tuple(stand for run in runs if (stand := _prefill_stand(run)) is not None)


def measured_prefills(curve: Curve, model: Model, machine: Machine) -> list[PrefillStand]:
    """Return a subject's prefill rates, one a length, against its own chip; none where FLOPs or peak are unknown."""
    chip = machine.chip
    peak = None if chip is None else arithmetic_peak(chip, model.tensors.quantization)
    usual = None if chip is None else usual_peak(chip)
    if chip is None or peak is None or usual is None:
        return []
    stands: list[PrefillStand] = []
    for length in curve.lengths:
        tokens = round(length.tokens)
        if tokens < LONG_PROMPT_TOKENS:
            continue
        try:
            flops = implied_flops_per_s(model, tokens, length.prefill_ms)
        except EstimateError:
            return []
        stands.append(
            PrefillStand(
                id=str(tokens),
                machine=machine.name or machine.id,
                chip=chip.name or chip.id,
                vendor=chip.vendor,
                model=model.id,
                quantization=model.tensors.quantization,
                source="",
                prompt_tokens=tokens,
                flops_per_s=middle(flops),
                of_usual=middle(flops) / middle(usual),
                of_fastest=middle(flops) / peak.high,
                band=prefill_band(flops, peak, tokens),
                flagged=False,
            )
        )
    return stands


def _ideal_ms(read: Range, bandwidth: Range) -> Range:
    return Range(MS_PER_S * read.low / bandwidth.high, MS_PER_S * read.high / bandwidth.low)


def _decode_stand(run: PublishedRun) -> DecodeStand | None:
    read, bandwidth, band = run.decode_bytes_per_s, run.bandwidth_bytes_per_s, run.decode_band
    if read is None or bandwidth is None or band is None or run.chip is None or run.decode_tok_per_s is None:
        return None
    return DecodeStand(
        id=run.id,
        machine=run.machine,
        chip=run.chip.name or run.chip.id,
        vendor=run.chip.vendor,
        model=run.model,
        quantization=run.quantization,
        source=run.source,
        setting=setting(run),
        read_in_copy=run.read_in_copy,
        tok_per_s=run.decode_tok_per_s,
        ideal_ms=_ideal_ms(read * (1 / run.decode_tok_per_s), bandwidth),
        step_ms=MS_PER_S / run.decode_tok_per_s,
        band=band,
        flagged=doubted(run, "decode"),
    )


def setting(run: PublishedRun) -> str:
    """Return runtime, backend and build of a published run, as far as they are known."""
    return " ".join(part for part in (run.runtime, run.backend, run.build) if part)


def doubted(run: PublishedRun, figure: str) -> bool:
    """True where whoever collected the run doubts its *figure* (decode, prefill), or where several cards shared it."""
    doubts = [flag for flag in run.flagged if flag.startswith((figure, "by_hand")) and flag not in _NO_DOUBT]
    return bool(doubts) or several_cards(run)


def several_cards(run: PublishedRun) -> bool:
    """True where several cards shared the model: a share of one card's peak says nothing then."""
    one = None if run.chip is None or run.chip.memory_kind != "discrete" else run.chip.memory_bytes
    return one is not None and run.memory_bytes is not None and run.memory_bytes > one


def _prefill_stand(run: PublishedRun) -> PrefillStand | None:
    flops, peak, band = run.prefill_flops_per_s, run.peak_flops_per_s, run.prefill_band
    if flops is None or peak is None or band is None or run.chip is None or run.prompt_tokens is None:
        return None
    usual = usual_peak(run.chip) or peak
    if run.prompt_tokens < LONG_PROMPT_TOKENS:
        return None
    return PrefillStand(
        id=run.id,
        machine=run.machine,
        chip=run.chip.name or run.chip.id,
        vendor=run.chip.vendor,
        model=run.model,
        quantization=run.quantization,
        source=run.source,
        prompt_tokens=run.prompt_tokens,
        flops_per_s=middle(flops),
        of_usual=middle(flops) / middle(usual),
        of_fastest=middle(flops) / peak.high,
        band=band,
        flagged=doubted(run, "prefill"),
    )
