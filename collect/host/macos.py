"""What macOS' own tools print, read into facts. A parser takes one tool's text and keeps an allow-list of it."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from collect.fields import objects, text
from roofbook.units import MB

# OSThermalNotification.h: the pressure that com.apple.system.thermalpressurelevel carries.
_PRESSURE: Final = {0: "nominal", 1: "moderate", 2: "heavy", 3: "trapping", 4: "sleeping"}

_POWER_SOURCES: Final = {"AC Power": "ac", "Battery Power": "battery", "UPS Power": "ups"}

_METAL_LIMIT: Final = re.compile(r"recommendedMaxWorkingSetSize\s*=\s*([0-9]+(?:\.[0-9]+)?)\s*MB")
_SWAP_USED: Final = re.compile(r"\bused = ([0-9.]+)M")


@dataclass(frozen=True)
class MacHardware:
    """Of `system_profiler SPHardwareDataType`: the only two lines that name no single machine or person."""

    machine_name: str | None
    """Mac mini, MacBook Pro ..."""
    chip: str | None


@dataclass(frozen=True)
class MacGpu:
    """Of `system_profiler SPDisplaysDataType`; displays and their serial numbers are left out."""

    name: str
    cores: int | None


def parse_sysctl(printed: str) -> dict[str, str]:
    """Return the "name: value" lines of `sysctl NAME ...`; names that the system does not have are not in it."""
    pairs = (line.partition(":") for line in printed.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon and "." in name}


def whole(values: dict[str, str], name: str) -> int | None:
    """Return a sysctl value that is a whole number."""
    value = values.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else None


def parse_swap_used(values: dict[str, str]) -> int | None:
    """Return the used bytes of `sysctl vm.swapusage`: "total = 2048.00M  used = 1022.25M ..."; its M is 2^20."""
    found = _SWAP_USED.search(values.get("vm.swapusage", ""))
    return round(float(found.group(1)) * 2**20) if found else None


def parse_thermal_pressure(printed: str) -> str | None:
    """Return the level that `notifyutil -g com.apple.system.thermalpressurelevel` prints: the name, then a number."""
    found = re.search(r"thermalpressurelevel\s+(\d+)", printed)
    return _PRESSURE.get(int(found.group(1))) if found else None


def parse_therm(printed: str) -> str | None:
    """Return why `pmset -g therm` says that the CPU is held down, "none" where it is not, None where it says nothing.

    It prints a table with CPU_Speed_Limit (per cent), or notes that nothing has been recorded, which is no limit.
    """
    limits = {name: int(value) for name, value in re.findall(r"(CPU_\w+)\s*=\s*(\d+)", printed)}
    if limits.get("CPU_Speed_Limit", 100) < 100:
        return f"cpu_speed_limit_{limits['CPU_Speed_Limit']}"
    if limits.get("CPU_Scheduler_Limit", 100) < 100:
        return f"cpu_scheduler_limit_{limits['CPU_Scheduler_Limit']}"
    return "none" if limits or "has been recorded" in printed else None


def parse_batt(printed: str) -> str | None:
    """Return the power source of `pmset -g batt`: "Now drawing from 'AC Power'"; the battery's id is left out."""
    found = re.search(r"drawing from '([^']*)'", printed)
    return _POWER_SOURCES.get(found.group(1)) if found else None


def parse_low_power(printed: str) -> bool | None:
    """Return whether `pmset -g` has low power mode on; None where this Mac does not have it."""
    found = re.search(r"(?m)^\s*(?:lowpowermode|powermode)\s+(\d)", printed)
    return found.group(1) == "1" if found else None


def parse_hardware(printed: str) -> MacHardware:
    """Return the kind of machine and its chip from `system_profiler SPHardwareDataType -json`."""
    entries = objects(_json(printed), "SPHardwareDataType")
    first = entries[0] if entries else {}
    return MacHardware(text(first, "machine_name"), text(first, "chip_type") or text(first, "cpu_type"))


def parse_displays(printed: str) -> tuple[MacGpu, ...]:
    """Return the GPUs of `system_profiler SPDisplaysDataType -json`."""
    found: list[MacGpu] = []
    for entry in objects(_json(printed), "SPDisplaysDataType"):
        name, cores = text(entry, "sppci_model"), text(entry, "sppci_cores")
        if name:
            found.append(MacGpu(name, int(cores) if cores and cores.isdigit() else None))
    return tuple(found)


def parse_metal_limit(log: str) -> int | None:
    """Return the bytes that Metal recommends a GPU to use, from llama.cpp's log: "... = 26800.60 MB", MB of 10^6."""
    found = _METAL_LIMIT.search(log)
    limit = round(float(found.group(1)) * MB) if found else 0
    return limit or None


def _json(printed: str) -> Any:
    try:
        return json.loads(printed)
    except ValueError:
        return None
