"""What the subject pages need besides the curve: equipment, coefficients, context, standing, traps."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roofbook.analysis.ceilings import ceilings
from roofbook.analysis.coefficients import (
    attention_share,
    compared,
    counted_flops,
    implied_flops_per_s,
    r_squared,
    repeats_scatter,
    wider_curve,
)
from roofbook.analysis.context import decode_over_context, decode_test, printed_excess, window_control
from roofbook.analysis.equipment import equipment_of
from roofbook.analysis.latency import latency_points
from roofbook.analysis.prefill import prefill_curve
from roofbook.analysis.standing import roofs, spokesman, spots
from roofbook.analysis.subjects import subjects
from roofbook.analysis.traps import readings, traps
from roofbook.facts import Facts, load_facts
from roofbook.record import Row, Run, RunFacts
from roofbook.theory.shapes import Machine, Model
from roofbook.units import GIB, TFLOP
from roofbook.validity import Known, findings, records

Frame = Callable[[list[Row]], pd.DataFrame]

MAC = {"machine": "mac-mini-m4-32gb", "server": "ollama", "model": "qwen2.5:7b", "quantization": "Q4_K_M"}


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts(Path(__file__).parents[2] / "data" / "facts")


@pytest.fixture(scope="module")
def qwen(facts: Facts) -> Model:
    return facts.model("qwen2.5:7b").model.quantized("Q4_K_M")


@pytest.fixture(scope="module")
def m4(facts: Facts) -> Machine:
    return facts.machine("mac-mini-m4-32gb").machine


def measured(tokens: int | None, prefill_ms: float | None, **more: Any) -> Row:
    counted = {"prompt_tokens": tokens, "prompt_tokens_wanted": tokens, "server_prefill_ms": prefill_ms}
    return {
        **MAC, "run_id": "test", "experiment": "baseline", "kind": "baseline", "point": f"p{tokens}",
        "phase": "measured", "status": "ok", "ttft_ms": None if prefill_ms is None else prefill_ms + 100,
    } | counted | more  # fmt: skip


def of_rows(frame: Frame, rows: list[Row], facts: Facts, **about: Any) -> Any:
    """Return the equipment of the only subject of *rows*, run under *about*."""
    table = frame(rows)
    return equipment_of(subjects(table)[0], [Run(RunFacts("test", **about), table, Path("x"))], facts)


# -- equipment


def test_equipment_comes_from_the_catalogue(frame: Frame, facts: Facts) -> None:
    """Machine, chip, model in its quantization, runtime; what a run did not say is unknown."""
    found = of_rows(frame, [measured(512, 2300)], facts)

    assert found.machine == facts.machine("mac-mini-m4-32gb").machine
    assert (found.chip.id, found.model.id, found.runtime.id) == ("apple-m4", "qwen2.5-7b", "ollama")
    assert found.model.tensors.quantization == "Q4_K_M"
    assert found.macos is None


def test_what_the_host_reports_goes_before_the_catalogue(frame: Frame, facts: Facts) -> None:
    """Metal's 24.96 GiB, macOS 26.1."""
    host = {"machine": MAC["machine"], "gpu_limit_bytes": 26_800_600_000, "os": "macOS", "os_version": "26.1"}
    found = of_rows(frame, [measured(512, 2300)], facts, host=host)

    assert found.machine.gpu_limit_bytes == 26_800_600_000
    assert found.macos == 26


@pytest.mark.parametrize(("gpu_fraction", "bounds"), [(0.0, True), (1.0, False), (None, False)])
def test_the_processors_ceiling_bounds_only_what_ran_on_it(
    frame: Frame, facts: Facts, gpu_fraction: float | None, bounds: bool
) -> None:
    """Where a part ran on a GPU, or nobody knows, the processor's rate says nothing about it."""
    spread = {"median": 30e9, "low": 28e9, "high": 31e9, "n": 9}
    host = {"machine": MAC["machine"], "ceilings": {"bandwidth_bytes_per_s": spread, "flops_per_s": None}}
    found = of_rows(frame, [measured(512, 2300, gpu_fraction=gpu_fraction)], facts, host=host)

    assert (found.machine.measured is not None) == bounds


def test_an_unknown_machine_is_what_it_says_of_itself(frame: Frame, facts: Facts) -> None:
    """A machine that no catalogue has: its memory, and no chip."""
    host = {"machine": "amd-epyc-2c-24gb", "memory_bytes": 24 * GIB}
    found = of_rows(frame, [measured(512, 2300, machine="amd-epyc-2c-24gb")], facts, host=host)

    assert (found.machine.id, found.machine.memory_bytes, found.machine.chip) == ("amd-epyc-2c-24gb", 24 * GIB, None)


