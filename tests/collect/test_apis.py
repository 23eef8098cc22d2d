"""Stamped bytes become an answer: the streams of the public reports, with the values that are right for each."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collect.apis import APIS, Answer, Ask
from collect.apis.events import json_lines, sse_events
from collect.exchange import Closing, Exchange

# The notation of the reports: bytes of one event each.


def sse(data: Any) -> str:
    return f"data: {data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)}\n\n"


def delta(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
    return sse({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


ROLE = delta({"role": "assistant", "content": ""})
DONE = sse("[DONE]")


def c(text: str) -> str:
    return delta({"content": text})


def r(text: str, key: str = "reasoning_content") -> str:
    return delta({key: text})


def fin(reason: str) -> str:
    return delta({}, reason)


def u(prompt: int, completion: int) -> str:
    return sse({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})


def read(api: str, *stamped: tuple[float, str], closing: Closing = "complete", status: int = 200) -> Answer:
    pieces = tuple((at, text.encode()) for at, text in stamped)
    e2e_ms = stamped[-1][0] if stamped else 0.0
    return APIS[api].read(Exchange(closing, pieces, http_status=status, e2e_ms=e2e_ms))


def seen(answer: Answer, *names: str) -> tuple[Any, ...]:
    return tuple(answer.columns[name] for name in names)


def tpot_ms(answer: Answer) -> float | None:
    """The contract's derived column: (last - first token) / (tokens - 1), null under two tokens."""
    first, last, tokens = seen(answer, "ttft_ms", "last_token_ms", "output_tokens")
    return None if first is None or not tokens or tokens < 2 else (last - first) / (tokens - 1)


def test_b03_a_role_only_chunk_is_no_token() -> None:
    """B03: the first byte comes at 5, the first token at 320; three tokens, 20 ms each."""
    answer = read("openai", (5, ROLE), (320, c("He")), (340, c("llo")), (360, c("!")), (361, fin("stop") + u(12, 3)),
                  (362, DONE))  # fmt: skip
    assert seen(answer, "first_byte_ms", "ttft_ms", "output_tokens", "status") == (5, 320, 3, "ok")
    assert tpot_ms(answer) == 20
    assert answer.text == "Hello!"


@pytest.mark.parametrize("empty", [{"role": "assistant", "content": ""}, {"role": "assistant", "content": None}])
def test_b03_a_role_chunk_after_the_first_slice_opens_no_gap(empty: dict[str, Any]) -> None:
    """B03, second case: role at 900, tokens at 2200 and 2220: TTFT 2200, TPOT 20, no gap of 1300 among the tokens."""
    answer = read("openai", (900, delta(empty)), (2200, c("A")), (2220, c("B")), (2220, u(5000, 2) + fin("stop")))
    assert seen(answer, "first_byte_ms", "ttft_ms", "chunk_times_ms") == (900, 2200, [2200, 2220])
    assert tpot_ms(answer) == 20


def ollama_line(content: str, thinking: str | None = None) -> str:
    message = {"role": "assistant", "content": content} | ({} if thinking is None else {"thinking": thinking})
    return json.dumps({"message": message, "done": False}) + "\n"


OLLAMA_END = json.dumps({"done": True, "done_reason": "stop", "prompt_eval_count": 20, "eval_count": 6}) + "\n"


@pytest.mark.parametrize("encoding", ["reasoning_content", "reasoning", "ollama"])
def test_b04_thinking_has_its_own_first_token(encoding: str) -> None:
    """B04: first token of any channel at 210, first visible at 290, TPOT 20, 4 thinking tokens, in three encodings."""
    thoughts, words = ["Okay", " so", " it", "."], ["42", "."]
    if encoding == "ollama":
        lines = [ollama_line("", thought) for thought in thoughts] + [ollama_line(word) for word in words]
        stamped = [(210 + 20 * n, line) for n, line in enumerate(lines)]
        answer = read("ollama", *stamped, (311, OLLAMA_END))
    else:
        events = [r(thought, encoding) for thought in thoughts] + [c(word) for word in words]
        stamped = [(8.0, ROLE), *((210.0 + 20 * n, event) for n, event in enumerate(events))]
        answer = read("openai", *stamped, (311, fin("stop") + u(20, 6)))
    assert seen(answer, "ttft_ms", "first_answer_ms", "prompt_tokens", "output_tokens", "thinking_tokens") == (
        210, 290, 20, 6, 4,
    )  # fmt: skip
    assert tpot_ms(answer) == 20
    assert answer.text == "42."


