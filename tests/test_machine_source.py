"""`budget --machine FILE`: the machine that `collect facts` described, on which a budget has denominators."""

import json
from pathlib import Path
from typing import Any

import pytest

from roofbook.commands.budget import run
from roofbook.commands.machine_source import find_machine
from roofbook.errors import ReaderError, UsageError
from roofbook.facts import Facts, load_facts
from roofbook.theory.shapes import Ceilings, Machine, Spread

ROOT = Path(__file__).parents[1]

HERE: dict[str, Any] = {
    "chip": "AMD Ryzen 9 9950X", "cores": 16, "memory_bytes": 64 * 2**30, "os": "Ubuntu", "os_version": "26.04",
    "gpus": [], "machine": "amd-ryzen-9-9950x-16c-64gb",
    "ceilings": {
        "bandwidth_bytes_per_s": {"median": 70e9, "low": 65e9, "high": 75e9, "n": 9},
        "flops_per_s": {"median": 1.0e12, "low": 0.9e12, "high": 1.1e12, "n": 9},
        "measured_on": "cpu", "source": "measured here",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts(ROOT / "data" / "facts")


def written(folder: Path, value: object) -> str:
    path = folder / "here.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return str(path)


def test_an_unknown_machine_is_what_it_measured(tmp_path: Path, facts: Facts) -> None:
    """Its memory, and its processor's rates as denominators; the source is the file."""
    found = find_machine(written(tmp_path, HERE), facts)
    assert found.macos is None
    assert found.fact.machine == Machine(
        "amd-ryzen-9-9950x-16c-64gb",
        name="AMD Ryzen 9 9950X",
        memory_bytes=64 * 2**30,
        measured=Ceilings(Spread(70e9, 65e9, 75e9, 9), Spread(1.0e12, 0.9e12, 1.1e12, 9), "cpu", "measured here"),
    )
    assert found.fact.provenance.source == "here.json"


def test_a_card_of_its_own_is_not_bounded_by_the_processor(tmp_path: Path, facts: Facts) -> None:
    """Its memory is the card's, and what the processor reaches bounds nothing."""
    card = {"name": "Some GPU", "memory_bytes": 12 * 2**30, "cores": None, "driver": None}
    machine = find_machine(written(tmp_path, {**HERE, "machine": "some-gpu-12gb", "gpus": [card]}), facts).fact.machine
    assert (machine.memory_bytes, machine.measured) == (12 * 2**30, None)


def test_a_known_machine_keeps_its_datasheet_and_adds_what_its_system_says(tmp_path: Path, facts: Facts) -> None:
    """A Mac of the catalogue, with the limits that it reports and the macOS that it runs."""
    mac = {
        "machine": "mac-mini-m4-32gb", "chip": "Apple M4", "memory_bytes": 32 * 2**30, "os": "macOS",
        "os_version": "26.1", "gpu_limit_bytes": 26_800_000_000, "wired_limit_mib": 0, "gpus": [{"name": "Apple M4"}],
    }  # fmt: skip
    found = find_machine(written(tmp_path, mac), facts)
    known = facts.machine("mac-mini-m4-32gb").machine
    assert found.macos == 26
    assert found.fact.machine.chip == known.chip
    assert found.fact.machine.gpu_limit_bytes == 26_800_000_000


def test_an_id_is_still_an_id(facts: Facts) -> None:
    """Without such a file the catalogue is asked, and says which machines are near."""
    assert find_machine("mac-mini-m4-32gb", facts).fact == facts.machine("mac-mini-m4-32gb")
    with pytest.raises(UsageError):
        find_machine("no-such-machine", facts)


@pytest.mark.parametrize(
    "value",
    [
        "not json",
        "[]",
        "{}",
        {"machine": 3, "memory_bytes": 2**30},
        {**HERE, "memory_bytes": -1},
        {**HERE, "machine": None},
    ],
)
def test_a_file_that_holds_no_machine(value: object, tmp_path: Path, facts: Facts) -> None:
    """One message that names the file."""
    with pytest.raises(ReaderError) as refused:
        find_machine(written(tmp_path, value), facts)
    assert refused.value.values["file"] == "here.json"


def test_a_budget_on_it_has_speeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model of 4.37 GB a step at 65 to 75 GB/s: 14.9 to 17.2 tokens a second, by what was measured."""
    assert run(["qwen2.5-7b", "--machine", written(tmp_path, HERE), "--json"], ROOT) == 0
    speed = json.loads(capsys.readouterr().out)["speed"]
    assert speed["datasheet"] is None
    decode = speed["measured"]["decode_tok_per_s"]
    assert (round(decode["low"], 1), round(decode["high"], 1)) == (14.9, 17.2)
