"""Linux' /proc and /sys, by a folder that a test writes."""

import os
from pathlib import Path

import pytest

from collect.host import linux


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


CPUINFO = "processor\t: 0\nmodel name\t: AMD Ryzen 9 7950X 16-Core Processor\nflags\t\t: fpu vme{}\n"


def test_the_processor_and_what_it_runs_under(tmp_path: Path) -> None:
    """The name, and whether a hypervisor stands below."""
    write(tmp_path / "a", **{"proc/cpuinfo": CPUINFO.format("")})
    write(tmp_path / "b", **{"proc/cpuinfo": CPUINFO.format(" hypervisor")})
    assert linux.cpu_name(tmp_path / "a") == "AMD Ryzen 9 7950X 16-Core Processor"
    assert (linux.is_virtual(tmp_path / "a"), linux.is_virtual(tmp_path / "b")) == (False, True)


def test_a_board_without_a_processors_name(tmp_path: Path) -> None:
    """An Arm board is named by its device tree; nothing at all is unknown."""
    write(tmp_path, **{"proc/cpuinfo": "processor\t: 0\n", "proc/device-tree/model": "Raspberry Pi 5 Model B\0"})
    assert linux.cpu_name(tmp_path) == "Raspberry Pi 5 Model B"
    assert (linux.cpu_name(tmp_path / "none"), linux.is_virtual(tmp_path / "none")) == (None, None)


def test_the_distribution(tmp_path: Path) -> None:
    """Name and version, quoted or not."""
    write(tmp_path, **{"etc/os-release": 'NAME="Ubuntu"\nVERSION_ID=24.04\nPRETTY_NAME="x=y"\n'})
    assert linux.os_release(tmp_path) == ("Ubuntu", "24.04")
    assert linux.os_release(tmp_path / "none") == ("Linux", "")


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [("65000", "nominal"), ("95000", "serious"), ("101000", "serious"), ("110000", "critical")],
)
def test_the_thermal_level(tmp_path: Path, temperature: str, expected: str) -> None:
    """A zone at its passive trip point holds the clocks; a trip point of zero was never set."""
    zone = "sys/class/thermal/thermal_zone0"
    write(
        tmp_path,
        **{
            f"{zone}/temp": temperature,
            f"{zone}/trip_point_0_type": "critical", f"{zone}/trip_point_0_temp": "110000",
            f"{zone}/trip_point_1_type": "passive", f"{zone}/trip_point_1_temp": "95000",
            f"{zone}/trip_point_2_type": "passive", f"{zone}/trip_point_2_temp": "0",
            f"{zone}/trip_point_3_type": "active", f"{zone}/trip_point_3_temp": "40000",
            "sys/class/thermal/thermal_zone1/temp": "20000",
        },
    )  # fmt: skip
    assert linux.thermal_level(tmp_path) == expected


def test_what_a_machine_does_not_tell_is_unknown(tmp_path: Path) -> None:
    """A virtual machine has no zones, no counters and no power supply."""
    assert linux.thermal_level(tmp_path) is None
    assert linux.throttle_count(tmp_path) is None
    assert linux.power_source(tmp_path) is None
    assert linux.governor(tmp_path) is None


def test_what_was_swapped_in_is_in_pages(tmp_path: Path) -> None:
    """Pages since the start, of this system's size; a container that hides them leaves it unknown."""
    write(tmp_path, **{"proc/vmstat": "pgpgin 5\npswpin 10\npswpout 3\n"})
    assert linux.swapped_in_bytes(tmp_path) == 10 * os.sysconf("SC_PAGE_SIZE")
    assert linux.swapped_in_bytes(tmp_path / "none") is None


def test_throttling_is_counted_over_all_processors(tmp_path: Path) -> None:
    """The counters of cores and package, added; a broken one is left out."""
    cpu = "sys/devices/system/cpu"
    write(
        tmp_path,
        **{
            f"{cpu}/cpu0/thermal_throttle/package_throttle_count": "3\n",
            f"{cpu}/cpu0/thermal_throttle/core_throttle_count": "4\n",
            f"{cpu}/cpu1/thermal_throttle/core_throttle_count": "?\n",
            f"{cpu}/cpu0/cpufreq/scaling_governor": "powersave\n",
        },
    )
    assert linux.throttle_count(tmp_path) == 7
    assert linux.governor(tmp_path) == "powersave"


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ({"AC": {"type": "Mains", "online": "1"}, "BAT0": {"type": "Battery", "status": "Charging"}}, "ac"),
        ({"AC": {"type": "Mains", "online": "0"}, "BAT0": {"type": "Battery", "status": "Discharging"}}, "battery"),
        ({"BAT0": {"type": "Battery", "status": "Full"}}, "ac"),
        ({"mouse": {"type": "Battery", "status": "Discharging", "scope": "Device"}}, None),
    ],
)
def test_b43_the_power_source(tmp_path: Path, supplies: dict[str, dict[str, str]], expected: str | None) -> None:
    """B43: mains or battery; a mouse's battery is not the machine's."""
    for name, values in supplies.items():
        for key, value in values.items():
            write(tmp_path, **{f"sys/class/power_supply/{name}/{key}": value + "\n"})
    assert linux.power_source(tmp_path) == expected
