"""Counts that contradict the request or each other, and those that only look so."""

from collections.abc import Callable

import pytest

from roofbook.record import Row
from roofbook.validity import Finding

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]


@pytest.mark.parametrize(
    ("tokens", "wanted", "chunks", "spoilt"),
    [
        (128, 16, 16, {"tpot", "e2e"}),  # eight times as many as came: the count is wrong
        (160, 16, 160, {"e2e"}),  # they came: the server does not know the limit; each gap is true
        (37, 32, None, {"e2e"}),  # of pieces nothing is known
    ],
)
def test_more_output_than_asked_for(
    row: MakeRow, judge: Judge, tokens: int, wanted: int, chunks: int | None, spoilt: set[str]
) -> None:
    """The length is verified upwards too."""
    times = None if chunks is None else [2600.0 + 20 * n for n in range(chunks)]
    one = row(output_tokens=tokens, output_tokens_wanted=wanted, chunks=chunks, chunk_times_ms=times,
              last_token_ms=2600.0 if times is None else times[-1], e2e_ms=9000.0, first_answer_ms=2600.0)  # fmt: skip
    (found,) = judge([one], "long_output")
    assert found.spoils == spoilt
    assert dict(found.values) == {"output_tokens": tokens, "wanted_tokens": wanted, "chunks": chunks}


@pytest.mark.parametrize(
    "harmless",
    [
        {"output_tokens": 33},  # the end of the answer is counted too
        {"output_tokens": 20, "output_tokens_wanted": 16},  # four tags around a thought
        {"output_tokens": 140, "output_tokens_wanted": 128},  # 9 %
        {"output_tokens": 232, "thinking_tokens": 200},  # a server that limits the answer alone
        {"output_tokens": 200, "output_tokens_wanted": None},
        {"output_tokens": 64, "status": "timeout"},
    ],
)
def test_a_little_more_output_is_no_doubt(row: MakeRow, judge: Judge, harmless: Row) -> None:
    """32 were asked for: the end, tags, thought before the answer."""
    assert judge([row(**harmless)], "long_output") == []


@pytest.mark.parametrize(("chunks", "tokens", "found"), [(16, 8, True), (40, 32, True), (34, 32, False), (3, 1, False),
                                                         (35, 32, False), (36, 32, True)])  # fmt: skip
def test_more_pieces_than_tokens_cannot_be(row: MakeRow, judge: Judge, chunks: int, tokens: int, found: bool) -> None:
    """A piece with text is a token or more; tags that are not counted are a few."""
    one = row(chunks=chunks, output_tokens=tokens, output_tokens_wanted=None, first_answer_ms=2600.0)
    spoilt = [frozenset({"tpot"})] if found else []
    assert [finding.spoils for finding in judge([one], "more_pieces")] == spoilt


@pytest.mark.parametrize(("cached", "found"), [(513, True), (1536, True), (512, False), (0, False), (None, False)])
def test_more_cached_than_sent_cannot_be(row: MakeRow, judge: Judge, cached: int | None, found: bool) -> None:
    """All 512 may come from a cache, 513 may not."""
    assert bool(judge([row(cached_tokens=cached)], "cached_beyond_prompt")) is found


@pytest.mark.parametrize(
    ("counted", "wanted", "found"),
    [
        (100_000_000_000, 512, True),
        (1024, 512, True),  # each prompt counted twice
        (205, 128, False),  # a template of 77 tokens, as published
        (270, 16, False),  # and a long one around a short prompt
        (769, 512, True),
        (768, 512, False),  # half as much again, and 256 more
    ],
)
def test_a_prompt_far_longer_than_sent(row: MakeRow, judge: Judge, counted: int, wanted: int, found: bool) -> None:
    """The server adds to it, or counts wrong: its speed is not that of the prompt asked for."""
    spoils = [finding.spoils for finding in judge([row(prompt_tokens=counted, prompt_tokens_wanted=wanted)],
                                                  "long_prompt")]  # fmt: skip
    assert spoils == ([{"prefill", "ttft", "e2e"}] if found else [])


