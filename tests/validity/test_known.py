"""What the run itself knows where no catalogue does: its server's model, its processor's measured ceilings."""

from collections.abc import Callable
from typing import Any

import pytest

from roofbook.facts import Facts
from roofbook.readers.reading import Reading, to_json
from roofbook.record import Row, RunFacts
from roofbook.theory.shapes import Ceilings, Chip, Layer, Machine, Model, Peaks, Range, Spread, Tensors
from roofbook.validity import Finding, Known, known_of
from roofbook.validity.known import processor_ceilings

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]

# A layer: 2 x 2048^2 + 2 x 2048 x 256 + 3 x 2048 x 5632 = 44,040,192 weights. 1.5 GB: more than a cache holds.
MODEL = Model(
    "small", architecture="llama", layers=(Layer("global", 32, 4, 64, 64),) * 22, hidden=2048, ffn=5632, vocab=32000,
    tied=True, tensors=Tensors("Q8_0", total_bytes=1_500_000_000, embedding_bytes=35_000_000),
)  # fmt: skip

CEILINGS = {
    "bandwidth_bytes_per_s": {"median": 20e9, "low": 18e9, "high": 21e9, "n": 9},
    "flops_per_s": {"median": 0.10e12, "low": 0.09e12, "high": 0.11e12, "n": 9},
    "measured_on": "cpu",
    "source": "measured here",
}


def run_facts(**host: Any) -> RunFacts:
    server = {"model_name": "small", "quantization": "Q8_0", "model": to_json(Reading("gguf", MODEL))}
    return RunFacts("r", host={"machine": "a-box", "ceilings": CEILINGS} | host, server=server)


def embedded(row: MakeRow, **values: object) -> Row:
    return row(api="embedded", machine="a-box", model="small", quantization="Q8_0", gpu_fraction=0.0, **values)


def test_a_machine_of_no_catalogue_has_what_its_run_measured(facts: Facts, row: MakeRow) -> None:
    """Bandwidth and FLOP/s with their n and spread, labelled as the processor's; the model as its server described."""
    known = known_of([embedded(row)], facts, [run_facts()])
    assert known.model(embedded(row)) == MODEL
    assert known.machine(embedded(row)) == Machine(
        "a-box",
        measured=Ceilings(
            Spread(20e9, 18e9, 21e9, 9), Spread(0.10e12, 0.09e12, 0.11e12, 9), measured_on="cpu", source="measured here"
        ),
    )


@pytest.mark.parametrize("fraction", [1.0, 0.5, None])
def test_a_processors_ceiling_bounds_no_gpu(facts: Facts, row: MakeRow, fraction: float | None) -> None:
    """Where any part of the model ran on a GPU, or nobody knows, it is no denominator."""
    one = embedded(row) | {"gpu_fraction": fraction}
    assert known_of([one], facts, [run_facts()]).machine(one) is None


def test_a_catalogued_machine_keeps_its_datasheet(facts: Facts, row: MakeRow) -> None:
    """A Mac whose model ran on the processor: the chip's figures stay, the measured ones are the processor's."""
    one = embedded(row) | {"machine": "mac-mini-m4-32gb"}
    machine = known_of([one], facts, [run_facts(machine="mac-mini-m4-32gb")]).machine(one)
    assert machine is not None
    assert machine.chip == facts.machine("mac-mini-m4-32gb").machine.chip
    assert machine.measured is not None
    assert machine.measured.measured_on == "cpu"


@pytest.mark.parametrize(
    "host",
    [
        {},
        {"ceilings": None},
        {"ceilings": {"flops_per_s": {"median": "fast", "low": 1, "high": 2}}},
        {"ceilings": {"flops_per_s": {"median": 1e9, "low": 2e9, "high": 3e9}}},  # a median below the lowest
        {"ceilings": {"bandwidth_bytes_per_s": {"median": 0, "low": 0, "high": 0, "n": 9}}},
    ],
)
def test_a_host_that_measured_nothing_has_no_ceilings(host: dict[str, Any]) -> None:
    """Absent, empty, or numbers that cannot be: unknown, not zero."""
    assert processor_ceilings(host) is None


# 512 tokens take 2 x 22 x 44,040,192 x 512 = 0.992 TFLOP and 0.024 of attention.


@pytest.mark.parametrize(
    ("quantization", "prefill_ms", "told"),
    [
        # Q8_0 may pass 0.11 TFLOPS four times over, 0.44: 1.02 TFLOP in 2 s are 0.51, in 4 s 0.25.
        ("Q8_0", 2000.0, True),
        ("Q8_0", 4000.0, False),
        # F16 is multiplied in float32: 0.25 are more than the 0.11 that a product of matrices reached, 0.08 are not.
        ("F16", 4000.0, True),
        ("F16", 12500.0, False),
    ],
)
def test_above_a_measured_rate_is_told_and_not_impossible(
    facts: Facts, row: MakeRow, judge: Judge, quantization: str, prefill_ms: float, told: bool
) -> None:
    """A busy machine measures itself slow: what passes that is told with its numbers, and keeps its row."""
    one = embedded(row, server_prefill_ms=prefill_ms, ttft_ms=prefill_ms + 50, last_token_ms=prefill_ms + 90000,
                   e2e_ms=prefill_ms + 90001) | {"quantization": quantization}  # fmt: skip
    run = run_facts()
    run = RunFacts("r", host=run.host, server={**run.server, "quantization": quantization})
    found = judge([one], known=known_of([one], facts, [run]))
    assert [(finding.kind, finding.doubtful) for finding in found] == [("above_measured_compute", False)] * told
    for finding in found:
        assert (finding.values["measured_flops_per_s"], finding.values["n"]) == (0.11e12, 9)


