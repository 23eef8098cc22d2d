"""Published speeds of other machines against what their chips can do, and where measured subjects stand among them.

The two are kept apart by type: a ``Stand`` is a point of one or the other, never a mean over both. All of it is
computed when it is read; a published figure that its chip cannot do is shown as such and enters no fit and no summary.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from scipy import stats

from roofbook.analysis.latency import Point
from roofbook.analysis.prefill import Curve
from roofbook.analysis.regression import LEVEL, Fit, Interval, fit
from roofbook.errors import EstimateError
from roofbook.facts import PublishedRun
from roofbook.theory.peaks import arithmetic_peak
from roofbook.theory.plausibility import Band, decode_band, prefill_band
from roofbook.theory.prefill import theoretical_law
from roofbook.theory.roofline import implied_flops_per_s, step_bytes
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.units import MS_PER_S

LENGTHS_FOR_A_BEND: Final = 4
"""aT+bT^2 through fewer lengths leaves less than two degrees of freedom, and no interval that says anything."""

REACH_FOR_A_BEND: Final = 8
"""The longest prompt over the shortest: within less, a bend of a tenth is lost in the scatter of a per cent or two."""

STEPS_APART: Final = 1.3
"""Two steps must differ by this much in bytes before the line through them tells overhead from bandwidth."""

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
class StepLaw:
    """ms a token = bytes / (k x bandwidth) + c, of one machine as one source measured it."""

    source: str
    machine: str
    chip: str
    vendor: str | None
    steps: int
    """How many pairs of model and quantization it was fitted to."""
    k: float
    c_ms: float
    worst: float | None
    """The largest relative residual; None where two steps leave nothing over."""

    def share(self, ideal_ms: float) -> float:
        """Return the share of the bandwidth that the law gives to a step whose reading takes *ideal_ms*."""
        return ideal_ms / (ideal_ms / self.k + self.c_ms)


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
    of_fastest: float
    band: Band
    flagged: bool

    @property
    def sixteen_bits(self) -> bool:
        return (self.quantization or "").upper() in _SIXTEEN_BITS

    @property
    def usable(self) -> bool:
        return self.band != "impossible" and not self.flagged


@dataclass(frozen=True)
class Bend:
    """How much more than its arithmetic the quadratic term of a prefill costs, in units of the linear one."""

    machine: str
    chip: str
    vendor: str | None
    model: str
    quantization: str | None
    source: str | None
    """None for a measured subject."""
    lengths: tuple[int, ...]
    growth: float
    """Of the time for a token, from the shortest to the longest length, as measured."""
    excess: Interval
    """Fitted b/a over the b/a of causal attention at the same rate as the matrices: 1 is what arithmetic explains."""
    worst: float
    """The fit's largest relative residual."""


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


def step_laws(stands: Iterable[DecodeStand]) -> tuple[StepLaw, ...]:
    """Return a law for each machine that one source measured with steps far enough apart, in their order.

    Of several lengths of one model in one quantization the fastest step counts: it has the emptiest context.
    """
    series: dict[tuple[str, str, str], dict[tuple[str, str | None], DecodeStand]] = {}
    for stand in stands:
        if stand.usable:
            steps = series.setdefault((stand.source, stand.machine, stand.setting), {})
            known = steps.get((stand.model, stand.quantization))
            if known is None or stand.step_ms < known.step_ms:
                steps[stand.model, stand.quantization] = stand
    return tuple(law for steps in series.values() if (law := _step_law(list(steps.values()))) is not None)


def prefill_stands(runs: Iterable[PublishedRun]) -> tuple[PrefillStand, ...]:
    """Return the published prefill rates of prompts long enough to be bound by arithmetic."""
    return tuple(stand for run in runs if (stand := _prefill_stand(run)) is not None)


def measured_prefills(curve: Curve, model: Model, machine: Machine) -> list[PrefillStand]:
    """Return a subject's prefill rates, one a length, against its own chip; none where FLOPs or peak are unknown."""
    chip = machine.chip
    peak = None if chip is None else arithmetic_peak(chip, model.tensors.quantization)
    if chip is None or peak is None:
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
                of_usual=middle(flops) / peak.low,
                of_fastest=middle(flops) / peak.high,
                band=prefill_band(flops, peak, tokens),
                flagged=False,
            )
        )
    return stands


def bends(runs: Iterable[PublishedRun]) -> tuple[Bend, ...]:
    """Return the bend of each published series of prompt lengths that one card or chip ran, in their order."""
    series: dict[tuple[str, str, str, str, str | None], list[PublishedRun]] = {}
    for run in runs:
        if run.prefill_tok_per_s and run.prompt_tokens and run.shape is not None and run.chip is not None:
            key = (run.source, run.machine, _setting(run), run.model, run.quantization)
            series.setdefault(key, []).append(run)
    return tuple(bend for runs in series.values() if (bend := _published_bend(runs)) is not None)


