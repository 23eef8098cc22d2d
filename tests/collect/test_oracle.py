"""The server of known times does what it was told, and its figures follow its law."""

import http.client
import json
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from collect.client import lookup
from collect.oracle import (
    Handler,
    Model,
    Oracle,
    Piece,
    Script,
    Speed,
    always,
    answer,
    buffered,
    coalesced,
    ended_after,
    llamacpp,
    ollama,
    openai,
    split_bytes,
    stream,
    tokenize,
)
from collect.oracle.script import Ending, Framing

ROOT = Path(__file__).parents[2]

# A late timer or a busy machine makes a piece leave later than written; nothing makes it leave earlier.
EARLY_MS, LATE_MS = 0.1, 60.0


def raw(url: str, request: bytes, *, timeout_s: float = 5) -> bytes:
    """Everything that comes back on a connection of its own, until it ends."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout_s) as connection:
        connection.sendall(request)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received


def post(url: str, path: str, body: Any) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    received = response.read()
    connection.close()
    return response.status, received


def outcome_of(oracle: Oracle) -> str:
    """What became of the first request, as soon as it is over."""
    deadline = time.monotonic() + 10
    while oracle.heard[0].outcome == "playing" and time.monotonic() < deadline:
        time.sleep(0.01)
    return oracle.heard[0].outcome


def events(received: bytes) -> list[Any]:
    """The events of a stream of JSON, [DONE] included as text."""
    lines = [line.removeprefix(b"data: ") for line in received.split(b"\n\n") if line]
    return [line.decode() if line == b"[DONE]" else json.loads(line) for line in lines]


GET = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


# ---- what leaves, and when


def test_pieces_leave_when_they_were_told_to() -> None:
    """Each piece has the monotonic stamp of its leaving, at or after its time."""
    with Oracle(always(stream((20, 50, 80), (b"a", b"b", b"c"), framing="eof"))) as oracle:
        begun = time.monotonic()
        assert raw(oracle.url, GET).endswith(b"\r\n\r\nabc")
        took_ms = (time.monotonic() - begun) * 1000
    (heard,) = oracle.heard
    assert heard.outcome == "played"
    for sent, wanted in zip(heard.sent_ms, (20, 50, 80), strict=True):
        assert wanted - EARLY_MS <= sent <= wanted + LATE_MS
    assert took_ms >= 80 - EARLY_MS


@pytest.mark.parametrize(
    ("framing", "ending", "expected"),
    [
        ("chunked", "clean", b"Transfer-Encoding: chunked|2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
        ("length", "clean", b"Content-Length: 3|abc"),
        ("eof", "clean", b"|abc"),
        ("chunked", "cut", b"Transfer-Encoding: chunked|2\r\nab\r\n1\r\nc\r\n"),
    ],
)
def test_a_body_ends_as_it_was_told_to(framing: Framing, ending: Ending, expected: bytes) -> None:
    """Chunks, a length, the end of the connection, or an end before the end."""
    script = stream((0, 5), (b"ab", b"c"), framing=framing, ending=ending, keep_alive=False)
    with Oracle(always(script)) as oracle:
        head, _, body = raw(oracle.url, GET).partition(b"\r\n\r\n")
    field, _, wanted = expected.partition(b"|")
    fields = head.split(b"\r\n")
    assert fields[0] == b"HTTP/1.1 200 OK"
    assert set(fields[1:]) == {b"Content-Type: text/event-stream", b"Connection: close"} | ({field} if field else set())
    assert body == wanted


def test_a_reset_is_a_reset() -> None:
    """What was sent arrives, then the connection is torn down, not closed."""
    with Oracle(always(ended_after(stream((0, 0), (b"a", b"b")), 1, "reset"))) as oracle:
        with pytest.raises(ConnectionResetError):
            raw(oracle.url, GET)
        assert oracle.heard[0].sent_ms[0] < LATE_MS


def test_a_stall_lasts_until_the_client_gives_up() -> None:
    """Nothing more comes, and nothing ends."""
    with Oracle(always(ended_after(stream((0, 0), (b"a", b"b")), 1, "stall"))) as oracle:
        with pytest.raises(TimeoutError):
            raw(oracle.url, GET, timeout_s=0.2)
        assert outcome_of(oracle) == "client_gone"


def test_a_client_that_hangs_up_is_noticed() -> None:
    """The rest of the script is not played to nobody."""
    with Oracle(always(stream((0, 30_000), (b"a", b"b")))) as oracle:
        parts = urlsplit(oracle.url)
        with socket.create_connection((parts.hostname, parts.port), 5) as connection:
            connection.sendall(GET)
            connection.recv(100)
        assert (outcome_of(oracle), len(oracle.heard[0].sent_s)) == ("client_gone", 1)


def test_an_idle_connection_is_closed() -> None:
    """As servers do: after the idle time the connection ends, without a word."""
    with Oracle(always(answer({})), idle_close_ms=50) as oracle:
        parts = urlsplit(oracle.url)
        with socket.create_connection((parts.hostname, parts.port), 5) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(1000).endswith(b"{}")
            begun = time.monotonic()
            assert connection.recv(1000) == b""
            assert time.monotonic() - begun > 0.03


def test_it_notes_what_it_heard() -> None:
    """Prompts in their order, whichever API; and how many requests were in flight at once."""
    with Oracle(always(stream((100,), (b"x",)))) as oracle:
        post(oracle.url, "/completion", {"prompt": "first"})
        post(
            oracle.url,
            "/api/chat",
            {"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]},
        )
        assert oracle.most_in_flight == 1
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda n: post(oracle.url, "/completion", {"prompt": f"at once {n}"}), range(3)))
        assert oracle.prompts[:2] == ["first", "a\nb"]
        assert sorted(oracle.prompts[2:]) == ["at once 0", "at once 1", "at once 2"]
        assert oracle.most_in_flight == 3


def test_a_twist_breaks_one_request_of_many() -> None:
    """A test changes the answer that it wants changed."""

    def twist(request: Any, script: Script) -> Script:
        return answer({"error": "busy"}, status=503) if request.number == 1 else script

    with Oracle(openai(), twist=twist) as oracle:
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
        assert [post(oracle.url, "/v1/chat/completions", body)[0] for _ in range(3)] == [200, 503, 200]


def test_what_is_no_http_harms_nobody() -> None:
    """Garbage ends its connection; the next request is answered."""
    with Oracle(always(answer({"ok": 1}))) as oracle:
        raw(oracle.url, b"\x00" * 10 + b"\r\n\r\n")
        assert post(oracle.url, "/", {})[0] == 200


# ---- changes to a script


TOLD = stream((10, 20, 30), (b"ab", b"cd", b"ef"))


def test_buffering_coalescing_and_splitting() -> None:
    """All at the end; in groups at the time of the last; cut anywhere at the same time."""
    assert buffered(TOLD).pieces == (Piece(30, b"ab"), Piece(30, b"cd"), Piece(30, b"ef"))
    assert coalesced(TOLD, 2).pieces == (Piece(20, b"abcd"), Piece(30, b"ef"))
    assert split_bytes(TOLD, 1).pieces[:3] == (Piece(10, b"a"), Piece(10, b"b"), Piece(20, b"c"))
    assert ended_after(TOLD, 1, "reset") == Script((Piece(10, b"ab"),), ending="reset")


# ---- the model


def test_words_are_tokens() -> None:
    """Up to six letters are one token, longer words several, each other sign one."""
    assert tokenize("short, antidisestablish 한국어!") == ("short", ",", "antidi", "sestab", "lish", "한국어", "!")


def test_time_follows_the_law() -> None:
    """c + a (T - P) + b (T^2 - P^2), then a step a token: 5 + 0.1 x 100 + 0.001 x 10,000 = 25 ms for 100 tokens."""
    model = Model(Speed(fixed_ms=5, linear_ms=0.1, square_ms=0.001, step_ms=2))
    prompt = tuple(f"t{n}" for n in range(100))
    first = model.take(prompt, 3, 0.0)
    assert (first.prefill_ms, first.times_ms, first.cached_tokens) == (
        pytest.approx(25),
        pytest.approx((25, 27, 29)),
        0,
    )
    # 50 of the 100 tokens are kept: 5 + 0.1 x 50 + 0.001 x (10,000 - 2,500) = 17.5
    second = model.take((*prompt[:50], *("x",) * 50), 3, 10.0)
    assert (second.cached_tokens, second.prefill_ms) == (50, pytest.approx(17.5))
    # The very same prompt again: one token is always evaluated.
    third = model.take((*prompt[:50], *("x",) * 50), 3, 20.0)
    assert (third.cached_tokens, third.prefill_ms) == (99, pytest.approx(5 + 0.1 + 0.001 * (10_000 - 9_801)))


def test_a_full_slot_makes_the_next_request_wait() -> None:
    """One slot, 10 ms a request: of two at once the second waits 10 ms; two slots take both."""
    speed = Speed(fixed_ms=10, linear_ms=0, step_ms=0)
    one, two = Model(speed, slots=1), Model(speed, slots=2)
    assert [one.take(("a",), 1, 0.0).queue_ms for _ in range(2)] == [0, pytest.approx(10)]
    assert [two.take(("a",), 1, 0.0).queue_ms for _ in range(3)] == [0, 0, pytest.approx(10)]


def test_it_may_stop_by_itself() -> None:
    """After five tokens it ends, unless it is told to ignore its end."""
    model = Model(stops_after=5)
    stopped, went_on = model.take(("a",), 9, 0.0), model.take(("a",), 9, 0.0, ignore_eos=True)
    assert (len(stopped.output), stopped.stopped, len(went_on.output), went_on.stopped) == (5, True, 9, False)


# ---- whole servers


SPEED = Speed(fixed_ms=4, linear_ms=0.1, step_ms=1)


def asked(handler: Handler, path: str, body: Any) -> bytes:
    with Oracle(handler) as oracle:
        status, received = post(oracle.url, path, body)
    assert status == 200
    return received


def test_as_llamacpp() -> None:
    """/completion streams a token an event and ends with timings; prompt_n leaves out what was cached."""
    handler = llamacpp(Model(SPEED))
    with Oracle(handler) as oracle:
        body = {"prompt": "a b c d e f g h i j", "n_predict": 3, "stream": True}
        first, second = (events(post(oracle.url, "/completion", body)[1]) for _ in range(2))
        fresh = events(post(oracle.url, "/completion", {**body, "cache_prompt": False})[1])
    assert [event["content"] for event in first] == [" w0", " w1", " w2", ""]
    timings = [answered[-1]["timings"] for answered in (first, second, fresh)]
    assert [(one["cache_n"], one["prompt_n"], one["predicted_n"]) for one in timings] == [
        (0, 10, 3),
        (9, 1, 3),
        (0, 10, 3),
    ]
    assert timings[0]["prompt_ms"] == pytest.approx(4 + 0.1 * 10)
    assert timings[0]["predicted_ms"] == pytest.approx(2)  # from the first token to the third


def test_as_llamacpp_with_a_prompt_beyond_its_context() -> None:
    """400, with both numbers, as llama.cpp says it."""
    with Oracle(llamacpp(Model(context_tokens=8))) as oracle:
        status, received = post(oracle.url, "/completion", {"prompt": "a b c d e f g h i"})
    error = json.loads(received)["error"]
    assert (status, error["type"], error["n_prompt_tokens"], error["n_ctx"]) == (400, "exceed_context_size_error", 9, 8)


def test_as_ollama() -> None:
    """NDJSON with a final line of nanoseconds; the count has the cached tokens, the duration only the others."""
    with Oracle(ollama(Model(SPEED))) as oracle:
        body = {"model": "oracle:1b", "prompt": "a b c d e f g h i j", "raw": True, "options": {"num_predict": 3}}
        first, second = (
            [json.loads(line) for line in post(oracle.url, "/api/generate", body)[1].splitlines()] for _ in range(2)
        )
    assert [line["response"] for line in first] == [" w0", " w1", " w2", ""]
    assert [(one[-1]["prompt_eval_count"], one[-1]["eval_count"]) for one in (first, second)] == [(10, 3), (10, 3)]
    # 4 + 0.1 x 10 ms, and with nine of ten tokens kept 4 + 0.1 ms
    assert [one[-1]["prompt_eval_duration"] for one in (first, second)] == [5_000_000, 4_100_000]
    assert (first[-1]["eval_duration"], first[-1]["done_reason"]) == (2_000_000, "length")


def test_as_ollama_with_a_prompt_beyond_its_context() -> None:
    """Cut in silence to num_ctx - (num_ctx - keep) / 2, or refused where shift is off."""
    body: dict[str, Any] = {
        "model": "oracle:1b", "prompt": "x " * 5000, "raw": True, "stream": False,
        "options": {"num_ctx": 4096, "num_predict": 1},
    }  # fmt: skip
    cut = json.loads(asked(ollama(Model(Speed(linear_ms=0))), "/api/generate", body))
    assert cut["prompt_eval_count"] == 4096 - (4096 - 4) // 2 == 2050
    with Oracle(ollama()) as oracle:
        assert post(oracle.url, "/api/generate", {**body, "shift": False})[0] == 400


def test_as_ollama_with_a_model_to_load_and_one_it_does_not_have() -> None:
    """The first request carries the load; an unknown model is 404."""
    body = {"model": "oracle:1b", "prompt": "a", "stream": False, "options": {"num_predict": 1}}
    with Oracle(ollama(Model(Speed(load_ms=30), loaded=False))) as oracle:
        loads = [json.loads(post(oracle.url, "/api/generate", body)[1])["load_duration"] for _ in range(2)]
        assert post(oracle.url, "/api/generate", {**body, "model": "nope"})[0] == 404
    assert loads == [30_000_000, 1_500_000]


def test_as_openai() -> None:
    """A role-only chunk, thinking apart from the answer, the reason, the usage where asked for, and [DONE]."""
    body = {
        "model": "oracle-1b", "messages": [{"role": "user", "content": "a b c"}], "max_tokens": 3, "stream": True,
        "stream_options": {"include_usage": True},
    }  # fmt: skip
    found = events(asked(openai(Model(SPEED, thinking_tokens=1)), "/v1/chat/completions", body))
    deltas = [event["choices"][0]["delta"] for event in found[:5]]
    assert deltas == [
        {"role": "assistant", "content": ""}, {"reasoning_content": " w0"}, {"content": " w1"}, {"content": " w2"}, {},
    ]  # fmt: skip
    assert found[4]["choices"][0]["finish_reason"] == "length"
    # What the template puts around them, and the three words.
    assert found[5]["usage"]["completion_tokens"] == 3
    around = "<|start|> system You are helpful <|end|> <|start|> user" + " <|end|> <|start|> assistant"
    assert found[5]["usage"]["prompt_tokens"] == len(tokenize(around)) + 3
    assert found[6] == "[DONE]"


def test_as_an_older_openai_server() -> None:
    """stream_options is refused with 400, and without it there is no usage."""
    body = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "stream": True}
    with Oracle(openai(knows_stream_options=False)) as oracle:
        assert post(oracle.url, "/v1/chat/completions", {**body, "stream_options": {"include_usage": True}})[0] == 400
        without = events(post(oracle.url, "/v1/chat/completions", body)[1])
    assert [event for event in without if "usage" in event] == []


def test_as_a_process_of_its_own() -> None:
    """It prints its address, tells the stamps of what it heard on the clock that all processes share, and ends."""
    command = [sys.executable, "-m", "collect.oracle", "--fixed-ms", "30", "--step-ms", "1"]
    before = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        url = child.stdout.readline().strip()
        post(url, "/completion", {"prompt": "a", "n_predict": 2, "stream": True})
        (heard,) = lookup.get(url, "/oracle/heard").json()
        child.stdin.close()
        assert child.wait(5) == 0
    assert (heard["path"], heard["outcome"], len(heard["sent_s"])) == ("/completion", "played", 3)
    assert before < heard["received_s"] + 0.03 - EARLY_MS / 1000 <= heard["sent_s"][0] < time.monotonic()
