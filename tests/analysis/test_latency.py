"""Latencies point by point: over finished and trusted rows, with the failures beside them."""

from collections.abc import Callable

import pandas as pd
import pytest

from roofbook.analysis.latency import Point, latency_points
from roofbook.record import Row
from roofbook.validity import findings, records

Frame = Callable[[list[Row]], pd.DataFrame]


def row(index: int, **values: object) -> Row:
    of_one_point: Row = {"run_id": "test", "experiment": "e", "kind": "baseline", "point": "p", "phase": "measured"}
    return of_one_point | {"order_index": index, "status": "ok"} | values


def point(frame: pd.DataFrame) -> Point:
    (only,) = latency_points(frame, findings(records(frame)))
    return only


def test_b08_failures_stand_beside_the_latency_and_not_in_it(frame: Frame) -> None:
    """Six answers from 800 to 900 ms, two 503, a 429 and a time-out: median 850 of 6, 40 % failed, not to be ranked."""
    rows = [row(i, e2e_ms=e2e) for i, e2e in enumerate([800.0, 820.0, 840.0, 860.0, 880.0, 900.0])]
    rows += [row(6, e2e_ms=12.0, status="http_503"), row(7, e2e_ms=12.0, status="http_503")]
    rows += [row(8, e2e_ms=5.0, status="http_429"), row(9, e2e_ms=30000.0, status="timeout")]
    found = point(frame(rows))
    assert (found.requests, found.finished, found.failures) == (10, 6, {"http_503": 2, "http_429": 1, "timeout": 1})
    assert (found.e2e.median, found.e2e.low, found.e2e.high) == (850, 800, 900)
    assert (found.failure_share, found.reliable) == (0.4, False)


def test_b13_too_few_tokens_have_no_time_per_token(frame: Frame) -> None:
    """One token and none: TTFT of one of them, a time per token of neither; three others give 21.0, n = 3 of 5."""
    rows = [
        row(0, ttft_ms=300.0, last_token_ms=300.0, output_tokens=1),
        row(1, output_tokens=0),
        *(
            row(2 + i, ttft_ms=300.0, last_token_ms=300.0 + 10 * tpot, output_tokens=11)
            for i, tpot in enumerate([20, 21, 22])
        ),
    ]
    found = point(frame(rows))
    assert (found.tpot.median, found.tpot.rows, found.finished) == (21.0, 3, 5)
    assert (found.ttft.median, found.ttft.rows) == (300, 4)


def test_b11_the_actual_tokens_stand_beside_the_planned_ones(frame: Frame) -> None:
    """128 planned five times, 128 128 88 128 0 came: 472 of 640; the empty one has no rate, nothing divides by 128."""
    rows = [
        row(i, ttft_ms=100.0 if n else None, last_token_ms=100.0 + 20 * max(n - 1, 0) if n else None, output_tokens=n,
            output_tokens_wanted=128, e2e_ms=3000.0)
        for i, n in enumerate([128, 128, 88, 128, 0])
    ]  # fmt: skip
    found = point(frame(rows))
    assert (found.output_tokens, found.output_tokens_wanted) == (472, 640)
    assert (found.tpot.rows, found.tpot.median) == (4, 20)
    assert (found.e2e.rows, found.doubtful) == (3, 2)


def test_b12_waiting_is_told_apart_from_prefill(frame: Frame) -> None:
    """Two at once on one slot: B waited 980 ms of its 1,300; the prefill is 280 for both, not four times slower."""
    times = {"server_load_ms": 40.0, "server_prefill_ms": 280.0, "kind": "concurrency"}
    found = point(frame([row(0, ttft_ms=320.0, **times), row(1, ttft_ms=1300.0, **times)]))
    assert (found.waited.low, found.waited.high) == (0, 980)
    assert (found.prefill.low, found.prefill.high) == (280, 280)


def test_doubtful_rows_are_kept_out_of_what_they_spoil(frame: Frame) -> None:
    """A cold load spoils TTFT and end to end, not the time per token."""
    cold = {"server_load_ms": 3010.0, "ttft_ms": 3400.0, "last_token_ms": 3600.0, "output_tokens": 11}
    warm = {"server_load_ms": 40.0, "ttft_ms": 400.0, "last_token_ms": 600.0, "output_tokens": 11}
    found = point(frame([row(0, **cold), row(1, **warm), row(2, **warm)]))
    assert (found.ttft.rows, found.ttft.median) == (2, 400)
    assert (found.tpot.rows, found.tpot.median) == (3, 20)
    assert found.doubtful == 1


def test_what_p99_still_takes_is_said_in_requests_and_minutes(frame: Frame) -> None:
    """Ten requests of 5 s, with a second's pause: 90 more at 6 s are nine minutes."""
    found = point(frame([row(i, ttft_ms=100.0, e2e_ms=5000.0, pause_before_ms=1000.0) for i in range(10)]))
    assert (found.ttft.p99, found.ttft.p99_missing) == (None, 90)
    assert found.minutes_to_p99 == pytest.approx(9)


def test_warm_ups_and_unknown_points_do_not_mix(frame: Frame) -> None:
    """A warm-up is no measurement, and rows of an unknown point are a group of their own."""
    rows = [row(0, ttft_ms=9.0, phase="warmup"), row(1, ttft_ms=100.0), row(2, ttft_ms=300.0, point=None)]
    frame_of_three = frame(rows)
    points = latency_points(frame_of_three, findings(records(frame_of_three)))
    assert [(found.point, found.requests, found.ttft.median) for found in points] == [("p", 1, 100), (None, 1, 300)]


def test_a_point_where_everything_failed_has_no_numbers(frame: Frame) -> None:
    """Two refused connections: no median, no exception, all failed."""
    found = point(frame([row(0, status="connect_error"), row(1, status="connect_error")]))
    assert (found.ttft.median, found.minutes_to_p99, found.failure_share) == (None, None, 1.0)
