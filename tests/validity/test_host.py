"""A client that was late, a machine that slept, swapped or was held down; and everyday life."""

from collections.abc import Callable

import pytest

from roofbook.record import Row
from roofbook.validity import MEASURES, Finding

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]


def test_b17_a_client_that_stood_still(row: MakeRow, judge: Judge) -> None:
    """50 chunks 10 ms apart and a pause of 195 ms of the client: its stamps are its own."""
    late = row(ttft_ms=100.0, last_token_ms=590.0, e2e_ms=600.0, output_tokens=50, output_tokens_wanted=50,
               loop_lag_ms=195.0, server_prefill_ms=None)  # fmt: skip
    (found,) = judge([late])
    assert (found.kind, dict(found.values)) == ("client_saturated", {"loop_lag_ms": 195.0, "cpu_share": None})
    assert found.spoils == {"ttft", "tpot"}


def test_a_pause_is_held_against_what_it_moves(row: MakeRow, judge: Judge) -> None:
    """100 ms are nothing to 18 s of TTFT and a lot to 1.5 s of tokens."""
    (found,) = judge(
        [row(ttft_ms=18000.0, server_prefill_ms=17900.0, last_token_ms=19500.0, e2e_ms=19501.0, loop_lag_ms=100.0)]
    )
    assert found.spoils == {"tpot"}


def test_a_full_core_is_a_saturated_client(row: MakeRow, judge: Judge) -> None:
    """96 % of a core: whatever comes waits in line."""
    (found,) = judge([row(client_cpu_share=0.96)])
    assert (found.kind, found.spoils) == ("client_saturated", {"ttft", "tpot"})


@pytest.mark.parametrize(
    "harmless",
    [
        {"loop_lag_ms": 3.0},
        {"loop_lag_ms": 9.0, "ttft_ms": 20.0, "server_prefill_ms": None},
        {"loop_lag_ms": 60.0},
        {"client_cpu_share": 0.5},
    ],
)
def test_everyday_pauses_are_no_doubt(row: MakeRow, judge: Judge, harmless: Row) -> None:
    """A garbage collection, 60 ms in 2.6 s, half a core."""
    assert judge([row(**harmless)]) == []


def test_b43_a_machine_that_slept(row: MakeRow, judge: Judge) -> None:
    """4,000 s by the wall, 55 s by the monotonic clock: the row stands for nothing."""
    (found,) = judge([row(wall_elapsed_ms=4_000_000.0, e2e_ms=55_000.0)])
    assert (found.kind, dict(found.values)) == ("slept", {"wall_ms": 4_000_000.0, "monotonic_ms": 55_000.0})
    assert found.spoils == set(MEASURES)


def test_a_connection_that_took_long_is_no_sleep(row: MakeRow, judge: Judge) -> None:
    """Six seconds until connected and four of answer: the wall clock saw 10.2 s, and nobody slept."""
    assert judge([row(wall_elapsed_ms=10_151.0, connect_ms=6_000.0)]) == []


@pytest.mark.parametrize("wall_ms", [4151.0, 4900.0, 2151.0, None])
def test_b37_a_clock_that_is_set_is_no_sleep(row: MakeRow, judge: Judge, wall_ms: float | None) -> None:
    """The network's time jumps by parts of a second, two seconds back included."""
    assert judge([row(wall_elapsed_ms=wall_ms)]) == []


def test_swapping_on_the_servers_machine(row: MakeRow, judge: Judge) -> None:
    """A gigabyte read back from swap during a request."""
    (found,) = judge([row(swap_in_bytes=10**9, host_is_server=True)])
    assert (found.kind, dict(found.values)) == ("swapping", {"swap_in_bytes": 10**9})


@pytest.mark.parametrize(
    "harmless",
    [
        {"swap_in_bytes": 0, "host_is_server": True},
        {"swap_in_bytes": 2**20, "host_is_server": True},  # another program's pages
        {"swap_in_bytes": 10**9, "host_is_server": False},  # the client's
        {"thermal_level": "nominal", "host_is_server": True},
        {"thermal_level": "fair", "host_is_server": True},
        {"thermal_level": "critical", "host_is_server": False},
        {"throttle_reason": "none", "host_is_server": True},
        {"throttle_reason": "sw_power_cap", "host_is_server": True},  # a card at its rated power
        {"throttle_reason": "gpu_idle", "host_is_server": True},
    ],
)
def test_a_machine_at_work_is_no_doubt(row: MakeRow, judge: Judge, harmless: Row) -> None:
    """A few pages, a fan that runs, a card at its rated power, another machine's heat."""
    assert judge([row(**harmless)]) == []


@pytest.mark.parametrize(
    ("held", "reason"),
    [({"thermal_level": "critical"}, "critical"), ({"thermal_level": "heavy"}, "heavy"),
     ({"throttle_reason": "hw_thermal_slowdown"}, "hw_thermal_slowdown"),
     ({"throttle_reason": "sw_power_cap, sw_thermal_slowdown"}, "sw_thermal_slowdown")],
)  # fmt: skip
def test_heat_that_holds_the_clocks_down(row: MakeRow, judge: Judge, held: Row, reason: str) -> None:
    """The row stands for nothing, but in a soak, which is run to see it."""
    (found,) = judge([row(host_is_server=True, **held)])
    assert (found.kind, dict(found.values), found.spoils) == ("throttled", {"reason": reason}, set(MEASURES))
    (told,) = judge([row(host_is_server=True, kind="soak", **held)])
    assert not told.doubtful
