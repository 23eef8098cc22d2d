"""What fits, and what runs out first."""

from dataclasses import replace

import pytest

from roofbook.theory.kv import Pages, Slots
from roofbook.theory.limits import Limit
from roofbook.theory.memory import (
    RESERVE_BYTES,
    Budget,
    Scarcity,
    compute_buffer,
    paged_budget,
    runs_out_first,
    sequences_that_fit,
)
from roofbook.theory.shapes import Layer, Model, Range
from roofbook.theory.weights import weights
from roofbook.units import GB, GIB, MIB

MACOS_15_32_GB = Limit(Range.of(32 * GIB * 2 / 3), "rule")
FILE_BYTES = 4_683_073_184
"""qwen2.5:7b on disk: 4,677,120,000 of tensors and 5.95 MB of metadata."""
DEVICE_BYTES = 4_370_558_976
"""What the log calls 4168.09 MiB."""


def exactly(gib: float) -> Range:
    return Range.of(gib * GIB)


@pytest.mark.parametrize(
    ("weights_bytes", "kv_type", "count"),
    [(FILE_BYTES, "q8_0", 133), (FILE_BYTES, "f16", 70), (DEVICE_BYTES, "q8_0", 135), (DEVICE_BYTES, "f16", 72)],
)
def test_sequences_of_4096_on_a_32_gb_mac(qwen_7b: Model, weights_bytes: int, kv_type: str, count: int) -> None:
    """Qwen2.5-7B, 1.5 GiB reserve: (22,906,492,245 - weights - 1,610,612,736) / (4,096 x 30,464 or 57,344)."""
    budget = Budget(MACOS_15_32_GB, Range.of(weights_bytes), reserve_bytes=exactly(1.5))
    assert sequences_that_fit(budget, qwen_7b, 4_096, kv_type, Slots()) == Range(count, count)


@pytest.mark.parametrize(
    ("weights_bytes", "kv_type", "low", "high"),
    # e.g. (22,906,492,245 - 4,683,073,184 - 1,073,741,824) / 124,780,544 = 137.4; with 2 GiB 128.8
    [(FILE_BYTES, "q8_0", 128, 137), (FILE_BYTES, "f16", 68, 73), (DEVICE_BYTES, "q8_0", 131, 139),
     (DEVICE_BYTES, "f16", 69, 74)],
)  # fmt: skip
def test_an_open_reserve_gives_a_range_of_sequences(
    qwen_7b: Model, weights_bytes: int, kv_type: str, low: int, high: int
) -> None:
    """The same with 1 to 2 GiB in reserve."""
    budget = Budget(MACOS_15_32_GB, Range.of(weights_bytes), reserve_bytes=RESERVE_BYTES)
    assert sequences_that_fit(budget, qwen_7b, 4_096, kv_type, Slots()) == Range(low, high)


def test_an_unknown_kv_type_spans_f16_to_q4_0(qwen_7b: Model) -> None:
    """File weights, 1.5 GiB reserve: f16 70, q4_0 251 (16,612,806,325 / 66,060,288 = 251.5)."""
    budget = Budget(MACOS_15_32_GB, Range.of(FILE_BYTES), reserve_bytes=exactly(1.5))
    assert sequences_that_fit(budget, qwen_7b, 4_096, None, Slots()) == Range(70, 251)


def test_macos_26_fits_more(qwen_7b: Model) -> None:
    """26,800.60 MB: 87 in f16, 164 in q8_0, 310 in q4_0."""
    budget = Budget(Limit(Range.of(26_800_600_000), "observed"), Range.of(FILE_BYTES), reserve_bytes=exactly(1.5))
    found = [sequences_that_fit(budget, qwen_7b, 4_096, kv_type, Slots()).low for kv_type in ("f16", "q8_0", "q4_0")]
    assert found == [87, 164, 310]


def test_awq_under_vllm_on_an_8_gib_card(qwen_7b: Model) -> None:
    """5.57 GB of weights; 0.92 x 8 GiB leaves 2.33 GB, less 0.5 to 1.5 GiB: 3 to 7 sequences of 234,881,024 bytes."""
    held = weights(qwen_7b, "AWQ").total_bytes
    assert round(held.low / GB, 2) == 5.57
    found = sequences_that_fit(paged_budget(8 * GIB, held), qwen_7b, 4_096, "f16", Pages())
    assert found == Range(3, 7)


