"""Looking at a server never raises and never hangs, whatever it answers."""

import time

import pytest

from collect.client import lookup
from collect.oracle import Oracle, Piece, Script, always, answer, routes, text


def test_json_comes_back() -> None:
    """A good answer has its status, its text and its JSON; the body of a POST arrives."""
    with Oracle(routes({"GET /a": answer({"n": 1}), "POST /b": lambda request: answer(request.json)})) as oracle:
        assert (lookup.get(oracle.url, "/a").status, lookup.get(oracle.url, "/a").json()) == (200, {"n": 1})
        assert lookup.post(f"{oracle.url}/", "/b", {"x": "한"}).json() == {"x": "한"}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (text("no json"), (200, None)),
        (text("[" * 100_000), (200, None)),
        (answer({"error": 1}, status=500), (500, None)),
        (answer({}, status=302), (302, None)),
        (Script((Piece(0, b"this is no gzip"),), headers={"Content-Encoding": "gzip"}), (None, None)),
        (Script((Piece(0, b'{"a":'),), ending="cut"), (None, None)),
        (Script((Piece(0, b"{"),), ending="reset"), (None, None)),
    ],
)
def test_what_is_no_good_answer_is_none(script: Script, expected: tuple[int | None, None]) -> None:
    """Bad JSON, errors, broken bodies and broken connections give a status or a reason, and no JSON."""
    with Oracle(always(script)) as oracle:
        found = lookup.get(oracle.url, "/")
    assert (found.status, found.json()) == expected
    assert (found.reason is None) == (found.status is not None)


@pytest.mark.parametrize("drips", [False, True])
def test_a_server_that_takes_its_time_is_left(drips: bool) -> None:
    """One that never answers, and one that drips a byte at a time, are both given up when the time is over."""
    pieces = tuple(Piece(50.0 * n, b" ") for n in range(200)) if drips else ()
    with Oracle(always(Script(pieces, ending="stall", head_at_ms=0))) as oracle:
        started = time.monotonic()
        found = lookup.get(oracle.url, "/", timeout_s=0.4)
        assert (found.status, found.reason) == (None, lookup.TIMEOUT)
        assert time.monotonic() - started < 2


def test_an_answer_without_end_is_left() -> None:
    """More than any server's list of models is no list of models."""
    pieces = tuple(Piece(0, b"x" * 2**20) for _ in range(10))
    with Oracle(always(Script(pieces))) as oracle:
        assert lookup.get(oracle.url, "/").reason == "the answer does not end"


def test_nothing_answers() -> None:
    """A port where nobody listens, and an address that is none, give a reason."""
    assert lookup.get("http://127.0.0.1:9", "/").reason == lookup.REFUSED
    assert lookup.get("http://[", "/").status is None


def test_b32_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """B32: with HTTP_PROXY set to a dead port, a server on loopback still answers, by its address and by its name."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with Oracle(always(answer({"ok": True}))) as oracle:
        assert lookup.get(oracle.url, "/").json() == {"ok": True}