def test_another_hosts_facts_say_nothing(frame: Frame, facts: Facts) -> None:
    """A remote client: its memory is not the server's."""
    host = {"machine": "laptop", "memory_bytes": 8 * GIB, "gpu_limit_bytes": GIB}
    found = of_rows(frame, [measured(512, 2300)], facts, host=host)

    assert found.machine.gpu_limit_bytes is None
    assert found.machine.memory_bytes == 32 * GIB


# -- coefficients


def test_coefficients_are_held_against_counted_operations(
    frame: Frame, published_curve: list[Row], qwen: Model, m4: Machine
) -> None:
    """2 x 6,525,288,448 / 2.9e12 = 4.5002 ms a token; 200,704 / 2.9e12 = 6.92e-5; b is 2.88 times that."""
    law = prefill_curve(frame(published_curve)).chosen
    assert law is not None
    a, b = compared(law.fit, qwen, m4, "Q4_K_M")

    assert counted_flops(qwen, 1) == 2 * 6_525_288_448
    assert counted_flops(qwen, 2) == 200_704
    assert a.measured is not None
    assert b.measured is not None
    assert (a.measured.low, b.measured.low) == pytest.approx((4.5002, 6.9208e-5), rel=1e-4)
    assert a.factor is None
    # 2.0035e-4 x 2.8833e12 / 200,704 / 1000
    assert b.factor is not None
    assert b.factor.mid == pytest.approx(2.878, abs=0.002)
    # 13,050,576,896 / 4.5263 ms
    assert implied_flops_per_s(law.fit, qwen) == pytest.approx(2.8833e12, rel=1e-4)


def test_without_a_model_nothing_stands_beside_a_coefficient(frame: Frame, published_curve: list[Row]) -> None:
    """The fit is told alone."""
    law = prefill_curve(frame(published_curve)).chosen
    assert law is not None

    assert [(one.measured, one.datasheet, one.factor) for one in compared(law.fit, None, None, None)] == [
        (None, None, None)
    ] * 2
    assert implied_flops_per_s(law.fit, None) is None


def test_attentions_share_is_counted(qwen: Model) -> None:
    """At 8,016 tokens 12.90 of 104.6 + 1.09 e-3 + 12.90 TFLOP: 11.0 %."""
    share = attention_share(qwen, 8016)

    assert share is not None
    assert share.low == pytest.approx(0.110, abs=0.0005)
    assert attention_share(None, 8016) is None


def test_r_squared_is_the_explained_share(frame: Frame, published_curve: list[Row]) -> None:
    """1 for a law through every point; it rises with every coefficient and so chooses none."""
    curve = prefill_curve(frame(published_curve))
    told = [r_squared(one.fit, curve.lengths) for one in curve.candidates]

    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0, abs=1e-4)


def test_the_wider_curve_leaves_every_doubt_out(frame: Frame, published_curve: list[Row]) -> None:
    """Eight lengths: a cold run of 40 tokens is no part of them."""
    cold = measured(40, 296.66, server_load_ms=3010.01, ttft_ms=3400.0)
    curve_rows = [MAC | row | {"experiment": "c", "point": str(row["prompt_tokens"])} for row in published_curve]
    rows = frame([*curve_rows, measured(74, 291), measured(3505, 17846), cold])
    found = findings(records(rows))
    curve = wider_curve(subjects(rows)[0], found)

    assert "cold_load" in {one.kind for one in found}
    assert [length.tokens for length in curve.lengths] == [74, 205, 578, 1096, 2091, 3505, 4056, 8016]
    assert curve.chosen is not None
    assert curve.chosen.powers == (0, 1, 2)


def test_scatter_is_compared_between_times_far_apart() -> None:
    """Three repeats of 74 and of 3,505 tokens; of one length alone, or of medians, nothing can be said."""
    far = [measured(74, ms) for ms in (286, 293, 302)] + [measured(3505, ms) for ms in (17499, 17846, 17809)]
    medians = [row | {"aggregate_of": 3} for row in far]

    assert repeats_scatter(far) is not None
    assert repeats_scatter(far[:3]) is None
    assert repeats_scatter(medians) is None


# -- what a context does besides