def test_b40_every_item_counts() -> None:
    """4.36 + 0.44 + 0.30 + 0.90 = 6.00 GiB do not fit in 5.50; weights and cache alone would."""
    budget = Budget(
        Limit(exactly(5.50), "memory"),
        weights_bytes=exactly(4.36),
        kv_bytes=exactly(0.44),
        compute_bytes=exactly(0.30),
        projector_bytes=exactly(0.90),
    )
    assert round(budget.needed_bytes.low / GIB, 2) == 6.00
    assert budget.fits is False


def test_b40_an_unused_projector_is_not_charged() -> None:
    """Text only: 5.10 GiB fit in 5.50, 0.40 to spare."""
    budget = Budget(
        Limit(exactly(5.50), "memory"), exactly(4.36), kv_bytes=exactly(0.44), compute_bytes=exactly(0.30)
    )  # fmt: skip
    assert round(budget.needed_bytes.low / GIB, 2) == 5.10
    assert round(budget.spare_bytes.low / GIB, 2) == 0.40
    assert budget.fits is True


def test_what_depends_on_an_open_item_is_neither_yes_nor_no() -> None:
    """4.36 GiB and 1 to 2 in reserve: 5.50 may or may not do."""
    budget = Budget(Limit(exactly(5.50), "memory"), exactly(4.36), reserve_bytes=RESERVE_BYTES)
    assert budget.fits is None
    assert budget.spare_bytes.low < 0 < budget.spare_bytes.high


def test_nothing_fits_where_the_weights_do_not() -> None:
    """Fewer than none is none."""
    budget = Budget(Limit(exactly(4), "memory"), exactly(4.36))
    assert budget.sequences(lambda count: Range.of(count * GIB)) == Range(0, 0)


def test_shared_windows_make_the_next_sequence_cheaper(gemma_12b: Model) -> None:
    """Unified slots of 4,096: 256 MiB of global cells each; local layers 320 MiB a sequence and 160 MiB once.

    10 GiB hold (10,240 - 160) / 576 = 17.5 of them; apart, with 480 MiB of local cells each, 10,240 / 736 = 13.9.
    """
    budget = Budget(Limit(exactly(10), "memory"), Range.of(0))
    unified = sequences_that_fit(budget, gemma_12b, 4_096, "f16", Slots(unified=True))
    apart = sequences_that_fit(budget, gemma_12b, 4_096, "f16", Slots())
    assert (unified, apart) == (Range(17, 17), Range(13, 13))


@pytest.mark.parametrize(
    ("tokens", "slots", "crossover", "weights_gib", "first"),
    [
        (40_960, None, None, 4, "context"),
        (4_096, None, None, 9, "weights"),
        (4_096, None, None, 4, "memory"),
        (4_096, 4, None, 4, "slots"),
        (4_096, None, Range(9.7, 11.9), 4, "arithmetic"),
        (4_096, 4, Range(9.7, 11.9), 4, "slots"),
    ],
)
def test_what_runs_out_first(
    qwen_7b: Model, tokens: int, slots: int | None, crossover: Range | None, weights_gib: float, first: Scarcity
) -> None:
    """An 8 GiB limit and Qwen2.5-7B in f16: 18 sequences of 4,096 beside 4 GiB of weights."""
    budget = Budget(Limit(exactly(8), "memory"), exactly(weights_gib))
    fit = sequences_that_fit(budget, qwen_7b, tokens, "f16", Slots())
    found = runs_out_first(
        budget,
        fit,
        tokens=tokens,
        context_limit_tokens=qwen_7b.context_limit_tokens,
        slots=slots,
        crossover_batch=crossover,
    )
    assert found == first


def test_compute_buffers_as_llama_cpp_logs_them(qwen_7b: Model, llama_8b: Model) -> None:
    """With flash attention: 304.00 MiB for Qwen2.5-7B, 258.50 MiB for Llama 3 8B, at a ubatch of 512."""
    found = [compute_buffer(model, 4_096, flash_attention=True) for model in (qwen_7b, llama_8b)]
    assert found == [Range.of(304 * MIB), Range.of(258.5 * MIB)]


def test_a_compute_buffer_without_flash_attention_is_a_range(llama_8b: Model) -> None:
    """Scores of 512 x 4,096 x 32 heads in F32 are 256 MiB more at most."""
    for unknown_or_off in (None, False):
        found = compute_buffer(llama_8b, 4_096, flash_attention=unknown_or_off)
        assert found == Range(258.5 * MIB, 514.5 * MIB)


def test_a_model_without_caches_never_runs_out() -> None:
    """No attention, no state: as many as one likes."""
    budget = Budget(Limit(exactly(1), "memory"), Range.of(0))
    model = replace(Model("m"), layers=(Layer(heads=8, kv_heads=0),))
    assert sequences_that_fit(budget, model, 100, "f16", Slots()).low == float("inf")
