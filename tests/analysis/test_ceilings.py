"""Shares of what the machine can do, by both denominators, and what they say about tuning."""

from pathlib import Path

import pytest

from roofbook.analysis.ceilings import DECODE_LIMIT, PointCeilings, ceilings, reached
from roofbook.analysis.latency import latency_points
from roofbook.facts import load_facts
from roofbook.record import read_run
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.validity import findings, known_of, records

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def published() -> dict[str | None, PointCeilings]:
    rows = read_run(DATA / "measured" / "article-2026-08-31.parquet").rows
    plain = records(rows)
    known = known_of(plain, load_facts(DATA / "facts"))
    points = latency_points(rows, findings(plain, known))
    model, machine = known.model(plain[0]), known.machine(plain[0])
    assert model is not None
    assert machine is not None
    return {one.point.point: one for one in ceilings(points, model, machine, "Q4_K_M", "q8_0")}


def test_decode_is_at_the_limit_that_was_measured(published: dict[str | None, PointCeilings]) -> None:
    """20.99 tok/s x 4.374 GB are 91.8 GB/s: 76.5 % of 120 GB/s, 92 % of the 100 that a benchmark reaches."""
    decode = published["baseline-74"].decode
    assert decode is not None
    assert decode.used.low == pytest.approx(91.8e9, rel=1e-3)
    assert decode.datasheet_share is not None
    assert decode.measured_share is not None
    assert decode.datasheet_share.low == pytest.approx(0.765, abs=5e-4)
    assert decode.measured_share.low == pytest.approx(0.918, abs=5e-4)
    assert (decode.verdict, decode.basis) == ("at_the_limit", "measured")


def test_prefill_is_a_range_where_the_peak_is_disputed(published: dict[str | None, PointCeilings]) -> None:
    """48.2 TFLOP in 17.85 s are 2.70 TFLOPS: 59 to 72 % of 3.76 to 4.6, 93 % of the 2.9 that a benchmark reaches."""
    prefill = published["baseline-3505"].prefill
    assert prefill is not None
    assert prefill.used.low == pytest.approx(2.70e12, rel=2e-3)
    assert prefill.datasheet_share is not None
    assert prefill.measured_share is not None
    assert (round(prefill.datasheet_share.low, 2), round(prefill.datasheet_share.high, 2)) == (0.59, 0.72)
    assert prefill.measured_share.low == pytest.approx(0.93, abs=5e-3)
    assert prefill.headroom is not None
    # From 1 / 0.9315 - 1 to 1 / 0.5873 - 1.
    assert (round(prefill.headroom.low, 2), round(prefill.headroom.high, 2)) == (0.07, 0.70)


def test_cached_rows_reach_nothing(published: dict[str | None, PointCeilings]) -> None:
    """A cache hit is no prefill, so it has no share."""
    assert published["same-prompt-3473"].prefill is None


@pytest.mark.parametrize(
    ("used", "datasheet", "measured", "verdict", "basis"),
    [
        (90, Range.of(120), Range.of(100), "at_the_limit", "measured"),
        (80, Range.of(120), Range.of(100), "room_to_tune", "measured"),
        (90, Range.of(120), None, "at_the_limit", "datasheet"),
        (60, Range.of(120), None, "room_to_tune", "datasheet"),
        (80, Range(100, 130), None, "unknown", "datasheet"),  # 62 to 80 %: on both sides of the limit
        (130, Range.of(120), Range.of(100), "above_the_ceiling", "datasheet"),
        (125, Range(110, 130), None, "at_the_limit", "datasheet"),  # a disputed peak convicts nobody
        (90, None, None, "unknown", None),
    ],
)
def test_the_verdict_rests_on_the_measured_ceiling_where_there_is_one(
    used: float, datasheet: Range | None, measured: Range | None, verdict: str, basis: str | None
) -> None:
    """85 % of a benchmark, else 70 % of the datasheet's bandwidth; above the datasheet's upper end is wrong."""
    found = reached(Range.of(used), datasheet, measured, DECODE_LIMIT)
    assert (found.verdict, found.basis) == (verdict, basis)


def test_an_unknown_machine_or_model_reaches_nothing(published: dict[str | None, PointCeilings]) -> None:
    """No peak: a figure without a share; no weights: no figure."""
    point = published["baseline-74"].point
    (without_weights,) = ceilings([point], Model("unknown"), Machine("unknown"), None, None)
    assert (without_weights.decode, without_weights.prefill) == (None, None)
