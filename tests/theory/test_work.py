"""Floating-point operations of prefill and decode."""

import math

import pytest

from roofbook.errors import EstimateError
from roofbook.theory.shapes import Layer, Model, Range
from roofbook.theory.work import decode_flops, pair_flops, prefill_work
from roofbook.units import TFLOP


@pytest.mark.parametrize(
    ("prompt_tokens", "linear", "attention"),
    # 2 x 6,525,288,448 x T and 200,704 x T^2, in TFLOP
    [(74, 0.966, 0.001), (205, 2.675, 0.008), (1_096, 14.30, 0.241), (2_091, 27.29, 0.878), (3_505, 45.74, 2.466),
     (4_056, 52.93, 3.302), (8_016, 104.6, 12.90)],
)  # fmt: skip
def test_prefill_of_qwen_7b(qwen_7b: Model, prompt_tokens: int, linear: float, attention: float) -> None:
    """Matrices grow with the prompt, attention with its square: 0.1 % of the work at 74 tokens, 11 % at 8,016."""
    work = prefill_work(qwen_7b, prompt_tokens)
    assert work.linear.low / TFLOP == pytest.approx(linear, rel=1e-3)
    assert work.attention.low / TFLOP == pytest.approx(attention, abs=0.005)


def test_a_prompt_of_3505_tokens_is_48_2_tflop(qwen_7b: Model) -> None:
    """45.742 + 2.466 + 0.001 (the output matrix, once); 2 x 7.6e9 x 3,505 would say 53.3."""
    work = prefill_work(qwen_7b, 3_505)
    assert round(work.total.low / TFLOP, 1) == 48.2
    assert work.head == Range.of(2 * 544_997_376)


def test_a_3b_model_takes_0_43_to_0_46_of_a_7b_one(qwen_3b: Model, qwen_7b: Model) -> None:
    """Not 3/7 = 0.43 throughout: attention weighs more in the smaller model, 0.46 at 8,016 tokens."""
    shares = [prefill_work(qwen_3b, t).total.low / prefill_work(qwen_7b, t).total.low for t in (74, 8_016)]
    assert [round(share, 2) for share in shares] == [0.43, 0.46]


def test_a_cached_prefix_is_not_computed_again(qwen_7b: Model) -> None:
    """2 N (T - P) + k (T^2 - P^2) at T 3,505, P 1,752."""
    work = prefill_work(qwen_7b, 3_505, 1_752)
    assert work.linear == Range.of(2 * 6_525_288_448 * 1_753)
    assert work.attention == Range.of(200_704 * (3_505**2 - 1_752**2))


def test_chunks_meet_themselves_whole(qwen_7b: Model) -> None:
    """Chunks of 512: (T^2 + 512 T) / 2 pairs where T is a multiple; one chunk is the whole square."""
    k = 2 * 200_704
    assert prefill_work(qwen_7b, 4_096, chunk_tokens=512).attention == Range.of(k * (4_096**2 + 512 * 4_096) / 2)
    assert prefill_work(qwen_7b, 4_096, chunk_tokens=4_096).attention == Range.of(k * 4_096**2)
    # the last chunk is cut: 512 x 512 + 88 x 600
    assert prefill_work(qwen_7b, 600, chunk_tokens=512).attention == Range.of(k * (512 * 512 + 88 * 600))


def test_chunks_after_a_cached_prefix_start_at_it(qwen_7b: Model) -> None:
    """Tokens 1,000 to 1,600 in chunks of 512: 512 x 1,512 + 88 x 1,600 pairs."""
    found = prefill_work(qwen_7b, 1_600, 1_000, chunk_tokens=512).attention
    assert found == Range.of(2 * 200_704 * (512 * 1_512 + 88 * 1_600))


def test_local_layers_stop_at_their_window() -> None:
    """One local layer of window 100, 1 head of 64: at 300 tokens 100 x 300 - 100^2 / 2 = 25,000 pairs of 256 FLOPs."""
    model = Model("m", layers=(Layer("local", 1, 1, 64, 64),), params=1_000, hidden=1, vocab=1, tied=True,
                  window_tokens=100)  # fmt: skip
    assert prefill_work(model, 300).attention == Range.of(25_000 * 256)
    assert prefill_work(model, 80).attention == Range.of(80**2 / 2 * 256)
    # chunks of 50: a chunk sees 100 + 50 tokens at most: 50 x (50 + 100 + 150 + 150 + 150 + 150)
    assert prefill_work(model, 300, chunk_tokens=50).attention == Range.of(50 * 750 * 256)


def test_latent_attention_multiplies_decompressed_heads(deepseek_v3: Model) -> None:
    """DeepSeek-V3: 61 layers x 128 heads x (192 + 128) x T^2 = 2,498,560 T^2."""
    assert pair_flops(deepseek_v3, "global") / 2 == 2_498_560


def test_decode_of_qwen_7b(qwen_7b: Model) -> None:
    """2 x (6,525,288,448 + 544,997,376) and 4 x 28 x 128 x 28 for each token behind it; twice for two sequences."""
    assert decode_flops(qwen_7b) == Range.of(14_140_571_648)
    assert decode_flops(qwen_7b, 4_096, batch=2) == Range.of(2 * (14_140_571_648 + 401_408 * 4_096))


def test_decode_looks_back_one_window_in_local_layers(gpt_oss_20b: Model) -> None:
    """Twelve global layers see 4,096 tokens, twelve local ones 128: 4 x 64 x 64 x 12 x (4,096 + 128) more."""
    assert decode_flops(gpt_oss_20b, 4_096).low - decode_flops(gpt_oss_20b).low == 4 * 64 * 64 * 12 * (4_096 + 128)


def test_unknown_attention_is_open_upwards() -> None:
    """A model of which only the parameters are known: the matrices are the least, there is no most."""
    model = Model("m", params=7_000_000_000, hidden=4_096, vocab=100_000, tied=False)
    work = prefill_work(model, 1_000)
    assert work.attention == Range(0, math.inf)
    assert work.total == Range(2_000 * (7_000_000_000 - 2 * 409_600_000) + 2 * 409_600_000, math.inf)


def test_nothing_known_names_what_is_missing() -> None:
    """Neither dimensions nor a count."""
    with pytest.raises(EstimateError) as caught:
        prefill_work(Model("m", architecture="llama", tied=True, hidden=64), 100)
    assert str(caught.value) == "Cannot count the multiplications of m: layers, vocab, params missing or unknown"
