"""macOS' tools, by text in their formats: written here after their manuals and public reports, none recorded."""

import json

import pytest

from collect.host import HostFacts, facts, macos
from collect.host.macos import MacGpu, MacHardware
from roofbook.theory.limits import gpu_limit
from roofbook.theory.shapes import Chip, Machine
from roofbook.units import GIB, MIB

SYSCTL = """hw.memsize: 34359738368
machdep.cpu.brand_string: Apple M4
iogpu.wired_limit_mb: 0
vm.swapusage: total = 2048.00M  used = 1022.25M  free = 1025.75M  (encrypted)
sysctl: unknown oid 'hw.nothing'
"""
THERM_QUIET = """Note: No thermal warning level has been recorded
Note: No performance warning level has been recorded
Note: No CPU power status has been recorded
"""
THERM_TABLE = """2024-07-01 10:00:00 +0900 CPU Power notify
	CPU_Scheduler_Limit 	= 100
	CPU_Available_CPUs 	= 8
	CPU_Speed_Limit 	= {speed}
"""
BATTERY = """Now drawing from '{source}'
 -InternalBattery-0 (id=4653155)\t57%; discharging; 3:12 remaining present: true
"""
HARDWARE = {
    "SPHardwareDataType": [
        {
            "_name": "hardware_overview", "chip_type": "Apple M4", "machine_name": "Mac mini",
            "machine_model": "Mac16,10", "number_processors": "proc 10:4:6", "physical_memory": "32 GB",
            "platform_UUID": "12345678-AAAA-BBBB-CCCC",
            "provisioning_UDID": "00008132-001A2B3C4D5E6F70", "serial_number": "C02ABC123XYZ",
        }
    ]
}  # fmt: skip
DISPLAYS = {
    "SPDisplaysDataType": [
        {
            "_name": "kHW_AppleM4Item", "sppci_model": "Apple M4", "sppci_cores": "10",
            "spdisplays_ndrvs": [{"_name": "Jihoon's display", "_spdisplays_display-serial-number": "a1b2c3d4"}],
        }
    ]
}  # fmt: skip


def test_sysctl() -> None:
    """Names and values; what the system does not have is an error line, and no value."""
    values = macos.parse_sysctl(SYSCTL)
    assert set(values) == {"hw.memsize", "machdep.cpu.brand_string", "iogpu.wired_limit_mb", "vm.swapusage"}
    assert macos.whole(values, "hw.memsize") == 34359738368
    assert macos.whole(values, "iogpu.wired_limit_mb") == 0
    assert macos.whole(values, "hw.nothing") is None
    assert macos.parse_swap_used(values) == 1_071_906_816  # 1022.25 MiB


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("com.apple.system.thermalpressurelevel 0\n", "nominal"),
        ("com.apple.system.thermalpressurelevel 2\n", "heavy"),
        ("com.apple.system.thermalpressurelevel 9\n", None),
        ("", None),
    ],
)
def test_thermal_pressure(printed: str, expected: str | None) -> None:
    """The levels of OSThermalNotification.h by name; an unknown one is unknown."""
    assert macos.parse_thermal_pressure(printed) == expected


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (THERM_QUIET, "none"),
        (THERM_TABLE.format(speed=100), "none"),
        (THERM_TABLE.format(speed=70), "cpu_speed_limit_70"),
        ("", None),
        ("pmset: command not found", None),
    ],
)
def test_pmset_therm(printed: str, expected: str | None) -> None:
    """A speed limit under 100 per cent is a reason, notes and full speed are none, silence is unknown."""
    assert macos.parse_therm(printed) == expected


@pytest.mark.parametrize(
    ("source", "expected"), [("AC Power", "ac"), ("Battery Power", "battery"), ("UPS Power", "ups"), ("Sun", None)]
)
def test_pmset_batt(source: str, expected: str | None) -> None:
    """B43: mains, battery or a UPS; the battery's id is not kept."""
    assert macos.parse_batt(BATTERY.format(source=source)) == expected


@pytest.mark.parametrize(
    ("printed", "expected"),
    [(" lowpowermode         1\n womp 1\n", True), (" lowpowermode         0\n", False), (" womp 1\n", None)],
)
def test_b43_low_power_mode(printed: str, expected: bool | None) -> None:
    """B43: low power mode as `pmset -g` has it; a Mac without it does not say."""
    assert macos.parse_low_power(printed) is expected


