"""What will be measured next, each with what the fit and the theory predict for it now."""

import math
from collections.abc import Sequence
from typing import Any, Final

from roofbook.analysis.coefficients import wider_curve
from roofbook.analysis.outlook import (
    Batch,
    CachedPrompt,
    Pauses,
    Queue,
    SmallerModel,
    batches,
    cached_prompts,
    pauses,
    repeat_spread,
    smaller_model,
    two_at_once,
)
from roofbook.analysis.regression import Fit, Interval
from roofbook.analysis.traps import traps
from roofbook.charts.cache import FigureCache
from roofbook.charts.outlook import cache_forecast_figure
from roofbook.errors import EstimateError, UsageError
from roofbook.pages.concepts.grid import Cell, Grid, grid, percent, span
from roofbook.pages.concepts.world import Measured, World
from roofbook.theory.roofline import crossover_batch
from roofbook.theory.shapes import Model, Range
from roofbook.units import MS_PER_S
from roofbook.validity import clean, records
from roofbook.words import Words

CACHED_TOKENS: Final = 3500
"""The prompt of the prefix-cache experiment: as long as the long baseline."""
LONG_TOKENS: Final = 16384
SMALLER: Final = "qwen2.5-3b"
SMALLER_TOKENS: Final = 4096
CHAT_TOKENS: Final = 512
ANSWER_TOKENS: Final = 128
"""Of the requests that come two at once: a question and an answer of a chat."""
REPEATS: Final = 5
_ABOUT: Final = 0.1
"""A prompt whose length differs by less than this share is about as long."""

_FINE: Final = tuple(step / 50 for step in range(51))


