"""What a subject ran on: the catalogue's machine, or what its run measured where no catalogue knows it."""

from pathlib import Path
from typing import Any

import pytest

from roofbook.analysis.ceilings import ceilings
from roofbook.analysis.equipment import Equipment, equipment_of
from roofbook.analysis.latency import latency_points
from roofbook.analysis.subjects import subjects
from roofbook.facts import load_facts
from roofbook.readers.reading import Reading, to_json
from roofbook.record import Row, RunFacts, read_run, write_run
from roofbook.theory.shapes import Layer, Machine, Model, Range, Spread, Tensors
from roofbook.units import GIB

FACTS = load_facts(Path(__file__).parents[2] / "data" / "facts")

MODEL = Model(
    "tiny", architecture="llama", layers=(Layer("global", 9, 3, 64, 64),) * 30, hidden=576, ffn=1536, vocab=49152,
    tied=True, tensors=Tensors("Q8_0", total_bytes=2_000_000_000, embedding_bytes=0),
)  # fmt: skip
SPREAD = {"median": 20e9, "low": 18e9, "high": 21e9, "n": 9}
HOST = {
    "machine": "a-box", "memory_bytes": 8 * GIB, "os": "Debian", "os_version": "13",
    "ceilings": {"bandwidth_bytes_per_s": SPREAD, "flops_per_s": SPREAD, "source": "measured here"},
}  # fmt: skip
ROW: Row = {
    "run_id": "r", "order_index": 0, "phase": "measured", "status": "ok", "experiment": "e", "kind": "baseline",
    "point": "p", "machine": "a-box", "api": "embedded", "server": "llama.cpp", "model": "tiny", "quantization": "Q8_0",
    "gpu_fraction": 0.0, "prompt_tokens": 100, "output_tokens": 11, "ttft_ms": 1000.0, "last_token_ms": 3000.0,
    "kv_cache_type": "f16",
}  # fmt: skip


def equipment(folder: Path, rows: list[Row], host: dict[str, Any]) -> Equipment:
    server = {"model_name": "tiny", "quantization": "Q8_0", "model": to_json(Reading("gguf", MODEL))}
    run = read_run(write_run(folder, rows, RunFacts("r", host=host, server=server)))
    (subject,) = subjects(run.rows)
    return equipment_of(subject, [run], FACTS)


def test_a_machine_of_no_catalogue_is_what_its_run_measured(tmp_path: Path) -> None:
    """Memory and both ceilings, labelled as the processor's, with n and spread; the model as its server has it."""
    found = equipment(tmp_path, [ROW], HOST)
    assert found.model == MODEL
    assert isinstance(found.machine, Machine)
    assert (found.machine.id, found.machine.memory_bytes, found.machine.chip) == ("a-box", 8 * GIB, None)
    assert found.machine.measured is not None
    assert (found.machine.measured.measured_on, found.machine.measured.source) == ("cpu", "measured here")
    assert found.machine.measured.bandwidth_bytes_per_s == Spread(20e9, 18e9, 21e9, 9)


@pytest.mark.parametrize(
    ("fractions", "host"), [([1.0], HOST), ([0.0, 0.5], HOST), ([None], HOST), ([0.0], {"machine": "a-box"})]
)
def test_without_a_measured_processor_there_is_no_denominator(
    tmp_path: Path, fractions: list[float | None], host: dict[str, Any]
) -> None:
    """On a GPU, in part, nobody knows, or a host that measured nothing."""
    rows = [ROW | {"order_index": i, "gpu_fraction": fraction} for i, fraction in enumerate(fractions)]
    machine = equipment(tmp_path, rows, host).machine
    assert machine is not None
    assert machine.measured is None


def test_its_figures_are_held_against_what_was_measured(tmp_path: Path) -> None:
    """5 tokens a second of 2 GB and a cache of 100 x 23,040 B: 10.01 of 18 to 21 GB/s, and the verdict says so."""
    server = {"model": to_json(Reading("gguf", MODEL))}
    run = read_run(write_run(tmp_path, [ROW], RunFacts("r", host=HOST, server=server)))
    found = equipment(tmp_path, [ROW], HOST)
    assert found.model is not None
    assert found.machine is not None
    (point,) = ceilings(latency_points(run.rows, []), found.model, found.machine, "Q8_0", "f16")
    assert point.decode is not None
    assert point.decode.used.low == point.decode.used.high == pytest.approx(5 * (2e9 + 100 * 23_040))
    assert (point.decode.datasheet, point.decode.measured) == (None, Range(18e9, 21e9))
    assert (point.decode.verdict, point.decode.basis) == ("room_to_tune", "measured")
