"""What a shared front of the prompt saves, as the prefill law predicts it."""

from dataclasses import dataclass

from roofbook.analysis.regression import Fit


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


def expected_gain(law: Fit, tokens: float, cached_tokens: float, overhead_ms: float, step_ms: float) -> Gain:
    """Return what *law* predicts: a (T - P) + b (T^2 - P^2), but at least *step_ms*, for one token is always computed.

    The law's constant is paid once, cached or not.
    """
    cold = law.value(tokens)
    warm = max(step_ms, law.value(tokens) - law.value(cached_tokens) + law.coefficient(0))
    return Gain(tokens, cached_tokens, warm, cold / warm, (cold + overhead_ms) / (warm + overhead_ms))
