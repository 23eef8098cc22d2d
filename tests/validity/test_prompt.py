"""Prompts that came from a cache, were cut, or were counted by guess; and those that only look so."""

from collections.abc import Callable

import pytest

from roofbook.record import Row
from roofbook.validity import Finding

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]


def test_b01_a_reported_cache_keeps_all_but_the_first_out(row: MakeRow, judge: Judge) -> None:
    """500 of 512 tokens cached on requests 2 to 6: five findings with their numbers; the first request stands."""
    rows = [row(i, cached_tokens=500 if i else 0, server_prefill_ms=60.0 if i else 2500.0) for i in range(6)]
    found = judge(rows, "cached_prefix")
    assert [finding.order_index for finding in found] == [1, 2, 3, 4, 5]
    assert found[0].values == {"cached_tokens": 500, "expected_tokens": 0, "prompt_tokens": 512}
    assert found[0].spoils == {"prefill", "ttft", "e2e"}


@pytest.mark.parametrize(
    "harmless",
    [
        {"cached_tokens": 0},
        {"cached_tokens": 1},  # the begin-of-text token
        {"cached_tokens": 25},  # 4.9 % of 512: a chat template nobody measured
        {"cached_tokens": 60, "template_tokens": 60},  # the template, measured
        {"cached_tokens": 460, "shared_prefix_tokens": 460, "kind": "prefix_cache"},  # shared on purpose
        {"cached_tokens": 384, "shared_prefix_tokens": 460, "kind": "prefix_cache"},  # in blocks of 128
    ],
)
def test_a_cached_start_that_was_meant_or_is_tiny_is_no_doubt(row: MakeRow, judge: Judge, harmless: Row) -> None:
    """A token or two, the template, the shared front of a cache experiment."""
    assert judge([row(**harmless)]) == []


@pytest.mark.parametrize(
    "cached",
    [
        {"cached_tokens": 40, "prompt_tokens": 74, "prompt_tokens_wanted": 74},
        {"cached_tokens": 511, "kind": "prefix_cache", "shared_prefix_tokens": 256},
    ],
)
def test_more_cached_than_was_meant_is_a_doubt(row: MakeRow, judge: Judge, cached: Row) -> None:
    """40 of 74 tokens; all of a prompt of which half was to be shared."""
    assert [finding.kind for finding in judge([row(**cached)])] == ["cached_prefix"]


def test_a_silent_cache_is_seen_by_its_time(row: MakeRow, judge: Judge) -> None:
    """Five repeats near 2,500 ms and one at 60: the server says nothing, the time does."""
    times = [2500.0, 2510.0, 60.0, 2490.0, 2520.0]
    found = judge(
        [row(i, server_prefill_ms=ms, ttft_ms=ms + 100) for i, ms in enumerate(times)], "cached_prefix_implied"
    )
    assert [(finding.order_index, dict(finding.values)) for finding in found] == [
        (2, {"prefill_ms": 60.0, "median_ms": 2500.0, "rows": 5})
    ]


@pytest.mark.parametrize("times", [[2500.0, 60.0], [2500.0, 1500.0, 2600.0], [100.0, 110.0, 400.0]])
def test_a_faster_repeat_is_not_yet_a_cached_one(row: MakeRow, judge: Judge, times: list[float]) -> None:
    """Of two nobody knows which is odd; 40 % faster is noise or heat; and a slow one makes the others no hits."""
    rows = [row(i, server_prefill_ms=ms, ttft_ms=2700.0) for i, ms in enumerate(times)]
    assert judge(rows, "cached_prefix_implied") == []


@pytest.mark.parametrize(
    ("wanted", "limit", "counted", "cut"),
    [(7900, 4096, 2050, True), (4000, 8192, 4056, False), (7900, 8192, 4098, True), (512, 4096, 578, False)],
)
def test_b02_a_prompt_cut_to_half_the_context(
    row: MakeRow, judge: Judge, wanted: int, limit: int, counted: int, cut: bool
) -> None:
    """2,050 = 4096/2 + 2 and 4,098 = 8192/2 + 2 were cut; a prompt that came out longer than wanted was not."""
    odd = row(prompt_tokens_wanted=wanted, context_limit_tokens=limit, prompt_tokens=counted)
    expected = [{"prompt_tokens": counted, "wanted_tokens": wanted, "context_limit_tokens": limit}] if cut else []
    assert [dict(finding.values) for finding in judge([odd], "truncated")] == expected


@pytest.mark.parametrize(
    ("wanted", "limit", "counted", "cut"),
    [
        (8192, 8192, 8192, True),  # exactly as many as the context holds
        (None, 4096, 4095, True),
        (4100, None, 2050, True),  # a context that the server does not report
        (8192, None, 8016, False),  # 2 % short: the tokenizer
        (4000, 8192, 4098, False),  # half the context by chance, and all that was wanted
        (None, 8192, 4098, False),  # nothing says that more was wanted
        (None, None, 40, False),
    ],
)
def test_a_prompt_as_long_as_wanted_was_not_cut(
    row: MakeRow, judge: Judge, wanted: int | None, limit: int | None, counted: int, cut: bool
) -> None:
    """A full context and a large shortfall are cuts; a chance likeness of numbers is not."""
    odd = row(prompt_tokens_wanted=wanted, context_limit_tokens=limit, prompt_tokens=counted)
    assert bool(judge([odd], "truncated")) is cut


def test_b23_an_estimate_among_counts_is_told_and_spoilt(row: MakeRow, judge: Judge) -> None:
    """One of five counts is estimated: the row says so and has no time per token."""
    sources = ["server"] * 4 + ["estimate"]
    found = judge([row(i, output_token_source=source) for i, source in enumerate(sources)])
    assert [(finding.kind, finding.order_index, dict(finding.values)) for finding in found] == [
        ("estimated_counts", 4, {"estimated": 1, "rows": 5})
    ]
    assert found[0].spoils == {"tpot"}


def test_a_point_that_is_all_estimates_is_told_once(row: MakeRow, judge: Judge) -> None:
    """A server that never counts: one finding of the point, and its rows stay."""
    found = judge([row(i, output_token_source="estimate", output_tokens=30) for i in range(5)])
    assert [(finding.kind, finding.order_index, finding.point, finding.doubtful) for finding in found] == [
        ("estimated_counts", None, "p", False)
    ]


@pytest.mark.parametrize(
    ("counted", "wanted", "more", "cut"),
    [
        (850, 1024, {"template_tokens": 9}, True),  # a server that reads at most 850
        (1900, 2048, {"template_tokens": 0}, True),  # 7 %
        (972, 1024, {"template_tokens": 9}, True),  # just under 95 %
        (973, 1024, {"template_tokens": 9}, False),
        (57, 64, {"template_tokens": 9}, False),  # seven tokens are no cut
        (850, 1024, {}, False),  # not calibrated: a tokenizer may count so
        (850, 1024, {"template_tokens": 9, "imported_from": "guidellm"}, False),
    ],
)
def test_a_calibrated_prompt_meets_its_length(
    row: MakeRow, judge: Judge, counted: int, wanted: int, more: Row, cut: bool
) -> None:
    """Where the collector counted with the server first, five per cent less is a cut."""
    odd = row(prompt_tokens=counted, prompt_tokens_wanted=wanted, **more)
    assert bool(judge([odd], "truncated")) is cut
