"""Server clocks that contradict the client's, or any machine; and those that only look so."""

from collections.abc import Callable

import pytest

from roofbook.record import Row
from roofbook.validity import Finding

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]


@pytest.mark.parametrize(
    ("times", "named"),
    [
        ({"server_prefill_ms": 26_000.0}, ("server_prefill_ms", "ttft_ms")),  # ten times TTFT
        ({"server_total_ms": 4_200_000.0}, ("server_total_ms", "e2e_ms")),  # microseconds as milliseconds
        ({"server_decode_ms": 9000.0}, ("server_decode_ms", "e2e_ms")),
        ({"server_prefill_ms": 2655.0}, ("server_prefill_ms", "ttft_ms")),  # 2,600 x 1.02 + 2 = 2,654
    ],
)
def test_a_part_longer_than_the_whole(row: MakeRow, judge: Judge, times: Row, named: tuple[str, str]) -> None:
    """The server's clock is wrong; what the client saw stands."""
    (found,) = judge([row(**times)])
    assert (found.kind, found.spoils) == ("clock_error", {"prefill"})
    assert (found.values["earlier"], found.values["later"]) == named


@pytest.mark.parametrize(
    "times",
    [
        {"server_prefill_ms": 2653.0},
        {"server_prefill_ms": 3.0, "ttft_ms": 2.5, "last_token_ms": 1552.5, "e2e_ms": 1553.0},  # rounded up to whole ms
        {"server_total_ms": 4151.0},
        {"e2e_ms": None, "server_total_ms": 4151.0},  # a connection that stayed open
    ],
)
def test_clocks_that_differ_by_a_rounding(row: MakeRow, judge: Judge, times: Row) -> None:
    """Two per cent, and two milliseconds."""
    assert judge([row(**times)], "clock_error") == []


@pytest.mark.parametrize(
    "times",
    [
        {"server_prefill_ms": 0.0000512, "cached_tokens": 0},  # a unit of a million's difference
        {"server_prefill_ms": 0.000204},  # and of a server that says nothing of a cache
        {"server_prefill_ms": 2.5, "cached_tokens": 0},  # microseconds as milliseconds: 204,800 tok/s of 2.6 s
        {"server_prefill_ms": 2.5, "cached_tokens": 0, "server_load_ms": 40.0},
    ],
)
def test_a_prefill_that_no_machine_does(row: MakeRow, judge: Judge, times: Row) -> None:
    """512 tokens in next to nothing, whatever the machine; TTFT is the client's and stands."""
    (found,) = judge([row(**times)], "implausible_prefill")
    assert found.spoils == {"prefill"}
    rate = 512 / times["server_prefill_ms"] * 1000
    assert dict(found.values) == {
        "tokens": 512, "prefill_ms": times["server_prefill_ms"], "tok_per_s": pytest.approx(rate), "ttft_ms": 2600.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "times",
    [
        {"server_prefill_ms": 10.0, "ttft_ms": 300.0, "cached_tokens": 0},  # 51,200 tok/s, and a far network
        {
            "server_prefill_ms": 4.0,
            "ttft_ms": 12.0,
            "cached_tokens": 0,
        },  # 128,000 tok/s of a tiny model, a third of TTFT
        {"server_prefill_ms": 2.5, "cached_tokens": 500},  # twelve tokens were computed, and that is told
        {"server_prefill_ms": 2.5},  # a cache of which nothing is said: seen beside the others' times
        {"server_prefill_ms": 2.5, "cached_tokens": 0, "concurrency": 16},  # waited for its turn
        {"server_prefill_ms": 2.5, "cached_tokens": 0, "server_load_ms": 2590.0},  # waited for the model
        {"server_prefill_ms": 0.0, "cached_tokens": 0},  # not measured
    ],
)
def test_a_prefill_may_be_fast(row: MakeRow, judge: Judge, times: Row) -> None:
    """Fast chips, small models, caches, and a TTFT that has other reasons."""
    assert judge([row(**times)], "implausible_prefill") == []