@pytest.mark.parametrize(("tok_per_s", "told"), [(15.0, True), (13.0, False)])
def test_above_a_measured_bandwidth_is_told(
    facts: Facts, row: MakeRow, judge: Judge, tok_per_s: float, told: bool
) -> None:
    """1.5 GB a token at 21 GB/s are 14 a second: 15 are told, 13 are not; neither spoils."""
    one = embedded(row, server_prefill_ms=20000.0, ttft_ms=20050.0, last_token_ms=20050 + 31000 / tok_per_s,
                   e2e_ms=30000.0)  # fmt: skip
    found = judge([one], known=known_of([one], facts, [run_facts()]))
    assert [(finding.kind, finding.doubtful) for finding in found] == [("above_measured_bandwidth", False)] * told


# Suspiciously slow


QUICK = Machine("m", Chip("c", memory_kind="unified", bandwidth_bytes_per_s=Range.of(100e9), peaks=Peaks()))
HBM = Machine("m", Chip("h", memory_kind="discrete", bandwidth_bytes_per_s=Range.of(3000e9), peaks=Peaks()))
FOUR_GB = Model("four", tied=True, layers=(), tensors=Tensors("Q4_0", total_bytes=4 * 10**9, expert_bytes=0))


def decoding(row: MakeRow, tok_per_s: float, **more: object) -> Row:
    times = {"ttft_ms": 2600.0, "last_token_ms": 2600 + 31000 / tok_per_s, "e2e_ms": 2600 + 31000 / tok_per_s}
    return row(quantization="Q4_0", **(times | more))


@pytest.mark.parametrize(
    ("machine", "tok_per_s", "more", "slow"),
    [
        # 4 GB at 100 GB/s are 25 tokens a second; r / 25 = a quarter of (1 - 8.2 ms x r) at r = 5.95.
        (QUICK, 5.8, {}, True),
        (QUICK, 6.1, {}, False),
        (QUICK, 20.0, {}, False),
        # HBM reaches 8 % at least: r / 750 = 8 % of (1 - 3.1 ms x r) at r = 50.6.
        (HBM, 49.0, {}, True),
        (HBM, 52.0, {}, False),
        # Several at once share the steps' time; a model half on the processor is told as that.
        (QUICK, 3.0, {"concurrency": 8, "kind": "concurrency"}, False),
        (QUICK, 3.0, {"gpu_fraction": 0.5}, False),
        (QUICK, 3.0, {"output_tokens": 7, "last_token_ms": 4600.0}, False),  # too few tokens for a rate
    ],
)
def test_a_decode_far_below_the_memorys_rate_is_told(
    row: MakeRow, judge: Judge, machine: Machine, tok_per_s: float, more: Row, slow: bool
) -> None:
    """Below a quarter of the bandwidth (a twelfth on HBM) something else decides: told, and the row stays."""
    known = Known({("x", "Q4_0"): FOUR_GB}, {"m": machine})
    found = judge([decoding(row, tok_per_s, **more)], "slow_decode", "near_bandwidth", "above_bandwidth", known=known)
    assert [(finding.kind, finding.doubtful) for finding in found] == [("slow_decode", False)] * slow


def test_a_model_that_guesses_ahead_reads_its_weights_once_a_step(row: MakeRow, judge: Judge) -> None:
    """60 tokens a second in threes are 20 steps of 4 GB: 80 GB/s of 100. One by one they would be 240."""
    threes = [2600.0 + 50 * (i // 3) for i in range(33)]
    ones = [2600.0 + 50 / 3 * i for i in range(33)]
    known = Known({("x", "Q4_0"): FOUR_GB}, {"m": QUICK})
    kinds = ("above_bandwidth", "near_bandwidth")
    for times, expected in ((threes, []), (ones, ["above_bandwidth"])):
        one = row(quantization="Q4_0", output_tokens=33, output_tokens_wanted=33, chunks=33, chunk_times_ms=times,
                  last_token_ms=times[-1], e2e_ms=times[-1])  # fmt: skip
        assert [finding.kind for finding in judge([one], *kinds, known=known)] == expected


def test_a_name_is_looked_up_once(facts: Facts, row: MakeRow, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand rows of a machine and a model that no catalogue has ask for each of them once."""
    asked: list[str] = []
    machine = Facts.machine

    def counted(self: Facts, name: str) -> Any:
        asked.append(name)
        return machine(self, name)

    monkeypatch.setattr(Facts, "machine", counted)
    known_of([embedded(row, order_index=i) for i in range(1000)], facts)
    assert asked == ["a-box"]