def test_decode_slows_by_what_its_cache_reads(frame: Frame, published_curve: list[Row], qwen: Model) -> None:
    """19.3 to 17.0 tok/s is -11.9 %; 4.3706 GB + T x 30,464 B read at 8,016 against 205 is -5.16 %."""
    rates = {205: 19.3, 578: 15.1, 1096: 20.2, 2091: 19.5, 4056: 17.9, 8016: 17.0}
    rows = [MAC | row | {"server_decode_tok_per_s": rates[row["prompt_tokens"]]} for row in published_curve]
    points = latency_points(frame([row | {"point": str(row["prompt_tokens"]), "experiment": "c"} for row in rows]), ())
    told = decode_over_context(points, ["578"], qwen, "q8_0")

    assert [one.outlier for one in told] == [False, True, False, False, False, False]
    assert told[-1].change_share == pytest.approx(-0.119, abs=0.0005)
    assert told[-1].expected_share is not None
    assert told[-1].expected_share.low == pytest.approx(-0.0516, abs=0.0001)
    assert decode_over_context(points[:1], [], qwen, "q8_0") == ()


def repeated(tokens: int, rates: list[float], **more: object) -> list[Row]:
    return [
        {"run_id": "test", "experiment": "baseline", "point": str(tokens), "prompt_tokens": tokens,
         "server_decode_tok_per_s": rate, "status": "ok", **more}
        for rate in rates
    ]  # fmt: skip


def test_a_change_of_the_decode_rate_is_tested_by_single_requests() -> None:
    """Three against three, wholly apart: 2 of the C(6, 3) = 20 ways to deal them out lie as far apart."""
    rows = repeated(74, [21.0, 21.2, 21.4]) + repeated(500, [20.9, 20.9]) + repeated(3505, [19.0, 19.1, 19.5])
    found = decode_test(rows)

    assert found is not None
    assert (found.short_tokens, found.long_tokens, found.tested.n) == (74, 3505, (3, 3))
    assert found.change_share == pytest.approx(19.1 / 21.2 - 1)
    assert found.tested.p_value == pytest.approx(0.1)


@pytest.mark.parametrize(("places", "in_blocks"), [((0, 1, 2, 3), True), ((2, 3, 0, 1), True), ((0, 2, 1, 3), False)])
def test_lengths_in_blocks_are_told_from_lengths_in_turn(places: tuple[int, ...], in_blocks: bool) -> None:
    """Where one length was wholly sent before the other, time passed between them too."""
    rows = repeated(74, [21.0, 21.2]) + repeated(3505, [19.0, 19.1])
    found = decode_test([row | {"order_index": place} for row, place in zip(rows, places, strict=True)])

    assert found is not None
    assert found.in_blocks is in_blocks


def test_medians_and_other_sessions_test_nothing() -> None:
    """A median hides the scatter, and two runs differ by more than their prompts do."""
    assert (
        decode_test(repeated(74, [21.0, 21.1], aggregate_of=3) + repeated(3505, [19.0, 19.1], aggregate_of=3)) is None
    )
    assert decode_test(repeated(74, [21.0, 21.1], run_id="one") + repeated(3505, [19.0, 19.1], run_id="two")) is None


def control(*runs: tuple[int, float, int | None]) -> list[Row]:
    return [
        measured(4057, ms, kind="context_control", context_limit_tokens=limit, aggregate_of=aggregate)
        for limit, ms, aggregate in runs
    ]


def test_a_window_control_without_single_runs_tests_nothing() -> None:
    """21,912 / 21,891 - 1 = 0.096 %, of an unknown number of runs."""
    found = window_control(control((16384, 21912, 0), (8192, 21891, 0)))

    assert found is not None
    assert [(one.context_limit_tokens, one.n) for one in found.windows] == [(8192, None), (16384, None)]
    assert found.change_share == pytest.approx(0.00096, abs=1e-5)
    assert found.tested is None


def test_a_window_control_with_single_runs_is_tested_exactly() -> None:
    """Three against three, all of one side larger: 2 of the 20 ways to deal them out lie so far apart, p = 0.1."""
    found = window_control(control(*[(8192, ms, None) for ms in (100.0, 101.0, 102.0)],
                                   *[(16384, ms, None) for ms in (110.0, 111.0, 112.0)]))  # fmt: skip

    assert found is not None
    assert found.tested is not None
    assert (found.tested.p_value, found.tested.exact) == (pytest.approx(0.1), True)


def test_one_window_is_no_control() -> None:
    """Nothing to compare."""
    assert window_control(control((8192, 21891, 0))) is None


# -- standing and traps


