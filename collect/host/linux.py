"""What Linux tells of itself under /proc and /sys: read below a root folder, so that a test can bring its own."""

import os
import re
from pathlib import Path
from typing import Final

_COUNTERS: Final = ("package_throttle_count", "core_throttle_count")
# A trip point's type -> the level at which it holds the clocks, in macOS' words.
_TRIPS: Final = {"passive": "serious", "hot": "serious", "critical": "critical"}
_RANK: Final = ("nominal", "serious", "critical")


def cpu_name(root: Path = Path("/")) -> str | None:
    """Return the processor's name from /proc/cpuinfo, or the board's from its device tree."""
    info = _read(root / "proc/cpuinfo")
    found = re.search(r"(?m)^(?:model name|Model)\s*:\s*(.+)$", info)
    return (found.group(1).strip() if found else _read(root / "proc/device-tree/model").strip("\0 \n")) or None


def is_virtual(root: Path = Path("/")) -> bool | None:
    """Return whether the processor says that it runs under a hypervisor; None where it does not say."""
    flags = re.search(r"(?m)^flags\s*:\s*(.+)$", _read(root / "proc/cpuinfo"))
    return "hypervisor" in flags.group(1).split() if flags else None


def os_release(root: Path = Path("/")) -> tuple[str, str]:
    """Return the distribution's name and version from /etc/os-release."""
    pairs = (line.partition("=") for line in _read(root / "etc/os-release").splitlines())
    values = {name: value.strip().strip("\"'") for name, _, value in pairs}
    return values.get("NAME", "Linux"), values.get("VERSION_ID", "")


def thermal_level(root: Path = Path("/")) -> str | None:
    """Return the worst of the thermal zones: nominal, serious (a zone is at its passive trip point) or critical.

    None where no zone has trip points, as in a virtual machine.
    """
    levels: list[str] = []
    for zone in sorted(root.glob("sys/class/thermal/thermal_zone*")):
        temperature = _whole(zone / "temp")
        for trip in zone.glob("trip_point_*_type"):
            at = _whole(trip.with_name(trip.name.replace("_type", "_temp")))
            level = _TRIPS.get(_read(trip).strip())
            # A trip point of zero or below is one that the firmware did not set.
            if temperature is not None and at is not None and at > 0 and level is not None:
                levels.append(level if temperature >= at else "nominal")
    return max(levels, key=_RANK.index, default=None)


def throttle_count(root: Path = Path("/")) -> int | None:
    """Return how often heat has held a processor down since the start; None where it does not count."""
    counts = [
        found
        for counter in _COUNTERS
        for path in root.glob(f"sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/{counter}")
        if (found := _whole(path)) is not None
    ]
    return sum(counts) if counts else None


def power_source(root: Path = Path("/")) -> str | None:
    """Return ac or battery from /sys/class/power_supply; None where there is neither mains nor battery."""
    supplies = sorted(root.glob("sys/class/power_supply/*"))
    mains = [_read(one / "online").strip() for one in supplies if _read(one / "type").strip() in ("Mains", "USB")]
    batteries = [
        _read(one / "status").strip()
        for one in supplies
        # A mouse has a battery too.
        if _read(one / "type").strip() == "Battery" and _read(one / "scope").strip() != "Device"
    ]
    if "1" in mains:
        return "ac"
    if "Discharging" in batteries:
        return "battery"
    return "ac" if batteries and mains == [] else None


def swapped_in_bytes(root: Path = Path("/")) -> int | None:
    """Return the bytes read from swap since the start, from /proc/vmstat; None where a container hides it."""
    found = re.search(r"(?m)^pswpin (\d+)$", _read(root / "proc/vmstat"))
    return int(found.group(1)) * os.sysconf("SC_PAGE_SIZE") if found else None


def governor(root: Path = Path("/")) -> str | None:
    """Return the frequency governor of the first processor: "powersave" may hold the clocks down."""
    return _read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _whole(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if re.fullmatch(r"-?\d+", text) else None