def context(world: World, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``next.md.j2`` shows; without a law there is nothing to predict from."""
    title = words.say("What is next: predicted first, then measured")
    one = world.leading
    point = None if one is None else one.shortest
    law = None if one is None else one.curve.law
    if one is None or law is None or point is None or point.decode.median is None or one.model is None:
        return {"title": title, "drawn": [], "subject": None}
    overhead_ms, step_ms = one.curve.overhead_ms or 0.0, MS_PER_S / point.decode.median
    cached = cached_prompts(law, CACHED_TOKENS, overhead_ms, step_ms)
    fine = cached_prompts(law, CACHED_TOKENS, overhead_ms, step_ms, _FINE)
    mostly = next(prompt for prompt in cached if prompt.share == 0.9)
    times = words.significant(mostly.factor(cached[0]), 2)
    drawn = figures.draw(
        cache_forecast_figure,
        words,
        title=words.say("With 90 %% of the prompt in the cache, the first token should come %(times)s times sooner",
                        times=times),
        prompts=fine,
        shares=cached,
        colour=one.view.colour,
    )  # fmt: skip
    kv_type = one.view.subject.kv_cache_type
    small = _smaller(world, one, law, words)
    served = () if one.machine is None else batches(one.curve, point, one.model, one.machine, CHAT_TOKENS, kv_type)
    return {
        "title": title,
        "drawn": [drawn],
        "subject": one.view.title(words),
        "times": times,
        "cached_tokens": CACHED_TOKENS,
        "cache": _cache_table(cached, words),
        "full_hit": _full_hit(one, step_ms, words),
        "long": _long(law, one, words),
        "smaller": small,
        "queue": _queue(two_at_once(law, point, CHAT_TOKENS, ANSWER_TOKENS, overhead_ms), words),
        "batches": _batches_table(served, words) if served else None,
        "stops": span(stops, words) if served and (stops := _stops(one)) is not None else None,
        "chat_tokens": CHAT_TOKENS,
        "answer_tokens": ANSWER_TOKENS,
        "pauses": _pauses(_paused(one, one.model), words),
    }


def _cache_table(cached: Sequence[CachedPrompt], words: Words) -> Grid:
    heads = [
        (words.say("In the cache"), True),
        (words.say("Cached tokens"), True),
        (words.say("Prefill (s)"), True),
        (words.say("First token (s)"), True),
        (words.say("95 %% prediction interval"), True),
        (words.say("Sooner by"), True),
    ]
    rows: list[list[str | Cell | None]] = [
        [
            percent(one.share, words),
            words.number(one.cached_tokens),
            words.significant(one.prefill_ms.mid / MS_PER_S),
            words.significant(one.ttft_ms.mid / MS_PER_S),
            # One step's time is taken as it was measured: there is no fit whose interval could stand there.
            None if one.ttft_ms.low == one.ttft_ms.high else _bounds(one.ttft_ms, words, 1 / MS_PER_S),
            None if one is cached[0] else f"{words.significant(one.factor(cached[0]), 2)}×",
        ]
        for one in cached
    ]
    return grid(heads, rows)


def _full_hit(one: Measured, step_ms: float, words: Words) -> dict[str, Any] | None:
    """Return what was measured of a prompt about as long that was wholly in the cache; None where none was."""
    subject = one.view.subject
    hits = [
        trap.row
        for trap in traps(subject.rows, one.view.found)
        if trap.factor is not None
        and trap.factor > 1
        and abs((trap.row.get("prompt_tokens") or 0) / CACHED_TOKENS - 1) < _ABOUT
    ]
    if not hits:
        return None
    hit = max(hits, key=lambda row: row["server_prefill_ms"])
    return {
        "tokens": words.number(hit["prompt_tokens"]),
        "measured": words.significant(hit["server_prefill_ms"]),
        "predicted": words.significant(step_ms),
        "unknown": hit.get("aggregate_of") == 0,
    }


def _long(law: Fit, one: Measured, words: Words) -> dict[str, Any] | None:
    longest = one.curve.longest
    if longest is None or longest.tokens >= LONG_TOKENS:
        return None
    found = law.prediction(LONG_TOKENS)
    straight = law.coefficient(1) * LONG_TOKENS
    return {
        "tokens": words.number(LONG_TOKENS),
        "seconds": words.significant(found.mid / MS_PER_S),
        "bounds": _bounds(found, words, 1 / MS_PER_S),
        "straight": words.significant(straight / MS_PER_S),
        "times": words.significant(LONG_TOKENS / longest.tokens, 2),
        "longest": words.number(longest.tokens),
        "otherwise": _by_another_form(one, words),
    }


def _by_another_form(one: Measured, words: Words) -> dict[str, str] | None:
    """Return what the law of all trusted lengths says, where that has another form than the curve's own."""
    whole = wider_curve(one.view.subject, one.view.found)
    if whole.chosen is None or one.curve.chosen is None or whole.chosen.powers == one.curve.chosen.powers:
        return None
    seconds = whole.chosen.fit.value(LONG_TOKENS) / MS_PER_S
    return {"lengths": words.number(len(whole.lengths)), "seconds": words.significant(seconds)}


def _smaller(world: World, one: Measured, law: Fit, words: Words) -> dict[str, Any] | None:
    other, point = _other_model(world, one), one.shortest
    if other is None or point is None or one.model is None:
        return None
    found = smaller_model(
        law, point, one.model, other, SMALLER_TOKENS, _step_overhead_ms(world, one), one.view.subject.kv_cache_type
    )
    return None if found is None else {"name": world.facts.models[SMALLER].name, **_smaller_told(found, law, words)}


def _smaller_told(found: SmallerModel, law: Fit, words: Words) -> dict[str, Any]:
    return {
        "tokens": words.number(found.tokens),
        "work": percent(found.work, words),
        "bytes": percent(found.bytes, words),
        "seconds": words.significant(found.prefill_ms.mid / MS_PER_S),
        "bounds": _bounds(found.prefill_ms, words, 1 / MS_PER_S),
        "now": words.significant(law.value(found.tokens) / MS_PER_S),
        "rate": span(found.tok_per_s, words, 2),
    }


def _other_model(world: World, one: Measured) -> Model | None:
    """Return the smaller model in the measured one's quantization; None where it is the measured one."""
    quantization = one.view.subject.quantization
    try:
        fact = world.facts.model(SMALLER).model
    except UsageError:
        return None
    if quantization is None or one.model is None or one.model.id == fact.id:
        return None
    return fact.quantized(quantization)


def _step_overhead_ms(world: World, one: Measured) -> float:
    """Return what a step costs beside its bytes on the same chip, as others' figures say it; 0 where they do not."""
    chip = None if one.machine is None else one.machine.chip
    own = [law.c_ms for law in world.laws if chip is not None and law.chip == chip.name]
    return min((c_ms for c_ms in own if c_ms > 0), default=0.0)


def _queue(found: Queue | None, words: Words) -> dict[str, str] | None:
    if found is None:
        return None
    return {
        "first": words.significant(found.first_ttft_s, 2),
        "one_slot": words.significant(found.one_slot_ttft_s, 2),
        "two_slots": words.significant(found.two_slots_ttft_s, 2),
    }


def _batches_table(found: Sequence[Batch], words: Words) -> Grid:
    heads = [
        (words.say("Requests at once"), True),
        (words.say("All together (tok/s)"), True),
        (words.say("Each (tok/s)"), True),
    ]
    rows: list[list[str | Cell | None]] = [
        [words.number(one.requests), span(one.together, words, 2), span(one.each, words, 2)] for one in found
    ]
    return grid(heads, rows)


def _stops(one: Measured) -> Range | None:
    """Return from how many requests on decode should stop gaining, by the roofs that the memory page counts with."""
    if one.machine is None or one.model is None:
        return None
    subject = one.view.subject
    try:
        found = crossover_batch(
            one.model, one.machine, subject.quantization, context_tokens=CHAT_TOKENS, kv_type=subject.kv_cache_type
        ).whole
    except EstimateError:
        return None
    if found is None or not math.isfinite(found.high):
        return None
    return Range(float(math.ceil(found.low)), float(math.ceil(found.high)))


def _paused(one: Measured, model: Model) -> Pauses | None:
    rows = one.view.subject.rows
    trusted = records(rows[clean(rows, one.view.found, "prefill")])
    return pauses(one.curve, repeat_spread(trusted), model, REPEATS)


def _pauses(found: Pauses | None, words: Words) -> dict[str, str | None] | None:
    if found is None or found.by_arithmetic_ms is None:
        return None
    return {
        "tokens": words.number(found.tokens),
        "measured": words.significant(found.as_measured_ms.mid / MS_PER_S),
        "bounds": _bounds(found.as_measured_ms, words, 1 / MS_PER_S),
        "arithmetic": words.significant(found.by_arithmetic_ms / MS_PER_S),
        "repeats": words.number(found.repeats),
        "detectable": None if found.detectable_share is None else percent(found.detectable_share, words, 1),
    }


def _bounds(interval: Interval, words: Words, factor: float) -> str:
    return f"{words.significant(interval.low * factor)} … {words.significant(interval.high * factor)}"
