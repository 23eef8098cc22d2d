"""More than a machine can do is wrong; a disputed peak convicts nobody below its upper end."""

from collections.abc import Callable

import pytest

from roofbook.record import Row
from roofbook.theory.shapes import Chip, Layer, Machine, Model, Peaks, Range, Tensors
from roofbook.validity import Finding, Known

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]

QWEN = Model(
    "qwen2.5-7b", architecture="qwen2", layers=(Layer("global", 28, 4, 128, 128),) * 28, hidden=3584, ffn=18944,
    vocab=152064, tied=False,
)  # fmt: skip
M4 = Machine("m", Chip("apple-m4", vendor="apple", memory_kind="unified", bandwidth_bytes_per_s=Range.of(120e9),
                       peaks=Peaks(fp32=Range(3.76e12, 4.6e12))))  # fmt: skip
KNOWN = Known({("x", "Q4_K_M"): QWEN}, {"m": M4})


def prefill_row(row: MakeRow, tokens: int, prefill_ms: float, **more: object) -> Row:
    return row(prompt_tokens=tokens, prompt_tokens_wanted=None, server_prefill_ms=prefill_ms, ttft_ms=prefill_ms + 100,
               last_token_ms=prefill_ms + 2000, e2e_ms=prefill_ms + 2001, quantization="Q4_K_M", **more)  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "prefill_ms", "tflops"),
    # 2 x 6,525,288,448 x T + 2 x 544,997,376 + 200,704 T^2, over the time.
    [(40, 51.0, 10.26), (3473, 58.0, 823.2)],
)
def test_a_cached_prompt_implies_more_than_the_gpu_has(
    row: MakeRow, judge: Judge, tokens: int, prefill_ms: float, tflops: float
) -> None:
    """40 tokens in 51 ms are 10.3 TFLOPS, 3,473 in 58 ms are 823: both impossible on a GPU of at most 4.6."""
    (found,) = judge([prefill_row(row, tokens, prefill_ms)], "above_compute_peak", known=KNOWN)
    assert found.values["flops_per_s"] == pytest.approx(tflops * 1e12, rel=1e-3)
    assert found.values["peak_flops_per_s"] == 4.6e12
    assert found.spoils == {"prefill", "ttft", "e2e"}


@pytest.mark.parametrize(
    ("tokens", "prefill_ms"),
    [
        (74, 291.0),  # 3.3 TFLOPS
        (3505, 17846.0),  # 2.7
        (74, 220.0),  # 4.4: above one published peak and below another
        (40, 296.66),
        (1, 40.0),
    ],
)
def test_what_some_published_peak_allows_is_possible(
    row: MakeRow, judge: Judge, tokens: int, prefill_ms: float
) -> None:
    """The clean published rows, and one between the disputed ends of the peak."""
    assert judge([prefill_row(row, tokens, prefill_ms)], "above_compute_peak", known=KNOWN) == []


def test_a_shared_prefix_needs_no_work(row: MakeRow, judge: Judge) -> None:
    """3,400 of 3,500 tokens shared on purpose in 500 ms: 100 tokens' work. The server need not say so."""
    shared = prefill_row(row, 3500, 500.0, kind="prefix_cache", shared_prefix_tokens=3400)
    assert judge([shared], "above_compute_peak", known=KNOWN) == []
    assert judge([prefill_row(row, 3500, 500.0, cached_tokens=3400)], "above_compute_peak", known=KNOWN) == []
    assert judge([prefill_row(row, 3500, 500.0)], "above_compute_peak", known=KNOWN) != []


def test_without_a_known_machine_or_model_nothing_is_said(row: MakeRow, judge: Judge) -> None:
    """No peak, no verdict."""
    for known in (Known(), Known(machines={"m": M4}), Known({("x", "Q4_K_M"): QWEN}, {"m": Machine("m")})):
        assert judge([prefill_row(row, 3473, 58.0)], "above_compute_peak", known=known) == []


WANTED = ("prompt_tokens_wanted", "output_tokens_wanted")


