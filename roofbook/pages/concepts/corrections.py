"""The corrections that change a decision, each as a sentence with its numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from roofbook.analysis.bends import measured_bend
from roofbook.analysis.claims import Claim, Evidence
from roofbook.analysis.intervals import REQUESTS_FOR_P99
from roofbook.analysis.memory import served
from roofbook.errors import EstimateError
from roofbook.pages.concepts.grid import span
from roofbook.pages.concepts.world import Measured
from roofbook.units import MS_PER_S, TFLOP
from roofbook.words import Words

_REQUEST_TOKENS: Final = 4096
_MINUTE_S: Final = 60


@dataclass(frozen=True)
class Correction:
    """One correction: its point in a few words, and what it stands on."""

    title: str
    told: str


def corrections(one: Measured, evidence: Evidence, found: Sequence[Claim], words: Words) -> list[Correction]:
    """Return the corrections in the order of what they change; one that lacks its numbers is left out."""
    return [
        *_kv_type(found, words),
        *_served(one, evidence, found, words),
        *_prediction(one, found, words),
        *_bend(one, words),
        *_too_few(one, words),
    ]


def _kv_type(found: Sequence[Claim], words: Words) -> Iterator[Correction]:
    told = {claim.at: claim for claim in found if claim.key == "requests_at_once" and claim.recomputed is not None}
    usual, ran = told.get("f16"), next((claim for at, claim in told.items() if at != "f16"), None)
    if usual is None or ran is None or usual.recomputed is None or ran.recomputed is None:
        return
    yield Correction(
        words.say("The KV type decides the budget"),
        words.say(
            "%(claimed)s requests of 4,096 tokens hold for %(type)s (%(ran)s). In f16, which is Ollama's own default, "
            "it is %(usual)s. The lower ends are of macOS 15 and older with a reserve of 2 GiB, the upper ones of "
            "macOS 26 with 1 GiB; and the server answers one at a time until it is told otherwise.",
            claimed=words.number(ran.claimed.low),
            type=ran.at or words.say("unknown"),
            ran=span(ran.recomputed, words),
            usual=span(usual.recomputed, words),
        ),
    )


def _served(one: Measured, evidence: Evidence, found: Sequence[Claim], words: Words) -> Iterator[Correction]:
    claimed = next((claim.claimed.low for claim in found if claim.key == "requests_at_once"), None)
    law = one.curve.law
    if claimed is None or law is None:
        return
    try:
        got = served(
            claimed, _REQUEST_TOKENS, law, evidence.model, evidence.machine,
            quantization=evidence.quantization, kv_type=evidence.kv_type,
        )  # fmt: skip
    except EstimateError:
        return
    each = got.decode_tok_per_s_each
    yield Correction(
        words.say("It is a bound of memory only"),
        words.say(
            "%(claimed)s at once would decode at %(each)s tok/s each, and reading their prompts takes %(prefill)s s "
            "apiece: %(rate)s a minute. Here arithmetic ends long before memory does.",
            claimed=words.number(claimed),
            each=words.say("unknown") if each is None else span(each, words, 2),
            prefill=words.significant(got.prefill_s),
            rate=words.significant(got.rate_per_s * _MINUTE_S, 2),
        ),
    )


def _prediction(one: Measured, found: Sequence[Claim], words: Words) -> Iterator[Correction]:
    held = one.curve.hold_out()
    claimed = next((claim.claimed.low for claim in found if claim.key == "prediction_error_refit"), None)
    if held is None or claimed is None:
        return
    yield Correction(
        words.say("The prediction was none"),
        words.say(
            "An error of %(claimed)s %% at %(tokens)s tokens is that of a point which the fit had seen. The "
            "%(lengths)s shorter lengths predict %(predicted)s s (95 %% interval %(low)s to %(high)s); measured were "
            "%(measured)s, so the error is %(error)s %%.",
            claimed=words.significant(100 * claimed, 1),
            tokens=words.number(held.tokens),
            lengths=words.number(held.fitted_lengths),
            predicted=words.significant(held.predicted_ms.mid / MS_PER_S),
            low=words.significant(held.predicted_ms.low / MS_PER_S),
            high=words.significant(held.predicted_ms.high / MS_PER_S),
            measured=words.significant(held.measured_ms / MS_PER_S),
            error=words.significant(100 * held.error_share, 2),
        ),
    )


def _bend(one: Measured, words: Words) -> Iterator[Correction]:
    bend = None if one.model is None or one.machine is None else measured_bend(one.curve, one.model, one.machine)
    if bend is None:
        return
    yield Correction(
        words.say("The curve bends more than arithmetic says"),
        words.say(
            "The quadratic term is %(excess)s times what attention's arithmetic takes (%(low)s to %(high)s). Other "
            "machines bend alike, so the attention kernel is the likelier cause and heat a possible one; that it "
            "matches theory, or that no runtime can be faster, says too much.",
            excess=words.significant(bend.excess.mid, 2),
            low=words.significant(bend.excess.low, 2),
            high=words.significant(bend.excess.high, 2),
        ),
    )


def _too_few(one: Measured, words: Words) -> Iterator[Correction]:
    """P99 from a handful of runs; and rows that its own rule of plausibility should have caught."""
    most = max((point.ttft.rows for point in one.points), default=0)
    caught = [finding for finding in one.view.found if finding.kind == "above_compute_peak"]
    if not 0 < most < REQUESTS_FOR_P99:
        return
    told = words.say(
        "A prompt was sent %(n)s times at most; the slowest one per cent takes at least %(needed)s.",
        n=words.number(most),
        needed=words.number(REQUESTS_FOR_P99),
    )
    if caught:
        slowest = min(caught, key=lambda finding: float(finding.values.get("flops_per_s") or 0))
        told += " " + words.say(
            "And the rule that a time may not be physically impossible catches the row of %(tokens)s tokens too, which "
            "was kept: it would have taken %(flops)s TFLOPS on a GPU of %(peak)s.",
            tokens=words.number(float(slowest.values.get("prompt_tokens") or 0)),
            flops=words.significant(float(slowest.values.get("flops_per_s") or 0) / TFLOP),
            peak=words.significant(float(slowest.values.get("peak_flops_per_s") or 0) / TFLOP, 2),
        )
    yield Correction(words.say("There is no P99"), told)
