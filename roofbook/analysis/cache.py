"""What a shared front of the prompt saves: measured share by share, and as the prefill law predicts it."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from roofbook.analysis.intervals import Summary, summary
from roofbook.analysis.regression import Fit
from roofbook.record import Row
from roofbook.validity import Finding, clean, records


@dataclass(frozen=True)
class Gain:
    """A prompt with *cached_tokens* of its *tokens* in the cache, by a prefill law; times in ms."""

    tokens: float
    cached_tokens: float
    prefill_ms: float
    prefill_factor: float
    """How much faster the prefill is than without the cache ..."""
    ttft_factor: float
    """... and the first token, which has the overhead either way."""


@dataclass(frozen=True)
class CacheArm:
    """The measured rows of one shared length."""

    shared_tokens: int
    prompt_tokens: float
    cached_tokens: Summary
    """As the server says it; empty where it does not."""
    prefill: Summary
    ttft: Summary
    prefill_factor: float | None
    """Median of the arm without sharing / median of this one."""
    ttft_factor: float | None


def expected_gain(law: Fit, tokens: float, cached_tokens: float, overhead_ms: float, step_ms: float) -> Gain:
    """Return what *law* predicts: a (T - P) + b (T^2 - P^2), but at least *step_ms*, for one token is always computed.

    The law's constant is paid once, cached or not.
    """
    cold = law.value(tokens)
    warm = max(step_ms, law.value(tokens) - law.value(cached_tokens) + law.coefficient(0))
    return Gain(tokens, cached_tokens, warm, cold / warm, (cold + overhead_ms) / (warm + overhead_ms))


def cache_arms(rows: pd.DataFrame, found: Sequence[Finding]) -> list[CacheArm]:
    """Return the arms of a subject's ``prefix_cache`` rows, by shared length; empty where there are none."""
    wanted = rows[rows["kind"].eq("prefix_cache").fillna(False) & clean(rows, found, "ttft")]
    arms: dict[int, list[Row]] = {}
    for row in records(wanted):
        if row.get("shared_prefix_tokens") is not None and row.get("prompt_tokens") is not None:
            arms.setdefault(row["shared_prefix_tokens"], []).append(row)
    cold = arms.get(0, [])
    return [_arm(shared, arm, cold) for shared, arm in sorted(arms.items())]


def _arm(shared: int, arm: list[Row], cold: list[Row]) -> CacheArm:
    return CacheArm(
        shared_tokens=shared,
        prompt_tokens=_of(arm, "prompt_tokens").median or 0.0,
        cached_tokens=_of(arm, "cached_tokens"),
        prefill=_of(arm, "server_prefill_ms"),
        ttft=_of(arm, "ttft_ms"),
        prefill_factor=_factor(cold, arm, "server_prefill_ms"),
        ttft_factor=_factor(cold, arm, "ttft_ms"),
    )


def _of(rows: list[Row], name: str) -> Summary:
    return summary([float(row[name]) for row in rows if row.get(name) is not None])


def _factor(cold: list[Row], arm: list[Row], name: str) -> float | None:
    before, after = _of(cold, name).median, _of(arm, name).median
    return before / after if before and after else None