def test_b04_an_answer_that_ends_in_thought_is_good_and_has_no_visible_token() -> None:
    """B04, second case: TTFT 210, no first answer: null, not 0."""
    answer = read("openai", (210, r("a")), (230, r("b")), (231, fin("length") + u(20, 2)))
    assert seen(answer, "status", "ttft_ms", "first_answer_ms", "finish_reason") == ("ok", 210, None, "length")


def test_b04_thought_in_the_open_is_no_answer() -> None:
    """B04: a model that writes <think> into its content answers only after </think>."""
    answer = read("openai", (10, c("<think>")), (20, c("hm")), (30, c("</think>")), (40, c("42")),
                  (41, fin("stop") + u(9, 4)))  # fmt: skip
    assert seen(answer, "ttft_ms", "first_answer_ms", "thinking_tokens", "output_tokens") == (10, 40, 3, 4)
    assert answer.text == "42"


def test_b07_the_last_positive_usage_counts() -> None:
    """B07: usage null in every chunk, all zero in one, then U(31, 5): 31 and 5, from the server."""
    chunks = [delta({"content": "x"}, usage=None) for _ in range(5)]
    zero = sse({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})
    stamped = [(10.0 * n, chunk) for n, chunk in enumerate([*chunks[:3], zero, *chunks[3:]], start=1)]
    answer = read("openai", *stamped, (70, fin("stop") + u(31, 5) + DONE))
    assert seen(answer, "prompt_tokens", "prompt_token_source", "output_tokens", "output_token_source") == (
        31, "server", 5, "server",
    )  # fmt: skip


def test_b07_without_usage_the_prompt_is_unknown_and_the_output_an_estimate() -> None:
    """B07, second case: no usage at all: prompt null, output the five chunks and marked as an estimate, never 0."""
    answer = read("openai", *((10.0 * n, c("x")) for n in range(1, 6)), (60, fin("stop") + DONE))
    assert seen(answer, "prompt_tokens", "prompt_token_source", "output_tokens", "output_token_source") == (
        None, None, 5, "estimate",
    )  # fmt: skip


def test_b07_usage_is_asked_for_unless_a_probe_was_refused() -> None:
    """B07, third case: the field is in the request until a probe shows that the server refuses it."""
    asked = APIS["openai"].request(Ask("x", 5, "m"))
    assert asked.body["stream_options"] == {"include_usage": True}
    assert "stream_options" not in APIS["openai"].request(Ask("x", 5, "m", include_usage=False)).body


def test_b13_one_token_has_a_ttft_and_no_tpot() -> None:
    """B13: one token at 300: TTFT 300, TPOT null."""
    answer = read("openai", (300, c("Y")), (301, fin("stop") + u(8, 1) + DONE))
    assert (answer.columns["ttft_ms"], tpot_ms(answer)) == (300, None)


def test_b13_no_token_has_neither() -> None:
    """B13, second case: U(8, 0): no TTFT, no TPOT, and zero tokens as the server says."""
    answer = read("openai", (300, fin("stop") + u(8, 0) + DONE))
    assert seen(answer, "status", "ttft_ms", "last_token_ms", "output_tokens", "chunks") == ("ok", None, None, 0, 0)


OLLAMA_PART = '{"response":"a","done":false}\n'


