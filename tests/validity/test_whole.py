"""Drift, mixed conditions, odd rows, failures, too few rows; and runs in which nothing is wrong."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pandas as pd
import pytest

from roofbook.record import Row, RunFacts, read_run, write_run
from roofbook.validity import KINDS, MEASURES, Finding, clean, findings, records

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]


def anchor_rows(row: MakeRow, rates: list[float]) -> list[Row]:
    return [row(i, phase="anchor", point="anchor", last_token_ms=None, e2e_ms=None, output_tokens=None,
                server_decode_tok_per_s=rate) for i, rate in enumerate(rates)]  # fmt: skip


def test_b25_an_anchor_that_slows_down(row: MakeRow, judge: Judge) -> None:
    """21.3 at the start, 20.4 in the middle, 19.0 at the end: a drift of -10.8 %, told of the run."""
    (found,) = judge(anchor_rows(row, [21.3, 20.4, 19.0]))
    assert (found.kind, found.order_index, found.point) == ("drifted", None, None)
    assert found.values["figure"] == "decode_tok_per_s"
    assert found.values["share"] == pytest.approx(-0.108, abs=0.0005)
    assert (found.values["first"], found.values["last"], found.values["anchors"]) == (21.3, 19.0, 3)


def test_a_long_runs_drift_is_between_its_first_and_its_last_third(row: MakeRow, judge: Judge) -> None:
    """Means of 21 and 21.2, and of 19 and 18.8."""
    (found,) = judge(anchor_rows(row, [21.0, 21.2, 20.1, 19.9, 19.0, 18.8]))
    assert found.values["first"] == pytest.approx(21.1)
    assert found.values["last"] == pytest.approx(18.9)


@pytest.mark.parametrize(
    "rates",
    [
        [21.3],
        [21.3, 20.9, 21.0],
        [20.0, 20.9, 19.5, 20.4],
        [20.0, 26.0, 17.0, 24.0, 16.0, 23.0, 21.8, 17.5],
        [19.3] * 12,
    ],
)
def test_scatter_is_no_drift(row: MakeRow, judge: Judge, rates: list[float]) -> None:
    """One anchor, 2 %, and a noisy machine whose ends differ by less than its neighbours do."""
    assert judge(anchor_rows(row, rates)) == []


def test_a_repeat_under_another_condition_is_kept_out(row: MakeRow, judge: Judge) -> None:
    """Four rows of one point under version 0.32, one after a restart under 0.33."""
    rows = [row(i, server_version="0.33" if i == 4 else "0.32") for i in range(5)]
    (found,) = judge(rows)
    assert (found.kind, found.order_index, found.spoils) == ("mixed_conditions", 4, set(MEASURES))
    assert dict(found.values) == {"field": "server_version", "value": "0.33", "usual": "0.32"}


def test_b43_cells_with_other_pauses_are_not_compared_silently(row: MakeRow, judge: Judge) -> None:
    """One point without a pause, one with 2,000 ms: told at the second, both stay."""
    rows = [row(i, point="a", pause_before_ms=0.0) for i in range(3)]
    rows += [row(3 + i, point="b", pause_before_ms=2000.0) for i in range(3)]
    found = judge(rows)
    assert [(finding.kind, finding.order_index, finding.doubtful) for finding in found] == [
        ("mixed_conditions", 3, False), ("mixed_conditions", 4, False), ("mixed_conditions", 5, False),
    ]  # fmt: skip
    assert found[0].values["field"] == "pause_before_ms"


@pytest.mark.parametrize(
    "change",
    [
        {"concurrency": 8, "point": "b"},  # what the experiment varies
        {"server_version": None},  # unknown differs from nothing
        {"connection": "reused"},  # the second request of a connection
        {"context_limit_tokens": 16384, "experiment": "other", "point": "b"},  # another experiment
    ],
)
def test_what_may_differ_is_not_mixed(row: MakeRow, judge: Judge, change: Row) -> None:
    """Levels of load, unknowns, connections, and whatever another experiment ran under."""
    usual = {"concurrency": 1, "server_version": "0.32", "connection": "new", "context_limit_tokens": 8192}
    assert judge([row(0, **usual), row(1, **usual), row(2, **(usual | change))], "mixed_conditions") == []


def test_a_control_of_the_context_is_not_doubted_for_it(row: MakeRow, judge: Judge) -> None:
    """It runs one prompt under two contexts on purpose."""
    rows = [
        row(i, kind="context_control", point=f"c{limit}", context_limit_tokens=limit)
        for i, limit in enumerate([8192, 16384])
    ]
    assert judge(rows) == []


def test_one_row_far_from_its_point_is_told(row: MakeRow, judge: Judge) -> None:
    """Nine at 2,600 ms and some, one at 5,200: told with its numbers, and left in the median."""
    times = [2600.0, 2610.0, 2590.0, 2605.0, 2595.0, 2600.0, 2612.0, 2588.0, 2601.0, 5200.0]
    found = judge(
        [
            row(i, ttft_ms=ms, last_token_ms=ms + 1550, e2e_ms=ms + 1560, server_prefill_ms=None)
            for i, ms in enumerate(times)
        ]
    )
    assert [(finding.kind, finding.order_index, finding.doubtful) for finding in found] == [("outlier", 9, False)]
    assert dict(found[0].values) == {"figure": "ttft_ms", "value": 5200.0, "usual": 2600.5, "rows": 10}


@pytest.mark.parametrize(
    ("kind", "times"),
    [
        ("baseline", [2600.0, 2600.0, 2600.0, 2600.0, 2650.0]),  # no scatter, and 2 % is none
        ("baseline", [2600.0, 2610.0, 5200.0]),  # three rows have no usual
        ("baseline", [2000.0, 3000.0, 2500.0, 3500.0, 1500.0, 4000.0]),  # a wide spread
        ("concurrency", [200.0, 210.0, 220.0, 205.0, 5000.0]),  # the tail is the result
    ],
)
def test_scatter_makes_no_outliers(row: MakeRow, judge: Judge, kind: str, times: list[float]) -> None:
    """A wide spread, a tiny step, too few rows, a tail under load."""
    rows = [
        row(i, kind=kind, ttft_ms=ms, last_token_ms=ms + 1550, e2e_ms=ms + 1560, server_prefill_ms=None)
        for i, ms in enumerate(times)
    ]
    assert judge(rows) == []


def test_b08_a_point_whose_requests_fail(row: MakeRow, judge: Judge) -> None:
    """Four of ten failed: not to be ranked. One in ten is borne, and a request that was never sent is no failure."""
    statuses = ["ok"] * 6 + ["http_503", "http_503", "http_429", "timeout"]
    (found,) = judge([row(i, status=status) for i, status in enumerate(statuses)])
    assert (found.kind, found.point, dict(found.values)) == ("unreliable", "p", {"failed": 4, "requests": 10})
    assert judge([row(i, status="timeout" if i == 9 else "ok") for i in range(10)]) == []
    assert judge([row(i, status="refused" if i > 4 else "ok") for i in range(10)]) == []


def test_too_few_says_how_many_more_and_how_long(row: MakeRow, judge: Judge) -> None:
    """One request of 4,151 ms with a pause of 1,849: two more take two times six seconds, 0.2 minutes."""
    (found,) = judge([row(pause_before_ms=1849.0)], "too_few")
    assert dict(found.values) == {
        "statistic": "median",
        "n": 1,
        "needed": 3,
        "missing": 2,
        "minutes": pytest.approx(0.2),
    }


def test_spoilt_rows_do_not_count_towards_enough(row: MakeRow, judge: Judge) -> None:
    """Of six requests five came from a cache: one is left."""
    (found,) = judge([row(i, cached_tokens=500 if i else 0) for i in range(6)], "too_few")
    assert (found.values["n"], found.values["needed"]) == (1, 3)


def test_rows_that_lack_only_a_time_per_token_do_count(row: MakeRow, judge: Judge) -> None:
    """A late client spoilt the tokens of two of three; their first tokens stand."""
    assert judge([row(i, loop_lag_ms=100.0 if i else 0.0) for i in range(3)], "too_few") == []


@pytest.mark.parametrize("rows", [[{}, {}, {}], [{"aggregate_of": 3}], [{"aggregate_of": 0}]])
def test_three_requests_are_enough_however_they_are_written(row: MakeRow, judge: Judge, rows: list[Row]) -> None:
    """Three rows, a median of three, and a median of nobody knows how many."""
    assert judge([row(i, **values) for i, values in enumerate(rows)], "too_few") == []


def test_clean_rows_carry_no_doubt(row: MakeRow) -> None:
    """500 rows with an everyday scatter: no rule fires."""
    random = Random(7)
    quiet: Row = {
        "swap_in_bytes": 0, "host_is_server": True, "thermal_level": "nominal", "gpu_fraction": 1.0, "cached_tokens": 0,
        "server_version": "0.32", "context_limit_tokens": 8192, "pause_before_ms": 0.0, "chunks": 32,
        "output_token_source": "server", "prompt_token_source": "server", "first_byte_ms": 5.0,
    }  # fmt: skip
    rows: list[Row] = []
    for index in range(500):
        prefill, step = 2500 * random.gauss(1, 0.012), 50 * random.gauss(1, 0.01)
        start = prefill + random.uniform(95, 125)
        times = [start + step * i + random.uniform(0, 2) for i in range(32)]
        stamps = {"ttft_ms": times[0], "first_answer_ms": times[0], "last_token_ms": times[-1], "e2e_ms": times[-1] + 1}
        host = {"loop_lag_ms": random.uniform(0, 4), "client_cpu_share": random.uniform(0, 0.2)}
        host |= {"wall_elapsed_ms": times[-1] + random.uniform(0, 30), "server_load_ms": random.uniform(20, 60)}
        counted = {"prompt_tokens": 512 + random.randint(-2, 2), "server_prefill_ms": prefill, "chunk_times_ms": times}
        rows.append(row(index, point=f"p{index % 10}", **(quiet | stamps | host | counted)))
    assert findings(rows) == []


def test_odd_rows_break_no_rule(row: MakeRow) -> None:
    """All null, all zero, and a failed row: no exception, and no finding without its numbers."""
    bare: list[Row] = [{}, {"status": "ok"}, dict.fromkeys(row(), None), row(status="timeout")]
    zero = row(1) | {name: 0 for name, value in row().items() if isinstance(value, (int, float))}
    for rows in ([one] for one in [*bare, zero]):
        for finding in findings(rows):
            assert set(finding.values) == set(KINDS[finding.kind])


def test_clean_keeps_a_row_for_what_it_is_good_for(row: MakeRow, tmp_path: Path) -> None:
    """A cold row is no TTFT but a time per token; a warm-up and a failure are neither."""
    cold = row(1, server_load_ms=3010.0, ttft_ms=5700.0, last_token_ms=7250.0, e2e_ms=7300.0)
    rows = [row(0, phase="warmup"), cold, row(2), row(3, status="timeout")]
    frame = read_run(write_run(tmp_path, rows, RunFacts(run_id="r"))).rows
    found = findings(records(frame))
    assert list(clean(frame, found)) == [False, False, True, False]
    assert list(clean(frame, found, "tpot")) == [False, True, True, False]
    assert isinstance(clean(frame, found), pd.Series)


def test_a_spoilt_anchor_shows_no_drift(row: MakeRow, judge: Judge) -> None:
    """A cached anchor at 36 ms before others at 240 is no change of the run; heat that slows the last one is."""
    cached: Row = {"cached_tokens": 500, "ttft_ms": 36.0, "server_prefill_ms": 30.0}
    steady: Row = {"ttft_ms": 240.0, "server_prefill_ms": 200.0}
    rows = [row(i, phase="anchor", point="a", **(steady if i else cached)) for i in range(4)]
    assert judge(rows, "drifted") == []
    hot: Row = {"ttft_ms": 300.0, "server_prefill_ms": 260.0, "host_is_server": True, "thermal_level": "serious"}
    rows = [row(i, phase="anchor", point="a", **(hot if i == 2 else steady)) for i in range(3)]
    assert {finding.values["figure"] for finding in judge(rows, "drifted")} == {"ttft_ms", "prefill_ms"}
