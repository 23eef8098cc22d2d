"""This machine: which one of the catalogue it is, what its processor reaches, what it does in between."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from collect.host import Gpu, HostFacts, KeepAwake, Reading, Sampler, awake, measure_ceilings, this_host
from collect.host.sampler import seen
from roofbook.facts import Facts, load_facts
from roofbook.units import GIB

ROOT = Path(__file__).parents[2]
MIB = 2**20


@pytest.fixture(scope="module")
def catalogue() -> Facts:
    return load_facts(ROOT / "data" / "facts")


def mac(model: str | None, chip: str, gpu_cores: int, memory_gib: int) -> HostFacts:
    return HostFacts(
        chip=chip, cores=10, memory_bytes=memory_gib * GIB, os="macOS", os_version="15.5",
        gpus=(Gpu(chip, cores=gpu_cores),), model=model,
    )  # fmt: skip


def box(name: str, memory_mib: int, count: int = 1) -> HostFacts:
    return HostFacts(
        chip="AMD Ryzen 9 7950X 16-Core Processor", cores=16, memory_bytes=64 * GIB, os="Ubuntu", os_version="24.04",
        gpus=(Gpu(name, memory_mib * MIB),) * count,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (mac("Mac mini", "Apple M4", 10, 32), "mac-mini-m4-32gb"),
        (mac("Mac mini", "Apple M4 Pro", 16, 24), "mac-mini-m4-pro-16-24gb"),
        (mac("Mac mini", "Apple M4 Pro", 20, 24), "mac-mini-m4-pro-20-24gb"),
        (box("NVIDIA GeForce RTX 4060 Ti", 8188), "desktop-rtx-4060-ti-8gb"),
        (box("NVIDIA GeForce RTX 4090", 24564), "nvidia-rtx-4090"),
        (box("NVIDIA A100-SXM4-80GB", 81920), "nvidia-a100-sxm4-80gb"),
    ],
)
def test_a_machine_of_the_catalogue_has_its_id(host: HostFacts, expected: str, catalogue: Facts) -> None:
    """Chip and memory decide, and the kind of machine where several have both."""
    assert host.machine_id(catalogue) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (mac("MacBook Air", "Apple M4", 10, 32), "apple-m4-10c-32gb"),  # no such machine listed
        (mac("Mac mini", "Apple M4", 10, 48), "apple-m4-10c-48gb"),  # not sold with that memory
        (box("NVIDIA GeForce RTX 4060 Laptop GPU", 8188), "nvidia-rtx-4060-laptop-8gb"),
        (box("NVIDIA GeForce RTX 4060 Ti", 12288), "nvidia-rtx-4060-ti-12gb"),
        (box("NVIDIA GeForce RTX 4090", 24564, count=2), "2x-nvidia-rtx-4090-24gb"),
        (HostFacts("AMD EPYC", 2, 25276502016, "Debian", "12"), "amd-epyc-2c-24gb"),
        (
            HostFacts("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", 6, 16 * GIB, "Ubuntu", "24.04"),
            "intel-core-i7-8700-6c-16gb",
        ),
    ],
)
def test_any_other_machine_is_a_slug_of_what_it_is(host: HostFacts, expected: str, catalogue: Facts) -> None:
    """Nothing is guessed: without a match it is chip, cores and memory."""
    assert host.machine_id(catalogue) == expected


def test_this_machine_tells_nothing_personal() -> None:
    """Its facts hold a chip, cores and memory, and neither its name nor its user's nor their home."""
    host = this_host()
    kept = json.dumps(host.as_json()).lower()
    assert host.cores
    assert host.memory_bytes == psutil.virtual_memory().total
    personal = [socket.gethostname(), str(Path("~").expanduser())]
    assert not [one for one in personal if len(one) > 3 and one.lower() in kept]


# ---- what it reaches


def test_the_ceilings_are_measured_with_their_spread() -> None:
    """Both rates with n and spread, marked as the processor's: within what any processor of these years reaches."""
    found = measure_ceilings(side=256, read_bytes=16 * MIB, repeats=5)
    assert found.measured_on == "cpu"
    for spread, least, most in ((found.bandwidth_bytes_per_s, 1e8, 1e13), (found.flops_per_s, 1e8, 1e14)):
        assert spread is not None
        assert spread.n == 5
        assert least < spread.low <= spread.median <= spread.high < most