@pytest.mark.parametrize(
    ("api", "stamped", "closing", "status"),
    [
        ("openai", [(1, c("a")), (2, c("b"))], "complete", "incomplete"),  # (i) C, C, EOF
        ("openai", [(1, c("a")), (2, fin("stop"))], "complete", "ok"),  # (ii) finish_reason, no [DONE]
        ("openai", [(1, c("a")), (2, DONE)], "complete", "ok"),  # (iii) [DONE], no finish_reason
        ("ollama", [(1, OLLAMA_PART), (2, OLLAMA_PART)], "complete", "incomplete"),  # (iv) no done: true
        ("openai", [(1, c("a"))], "read_error", "read_error"),  # (v) reset after C
        ("openai", [(1, c("a")), (2, fin("stop") + DONE)], "read_error", "ok"),  # all had come before the reset
        ("openai", [(1, c("a"))], "timeout", "timeout"),
        ("openai", [(1, c("a")), (2, sse({"error": {"message": "no memory"}}))], "complete", "in_stream_error"),
        ("openai", [(1, c("a")), (2, fin("stop")), (3, sse({"error": "late"}))], "complete", "in_stream_error"),
        ("openai", [(1, c("a")), (2, "data: {broken\n\n"), (3, fin("stop"))], "complete", "in_stream_error"),
        ("ollama", [(1, OLLAMA_PART), (2, '{"error":"no memory"}\n')], "complete", "in_stream_error"),
        ("llamacpp", [(1, 'data: {"content":"a","stop":false}\n\n')], "complete", "incomplete"),
        ("openai", [(1, '{"choices":[{"message":{"content":"all at once"}}]}')], "complete", "incomplete"),
        ("openai", [], "connect_error", "connect_error"),
        ("openai", [], "complete", "incomplete"),
    ],
)
def test_b21_an_answer_is_complete_only_when_it_says_so(
    api: str, stamped: list[tuple[float, str]], closing: Closing, status: str
) -> None:
    """B21: finish_reason, [DONE] or done: true make an answer ok; an end without one of them does not."""
    assert read(api, *stamped, closing=closing).status == status


def test_b34_a_character_cut_between_pieces_is_whole() -> None:
    """B34: 안녕🙂 in three pieces that cut characters: the text, no U+FFFD, one token, at 130."""
    pieces = (
        (100.0, b'data: {"choices":[{"index":0,"delta":{"content":"' + b"\xec\x95"),
        (115.0, b"\x88\xeb\x85\x95\xf0\x9f"),
        (130.0, b"\x99\x82" + b'"}}]}\n\n'),
    )
    answer = APIS["openai"].read(Exchange("complete", (*pieces, (131.0, fin("stop").encode())), 200))
    assert answer.text == "안녕🙂"
    assert seen(answer, "chunk_times_ms", "chunks") == ([130], 1)


def test_b34_a_character_that_the_server_broke_is_kept() -> None:
    """B34: bytes that are no character become U+FFFD, and nothing crashes."""
    broken = b'data: {"choices":[{"delta":{"content":"a\xff"},"finish_reason":"stop"}]}\n\n'
    answer = APIS["openai"].read(Exchange("complete", ((1.0, broken),), 200))
    assert (answer.status, answer.text) == ("ok", "a�")


def test_b36_tokens_that_came_at_once_have_one_time() -> None:
    """B36: three tokens in one segment at 500: TTFT 500, and last token 500, so that no TPOT can be told."""
    answer = read("openai", (500, c("a") + c("b") + c("c") + fin("stop") + u(5, 3) + DONE))
    assert seen(answer, "ttft_ms", "last_token_ms", "chunk_times_ms", "output_tokens") == (500, 500, [500] * 3, 3)


def test_a_tools_arguments_and_a_refusal_are_generated_tokens() -> None:
    """The first token is the first of any channel: a tool's name or arguments, or a refusal, count as text does."""
    call = delta({"tool_calls": [{"index": 0, "function": {"name": "find", "arguments": ""}}]})
    more = delta({"tool_calls": [{"index": 0, "function": {"arguments": '{"q":1}'}}]})
    answer = read("openai", (10, call), (20, more), (30, delta({"refusal": "no"})), (31, fin("tool_calls")))
    assert seen(answer, "ttft_ms", "chunks", "finish_reason") == (10, 3, "tool_calls")