def decode_row(row: MakeRow, tok_per_s: float, tokens: int = 101) -> Row:
    counted: Row = {
        "prompt_tokens": 1,
        "prompt_tokens_wanted": None,
        "output_tokens": tokens,
        "output_tokens_wanted": None,
    }
    times: Row = {"ttft_ms": 100.0, "last_token_ms": 100 + 1000 * (tokens - 1) / tok_per_s, "e2e_ms": 10**6}
    return row(quantization="Q4_K_M", **(counted | times | {"server_prefill_ms": None}))


SEVEN_B = Model(
    "dense",
    tied=True,
    tensors=Tensors("Q4_K_M", total_bytes=4_680_000_000, expert_bytes=0),
    layers=(Layer("global", 28, 4, 128, 128),) * 28,
)
DENSE = Known({("x", "Q4_K_M"): SEVEN_B}, {"m": M4})


def test_b39_more_bytes_than_the_bus_carries(row: MakeRow, judge: Judge) -> None:
    """4.68 GB at 120 GB/s are 25.64 tokens a second at most: 31.0 are 121 % of it."""
    (found,) = judge([decode_row(row, 31.0)], "above_bandwidth", "near_bandwidth", known=DENSE)
    assert (found.kind, found.spoils) == ("above_bandwidth", {"tpot", "e2e"})
    assert found.values["ceiling_tok_per_s"] == pytest.approx(25.64, abs=0.005)
    assert found.values["bytes_per_s"] == pytest.approx(1.21 * 120e9, rel=2e-3)


def test_near_the_bus_is_told(row: MakeRow, judge: Judge) -> None:
    """24.5 of 25.64 are 96 %: more than any believable published figure, and possible."""
    (found,) = judge([decode_row(row, 24.5)], "above_bandwidth", "near_bandwidth", known=DENSE)
    assert (found.kind, found.doubtful) == ("near_bandwidth", False)


@pytest.mark.parametrize(("tok_per_s", "tokens"), [(21.3, 101), (23.0, 101), (31.0, 3)])
def test_what_the_bus_carries_is_no_doubt(row: MakeRow, judge: Judge, tok_per_s: float, tokens: int) -> None:
    """83 and 90 %; and two gaps between three tokens measure nothing."""
    assert judge([decode_row(row, tok_per_s, tokens)], "above_bandwidth", "near_bandwidth", known=DENSE) == []


def test_b39_a_mixture_of_experts_reads_what_it_uses(row: MakeRow, judge: Judge) -> None:
    """30.5e9 weights, 3.3e9 of them used, 4.85 bits, 273 GB/s: at most 136.5 tokens a second, so 60 are no doubt."""
    total = round(30.5e9 * 4.85 / 8)
    sparse = Model(
        "moe", tied=True, params=round(30.5e9), active_params=round(3.3e9), tensors=Tensors("Q4_K_M", total_bytes=total)
    )
    wide = Machine("m", Chip("wide", memory_kind="unified", bandwidth_bytes_per_s=Range.of(273e9)))
    known = Known({("x", "Q4_K_M"): sparse}, {"m": wide})
    assert judge([decode_row(row, 60.0)], "above_bandwidth", "near_bandwidth", known=known) == []
    (found,) = judge([decode_row(row, 150.0)], "above_bandwidth", known=known)
    assert found.values["ceiling_tok_per_s"] == pytest.approx(136.5, abs=0.05)


def test_a_model_in_a_processors_cache_is_not_bound_by_its_memory(row: MakeRow, judge: Judge) -> None:
    """100 MB at 1,000 tokens a second on a 50 GB/s processor: it reads its own cache."""
    small = Model("small", tied=True, tensors=Tensors("Q8_0", total_bytes=100_000_000, expert_bytes=0))
    cpu = Machine("m", Chip("cpu", memory_kind="cpu", bandwidth_bytes_per_s=Range.of(50e9)))
    assert judge([decode_row(row, 1000.0)], known=Known({("x", "Q4_K_M"): small}, {"m": cpu})) == []
