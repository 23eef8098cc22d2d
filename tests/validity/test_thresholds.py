"""Each threshold from both sides: what is just beyond it is found, what is just within it is not."""

from collections.abc import Callable

import pytest

from roofbook.record import Row
from roofbook.theory.shapes import Ceilings, Chip, Machine, Model, Range, Spread, Tensors
from roofbook.units import MIB
from roofbook.validity import Finding, Known

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]


def at(end_ms: float, **more: object) -> Row:
    """Return the times of a stream of 31 gaps that ends at *end_ms*."""
    return {"ttft_ms": 2600.0, "last_token_ms": end_ms, "e2e_ms": end_ms, "server_prefill_ms": 2500.0} | more


@pytest.mark.parametrize(
    ("kind", "beyond", "within"),
    [
        ("cached_prefix", {"cached_tokens": 26}, {"cached_tokens": 25}),  # 5 % of 512 are 25.6
        ("truncated", {"prompt_tokens": 383}, {"prompt_tokens": 384}),  # three quarters of 512
        ("short_output", {"output_tokens": 28}, {"output_tokens": 29}),  # nine tenths of 32 are 28.8
        ("coalesced", {"output_tokens": 9} | at(2601.5), {"output_tokens": 9} | at(2601.7)),  # 0.2 ms x 8 gaps
        ("buffered", {"output_tokens": 10} | at(2601.7), {"output_tokens": 10} | at(2601.9)),  # 0.2 ms x 9 gaps
        ("clock_error", {"e2e_ms": 4149.9}, {"e2e_ms": 4149.96}),  # 0.05 ms before the last token
        ("cold_load", {"server_load_ms": 151.0}, {"server_load_ms": 149.0}),
        ("queued", {"server_queue_ms": 521.0}, {"server_queue_ms": 519.0}),  # a fifth of 2,600 ms
        ("queued", {"server_queue_ms": 51.0, "ttft_ms": 200.0, "server_prefill_ms": None},
                   {"server_queue_ms": 49.0, "ttft_ms": 200.0, "server_prefill_ms": None}),
        ("client_saturated", {"loop_lag_ms": 78.0}, {"loop_lag_ms": 77.0}),  # 5 % of 1,550 ms of tokens
        ("client_saturated", {"loop_lag_ms": 10.1} | at(2700.0), {"loop_lag_ms": 9.9} | at(2700.0)),
        ("client_saturated", {"client_cpu_share": 0.91}, {"client_cpu_share": 0.89}),
        ("slept", {"wall_elapsed_ms": 9152.0}, {"wall_elapsed_ms": 9150.0}),  # 5 s over 4,151 ms
        ("swapping", {"swap_in_bytes": 65 * MIB, "host_is_server": True},
                     {"swap_in_bytes": 63 * MIB, "host_is_server": True}),
        ("partial_gpu", {"gpu_fraction": 0.998}, {"gpu_fraction": 0.9991}),
    ],
)  # fmt: skip
def test_a_row_beyond_a_threshold_is_found(row: MakeRow, judge: Judge, kind: str, beyond: Row, within: Row) -> None:
    """Of each pair the first has the finding, the second has not."""
    assert [finding.kind for finding in judge([row(**beyond)], kind)] == [kind]
    assert judge([row(**within)], kind) == []


