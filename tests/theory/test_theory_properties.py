"""What must hold whatever the model: monotony, and the inverse."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from roofbook.theory.kv import Cells, Pages, Slots, cache_bytes
from roofbook.theory.limits import Limit
from roofbook.theory.memory import Budget, sequences_that_fit
from roofbook.theory.prefill import Law
from roofbook.theory.shapes import Layer, LayerKind, Model, Moe, Range, Recurrent
from roofbook.theory.weights import weights
from roofbook.theory.work import prefill_work
from roofbook.units import GIB

KINDS: tuple[LayerKind, ...] = ("global", "local", "recurrent")
KV_TYPES = (None, "f32", "f16", "q8_0", "q4_0", "fp8", "q8_0/f16")
# Mixtures of one family, by rising bits.
FAMILIES = (
    ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "F16", "F32"),
    ("Q3_K_S", "Q4_K_S", "Q5_K_S", "Q6_K", "Q8_0", "BF16"),
    ("Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0"),
    ("IQ4_XS", "IQ4_NL", "Q5_K_S"),
    ("MLX-4bit", "MLX-8bit", "FP16"),
    ("GPTQ-SYM", "AWQ", "FP8", "FP16"),
)


@some.composite
def models(draw: some.DrawFn, kinds: tuple[LayerKind, ...] = KINDS) -> Model:
    """Draw a model of any family: windows, recurrent layers, experts, odd widths."""
    heads = draw(some.sampled_from([1, 2, 4, 8, 14]))
    kv_heads = draw(some.sampled_from([n for n in (1, 2, 7, 8) if heads % n == 0]))
    dim = draw(some.sampled_from([64, 96, 128, 256]))
    experts = draw(some.sampled_from([0, 4, 8, 64]))
    layers = draw(
        some.lists(
            some.builds(
                Layer,
                kind=some.sampled_from(kinds),
                heads=some.just(heads),
                kv_heads=some.just(kv_heads),
                key_dim=some.just(dim),
                value_dim=some.just(dim),
                experts=some.booleans() if experts else some.just(False),
            ),
            min_size=1,
            max_size=90,
        )
    )
    return Model(
        "drawn",
        draw(some.sampled_from(["llama", "qwen2", "qwen3", "gemma3", "phi3", "gpt-oss"])),
        tuple(layers),
        hidden=draw(some.sampled_from([576, 896, 1024, 3584, 4096])),
        ffn=draw(some.sampled_from([1536, 4864, 14336, 29568])),
        vocab=draw(some.sampled_from([32000, 151936])),
        tied=draw(some.booleans()),
        window_tokens=draw(some.sampled_from([1, 128, 1024, 4096])),
        moe=Moe(experts, draw(some.integers(1, experts)), draw(some.sampled_from([768, 2880])), 512)
        if experts
        else None,
        recurrent=Recurrent(1000, 100),
    )


CELLS = some.one_of(
    some.none(),
    some.builds(Slots, some.sampled_from([64, 512]), some.booleans(), some.booleans()),
    some.builds(Pages, some.sampled_from([16, 128]), some.sampled_from([512, 8192])),
)
TOKENS = some.integers(1, 200_000)


@given(models(), TOKENS, TOKENS, some.integers(1, 64), some.sampled_from(KV_TYPES), CELLS)
def test_more_tokens_never_need_less_memory(
    model: Model, tokens: int, more: int, sequences: int, kv_type: str | None, cells: Cells | None
) -> None:
    """Nor do more sequences."""
    here = cache_bytes(model, tokens, kv_type, sequences=sequences, cells=cells)
    longer = cache_bytes(model, tokens + more, kv_type, sequences=sequences, cells=cells)
    wider = cache_bytes(model, tokens, kv_type, sequences=sequences + 1, cells=cells)
    for other in (longer, wider):
        assert other.low >= here.low
        assert other.high >= here.high


@given(models(), TOKENS, TOKENS, some.sampled_from(KV_TYPES), CELLS.filter(bool))
@settings(max_examples=50)
def test_longer_sequences_never_fit_more_often(
    model: Model, tokens: int, more: int, kv_type: str | None, cells: Cells
) -> None:
    """And one more than those that fit does not fit."""
    budget = Budget(Limit(Range.of(24 * GIB), "memory"), Range.of(4 * GIB), reserve_bytes=Range(GIB, 2 * GIB))
    here, longer = (sequences_that_fit(budget, model, length, kv_type, cells) for length in (tokens, tokens + more))
    assert longer.low <= here.low
    assert longer.high <= here.high
    if math.isfinite(here.low):
        one_more = cache_bytes(model, tokens, kv_type, sequences=int(here.low) + 1, cells=cells)
        assert one_more.high > (budget.limit.limit_bytes - budget.fixed_bytes).low


@pytest.mark.parametrize("family", FAMILIES)
@given(model=models(kinds=("global", "local")))
@settings(max_examples=25, deadline=None)
def test_fewer_bits_never_give_more_bytes(family: tuple[str, ...], model: Model) -> None:
    """Within one family of mixtures, all, read a step, and on the device."""
    made = [weights(model, name) for name in family]
    for fewer, more in itertools.pairwise(made):
        for part in ("total_bytes", "device_bytes", "expert_bytes"):
            assert getattr(fewer, part).low <= getattr(more, part).low
            assert getattr(fewer, part).high <= getattr(more, part).high


@given(models(kinds=("global", "local")), some.integers(1, 300))
@settings(max_examples=50, deadline=None)
def test_a_larger_batch_never_reads_less(model: Model, batch: int) -> None:
    """And never more than all weights, nor less than one sequence reads."""
    held = weights(model, "Q4_K_M")
    one, here, next_one = (held.step_bytes(model, size) for size in (1, batch, batch + 1))
    assert one.low <= here.low <= next_one.low <= held.total_bytes.low


@given(models(kinds=("global", "local")), some.integers(2, 20_000), some.data())
@settings(max_examples=50, deadline=None)
def test_a_cached_prefix_and_its_rest_are_the_whole(model: Model, tokens: int, data: some.DataObject) -> None:
    """F(T, 0) = F(P, 0) + F(T, P), the output matrix apart; a chunk never saves work."""
    cached = data.draw(some.integers(1, tokens - 1))
    whole, front, rest = prefill_work(model, tokens), prefill_work(model, cached), prefill_work(model, tokens, cached)
    assert whole.linear.low == pytest.approx(front.linear.low + rest.linear.low)
    assert whole.attention.low == pytest.approx(front.attention.low + rest.attention.low)
    chunked = prefill_work(model, tokens, chunk_tokens=data.draw(some.integers(1, tokens)))
    assert chunked.attention.low >= whole.attention.low * (1 - 1e-12)


@given(
    some.floats(1e-3, 1e3),
    some.one_of(some.just(0.0), some.floats(1e-9, 1.0)),
    some.floats(-200, 1_000),
    some.floats(1, 200_000),
    some.floats(0, 1),
)
def test_the_inverse_is_the_inverse(a_ms: float, b_ms: float, c_ms: float, tokens: float, share: float) -> None:
    """The longest prompt for the time of T tokens is T, with a cached prefix too."""
    law, cached = Law(a_ms, b_ms, c_ms), share * tokens
    found = law.prompt_budget_tokens(law.time_ms(tokens, cached), cached)
    assert found is not None
    assert found == pytest.approx(tokens, rel=1e-6)


@given(models(kinds=("global", "local")), some.integers(1, 50_000))
@settings(max_examples=50, deadline=None)
def test_gqa_saves_bytes_and_no_attention(model: Model, tokens: int) -> None:
    """With a KV head for each head the cache grows, the attention's FLOPs stay."""
    layers = tuple(replace(layer, kv_heads=layer.heads) for layer in model.layers or ())
    full = replace(model, layers=layers)
    assert cache_bytes(full, tokens, "f16").low >= cache_bytes(model, tokens, "f16").low
    assert prefill_work(full, tokens).attention == prefill_work(model, tokens).attention
