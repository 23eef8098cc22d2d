"""The law of prefill, its inverse, and what theory says its coefficients are."""

import pytest

from roofbook.errors import EstimateError
from roofbook.theory.prefill import Law, theoretical_law
from roofbook.theory.shapes import Model
from roofbook.theory.work import prefill_work
from roofbook.units import TFLOP

PUBLISHED = Law(a_ms=4.50, b_ms=1.96e-4)
"""A fit to Qwen2.5-7B Q4_K_M on an M4."""


@pytest.mark.parametrize(("tokens", "seconds"), [(8_016, 48.67), (16_384, 126.3), (32_768, 357.9)])
def test_predictions_of_the_law(tokens: int, seconds: float) -> None:
    """4.50 T + 1.96e-4 T^2: 8,016 tokens take 36.07 + 12.59 s."""
    assert PUBLISHED.time_ms(tokens) / 1000 == pytest.approx(seconds, abs=0.05)


@pytest.mark.parametrize(("target_ms", "tokens"), [(1_000, 220.1), (2_000, 436.2), (5_000, 1_062)])
def test_prompt_budget_of_the_law(target_ms: float, tokens: float) -> None:
    """The root of 4.50 T + 1.96e-4 T^2 = target."""
    assert PUBLISHED.prompt_budget_tokens(target_ms) == pytest.approx(tokens, rel=3e-4)


def test_overhead_comes_off_the_target() -> None:
    """100 ms before the first token: the root of 4.50 T + 1.96e-4 T^2 = 900 is 198.3 tokens, not 220."""
    assert Law(4.50, 1.96e-4, c_ms=100).prompt_budget_tokens(1_000) == pytest.approx(198.3, abs=0.05)


@pytest.mark.parametrize(("share", "gain"), [(0.5, 1.9), (0.8, 4.5), (0.9, 8.9), (0.95, 17.7), (0.99, 86)])
def test_a_cached_share_saves_more_than_its_share_of_the_tokens_behind_it(share: float, gain: float) -> None:
    """t(3,505, 0) / t(3,505, P), e.g. P = 3,469: 18,180 ms / (36 x 4.5 + 1.96e-4 x 36 x 6,974) = 86."""
    whole, rest = PUBLISHED.time_ms(3_505), PUBLISHED.time_ms(3_505, int(share * 3_505))
    assert whole / rest == pytest.approx(gain, rel=0.015)


def test_a_budget_may_be_none_or_endless() -> None:
    """A target under the overhead allows no prompt; a law that costs nothing a token allows any."""
    assert Law(4.5, c_ms=200).prompt_budget_tokens(100) is None
    assert Law(0, c_ms=50).prompt_budget_tokens(100) == float("inf")
    assert Law(2).prompt_budget_tokens(100) == 50


def test_what_a_and_b_should_be_at_3_tflops(qwen_7b: Model) -> None:
    """a = 2 x 6,525,288,448 / 3e12 = 4.350 ms, b = 200,704 / 3e12 = 6.69e-5 ms: the published b is 2.9 times that."""
    law = theoretical_law(qwen_7b, 3.0 * TFLOP)
    assert law.a_ms == pytest.approx(4.350, abs=0.001)
    assert law.b_ms == pytest.approx(6.69e-5, rel=1e-3)
    assert law.c_ms == pytest.approx(2 * 544_997_376 / 3e9, rel=1e-12)


@pytest.mark.parametrize("prompt_tokens", [1_024, 2_000, 9_000])
def test_the_law_is_the_work_over_the_rate(qwen_7b: Model, gemma_12b: Model, prompt_tokens: int) -> None:
    """For a model with windows too, from prompts of the window's length on."""
    for model in (qwen_7b, gemma_12b):
        expected = prefill_work(model, prompt_tokens).total.low / (3 * TFLOP) * 1000
        assert theoretical_law(model, 3 * TFLOP).time_ms(prompt_tokens) == pytest.approx(expected, rel=1e-12)


def test_the_law_needs_dimensions() -> None:
    """A parameter count gives a range of work, and a range has no law."""
    with pytest.raises(EstimateError, match="Cannot estimate the prefill of m: hidden, vocab, tied"):
        theoretical_law(Model("m", params=10**9), TFLOP)
