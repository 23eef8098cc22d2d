"""Streams as bytes, read and judged, with their look-alikes: B03, B04, B07, B11, B13, B21, B23, B29, B34, B36."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from collect.apis import APIS, Answer
from collect.exchange import Closing, Exchange
from roofbook.record import Row
from roofbook.validity import Finding
from roofbook.validity.derived import tpot_ms

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]
Stamped = Sequence[tuple[float, str | bytes]]


def sse(data: Any) -> str:
    return f"data: {data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)}\n\n"


def delta(part: dict[str, Any], finish: str | None = None, **more: Any) -> str:
    return sse({"choices": [{"index": 0, "delta": part, "finish_reason": finish}], **more})


def c(text: str) -> str:
    return delta({"content": text})


def end(prompt: int, output: int, reason: str = "stop") -> str:
    usage = {"prompt_tokens": prompt, "completion_tokens": output}
    return delta({}, reason) + sse({"choices": [], "usage": usage}) + sse("[DONE]")


def read(stamped: Stamped, api: str = "openai", closing: Closing = "complete", status: int = 200) -> Answer:
    pieces = tuple((at, data.encode() if isinstance(data, str) else data) for at, data in stamped)
    return APIS[api].read(Exchange(closing, pieces, http_status=status, e2e_ms=stamped[-1][0] if stamped else 0.0))


def seen(answer: Answer, *names: str) -> tuple[Any, ...]:
    return tuple(answer.columns[name] for name in names)


def told(answer: Answer, judge: Judge, **more: Any) -> list[str]:
    """Return what the rules say of the answer as a row of a run."""
    row = {"run_id": "r", "experiment": "e", "kind": "baseline", "point": "p", "phase": "measured", "order_index": 0}
    return [finding.kind for finding in judge([row | answer.columns | more])]


ROLE = delta({"role": "assistant", "content": ""})


@pytest.mark.parametrize(
    ("stamped", "first_byte_ms", "ttft_ms", "chunks"),
    [
        # Empty content again and again while the prompt is read, as a sign of life.
        ([(5, ROLE), *[(500.0 * n, c("")) for n in (1, 2, 3)], (1900, c("a")), (1930, c("b"))], 5, 1900, 2),
        # A comment first, then a role chunk with null and an empty tool list.
        ([(2, ": keepalive 0/900\n\n"), (40, delta({"role": "assistant", "content": None, "tool_calls": []})),
          (700, c("a")), (720, c("b"))], 2, 700, 2),
        # Harmless: the first chunk carries the role and a token together: it is a token.
        ([(300, delta({"role": "assistant", "content": "a"})), (320, c("b"))], 300, 300, 2),
        # Harmless: a lone space, and a newline, are tokens like any other.
        ([(300, c(" ")), (320, c("\n"))], 300, 300, 2),
    ],
)  # fmt: skip
def test_b03_what_is_a_first_token(stamped: Stamped, first_byte_ms: float, ttft_ms: float, chunks: int) -> None:
    """An empty chunk is a first byte and no token; white space is one."""
    answer = read([*stamped, (2000, end(900, 2))])
    assert seen(answer, "first_byte_ms", "ttft_ms", "chunks") == (first_byte_ms, ttft_ms, chunks)


@pytest.mark.parametrize(
    ("stamped", "ttft_ms", "first_answer_ms", "text"),
    [
        # vLLM names a thought twice; it is counted once.
        ([(100, delta({"reasoning": "hm", "reasoning_content": "hm"})), (120, c("4")), (140, c("2"))], 100, 120, "42"),
        # The closing tag and the first word of the answer share a chunk.
        ([(100, c("<think>")), (120, c("hm")), (140, c("</think>\n\n42"))], 100, 140, "42"),
        # Harmless: an answer that only speaks of <think> in its middle does not think.
        ([(100, c("Use ")), (120, c("<think>")), (140, c(" tags."))], 100, 100, "Use <think> tags."),
        # Harmless: an empty thought beside a word is no thought.
        ([(100, delta({"reasoning_content": "", "content": "4"})), (120, c("2")), (140, c("."))], 100, 100, "42."),
    ],
)
def test_b04_thought_and_answer(stamped: Stamped, ttft_ms: float, first_answer_ms: float, text: str) -> None:
    """The first token is of any channel, the first answer token is not thought; three tokens over 40 ms."""
    answer = read([*stamped, (150, end(9, 3))])
    assert seen(answer, "ttft_ms", "first_answer_ms") == (ttft_ms, first_answer_ms)
    assert tpot_ms(answer.columns) == 20
    assert answer.text == text


@pytest.mark.parametrize(
    ("usages", "counts"),
    [
        # A running count in each chunk: the last holds.
        ([(31, 1), (31, 2), (31, 3)], (31, 3, "server")),
        # A proxy adds a zero usage after the true one.
        ([None, (31, 3), (0, 0)], (31, 3, "server")),
        # Words and negative numbers are no counts: the three chunks are all that is known.
        ([("31", "3"), None, (-1, -3)], (None, 3, "estimate")),
        # Harmless: null until the end; or no word of it but the last.
        ([None, None, (31, 3)], (31, 3, "server")),
    ],
)
def test_b07_which_usage_holds(usages: list[tuple[Any, Any] | None], counts: tuple[Any, ...]) -> None:
    """The last one with a positive count; unknown is null, and an estimate says that it is one."""
    stamped = [
        (100.0 + 20 * n, delta({"content": "x"}, usage=None if one is None else
                               {"prompt_tokens": one[0], "completion_tokens": one[1]}))
        for n, one in enumerate(usages)
    ]  # fmt: skip
    answer = read([*stamped, (200, delta({}, "stop"))])
    assert seen(answer, "prompt_tokens", "output_tokens", "output_token_source") == counts


@pytest.mark.parametrize(
    ("tokens", "wanted", "reason", "kinds"),
    [
        (1, 128, "stop", ["short_output"]),
        (115, 128, "content_filter", ["short_output"]),  # 89.8 %
        (0, 128, "stop", ["empty_output"]),
        (116, 128, "stop", []),  # harmless: 90.6 %, a tenth is within what repeats differ
        (129, 128, "length", []),  # harmless: a server that counts the end token too
        (16, 16, "stop", []),  # harmless: stopped by itself, and at the wanted length
    ],
)
def test_b11_the_length_of_an_answer(judge: Judge, tokens: int, wanted: int, reason: str, kinds: list[str]) -> None:
    """What counts is how many tokens came of those wanted, not the reason that is given."""
    stamped = [(100.0 + 20 * n, c("x")) for n in range(tokens)]
    answer = read([*stamped, (100.0 + 20 * tokens, end(9, tokens, reason))])
    assert told(answer, judge, output_tokens_wanted=wanted) == kinds


@pytest.mark.parametrize(
    ("stamped", "api", "ttft_ms", "tpot"),
    [
        # One chunk that holds all 40 tokens: when the last of them was ready nobody can tell.
        ([(900, c("x" * 80)), (901, end(9, 40))], "openai", 900, None),
        # Ollama: eval_count 1.
        ([(300, '{"response":"Y","done":false}\n'),
          (301, '{"response":"","done":true,"done_reason":"length","eval_count":1,"prompt_eval_count":8}\n')],
         "ollama", 300, None),
        # Harmless: two tokens are enough for one gap.
        ([(300, c("Y")), (330, c("es")), (331, end(9, 2))], "openai", 300, 30),
        # Harmless: 5 tokens in three chunks: the time is over the tokens, (340 - 300) / 4.
        ([(300, c("a b")), (320, c("c d")), (340, c("e")), (341, end(9, 5))], "openai", 300, 10),
    ],
)  # fmt: skip
def test_b13_a_time_per_token_takes_two(stamped: Stamped, api: str, ttft_ms: float, tpot: float | None) -> None:
    """Null, and never 0, infinite or an exception, where there is no second moment."""
    answer = read(stamped, api)
    assert answer.columns["ttft_ms"] == ttft_ms
    assert tpot_ms(answer.columns) == tpot


LLAMA = 'data: {"content":"a","stop":false}\n\n'


@pytest.mark.parametrize(
    ("api", "stamped", "closing", "status"),
    [
        # llama.cpp dies before its last event.
        ("llamacpp", [(1, LLAMA), (2, LLAMA)], "read_error", "read_error"),
        # A proxy ends the body properly after its server died: an HTTP end is no end of an answer.
        ("ollama", [(1, '{"response":"a","done":false}\n'), (2, '{"response":"b","done":f')], "complete",
         "in_stream_error"),
        # The last event lacks its blank line: by the grammar it never came, and nobody knows what it would have been.
        ("openai", [(1, c("a")), (2, delta({}, "stop").rstrip("\n"))], "complete", "incomplete"),
        # Harmless: lines that end with a carriage return, and with both.
        ("openai", [(1, c("a").replace("\n", "\r\n")), (2, delta({}, "stop").replace("\n", "\r"))], "complete", "ok"),
        # Harmless: usage and [DONE] come after the end that counts, in any order.
        ("openai", [(1, c("a")), (2, sse("[DONE]")), (3, sse({"choices": [], "usage": None}))], "complete", "ok"),
        # Harmless: an empty finish_reason in every chunk, as some write it, and the true one at last.
        ("openai", [(1, delta({"content": "a"}, "")), (2, delta({"content": "b"}, "length"))], "complete", "ok"),
    ],
)  # fmt: skip
def test_b21_when_an_answer_is_complete(
    api: str, stamped: Stamped, closing: Closing, status: str, judge: Judge
) -> None:
    """By its own word only; an answer that is not is a failure, and in no latency."""
    answer = read(stamped, api, closing)
    assert answer.status == status
    assert ("unreliable" in told(answer, judge)) is (status != "ok")


def test_b23_the_servers_count_beats_chunks_and_text(judge: Judge) -> None:
    """107 tokens for 100 spaces and a word in eight chunks: 107 from the server, and harmless to the rules."""
    stamped = [(100.0 + 200 * n, c(" " * 14)) for n in range(7)]
    answer = read([*stamped, (1500, c("  done")), (1501, end(20, 107))])
    assert seen(answer, "output_tokens", "output_token_source", "chunks") == (107, "server", 8)
    assert tpot_ms(answer.columns) == pytest.approx(1400 / 106)
    assert told(answer, judge) == []


def spaced(first_ms: float, gaps: Sequence[float]) -> list[float]:
    times = [first_ms]
    for gap in gaps:
        times.append(times[-1] + gap)
    return times


@pytest.mark.parametrize(
    ("times", "kinds"),
    [
        # 300 within the last millisecond of 1,700: the case itself.
        ([1699 + n / 300 for n in range(300)], ["buffered"]),
        # nginx passes on 4 kB, some 30 events, whenever they are full: bursts of 30, 600 ms apart.
        (spaced(900, ([0.0] * 29 + [600.0]) * 5), ["buffered"]),
        # The whole answer with the last token, from a server that streams in name only.
        ([2500.0] * 64, ["buffered"]),
        # Harmless: TTFT is 98 % of the whole, and its 20 tokens come one by one.
        (spaced(30_000, [20.0] * 19), []),
        # Harmless: one hiccup of the network: 12 tokens wait 240 ms and come at once among 100.
        (spaced(300, [20.0] * 40 + [240.0] + [0.0] * 11 + [20.0] * 47), []),
        # Harmless: a very fast machine: 2,000 tokens a second, each by itself.
        (spaced(40, [0.5] * 63), []),
    ],
)
def test_b29_a_stream_that_was_held_back(times: list[float], kinds: list[str], judge: Judge) -> None:
    """Tokens without time between them were made earlier than they were seen; the end is true."""
    answer = read([(2, ROLE), *((at, c("t")) for at in times), (times[-1] + 1, end(20, len(times)))])
    assert answer.columns["e2e_ms"] == times[-1] + 1
    assert told(answer, judge) == kinds


SUNG = 'data: {"choices":[{"delta":{"content":"노래 🎵 é"},"finish_reason":"stop"}]}\n\n'.encode()


@pytest.mark.parametrize("at", range(1, len(SUNG), 7))
def test_b34_a_cut_anywhere_changes_nothing_but_the_time(at: int) -> None:
    """Cut into two at any place, in mid-character too: the same text, one event, at the time of its last byte."""
    answer = read([(100, SUNG[:at]), (115, SUNG[at:])])
    assert answer.text == "노래 🎵 é"
    assert seen(answer, "status", "chunks") == ("ok", 1)
    # The event ends with its blank line; its last line feed alone may come later.
    assert answer.columns["ttft_ms"] == 115


def test_b34_line_ends_inside_a_text_are_no_line_ends() -> None:
    """Harmless: U+2028 and U+0085 in a text, which some readers take for the end of a line."""
    answer = read([(100, 'data: {"choices":[{"delta":{"content":"a\u2028b\u0085c"},"finish_reason":"stop"}]}\n\n')])
    assert (answer.status, answer.text) == ("ok", "a\u2028b\u0085c")
    lines = '{"response":"a\u2028b","done":false}\n{"response":"","done":true,"done_reason":"stop"}\n'
    assert read([(100, lines)], "ollama").text == "a\u2028b"


@pytest.mark.parametrize(
    ("times", "kinds"),
    [
        ([500.0] * 3, ["coalesced"]),  # the case itself
        ([500.0, 500.0], ["coalesced"]),  # two in one read
        ([500.0, 500.1, 500.2, 500.3], ["coalesced"]),  # 0.1 ms apart: 10,000 tokens a second
        ([500.0], []),  # harmless: one token has no gap
        ([500.0, 501.0, 502.0], []),  # harmless: a thousand a second, on a small model
        ([500.0, 500.0, 520.0, 520.0], []),  # harmless: two tokens a step, 20 ms apart
    ],
)
def test_b36_tokens_in_one_read(times: list[float], kinds: list[str], judge: Judge) -> None:
    """Several tokens at one moment give no time per token, and never 0."""
    answer = read([*((at, c("x")) for at in times), (times[-1], end(5, len(times)))])
    assert told(answer, judge) == kinds
    per_token = tpot_ms(answer.columns)
    assert per_token is None or per_token > 0


@pytest.mark.parametrize(
    ("change", "doubted"),
    [
        ({"ttft_ms": -2.0}, True),  # before it was sent
        ({"first_answer_ms": 1990.0}, True),  # an answer before the first token of any channel
        ({"e2e_ms": 4000.0}, True),  # ended before its last token
        ({"first_byte_ms": 2080.0}, False),  # harmless: byte and token in one read
        ({"last_token_ms": 4601.0}, False),  # harmless: the last token is the end
        ({"first_byte_ms": 0.0}, False),  # harmless: a server on this machine, in less than the clock shows
    ],
)
def test_b36_times_that_run_backwards(row: MakeRow, judge: Judge, change: Row, doubted: bool) -> None:
    """An error of two clocks, told and never clamped; equal times are none."""
    found = judge([row(**change)], "clock_error")
    assert [len(finding.spoils) for finding in found] == [4] * doubted