def test_ollamas_nanoseconds_become_milliseconds_and_absent_fields_null() -> None:
    """Ollama leaves a zero field out: it is unknown here, not 0; 41,000,000 ns are 41 ms."""
    end = {
        "response": "", "done": True, "done_reason": "length", "total_duration": 900_000_000,
        "load_duration": 41_000_000,
        "prompt_eval_count": 26, "prompt_eval_duration": 130_000_000, "eval_count": 2, "eval_duration": 98_500_000,
    }  # fmt: skip
    answer = read("ollama", (100, OLLAMA_PART), (150, OLLAMA_PART), (151, json.dumps(end) + "\n"))
    assert seen(answer, "server_load_ms", "server_prefill_ms", "server_decode_ms", "server_total_ms", "prompt_tokens",
                "output_tokens", "finish_reason") == (41, 130, 98.5, 900, 26, 2, "length")  # fmt: skip
    bare = read("ollama", (100, OLLAMA_PART), (151, '{"done":true}\n'))
    assert seen(bare, "prompt_tokens", "output_tokens", "output_token_source") == (None, 1, "estimate")
    assert bare.columns["server_load_ms"] is None


def test_llamacpp_counts_cached_tokens_as_part_of_the_prompt() -> None:
    """prompt_n are the evaluated tokens only: 100 cached + 28 evaluated are a prompt of 128."""
    end = {
        "content": "", "stop": True, "stop_type": "limit", "tokens_evaluated": 128, "tokens_predicted": 1,
        "timings": {"cache_n": 100, "prompt_n": 28, "prompt_ms": 7.5, "predicted_n": 1, "predicted_ms": 0.25,
                    "predicted_per_second": 4000.0},
    }  # fmt: skip
    answer = read("llamacpp", (10, sse({"content": "a", "stop": False})), (11, sse(end)))
    assert seen(answer, "prompt_tokens", "cached_tokens", "output_tokens") == (128, 100, 1)
    assert seen(answer, "server_prefill_ms", "server_decode_ms", "server_decode_tok_per_s") == (7.5, 0.25, 4000)
    assert seen(answer, "finish_reason", "status") == ("length", "ok")


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-5", '"7"', "true", "null", "1e400", "[1]"])
def test_a_duration_that_is_none_is_unknown(bad: str) -> None:
    """Forks print NaN or Infinity where they divide by zero; none of it becomes a number."""
    end = f'data: {{"content":"","stop":true,"timings":{{"prompt_ms":{bad},"prompt_n":{bad},"cache_n":0}}}}\n\n'
    answer = read("llamacpp", (10, end))
    assert seen(answer, "server_prefill_ms", "prompt_tokens") == (None, None)


def test_generic_events_of_text_or_json_are_tokens() -> None:
    """Any front that streams text works: plain data, or JSON with a token; [DONE] or an event named done ends it."""
    plain = read("sse", (10, "data: Hel\n\n"), (20, "data: lo\n\n"), (21, DONE))
    named = read("sse", (10, sse({"token": "Hel"})), (20, sse({"token": "lo"})), (21, "event: done\ndata: {}\n\n"))
    for answer in (plain, named):
        assert seen(answer, "status", "ttft_ms", "last_token_ms", "output_token_source") == ("ok", 10, 20, "estimate")
        assert answer.text == "Hello"
    assert read("sse", (10, "data: Hel\n\n"), (20, "event: error\ndata: no memory\n\n")).status == "in_stream_error"


@pytest.mark.parametrize(
    "body", ['{"error":{"message":"model not found"}}', '{"detail":"model not found"}', "model not found"]
)
def test_a_refusal_by_http_says_why(body: str) -> None:
    """The status is in the row, and the server's own sentence, however it is wrapped."""
    answer = read("openai", (3, body), status=404)
    assert (answer.status, answer.columns["error"]) == ("http_404", "model not found")


def test_ignore_eos_is_sent_only_where_it_is_known() -> None:
    """B11: Ollama and plain OpenAI servers never see ignore_eos; llama.cpp always does."""
    bodies = {name: api.request(Ask("x", 5, "m")).body for name, api in APIS.items()}
    assert {name: "ignore_eos" in json.dumps(body) for name, body in bodies.items()} == {
        "ollama": False, "llamacpp": True, "openai": False, "sse": False,
    }  # fmt: skip
    assert APIS["openai"].request(Ask("x", 5, "m", ignore_eos=True)).body["ignore_eos"] is True


