"""Answers that ended early, streams that came in one piece, times that run backwards; and their look-alikes."""

from collections.abc import Callable

import pytest

from roofbook.record import Row
from roofbook.validity import MEASURES, Finding

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]


def test_b11_short_and_empty_answers(row: MakeRow, judge: Judge) -> None:
    """128 planned, 128 128 88 128 0 came: the third is short, the fifth is empty."""
    rows = [row(i, output_tokens_wanted=128, output_tokens=n, finish_reason="stop" if n < 128 else "length")
            for i, n in enumerate([128, 128, 88, 128, 0])]  # fmt: skip
    found = judge(rows, "short_output", "empty_output")
    assert [(finding.kind, finding.order_index, dict(finding.values)) for finding in found] == [
        ("short_output", 2, {"output_tokens": 88, "wanted_tokens": 128}),
        ("empty_output", 4, {"wanted_tokens": 128}),
    ]


@pytest.mark.parametrize(
    "harmless",
    [
        {"output_tokens": 120, "output_tokens_wanted": 128},  # 6 % less
        {"output_tokens": 65, "output_tokens_wanted": None},  # nobody asked for a length
        {"output_tokens": 200, "output_tokens_wanted": 128},  # more is not short
        {"output_tokens": None, "output_tokens_wanted": 128},  # the server does not count
        {"output_tokens": 88, "output_tokens_wanted": 128, "output_token_source": "estimate"},
        {"output_tokens": 88, "output_tokens_wanted": 128, "status": "incomplete"},  # failed, and not by this
    ],
)
def test_an_answer_of_about_the_right_length_is_no_doubt(row: MakeRow, judge: Judge, harmless: Row) -> None:
    """Up to a tenth less, no wanted length, a count that nobody made."""
    assert judge([row(**harmless)], "short_output", "empty_output") == []


def test_b04_a_stream_that_was_all_thinking_is_told(row: MakeRow, judge: Judge) -> None:
    """Two thinking tokens and no answer: TTFT stands, the answer's first token never came."""
    thinking = row(output_tokens=2, output_tokens_wanted=2, thinking_tokens=2, chunks=2, ttft_ms=210.0,
                   first_answer_ms=None, last_token_ms=230.0, e2e_ms=231.0, server_prefill_ms=None)  # fmt: skip
    (found,) = judge([thinking])
    assert (found.kind, dict(found.values), found.doubtful) == (
        "no_answer",
        {"output_tokens": 2, "thinking_tokens": 2},
        False,
    )


def test_an_imported_row_without_a_stream_is_not_all_thinking(row: MakeRow, judge: Judge) -> None:
    """Where no chunk was counted nobody looked for the answer's first token."""
    assert judge([row(chunks=None, first_answer_ms=None)]) == []


def test_b29_a_stream_held_back_to_its_end(row: MakeRow, judge: Judge) -> None:
    """300 chunks between 1,699 and 1,700 ms: end to end stands, time to first token and per token do not."""
    times = [1699 + i / 300 for i in range(300)]
    held = row(ttft_ms=times[0], last_token_ms=times[-1], e2e_ms=1700.0, output_tokens=300, output_tokens_wanted=300,
               chunks=300, chunk_times_ms=times, first_answer_ms=1699.0, server_prefill_ms=None)  # fmt: skip
    (found,) = judge([held])
    assert (found.kind, found.spoils) == ("buffered", {"ttft", "tpot"})
    assert found.values["chunks"] == 300
    assert found.values["span_ms"] == pytest.approx(299 / 300)


def test_b36_three_tokens_in_one_segment(row: MakeRow, judge: Judge) -> None:
    """All three at 500 ms: coalesced, no time per token."""
    together = row(ttft_ms=500.0, last_token_ms=500.0, e2e_ms=500.0, output_tokens=3, output_tokens_wanted=3, chunks=3,
                   chunk_times_ms=[500.0] * 3, first_answer_ms=500.0, server_prefill_ms=None)  # fmt: skip
    (found,) = judge([together])
    assert (found.kind, dict(found.values)) == ("coalesced", {"chunks": 3, "span_ms": 0.0, "e2e_ms": 500.0})
    assert "tpot" in found.spoils


def test_b36_a_last_token_before_the_first(row: MakeRow, judge: Judge) -> None:
    """First token at 812.4, last at 811.9: two clocks; the row stands for nothing."""
    (found,) = judge([row(ttft_ms=812.4, last_token_ms=811.9, e2e_ms=820.0, server_prefill_ms=None)])
    assert (found.kind, found.spoils) == ("clock_error", set(MEASURES))
    assert dict(found.values) == {
        "earlier": "ttft_ms",
        "earlier_ms": 812.4,
        "later": "last_token_ms",
        "later_ms": 811.9,
    }


def test_blocks_of_tokens_are_buffering_too(row: MakeRow, judge: Judge) -> None:
    """A proxy that passes on twenty tokens at a time, every second: the first of each block waited."""
    times = [1000.0 * (1 + i // 20) for i in range(100)]
    blocks = row(ttft_ms=1000.0, last_token_ms=5000.0, e2e_ms=5001.0, output_tokens=100, output_tokens_wanted=100,
                 chunks=100, chunk_times_ms=times, first_answer_ms=1000.0, server_prefill_ms=None)  # fmt: skip
    assert [finding.kind for finding in judge([blocks])] == ["buffered"]


@pytest.mark.parametrize(
    ("tokens", "gap_ms", "burst", "ttft_ms"),
    [
        (32, 60.0, 1, 48475.0),  # a long prompt and a short answer: TTFT is 96 % of the whole, and true
        (100, 1.0, 1, 20.0),  # a thousand tokens a second
        (99, 30.0, 3, 200.0),  # speculative decoding: three tokens a step
        (96, 60.0, 8, 200.0),  # and eight
        (2, 20.0, 1, 200.0),
    ],
)
def test_streams_of_real_tokens_are_not_buffered(
    row: MakeRow, judge: Judge, tokens: int, gap_ms: float, burst: int, ttft_ms: float
) -> None:
    """Short answers, fast machines and steps of several tokens arrive as they are made."""
    times = [ttft_ms + gap_ms * (i // burst) for i in range(tokens)]
    streamed = row(ttft_ms=ttft_ms, last_token_ms=times[-1], e2e_ms=times[-1] + 1, output_tokens=tokens,
                   output_tokens_wanted=tokens, chunks=tokens, chunk_times_ms=times, first_answer_ms=ttft_ms,
                   server_prefill_ms=ttft_ms - 5)  # fmt: skip
    assert judge([streamed], "buffered", "coalesced", "clock_error") == []


@pytest.mark.parametrize(
    "harmless",
    [
        {"ttft_ms": 2600.0, "first_answer_ms": 2600.0, "first_byte_ms": 2600.0},  # one event, one time
        {"last_token_ms": 4151.02, "e2e_ms": 4151.0},  # rounding
        {"ttft_ms": None, "last_token_ms": None, "output_tokens": None},
    ],
)
def test_equal_and_missing_times_do_not_run_backwards(row: MakeRow, judge: Judge, harmless: Row) -> None:
    """Several events in one read share a time; a missing one is not zero."""
    assert judge([row(**harmless)], "clock_error") == []