def test_system_profiler() -> None:
    """The kind of machine, the chip and the GPU's cores; no serial number, no display, no name of a person."""
    assert macos.parse_hardware(json.dumps(HARDWARE)) == MacHardware("Mac mini", "Apple M4")
    assert macos.parse_displays(json.dumps(DISPLAYS)) == (MacGpu("Apple M4", 10),)
    assert macos.parse_hardware("") == MacHardware(None, None)
    assert macos.parse_displays("{") == ()


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("ggml_metal_device_init: recommendedMaxWorkingSetSize  = 26800.60 MB\n", 26_800_600_000),
        ("ggml_metal_init: recommendedMaxWorkingSetSize  = 22906.50 MB\nmore", 22_906_500_000),
        ("ggml_metal_init: recommendedMaxWorkingSetSize  = 0.00 MB", None),
        ("nothing of the kind", None),
    ],
)
def test_metals_line_in_the_engines_log(log: str, expected: int | None) -> None:
    """llama.cpp prints MB of 1,000,000 bytes."""
    assert macos.parse_metal_limit(log) == expected


def on_a_mac(memory_bytes: int, wired_mib: int, metal: str) -> HostFacts:
    return HostFacts(
        chip="Apple M2", cores=8, memory_bytes=memory_bytes, os="macOS", os_version="15.6",
        gpu_limit_bytes=macos.parse_metal_limit(metal), wired_limit_mib=wired_mib,
    )  # fmt: skip


def limit_of(host: HostFacts) -> tuple[float, bool]:
    chip = Chip("apple-m2", vendor="apple", memory_kind="unified")
    machine = host.machine()
    known = Machine(
        "mac", chip, memory_bytes=machine.memory_bytes, gpu_limit_bytes=machine.gpu_limit_bytes,
        wired_limit_mib=machine.wired_limit_mib,
    )  # fmt: skip
    found = gpu_limit(known, host.macos)
    assert found.limit_bytes.known
    return found.limit_bytes.low, found.estimated


def test_b27_what_a_macs_gpu_may_use() -> None:
    """B27: nothing set is an estimate and never zero; a set limit is MiB; what Metal reports is what holds."""
    # 2/3 of 32 GiB = 21.33 GiB
    assert limit_of(on_a_mac(34359738368, 0, "")) == (pytest.approx(32 * GIB * 2 / 3), True)
    # 26000 MiB = 25.39 GiB
    assert limit_of(on_a_mac(34359738368, 26000, "")) == (26000 * MIB, False)
    # 28991.03 MB = 27.00 GiB, where two thirds of 36 GiB would be 24.0
    measured, estimated = limit_of(on_a_mac(38654705664, 0, "recommendedMaxWorkingSetSize = 28991.03 MB"))
    assert (round(measured / GIB, 2), estimated) == (27.0, False)


def test_a_mac_as_its_tools_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tools together: one Mac mini, and nothing personal in what is kept of it."""
    printed = {
        ("sysctl",): SYSCTL,
        ("system_profiler", "SPHardwareDataType"): json.dumps(HARDWARE),
        ("system_profiler", "SPDisplaysDataType"): json.dumps(DISPLAYS),
        ("pmset",): " lowpowermode 0\n",
    }

    def tool(*command: str, **_: float) -> str:
        return next((text for start, text in printed.items() if command[: len(start)] == start), "")

    monkeypatch.setattr(facts, "output", tool)
    monkeypatch.setattr(facts.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(facts.platform, "mac_ver", lambda: ("15.5", ("", "", ""), "arm64"))
    monkeypatch.setattr(facts.nvidia, "reader", lambda: None)
    monkeypatch.setattr(facts.psutil, "cpu_count", lambda **_: 10)
    host = facts.this_host(engine_log="recommendedMaxWorkingSetSize = 22906.50 MB")
    assert host == HostFacts(
        chip="Apple M4", cores=10, memory_bytes=34359738368, os="macOS", os_version="15.5",
        gpus=(facts.Gpu("Apple M4", cores=10),), model="Mac mini", gpu_limit_bytes=22_906_500_000, wired_limit_mib=0,
        low_power_mode=False,
    )  # fmt: skip
    kept = json.dumps(host.as_json())
    assert not any(planted in kept for planted in ("C02ABC123XYZ", "12345678", "00008132", "Jihoon", "a1b2c3d4"))