def measured_bend(curve: Curve, model: Model, machine: Machine) -> Bend | None:
    """Return a subject's bend by the same law as the published ones; None where it cannot be fitted or compared."""
    law = curve.candidate((1, 2))
    if law is None or machine.chip is None or len(curve.lengths) < LENGTHS_FOR_A_BEND:
        return None
    lengths = [round(length.tokens) for length in curve.lengths]
    found = _bend(lengths, [length.prefill_ms for length in curve.lengths], law.fit, model)
    if found is None:
        return None
    growth, excess, worst = found
    chip = machine.chip
    return Bend(
        machine.name or machine.id, chip.name or chip.id, chip.vendor, model.id, model.tensors.quantization, None,
        tuple(lengths), growth, excess, worst,
    )  # fmt: skip


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
        setting=_setting(run),
        read_in_copy=run.read_in_copy,
        tok_per_s=run.decode_tok_per_s,
        ideal_ms=_ideal_ms(read * (1 / run.decode_tok_per_s), bandwidth),
        step_ms=MS_PER_S / run.decode_tok_per_s,
        band=band,
        flagged=_doubted(run, "decode"),
    )


def _setting(run: PublishedRun) -> str:
    return " ".join(part for part in (run.runtime, run.backend, run.build) if part)


def _doubted(run: PublishedRun, figure: str) -> bool:
    """True where whoever collected the run doubts its *figure* (decode, prefill), or where several cards shared it."""
    doubts = [flag for flag in run.flagged if flag.startswith((figure, "by_hand")) and flag not in _NO_DOUBT]
    return bool(doubts) or _several_cards(run)


def _several_cards(run: PublishedRun) -> bool:
    """True where several cards shared the model: a share of one card's peak says nothing then."""
    one = None if run.chip is None or run.chip.memory_kind != "discrete" else run.chip.memory_bytes
    return one is not None and run.memory_bytes is not None and run.memory_bytes > one


def _step_law(steps: list[DecodeStand]) -> StepLaw | None:
    ideal, took = [middle(step.ideal_ms) for step in steps], [step.step_ms for step in steps]
    if len(steps) < 2 or max(ideal) / min(ideal) < STEPS_APART:
        return None
    law = fit(ideal, took, (0, 1))
    if law is None:
        slope = (took[1] - took[0]) / (ideal[1] - ideal[0])
        c_ms, worst = took[0] - slope * ideal[0], None
    else:
        (c_ms, slope), worst = law.coefficients, max(abs(residual) for residual in law.residuals)
    if slope <= 0:
        return None
    first = steps[0]
    return StepLaw(first.source, first.machine, first.chip, first.vendor, len(steps), 1 / slope, c_ms, worst)


def _prefill_stand(run: PublishedRun) -> PrefillStand | None:
    flops, peak, band = run.prefill_flops_per_s, run.peak_flops_per_s, run.prefill_band
    if flops is None or peak is None or band is None or run.chip is None or run.prompt_tokens is None:
        return None
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
        of_usual=middle(flops) / peak.low,
        of_fastest=middle(flops) / peak.high,
        band=band,
        flagged=_doubted(run, "prefill"),
    )


def _published_bend(runs: list[PublishedRun]) -> Bend | None:
    first = runs[0]
    points = sorted(
        (run.prompt_tokens, MS_PER_S * run.prompt_tokens / run.prefill_tok_per_s)
        for run in runs
        if run.prompt_tokens and run.prefill_tok_per_s
    )
    lengths = [tokens for tokens, _ in points]
    doubted = any(_doubted(run, "prefill") for run in runs)
    if doubted or first.shape is None or first.chip is None or len(set(lengths)) < LENGTHS_FOR_A_BEND:
        return None
    if lengths[-1] < REACH_FOR_A_BEND * lengths[0]:
        return None
    times = [took for _, took in points]
    found = _bend(lengths, times, fit(lengths, times, (1, 2)), first.shape)
    if found is None:
        return None
    growth, excess, worst = found
    return Bend(
        first.machine, first.chip.name or first.chip.id, first.chip.vendor, first.model, first.quantization,
        first.source, tuple(lengths), growth, excess, worst,
    )  # fmt: skip


def _bend(
    lengths: Sequence[int], times: Sequence[float], law: Fit | None, model: Model
) -> tuple[float, Interval, float] | None:
    """Return growth, excess and the worst residual of aT+bT^2; None where the model's arithmetic is not known."""
    try:
        by_arithmetic = theoretical_law(model, 1.0)
    except EstimateError:
        return None
    if law is None or law.coefficient(1) <= 0 or by_arithmetic.b_ms <= 0:
        return None
    expected = by_arithmetic.b_ms / by_arithmetic.a_ms
    ratio = _ratio(law)
    growth = (times[-1] / lengths[-1]) / (times[0] / lengths[0]) - 1
    excess = Interval(ratio.mid / expected, ratio.low / expected, ratio.high / expected)
    return growth, excess, max(abs(residual) for residual in law.residuals)


def _ratio(law: Fit) -> Interval:
    """Return b/a of aT+bT^2 with its interval: Var(b/a) to first order, both from one covariance."""
    a, b = law.coefficient(1), law.coefficient(2)
    (var_a, cov), (_, var_b) = law.covariance
    variance = var_b / a**2 - 2 * b * cov / a**3 + b**2 * var_a / a**4
    half = float(stats.t.ppf((1 + LEVEL) / 2, law.degrees_of_freedom)) * math.sqrt(max(variance, 0.0))
    return Interval(b / a, b / a - half, b / a + half)