def series(row: MakeRow, name: str, values: list[float], **more: object) -> list[Row]:
    quiet: Row = dict.fromkeys(("ttft_ms", "last_token_ms", "e2e_ms", "output_tokens", "server_prefill_ms"))
    return [row(i, **(quiet | more | {name: value})) for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("kind", "name", "beyond", "within", "more"),
    [
        # Half of 2,500.
        ("cached_prefix_implied", "server_prefill_ms", [2500, 2500, 1249], [2500, 2500, 1251], {}),
        # Five times the usual 100 ms; a second is a load in any company.
        ("reload", "server_load_ms", [100, 100, 100, 501], [100, 100, 100, 499], {}),
        ("reload", "server_load_ms", [900, 900, 900, 1001], [900, 900, 900, 999], {}),
        # Between 110 and 150 ms a load counts if it takes a fifth of TTFT beyond the usual: 140 - 20 of 500, of 700.
        ("reload", "server_load_ms", [20, 20, 20, 140], [20, 20, 20, 109], {"ttft_ms": 500.0}),
        ("reload", "server_load_ms", [20, 20, 20, 160], [20, 20, 20, 140], {"ttft_ms": 700.0}),
        # A tenth of the median, with next to no scatter; where there is some, five times 1.4826 x 20 above 210.
        ("outlier", "ttft_ms", [100, 100, 100, 100, 111], [100, 100, 100, 100, 109], {}),
        ("outlier", "ttft_ms", [180, 200, 220, 180, 220, 359], [180, 200, 220, 180, 220, 358], {}),
        # 5 % between first and last.
        ("drifted", "server_decode_tok_per_s", [20, 20, 18.9], [20, 20, 19.1], {"phase": "anchor"}),
        # 15 % under the median of the longer ones.
        ("outlier", "server_decode_tok_per_s", [16.9, 20, 20], [17.1, 20, 20], {"kind": "prefill_curve"}),
    ],
)  # fmt: skip
def test_a_series_beyond_a_threshold_is_found(
    row: MakeRow, judge: Judge, kind: str, name: str, beyond: list[float], within: list[float], more: Row
) -> None:
    """Among the same neighbours, a little more and a little less."""

    def of(values: list[float]) -> list[Row]:
        rows = series(row, name, values, **more)
        return [one | {"prompt_tokens": 512 + i} for i, one in enumerate(rows)]

    assert {finding.kind for finding in judge(of(beyond), kind)} == {kind}
    assert judge(of(within), kind) == []


def test_a_trend_counts_only_above_its_own_scatter(row: MakeRow, judge: Judge) -> None:
    """A fall of 8 % along a line is a drift, give or take 2 %; the same fall among jumps of 10 % is not."""
    steady = [20.0, 19.7, 19.4, 19.0, 18.7, 18.4]
    wavering = [20.5, 19.5, 19.8, 18.9, 18.9, 17.9]
    jumping = [20.0, 22.0, 18.0, 21.0, 17.5, 20.5]
    assert judge(series(row, "server_decode_tok_per_s", steady, phase="anchor"), "drifted") != []
    assert judge(series(row, "server_decode_tok_per_s", wavering, phase="anchor"), "drifted") != []
    assert judge(series(row, "server_decode_tok_per_s", jumping, phase="anchor"), "drifted") == []


def test_an_overhead_counts_from_twice_the_usual(row: MakeRow, judge: Judge) -> None:
    """120 ms are usual: 245 are told, 235 are not; of 20 ms, 119 are twice and more, but not 100 ms more."""

    def overheads(values: list[float]) -> list[Row]:
        return [row(i, kind="prefill_curve", point=f"p{i}", ttft_ms=2500.0 + ms) for i, ms in enumerate(values)]

    assert judge(overheads([120, 120, 120, 120, 245]), "outlier") != []
    assert judge(overheads([120, 120, 120, 120, 235]), "outlier") == []
    assert judge(overheads([20, 20, 20, 20, 119]), "outlier") == []


def test_a_derived_wait_counts_from_a_quarter_second_above_the_usual(row: MakeRow, judge: Judge) -> None:
    """100 ms are usual: 360 ms of 560 are a wait, 340 of 540 are not."""

    def waits(last_ms: float) -> list[Row]:
        return [
            row(0, ttft_ms=300.0, server_prefill_ms=200.0),
            row(1, ttft_ms=200.0 + last_ms, server_prefill_ms=200.0),
        ]

    assert [finding.order_index for finding in judge(waits(360.0), "queued")] == [1]
    assert judge(waits(340.0), "queued") == []


