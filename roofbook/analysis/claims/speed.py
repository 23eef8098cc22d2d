"""Published figures about speed, recomputed."""

from collections.abc import Iterator, Mapping
from typing import Any

from roofbook.analysis.claims.claim import Claim, Evidence, claim
from roofbook.analysis.prefill import Length
from roofbook.analysis.regression import Interval
from roofbook.theory.roofline import datasheet_rates, decode_ceiling, implied_bytes_per_s, implied_flops_per_s
from roofbook.theory.shapes import Range
from roofbook.theory.work import prefill_work
from roofbook.units import MS_PER_S, TFLOP


def fitted(evidence: Evidence, said: Mapping[str, Any]) -> Iterator[Claim]:
    law = evidence.law
    if law is not None:
        yield claim("prefill_fit_linear", said["linear_per_token"], law.fit.coefficient_interval(1), "ms/token")
        yield claim("prefill_fit_quadratic", said["quadratic_per_token2"], law.fit.coefficient_interval(2), "ms/token2")


def first_fit(evidence: Evidence, said: float) -> Iterator[Claim]:
    """Two points and two parameters: the curve through the shortest and, at the time, the longest length."""
    ends = _two_ends(evidence)
    yield claim("first_fit_prediction", said, None if ends is None else _through(*ends, 8192), "ms", 8192)


def refit(evidence: Evidence, said: float) -> Iterator[Claim]:
    """The longest length, predicted by those who did not see it."""
    held = next((held for held in evidence.curve.held_out if held.powers == (1, 2)), None)
    if held is not None:
        yield claim("held_out_prediction", said, held.predicted_ms, "ms", f"{held.tokens:.0f}")


