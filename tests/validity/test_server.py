"""Loads, reloads, queues and half a model on the GPU; and what a warm server looks like."""

from collections.abc import Callable

import pytest

from roofbook.record import Row
from roofbook.validity import Finding

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]


def test_b05_a_load_at_the_start_and_in_mid_run(row: MakeRow, judge: Judge) -> None:
    """Loads of 3010 41 39 2890 40 ms: the first is cold, the fourth a reload; 40 ms is what warm looks like."""
    loads = [3010.0, 41.0, 39.0, 2890.0, 40.0]
    found = judge([row(i, server_load_ms=ms, ttft_ms=2600.0 + ms, last_token_ms=9000.0, e2e_ms=9001.0)
                   for i, ms in enumerate(loads)])  # fmt: skip
    assert [(finding.kind, finding.order_index) for finding in found if finding.kind != "outlier"] == [
        ("cold_load", 0),
        ("reload", 3),
    ]
    assert found[0].values["load_ms"] == 3010
    assert found[0].values["warm_ms"] == 40
    assert found[0].spoils == {"prefill", "ttft", "e2e"}


def test_a_single_cold_run_is_found_alone(row: MakeRow, judge: Judge) -> None:
    """3,010 ms of load is one, with nothing to compare it with."""
    (found,) = judge([row(server_load_ms=3010.0, ttft_ms=5700.0, last_token_ms=7000.0, e2e_ms=7001.0)])
    assert (found.kind, dict(found.values)) == ("cold_load", {"load_ms": 3010.0, "warm_ms": None})


def test_a_server_that_unloads_after_each_request_is_found(row: MakeRow, judge: Judge) -> None:
    """Three seconds each time: usual for this run, and a load all the same."""
    rows = [row(i, server_load_ms=3000.0 + i, ttft_ms=5700.0, last_token_ms=7000.0, e2e_ms=7001.0) for i in range(3)]
    assert [finding.kind for finding in judge(rows)] == ["cold_load", "reload", "reload"]


def test_a_small_models_load_stands_out_from_its_run(row: MakeRow, judge: Judge) -> None:
    """400 ms among loads of 2 ms is a load of a small model."""
    loads = [2.0, 2.1, 400.0, 1.9, 2.0]
    found = judge([row(i, server_load_ms=ms, ttft_ms=3000.0) for i, ms in enumerate(loads)], "cold_load", "reload")
    assert [(finding.kind, finding.order_index) for finding in found] == [("reload", 2)]


@pytest.mark.parametrize(
    "loads", [[101.0, 1.3, 54.0], [200.0, 240.0, 310.0, 205.0], [0.0, 0.0, 0.0], [120.0], [None, None]]
)
def test_a_warm_load_is_never_zero_and_no_doubt(row: MakeRow, judge: Judge, loads: list[float | None]) -> None:
    """Up to 101 ms are published for warm servers; a slow host's is slow each time; none at all is no load."""
    assert judge([row(i, server_load_ms=ms) for i, ms in enumerate(loads)], "cold_load", "reload") == []


def test_a_load_in_the_warm_up_or_on_purpose_is_no_doubt(row: MakeRow, judge: Judge) -> None:
    """That is what a warm-up and a cold-load experiment are for."""
    rows = [row(0, phase="warmup", server_load_ms=3010.0), *(row(i, server_load_ms=40.0) for i in (1, 2, 3))]
    assert judge(rows) == []
    assert (
        judge(
            [row(i, kind="cold_load", server_load_ms=3000.0, ttft_ms=5700.0) for i in range(3)], "cold_load", "reload"
        )
        == []
    )


def test_b12_a_wait_for_a_slot(row: MakeRow, judge: Judge) -> None:
    """TTFT 320 and 1300 with 40 of load and 280 of prefill: B waited 980 ms, A none. Under load it is told."""
    times = {"server_load_ms": 40.0, "server_prefill_ms": 280.0}
    waited = [row(0, ttft_ms=320.0, **times), row(1, ttft_ms=1300.0, **times)]
    (found,) = judge(waited, "queued")
    assert (found.order_index, dict(found.values)) == (1, {"waited_ms": 980.0, "ttft_ms": 1300.0})
    assert found.spoils == {"ttft", "e2e"}
    (told,) = judge([one | {"kind": "concurrency"} for one in waited], "queued")
    assert not told.doubtful


def test_the_servers_own_queue_counts(row: MakeRow, judge: Judge) -> None:
    """A server that says 900 ms of queue is believed."""
    (found,) = judge([row(server_queue_ms=900.0, server_prefill_ms=1600.0)], "queued")
    assert found.values["waited_ms"] == 900


@pytest.mark.parametrize(
    "harmless",
    [
        {"ttft_ms": 394.0, "server_prefill_ms": 291.0},  # 103 ms of 394: its usual overhead
        {"ttft_ms": 3160.0, "server_prefill_ms": 2790.0},  # 370 ms, 12 % of TTFT
        {"ttft_ms": 60.0, "server_prefill_ms": 20.0},  # a fast server: two thirds, but 40 ms
        {"server_queue_ms": 12.0},
        {"ttft_ms": 2600.0, "server_prefill_ms": None},  # a server without times
    ],
)
def test_the_time_between_prefill_and_first_token_is_no_queue(row: MakeRow, judge: Judge, harmless: Row) -> None:
    """Some 100 ms are between the two on any server; only more than that, and a good part of TTFT, is waiting."""
    assert judge([row(**harmless)], "queued") == []


@pytest.mark.parametrize(
    ("fraction", "told"), [(0.65, True), (1.0, False), (0.0, True), (None, False), (0.9995, False)]
)
def test_b10_a_model_that_is_partly_on_the_gpu(row: MakeRow, judge: Judge, fraction: float | None, told: bool) -> None:
    """13,958,643,712 of 21,474,836,480 bytes are 0.65; all of it or not known is no doubt."""
    found = judge([row(gpu_fraction=fraction)], "partial_gpu")
    assert [dict(finding.values) for finding in found] == ([{"gpu_fraction": fraction}] if told else [])
    assert not any(finding.doubtful for finding in found)


def test_an_engine_on_a_machine_without_a_gpu_leaves_nothing_out(row: MakeRow, judge: Judge) -> None:
    """The embedded engine's 0 is the machine's, not a part that did not fit."""
    assert judge([row(gpu_fraction=0.0, api="embedded")]) == []