@pytest.mark.parametrize(("failed", "found"), [(1, False), (2, True)])
def test_a_tenth_of_failures_is_borne(row: MakeRow, judge: Judge, failed: int, found: bool) -> None:
    """One of ten is, two of ten are not."""
    rows = [row(i, status="timeout" if i < failed else "ok") for i in range(10)]
    assert bool(judge(rows, "unreliable")) is found


@pytest.mark.parametrize(("chunks", "burst", "found"), [(100, 12, True), (100, 8, False), (19, 19, False)])
def test_bursts_of_ten_are_a_buffer(row: MakeRow, judge: Judge, chunks: int, burst: int, found: bool) -> None:
    """Twelve chunks at a time are, eight are speculation; nineteen chunks are too few to tell bursts by."""
    times = [1000.0 + 600.0 * (i // burst) for i in range(chunks)]
    streamed = row(ttft_ms=1000.0, last_token_ms=times[-1] + 100, e2e_ms=times[-1] + 100, chunks=chunks,
                   output_tokens=chunks, output_tokens_wanted=None, chunk_times_ms=times, server_prefill_ms=None,
                   first_answer_ms=1000.0)  # fmt: skip
    assert bool(judge([streamed], "buffered")) is found


GIGABYTE = Model("one", tied=True, params=10**9, tensors=Tensors("Q8_0", total_bytes=10**9, expert_bytes=0))


@pytest.mark.parametrize(("tokens", "found"), [(8, True), (7, False)])
def test_a_rate_takes_eight_tokens(row: MakeRow, judge: Judge, tokens: int, found: bool) -> None:
    """1 GB a token at 100 GB/s are 100 a second: 200 are impossible, if enough tokens say so."""
    known = Known(
        {("x", "Q8_0"): GIGABYTE},
        {"m": Machine("m", Chip("c", memory_kind="unified", bandwidth_bytes_per_s=Range.of(100e9)))},
    )
    fast = row(
        quantization="Q8_0", output_tokens=tokens, last_token_ms=2600.0 + 5 * (tokens - 1), output_tokens_wanted=None
    )
    assert bool(judge([fast], "above_bandwidth", known=known)) is found


@pytest.mark.parametrize(("bytes_held", "found"), [(1_100_000_000, True), (1_050_000_000, False)])
def test_a_processors_cache_holds_up_to_a_gibibyte(row: MakeRow, judge: Judge, bytes_held: int, found: bool) -> None:
    """Above 1.07 GB a processor reads its memory for each token."""
    model = Model("one", tied=True, tensors=Tensors("Q8_0", total_bytes=bytes_held, expert_bytes=0),
                  layers=())  # fmt: skip
    cpu = Machine("m", Chip("c", memory_kind="cpu", bandwidth_bytes_per_s=Range.of(10e9)))
    fast = row(quantization="Q8_0")
    assert bool(judge([fast], "above_bandwidth", known=Known({("x", "Q8_0"): model}, {"m": cpu}))) is found


@pytest.mark.parametrize(("prefill_ms", "found"), [(400.0, True), (700.0, False)])
def test_a_benchmark_is_a_ceiling_only_twice_over(row: MakeRow, judge: Judge, prefill_ms: float, found: bool) -> None:
    """512 tokens x 2 x 1e9: 2.56 TFLOPS in 400 ms, 1.46 in 700; the benchmark had 1.0, so 2.0 are the bound."""
    measured = Machine("m", measured=Ceilings(flops_per_s=Spread(1e12, 1e12, 1e12)))
    model = Model("one", tied=True, params=10**9, hidden=1000, vocab=1000)
    fast = row(quantization="Q8_0", server_prefill_ms=prefill_ms)
    known = Known({("x", "Q8_0"): model}, {"m": measured})
    assert bool(judge([fast], "above_compute_peak", known=known)) is found