def test_single_requests_speak_for_a_subject(frame: Frame) -> None:
    """Five runs of 74 and of 3,505 tokens go before a median of 8,016; shortest to write, longest to read."""
    rows = [measured(tokens, ms + n) for tokens, ms in ((74, 290.0), (3505, 17800.0)) for n in range(5)]
    rows.append(measured(8016, 48337, aggregate_of=3, kind="prefill_curve"))
    rows.append(measured(40, 100, concurrency=8))
    points = latency_points(frame([row | {"server_decode_tok_per_s": 21.0} for row in rows]), ())

    writing = spokesman(points, lambda point: point.decode, longest=False)
    reading = spokesman(points, lambda point: point.prefill, longest=True)
    assert writing is not None
    assert reading is not None
    assert (writing.prompt_tokens, reading.prompt_tokens) == (74, 3505)
    assert spokesman([], lambda point: point.decode, longest=True) is None


def test_decode_reads_much_for_little_work_and_prefill_the_other_way(frame: Frame, qwen: Model, m4: Machine) -> None:
    """Decode: 14.16 GFLOP for 4.3728 GB are 3.24 FLOP/byte; prefill in seven chunks: 48.2 TFLOP for 30.7 GB."""
    rows = [measured(74, 291), measured(3505, 17846)]
    points = latency_points(frame([row | {"server_decode_tok_per_s": 21.0} for row in rows]), ())
    told = {
        (one.phase, one.tokens): one
        for one in spots(ceilings(points, qwen, m4, "Q4_K_M", "q8_0"), qwen, "Q4_K_M", "q8_0")
    }

    assert told["decode", 74].flop_per_byte == pytest.approx(3.24, abs=0.005)
    assert told["prefill", 3505].flop_per_byte == pytest.approx(48.2e12 / (7 * 4.3706e9 + 3505 * 30464), rel=2e-3)
    assert told["prefill", 3505].flops_per_s == pytest.approx(48.2e12 / 17.846, rel=2e-3)
    assert not any(one.doubtful for one in told.values())
    assert roofs(m4, "Q4_K_M").known
    assert not roofs(replace(m4, chip=None), None).known


def test_traps_stand_beside_the_median_of_the_nearest_trusted_length(frame: Frame, qwen: Model, m4: Machine) -> None:
    """3,473 tokens in 58 ms, 305 times as fast a token as the median of five for 3,505, 17,846 ms; and a load."""
    times = (17499, 17846, 17809, 18067, 17905)
    rows = frame([
        measured(40, 296.66, server_load_ms=3010.01, ttft_ms=None), measured(3473, 58),
        *(measured(3505, ms) for ms in times),
    ])  # fmt: skip
    found = findings(records(rows), Known({("qwen2.5:7b", "Q4_K_M"): qwen}, {"mac-mini-m4-32gb": m4}))
    cold, cached = traps(rows, found)

    assert (cold.finding.kind, cached.finding.kind) == ("cold_load", "above_compute_peak")
    assert cold.load_share == pytest.approx(3010.01 / 3306.67)
    assert cold.beside is None  # 3,505 tokens are no comparison for 40
    assert cached.beside is not None
    assert (cached.beside.prompt_tokens, cached.beside.prefill_ms, cached.beside.rows) == (3505, 17846, 5)
    assert cached.factor == pytest.approx((17846 / 3505) / (58 / 3473))


def test_readings_mark_what_cannot_be(frame: Frame, qwen: Model, m4: Machine) -> None:
    """823 TFLOPS is in doubt, 2.7 is not; without the model's shape there is no reading."""
    rows = frame([measured(3473, 58), measured(3505, 17846), measured(512, None)])
    found = findings(records(rows), Known({("qwen2.5:7b", "Q4_K_M"): qwen}, {"mac-mini-m4-32gb": m4}))
    told = readings(rows, found, qwen)

    assert [(one.tokens, round(one.flops_per_s / TFLOP, 1), one.doubted) for one in told] == [
        (3473, 823.2, True), (3505, 2.7, False),
    ]  # fmt: skip
    assert readings(rows, found, None) == []


def test_printed_rates_may_be_high_by_the_token_that_was_not_timed() -> None:
    """32 tokens in the time of 31: 1 / 31 = 3.2 %; with the count known it was taken back; unasked it is unknown."""
    printed: Row = {"status": "ok", "server_decode_tok_per_s": 19.3, "output_tokens_wanted": 32}

    assert printed_excess([printed]) == pytest.approx(1 / 31)
    assert printed_excess([printed | {"output_tokens": 30}]) is None
    assert printed_excess([printed, printed | {"output_tokens_wanted": None}]) is None