def test_a_prompt_not_counted_among_counted_ones_stands_for_nothing(row: MakeRow, judge: Judge) -> None:
    """Ollama leaves the count out where all was cached: two of three rows at 36 ms, where 86 are true."""
    hit = {"prompt_tokens": None, "server_prefill_ms": None, "ttft_ms": 36.0}
    found = judge([row(0), row(1, **hit), row(2, **hit)], "prompt_not_counted")
    assert [(one.order_index, one.spoils, dict(one.values)) for one in found] == [
        (index, {"prefill", "ttft", "e2e"}, {"uncounted": 2, "rows": 3}) for index in (1, 2)
    ]


def test_a_warm_up_shows_that_the_server_counts(row: MakeRow, judge: Judge) -> None:
    """Every measured prompt was cached, the warm-up was counted."""
    rows = [row(0, phase="warmup"), *(row(i, prompt_tokens=None) for i in (1, 2, 3))]
    assert [one.order_index for one in judge(rows, "prompt_not_counted")] == [1, 2, 3]


def test_a_server_that_never_counts_is_told_once_a_point(row: MakeRow, judge: Judge) -> None:
    """Nothing is spoilt, but nobody knows whether the prompts were read."""
    (found,) = judge([row(i, prompt_tokens=None) for i in range(3)], "prompt_not_counted")
    assert (found.order_index, found.point, found.doubtful) == (None, "p", False)
    assert dict(found.values) == {"uncounted": 3, "rows": 3}


@pytest.mark.parametrize(
    "harmless",
    [
        {"prompt_tokens": None, "status": "timeout"},  # failed before its counts came
        {"prompt_tokens": None, "prompt_tokens_wanted": None},  # printed by another program: no length was asked for
        {"prompt_tokens": None, "model": "y"},  # another model's server, which never counts, is told and not spoilt
    ],
)
def test_an_uncounted_prompt_that_spoils_nothing(row: MakeRow, judge: Judge, harmless: Row) -> None:
    """A failure, an import, another server."""
    assert [one for one in judge([row(0), row(1, **harmless)], "prompt_not_counted") if one.doubtful] == []


@pytest.mark.parametrize(
    ("asked", "answered", "found"),
    [
        ("m", "tiny-fallback", True),
        ("qwen2.5:7b", "qwen2.5:0.5b", True),
        ("qwen2.5-7b", "llama-3.1-8b", True),
        ("llama3.2", "llama3.2:latest", False),
        ("gpt-x", "gpt-x-2026-08-06", False),  # with its date
        ("Qwen2.5-7B-Instruct", "qwen/qwen2.5-7b-instruct", False),
        ("qwen2.5-7b-q4_k_m", "/models/qwen2.5-7b-Q4_K_M.gguf", False),
        ("m", None, False),
    ],
)
def test_an_answer_that_names_another_model(
    row: MakeRow, judge: Judge, asked: str, answered: str | None, found: bool
) -> None:
    """Told once a point; a path, an ending, a tag or a date make no other model."""
    told = judge([row(i, model=asked, answered_model=answered) for i in range(3)])
    expected = [("other_model", {"model": asked, "answered": answered}, False)] if found else []
    assert [(one.kind, dict(one.values), one.doubtful) for one in told] == expected


def test_answers_of_two_models_are_mixed(row: MakeRow, judge: Judge) -> None:
    """Four answers of one and one of another, behind one address: the odd one stands for nothing."""
    rows = [row(i, answered_model="x-a" if i < 4 else "x-b") for i in range(5)]
    assert [(one.order_index, one.values["field"], one.doubtful) for one in judge(rows) if one.doubtful] == [
        (4, "answered_model", True)
    ]


def test_a_note_on_a_finished_row_is_told(row: MakeRow, judge: Judge) -> None:
    """What was left out of a row is said; a failed row's error is no note."""
    left_out = row(0, error="384 cached tokens in a prompt of 128 cannot be: left out")
    (found,) = judge([left_out, row(1, status="timeout", error="timeout")], "noted")
    assert (found.order_index, found.values["note"], found.doubtful) == (0, left_out["error"], False)