def extrapolated(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    for tokens, claimed in said.items():
        law = evidence.law
        yield claim("extrapolation", claimed, None if law is None else law.fit.prediction(int(tokens)), "ms", tokens)


def linear_estimate(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    for tokens, claimed in said.items():
        law = evidence.law
        found = None if law is None else _times(law.fit.coefficient_interval(1), int(tokens))
        yield claim("linear_estimate", claimed, found, "ms", tokens)


def quadratic_share(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    """Twice: by the fit, and by the arithmetic of causal attention."""
    for tokens, claimed in said.items():
        law = evidence.law
        by_fit = None if law is None else law.fit.term_share(2, int(tokens))
        yield claim("quadratic_share_by_fit", claimed, by_fit, "share", tokens)
        work = prefill_work(evidence.model, int(tokens))
        by_theory = work.attention.low / work.total.low
        # The share was published of the fit; arithmetic gives it another one.
        yield (
            claim("quadratic_share_by_theory", claimed, by_theory, "share", tokens).decisive().under_another_condition()
        )


def budget(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    for target_ms, tokens in said.items():
        fits, found = evidence.curve.budget(float(target_ms)), None
        if fits is not None and fits.low is not None and fits.mid is not None and fits.high is not None:
            found = Interval(fits.mid, fits.low, fits.high)
        yield claim("prompt_budget", tokens, found, "tokens", target_ms)


def rag(evidence: Evidence, said: float) -> Iterator[Claim]:
    band = evidence.curve.ttft(1600)
    found = None if band is None else _times(band, 1 / MS_PER_S)
    yield claim("rag_ttft", said, found, "s", 1600)


def decode(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    """The rate is the server's less its own first token; a step reads no input embedding but reads the cache."""
    point = evidence.baseline(longest=False)
    if point is None or point.decode.median is None or point.prompt_tokens is None:
        return
    tokens = round(point.prompt_tokens)
    ceiling = decode_ceiling(
        evidence.model, evidence.machine, evidence.quantization, context_tokens=tokens, kv_type=evidence.kv_type
    ).datasheet
    used = implied_bytes_per_s(
        evidence.model, point.decode.median, evidence.quantization, context_tokens=tokens, kv_type=evidence.kv_type
    )
    peak = datasheet_rates(evidence.machine).bandwidth_bytes_per_s
    yield claim("decode_ceiling", said["ceiling_tok_per_s"], ceiling, "tok/s")
    yield claim("decode_measured", said["measured"], point.decode.median, "tok/s")
    yield claim("decode_share", said["share"], None if peak is None else _over(used, peak), "share")


def prefill(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    point = evidence.baseline(longest=True)
    if point is None or point.prefill.median is None or point.prompt_tokens is None:
        return
    used = implied_flops_per_s(evidence.model, round(point.prompt_tokens), point.prefill.median)
    peak = datasheet_rates(evidence.machine, evidence.quantization).flops_per_s
    yield claim("prefill_reached", said["tflops_measured"], used * (1 / TFLOP), "tflops")
    yield claim("prefill_peak", said["tflops_peak"], None if peak is None else peak * (1 / TFLOP), "tflops")
    yield claim("prefill_share", said["share"], None if peak is None else _over(used, peak), "share")


def work(evidence: Evidence, said: float) -> Iterator[Claim]:
    yield claim("prefill_work", said, prefill_work(evidence.model, 3505).total * (1 / TFLOP), "tflop", 3505)


def cache_hit(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    """The factor compares prompts of two lengths: once as it is, once token by token."""
    cold = evidence.baseline(longest=True)
    hits = [row for row in evidence.rows if row.get("experiment") == "same-prompt" and row.get("prompt_tokens")]
    if cold is None or cold.prefill.median is None or cold.prompt_tokens is None or not hits:
        return
    hit = max(hits, key=lambda row: row["prompt_tokens"])
    hit_ms: float = hit["server_prefill_ms"]
    as_it_is = cold.prefill.median / hit_ms
    by_token = (cold.prefill.median / cold.prompt_tokens) / (hit_ms / hit["prompt_tokens"])
    yield claim("cache_uncached", said["uncached_ms"], cold.prefill.median, "ms")
    yield claim("cache_cached", said["cached_ms"], hit_ms, "ms")
    yield claim("cache_factor", said["factor"], Range(min(as_it_is, by_token), max(as_it_is, by_token)), "factor")


def long_over_short(evidence: Evidence, said: float) -> Iterator[Claim]:
    long, short = evidence.baseline(longest=True), evidence.baseline(longest=False)
    found = None
    if long is not None and short is not None and long.ttft.median and short.ttft.median:
        found = long.ttft.median / short.ttft.median
    yield claim("ttft_long_over_short", said, found, "factor")


def growth(evidence: Evidence, said: float) -> Iterator[Claim]:
    """From the shortest length to the last but one, as published, and to the longest."""
    lengths = evidence.curve.lengths
    if len(lengths) >= 3:
        for end in lengths[-2:]:
            found = end.ms_per_token / lengths[0].ms_per_token - 1
            growth = claim("per_token_growth", said, found, "share", f"{end.tokens:.0f}")
            yield growth.under_another_condition() if end is lengths[-1] else growth


def error(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    """An error of a prediction needs a point that the fit did not see, and one length on both sides."""
    held = next((held for held in evidence.curve.held_out if held.powers == (1, 2)), None)
    ends = _two_ends(evidence)
    if held is not None:
        yield claim(
            "prediction_error_refit", said["refit"], abs(held.error_share), "share", f"{held.tokens:.0f}"
        ).decisive()
    if ends is not None and held is not None:
        first = _through(*ends, held.tokens) / held.measured_ms - 1
        yield claim("prediction_error_first", said["first_fit"], abs(first), "share", f"{held.tokens:.0f}")


def context_effect(evidence: Evidence, said: float) -> Iterator[Claim]:
    times = [row["server_prefill_ms"] for row in evidence.rows if row.get("kind") == "context_control"]
    found = max(times) / min(times) - 1 if len(times) > 1 else None
    yield claim("context_effect", said, found, "share")


def decode_over_context(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    """The published ends, and the change of the rate from the shortest to the longest length that was measured."""
    rates = {
        round(point.prompt_tokens): point.decode.median
        for point in evidence.points
        if point.kind == "prefill_curve" and point.prompt_tokens is not None and point.decode.median is not None
    }
    for tokens, claimed in said.items():
        yield claim("decode_at_context", claimed, rates.get(int(tokens)), "tok/s", tokens)
    first, last = min(said, key=int), max(said, key=int)
    if rates:
        change = rates[max(rates)] / rates[min(rates)] - 1
        change_claim = claim("decode_change", said[last] / said[first] - 1, change, "share", max(rates))
        yield change_claim if max(rates) == int(last) else change_claim.under_another_condition()


def smaller_model(evidence: Evidence, said: float) -> Iterator[Claim]:
    """3B against 7B: the share of the arithmetic, over the lengths of the curve."""
    models = (evidence.facts.model("qwen2.5-3b").model.shape, evidence.model)
    shares: list[float] = []
    for length in evidence.curve.lengths:
        small, large = (prefill_work(model, round(length.tokens)).total.low for model in models)
        shares.append(small / large)
    yield claim("smaller_model_work", said, Range(min(shares), max(shares)) if shares else None, "share")


def _two_ends(evidence: Evidence) -> tuple[Length, Length] | None:
    lengths = evidence.curve.lengths
    return (lengths[0], lengths[-2]) if len(lengths) >= 3 else None


def _through(first: Length, second: Length, tokens: float) -> float:
    """Return aT + bT^2 at *tokens*, of the a and b that go through both lengths exactly."""
    b = (second.ms_per_token - first.ms_per_token) / (second.tokens - first.tokens)
    return (first.ms_per_token - b * first.tokens) * tokens + b * tokens**2


def _times(interval: Interval, factor: float) -> Interval:
    return Interval(interval.mid * factor, interval.low * factor, interval.high * factor)


def _over(used: Range, peak: Range) -> Range:
    return Range(used.low / peak.high, used.high / peak.low)