def test_ollama_is_asked_for_a_raw_prompt_that_must_not_be_cut() -> None:
    """The prompt goes raw, its length and the context are set, and an overflow is to be an error, not a silent cut."""
    assert APIS["ollama"].request(Ask("x", 5, "m", {"num_ctx": 4096})).body == {
        "model": "m", "prompt": "x", "raw": True, "stream": True, "keep_alive": "1h", "truncate": False, "shift": False,
        "options": {"temperature": 0, "num_ctx": 4096, "num_predict": 5},
    }  # fmt: skip


# The grammar of event streams


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [("message", "a"), ("message", "b")]),
        (b"data: a\r\rdata: b\r\r", [("message", "a"), ("message", "b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [("message", "a"), ("message", "b")]),
        (b"data:a\n\ndata:  a\n\n", [("message", "a"), ("message", " a")]),
        (b"data: a\ndata: b\n\n", [("message", "a\nb")]),
        (b": keepalive 5/10\n\ndata: a\n\n", [("message", "a")]),
        (b"event: error\ndata: a\n\ndata: b\n\n", [("error", "a"), ("message", "b")]),
        (b"event: ping\n\ndata: b\n\n", [("message", "b")]),
        (b"id: 7\nretry: 10\ndata: a\n\n", [("message", "a")]),
        (b"data\n\n", [("message", "")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("message", "a")]),
        ("data: a\u2028b\u0085c\x0bd\n\n".encode(), [("message", "a\u2028b\u0085c\x0bd")]),
        (b"data: a\n\ndata: cut", [("message", "a")]),
        (b"data: a\n\ndata: cut\n", [("message", "a")]),
        (b"", []),
    ],
)
def test_event_streams_are_read_by_their_grammar(stream: bytes, events: list[tuple[str, str]]) -> None:
    """Line ends of three kinds, comments, data of several lines, no space after the colon, an end in mid-event."""
    assert [(event.type, event.data) for event in sse_events([(1.0, stream)])] == events


def test_json_lines_end_at_lf_only() -> None:
    """A line separator inside a text is text; the last line may lack its LF, and empty lines are none."""
    stream = '{"a":"\u2028\x0b"}\n\n{"b":1}\r\n{"c":2}'.encode()
    assert [event.data for event in json_lines([(1.0, stream)])] == ['{"a":"\u2028\x0b"}', '{"b":1}\r', '{"c":2}']


# How the bytes were cut

STREAMS = {
    "openai": (ROLE + r("Hm") + c("안녕") + c("🙂") + fin("stop") + u(9, 3) + DONE).encode(),
    "openai-crlf": (ROLE + c("a") + ": ping\n\n" + c("b") + u(9, 2) + DONE).replace("\n", "\r\n").encode(),
    "ollama": (ollama_line("", "그") + ollama_line("답🙂") + OLLAMA_END).encode(),
    "llamacpp": (sse({"content": "가", "stop": False}) + sse({"content": "", "stop": True, "stop_type": "eos",
                 "tokens_evaluated": 4, "tokens_predicted": 1})).encode(),
    "sse": b"data: Hel\r\rdata: lo\r\rdata: [DONE]\r\r",
}  # fmt: skip


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    bounds = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[start:end] for start, end in pairwise(bounds)]


@given(st.sampled_from(sorted(STREAMS)), st.lists(st.integers(0, 10_000), max_size=30))
def test_an_answer_does_not_depend_on_how_its_bytes_were_cut(name: str, places: list[int]) -> None:
    """Pieces that came at one moment give the answer of the uncut stream, whatever they were cut into."""
    api = APIS[name.partition("-")[0]]
    whole = api.read(Exchange("complete", ((7.0, STREAMS[name]),), 200))
    pieces = tuple((7.0, piece) for piece in cut(STREAMS[name], places))
    assert api.read(Exchange("complete", pieces, 200)) == whole
    assert whole.status == "ok"


