"""Prompts that a cache held, that were cut, or whose tokens nobody counted, with their look-alikes: B01, B02, B23."""

from collections.abc import Callable

import pytest

from roofbook.record import Row
from roofbook.validity import Finding

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]

CACHED = ("cached_prefix", "cached_prefix_implied")


@pytest.mark.parametrize(
    ("changes", "doubted"),
    [
        # A run taken up with another's nonces: every request after the first finds 960 tokens (60 blocks of 16).
        ([{"cached_tokens": 0}, *[{"cached_tokens": 960}] * 4], {1, 2, 3, 4}),
        # Ollama says nothing: of six repeats at 2 s one took 58 ms, the time of one step.
        ([*[{}] * 5, {"server_prefill_ms": 58.0, "ttft_ms": 160.0}], {5}),
        # Two of four came from the cache: 60 ms are less than half of a median of 1.03 s.
        ([{}, {}, {"server_prefill_ms": 60.0}, {"server_prefill_ms": 62.0}], {2, 3}),
        # Half of the system text that every prompt shares was not in the plan: 6 % of the prompt.
        ([{"cached_tokens": 61, "template_tokens": 0}] * 3, {0, 1, 2}),
        # Harmless: vLLM's first block of 16 holds the template's 14 tokens, whoever asks.
        ([{"cached_tokens": 16, "template_tokens": 14}] * 5, set()),
        # Harmless: a machine that clocks up after the first request, from 2 s to 1.3 s: a third, not a half.
        ([{}, *[{"server_prefill_ms": 1300.0, "ttft_ms": 1380.0}] * 4], set()),
        # Harmless: a row that failed says nothing of a cache, whatever its columns hold.
        ([{}, {}, {}, {"status": "timeout", "cached_tokens": 990}], set()),
    ],
)
def test_b01_a_prefix_from_the_cache(row: MakeRow, judge: Judge, changes: list[Row], doubted: set[int]) -> None:
    """The server's word, else a prefill of less than half the usual: no prefill, no TTFT, no end to end."""
    found = judge([row(i, **change) for i, change in enumerate(changes)], *CACHED)
    assert {finding.order_index for finding in found} == doubted
    assert all(finding.spoils == {"prefill", "ttft", "e2e"} for finding in found)


@pytest.mark.parametrize(
    ("wanted", "limit", "counted", "cut"),
    [
        # num_keep 24 of 2,048: 2048 - (2048 - 24) / 2 = 1,036 are kept of 3,000.
        (3000, 2048, 1036, True),
        # Old Ollama kept exactly num_ctx: 4,096 of 5,000, which is 82 % and so no shortfall, but a full context.
        (5000, 4096, 4096, True),
        # Through /v1 nobody knows the context: 2,050 of 8,000.
        (8000, None, 2050, True),
        # Harmless: a tokenizer that makes 8 % fewer tokens of the same words.
        (1000, 8192, 920, False),
        # Harmless: a prompt of 4,000 in a context of 4,224 that leaves 224 for the answer: nearly full, and whole.
        (4000, 4224, 4003, False),
        # Harmless: half of the context by plan: 1,026 wanted and 1,026 read of 2,048.
        (1026, 2048, 1026, False),
    ],
)
def test_b02_a_prompt_that_was_cut(
    row: MakeRow, judge: Judge, wanted: int, limit: int | None, counted: int, cut: bool
) -> None:
    """Far fewer tokens than wanted, or a context filled to its brim; and prompts that only resemble it."""
    one = row(prompt_tokens_wanted=wanted, context_limit_tokens=limit, prompt_tokens=counted)
    assert [finding.kind for finding in judge([one], "truncated")] == ["truncated"] * cut


@pytest.mark.parametrize(
    ("sources", "rows_doubted", "point_told"),
    [
        (["server"] * 4 + ["estimate"], [4], False),  # the case itself
        (["estimate", "server", "server"], [0], False),  # the first answer came without usage
        (["estimate"] * 4 + ["server"], [0, 1, 2, 3], False),  # only one was counted: the four are the guesses
        (["estimate"] * 5, [], True),  # alike among themselves: told once
        (["server"] * 5, [], False),  # harmless
        ([None] * 5, [], False),  # harmless: an import does not say
    ],
)
def test_b23_estimates_among_counts(
    row: MakeRow, judge: Judge, sources: list[str | None], rows_doubted: list[int], point_told: bool
) -> None:
    """An estimate beside counts spoils its own time per token; a point of estimates only is one thing throughout."""
    found = judge([row(i, output_token_source=source) for i, source in enumerate(sources)], "estimated_counts")
    assert [finding.order_index for finding in found if finding.order_index is not None] == rows_doubted
    assert any(finding.order_index is None for finding in found) is point_told


def test_b23_a_failed_row_estimates_nothing_for_the_others(row: MakeRow, judge: Judge) -> None:
    """Harmless: four counted rows and one that broke off, whose chunks are all that is known of it."""
    rows = [row(i, output_token_source="server") for i in range(4)]
    rows.append(row(4, output_token_source="estimate", status="incomplete"))
    assert judge(rows, "estimated_counts") == []