def test_the_read_ceiling_is_the_bytes_over_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that steps by 0.5 s, 16 MiB read and 2 x 64^3 products are 32 MiB/s and 1.05 MFLOP/s."""
    steps = iter(range(10_000))
    monkeypatch.setattr("collect.host.ceilings.time.perf_counter", lambda: next(steps) * 0.5)
    found = measure_ceilings(side=64, read_bytes=16 * MIB, repeats=3)
    assert found.bandwidth_bytes_per_s is not None
    assert found.flops_per_s is not None
    assert (found.bandwidth_bytes_per_s.median, found.bandwidth_bytes_per_s.n) == (32 * MIB, 3)
    assert found.flops_per_s.median == 2 * 64**3 / 0.5


# ---- what it does


def test_a_row_gets_what_was_seen_during_its_request() -> None:
    """Swap from just before, the least free memory, the worst heat, the mean of power and clock, all reasons."""
    row = seen([
        Reading(0, swapped_in_bytes=100, memory_free_bytes=1, thermal_level="sleeping", power_source="ac",
                gpu_power_w=900, gpu_clock_mhz=1, throttle_reasons=frozenset({"hw_slowdown"}), throttle_known=True),
        Reading(1, swapped_in_bytes=150, memory_free_bytes=50, thermal_level="heavy", power_source="ac",
                gpu_power_w=100, gpu_clock_mhz=2000, throttle_reasons=frozenset({"none"}), throttle_known=True),
        Reading(2, swapped_in_bytes=400, memory_free_bytes=70, thermal_level="nominal", power_source="battery",
                gpu_power_w=200, gpu_clock_mhz=1000, throttle_known=True,
                throttle_reasons=frozenset({"sw_power_cap", "hw_thermal_slowdown"})),
    ])  # fmt: skip
    assert row == {
        "swap_in_bytes": 300, "memory_free_bytes": 50, "thermal_level": "heavy", "power_source": "battery",
        "gpu_power_w": 150.0, "gpu_clock_mhz": 1500.0, "throttle_reason": "hw_thermal_slowdown, sw_power_cap",
    }  # fmt: skip


def test_what_was_not_seen_is_null() -> None:
    """Unreadable is unknown; readable and quiet is "none"."""
    assert set(seen([Reading(0), Reading(1)]).values()) == {None}
    quiet = [Reading(0, throttles=5, throttle_known=True), Reading(1, throttles=5, throttle_known=True)]
    assert seen(quiet)["throttle_reason"] == "none"


def test_heat_that_was_counted_during_a_request_is_its_reason() -> None:
    """Linux counts how often heat held a processor down: the difference is this request's."""
    hot = [Reading(0, throttles=5, throttle_known=True), Reading(1, throttles=7, throttle_known=True)]
    assert seen(hot)["throttle_reason"] == "cpu_thermal"


def test_the_sampler_looks_by_itself() -> None:
    """It has a reading at once and more with time; a row is its columns, and the numbers go to the samples."""
    looks: list[tuple[datetime, Mapping[str, float]]] = []
    with Sampler(lambda *look: looks.append(look), period_s=0.05) as sampler:
        started = time.monotonic()
        while len(looks) < 3 and time.monotonic() < started + 30:
            time.sleep(0.01)
        row = sampler.sample(started)
    assert set(row) == {
        "swap_in_bytes", "memory_free_bytes", "thermal_level", "power_source", "gpu_power_w", "gpu_clock_mhz",
        "throttle_reason",
    }  # fmt: skip
    assert 0 < row["memory_free_bytes"] <= psutil.virtual_memory().total
    assert len(looks) >= 3
    assert {"memory_free_bytes", "swapped_in_bytes"} <= set(looks[-1][1])
    assert abs(looks[-1][0].timestamp() - time.time()) < 30
    assert looks[0][0].tzinfo is UTC


def test_a_row_is_quickly_sampled() -> None:
    """A request does not wait for the machine's tools: a row takes far less than a token."""
    with Sampler(period_s=60) as sampler:
        times = [_ms(lambda: sampler.sample(time.monotonic())) for _ in range(20)]
    assert sorted(times)[10] < 5


def _ms(work: object) -> float:
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return (time.perf_counter() - started) * 1000


# ---- awake


def test_b43_the_machine_is_kept_awake() -> None:
    """B43: caffeinate on macOS, which ends with us; systemd's inhibitor on Linux, whose `cat` ends with its input."""
    assert awake.command_for("darwin", 4711) == ["caffeinate", "-i", "-w", "4711"]
    linux = awake.command_for("linux", 4711)
    assert linux is not None
    assert (linux[0], linux[-1]) == ("systemd-inhibit", "cat")
    assert awake.command_for("win32", 4711) is None


def test_what_keeps_awake_ends_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process runs inside the block and is gone after it."""
    monkeypatch.setattr(awake, "command_for", lambda *_: ["cat"])
    with KeepAwake() as kept:
        assert kept.held
    assert not kept.held


def test_what_keeps_awake_ends_with_us() -> None:
    """Killed outright, we leave nothing behind that keeps the machine awake for ever."""
    script = (
        "import time; from collect.host import awake, KeepAwake; awake.command_for = lambda *_: ['cat']\n"
        "with KeepAwake() as kept: print(kept._process.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 5
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_machine_without_the_tool_is_measured_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """No caffeinate, no inhibitor: the block runs, and knows that nothing holds."""
    monkeypatch.setattr(awake, "command_for", lambda *_: ["no-such-tool-anywhere"])
    with KeepAwake() as kept:
        assert not kept.held