@given(st.sampled_from(sorted(STREAMS)), st.lists(st.integers(0, 10_000), max_size=8), st.lists(st.integers(0, 10_000)))
def test_a_token_has_the_time_of_the_byte_that_completes_it(name: str, coarse: list[int], fine: list[int]) -> None:
    """Cutting the pieces of a stream further changes no time."""
    api = APIS[name.partition("-")[0]]
    pieces = [(float(n), piece) for n, piece in enumerate(cut(STREAMS[name], coarse))]
    finer = [(at, part) for at, piece in pieces for part in cut(piece, fine)]
    assert api.read(Exchange("complete", tuple(finer), 200)) == api.read(Exchange("complete", tuple(pieces), 200))


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(STREAMS)),
    st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=4), st.integers(0, 6)), min_size=1, max_size=5),
)
def test_a_mutated_stream_never_crashes_and_is_never_ok_without_its_end(
    name: str, changes: list[tuple[int, bytes, int]]
) -> None:
    """Bytes replaced, inserted or lost anywhere: an answer comes out, and it is ok only if it says that it ended."""
    api = APIS[name.partition("-")[0]]
    stream = STREAMS[name]
    for place, new, lost in changes:
        at = place % (len(stream) + 1)
        stream = stream[:at] + new + stream[at + lost :]
    answer = api.read(Exchange("complete", ((1.0, stream),), 200))
    ends = (b"[DONE]", b"finish_reason", b'"done"', b'"stop"', b"event")
    assert answer.status != "ok" or any(end in stream for end in ends)
    json.dumps(answer.columns, allow_nan=False).encode()


# An answer that is not what it says


def unknown(key: str) -> str:
    return delta({key: "hm "})


@pytest.mark.parametrize(
    ("api", "stamped", "keys"),
    [
        ("openai", [(1, ROLE), (2, unknown("thoughts")), (3, fin("length") + u(9, 16) + DONE)], "role, thoughts"),
        ("openai", [(2, unknown("thoughts")), (3, fin("stop"))], "thoughts"),  # nor did the server count
        ("sse", [(1, sse({"generated": {"text": "a"}})), (2, DONE)], "generated"),
        ("llamacpp", [(1, sse({"text": "a"})), (2, sse({"stop": True, "tokens_predicted": 4}))],
         "text, stop, tokens_predicted"),
        ("ollama", [(1, '{"answer": "a"}\n'), (2, '{"done": true, "eval_count": 4}\n')], "answer, done, eval_count"),
    ],
)  # fmt: skip
def test_an_answer_without_a_text_that_is_recognised_is_not_ok(
    api: str, stamped: list[tuple[float, str]], keys: str
) -> None:
    """Sixteen tokens under a key that nobody knows are no clean row without a first token: the keys are named."""
    answer = read(api, *stamped)
    assert seen(answer, "status", "chunks", "error") == (
        "incomplete", 0, f"no text was recognised; the events had the keys: {keys}",
    )  # fmt: skip


@pytest.mark.parametrize("count", [0, 1])
def test_a_model_that_ends_at_once_is_ok(count: int) -> None:
    """Harmless: no text, and the server counted none, or its end mark alone."""
    assert seen(read("openai", (9, fin("stop") + u(9, count))), "status", "error") == ("ok", None)


def usage(**counts: Any) -> str:
    return sse({"choices": [], "usage": counts})


@pytest.mark.parametrize(
    ("counts", "kept", "note"),
    [
        (
            {"prompt_tokens": 461, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1383}},
            (461, None, 1), "1383 cached tokens in a prompt of 461 cannot be: left out",
        ),
        (
            {"prompt_tokens": 461, "completion_tokens": 10**11},
            (461, None, 1), "a count of 100000000000 tokens cannot be: left out",
        ),
        ({"prompt_tokens": -1, "completion_tokens": 1}, (None, None, 1), "a count of -1 tokens cannot be: left out"),
        # harmless: all of it cached
        ({"prompt_tokens": 461, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 461}},
         (461, 461, 1), None),
    ],
)  # fmt: skip
def test_a_count_that_cannot_be_is_unknown_and_said(counts: Any, kept: Any, note: str | None) -> None:
    """More cached than there was, more than any context has, less than nothing: null, with a note on the ok row."""
    answer = read("openai", (5, c("a")), (6, fin("length") + usage(**counts) + DONE))
    assert seen(answer, "prompt_tokens", "cached_tokens", "output_tokens") == kept
    assert seen(answer, "status", "error") == ("ok", note)


def test_a_complete_answer_whose_connection_stays_open_is_ok_with_a_note() -> None:
    """B21: finish_reason, usage and [DONE] came; that the server never closes says nothing against it."""
    stamped = ((5, c("a")), (6, fin("length") + u(9, 1) + DONE))
    answer = read("openai", *stamped, closing="timeout")
    assert seen(answer, "status", "e2e_ms", "ttft_ms", "error") == (
        "ok", None, 5, "the answer was complete, but the connection was not closed",
    )  # fmt: skip
    assert read("openai", stamped[0], closing="timeout").status == "timeout"


@pytest.mark.parametrize("api", ["openai", "llamacpp", "ollama", "sse"])
def test_an_error_nested_a_thousand_levels_deep_is_an_error_like_any(api: str) -> None:
    """JSON can be deeper than this program may look: the row is a failure, and not the program."""
    for depth in (10, 60, 900, 975, 985, 5_000):
        deep = '{"error":' * depth + '"x"' + "}" * depth
        answer = read(api, (1, deep + "\n" if api == "ollama" else f"data: {deep}\n\n"))
        assert answer.status in ("in_stream_error", "incomplete"), depth


@pytest.mark.parametrize("before", range(44, 84, 4))
def test_a_text_is_scrubbed_before_it_is_cut(before: int) -> None:
    """A cut through a key leaves half a key that no rule would know."""
    key = "sk-abcdefghijklmnop1234"
    text = "y" * before + " " + key + " tail"
    for answer in (
        read("openai", (1, sse(text))),  # an event that is no JSON
        read("openai", (1, text)),  # no stream at all
        read("openai", (1, "y" * (before + 420) + " " + key), status=401),
    ):
        assert not any(key[n : n + 8] in answer.columns["error"] for n in range(len(key) - 7))


@pytest.mark.parametrize(
    ("api", "event"),
    [
        ("openai", sse({"model": "/mnt/alicedisk/client/tiny.gguf", "choices": [{"delta": {"content": "a"}}]}) + DONE),
        ("llamacpp", sse({"content": "a", "stop": True, "model": "tiny.gguf"})),
        ("ollama", '{"model": "tiny.gguf", "response": "a", "done": true}\n'),
        ("sse", sse({"text": "a", "model": "tiny.gguf"}) + DONE),
    ],
)
def test_the_model_that_the_answer_names_is_kept(api: str, event: str) -> None:
    """A gateway may answer with another model than the one that was asked for; folders are left out."""
    assert seen(read(api, (1, event)), "status", "answered_model") == ("ok", "tiny.gguf")
    assert read("openai", (1, c("a") + DONE)).columns["answered_model"] is None


def whole(status: int, body: str, **more: Any) -> Answer:
    return APIS["openai"].read(Exchange("complete", ((1.0, body.encode()),), http_status=status, e2e_ms=1.0, **more))


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (whole(200, "\x1f\x8b", content_encoding="gzip"), "incomplete",
         "the server compressed its stream (gzip), unasked: turn that off"),
        (whole(307, "", location="http://127.0.0.1:1/x?key=abcdef"), "http_307",
         "the server sends to http://127.0.0.1:1/x?key=<key> instead: write that address in the plan."),
        (whole(200, '{"error": {"message": "out of credit"}}'), "in_stream_error", "out of credit"),
        (whole(200, "<html>login</html>"), "incomplete", "no stream: <html>login</html>"),
    ],
)  # fmt: skip
def test_what_is_no_stream_says_what_it_is(answer: Answer, status: str, error: str) -> None:
    """Compressed, elsewhere, an error under 200, a page: each is said in words that lead on."""
    assert (answer.status, answer.columns["error"].strip()) == (status, error)
