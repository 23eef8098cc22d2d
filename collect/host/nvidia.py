"""NVIDIA's GPUs: by NVML where its library is there, else by what nvidia-smi prints."""

import csv
import ctypes
import io
import math
from dataclasses import dataclass
from typing import Any, Final, Protocol

from collect.host.command import output
from roofbook.units import MIB

_LIBRARIES: Final = ("libnvidia-ml.so.1", "libnvidia-ml.so")
_NAME_BYTES: Final = 96
_CLOCK_SM: Final = 1  # nvmlClockType_t
_MILLIWATT: Final = 1000

# nvmlClocksEventReasons: the bits of the reasons for which a clock is not at its highest.
_REASONS: Final = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}

_QUERY: Final = (
    "name", "memory.total", "driver_version", "power.draw", "clocks.sm", "clocks_throttle_reasons.active",
)  # fmt: skip


@dataclass(frozen=True)
class NvidiaGpu:
    """One GPU: what it is and what it is doing; null where the driver does not say."""

    name: str
    memory_bytes: int | None = None
    driver: str | None = None
    power_w: float | None = None
    clock_mhz: float | None = None
    throttle_reason: str | None = None


class Reader(Protocol):
    """Whatever reads the GPUs."""

    def read(self) -> tuple[NvidiaGpu, ...]:
        """Return the GPUs as they are now."""
        ...


def reader() -> Reader | None:
    """Return what reads this machine's NVIDIA GPUs; None where there are none."""
    for name in _LIBRARIES:
        try:
            found = Nvml(ctypes.CDLL(name))
        except (OSError, AttributeError, NvmlError):
            continue
        return found
    smi = Smi()
    return smi if smi.read() else None


class NvmlError(Exception):
    """NVML answered with an error code."""


class Nvml:
    """The NVIDIA Management Library, by its C interface; nothing that it needs a privilege for."""

    def __init__(self, library: Any) -> None:
        self._library = library
        _check(library.nvmlInit_v2())
        count = ctypes.c_uint()
        _check(library.nvmlDeviceGetCount_v2(ctypes.byref(count)))
        if count.value == 0:
            raise NvmlError(0)
        self._handles: list[ctypes.c_void_p] = []
        for index in range(count.value):
            handle = ctypes.c_void_p()
            _check(library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)))
            self._handles.append(handle)
        self._driver = self._text(library.nvmlSystemGetDriverVersion)

    def read(self) -> tuple[NvidiaGpu, ...]:
        """Return the GPUs as they are now."""
        return tuple(self._one(handle) for handle in self._handles)

    def _one(self, handle: ctypes.c_void_p) -> NvidiaGpu:
        library = self._library
        memory, power = _Memory(), ctypes.c_uint()
        clock, reasons = ctypes.c_uint(), ctypes.c_ulonglong()
        has_memory = library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
        has_power = library.nvmlDeviceGetPowerUsage(handle, ctypes.byref(power)) == 0
        has_clock = library.nvmlDeviceGetClockInfo(handle, _CLOCK_SM, ctypes.byref(clock)) == 0
        has_reasons = library.nvmlDeviceGetCurrentClocksThrottleReasons(handle, ctypes.byref(reasons)) == 0
        return NvidiaGpu(
            name=self._text(library.nvmlDeviceGetName, handle) or "NVIDIA GPU",
            memory_bytes=memory.total if has_memory else None,
            driver=self._driver,
            power_w=power.value / _MILLIWATT if has_power else None,
            clock_mhz=float(clock.value) if has_clock else None,
            throttle_reason=reasons_of(reasons.value) if has_reasons else None,
        )

    def _text(self, function: Any, *arguments: Any) -> str | None:
        buffer = ctypes.create_string_buffer(_NAME_BYTES)
        if function(*arguments, buffer, ctypes.c_uint(_NAME_BYTES)) != 0:
            return None
        return buffer.value.decode("utf-8", "replace") or None


class Smi:
    """nvidia-smi, where only that is there: slower, a process for each look."""

    def read(self) -> tuple[NvidiaGpu, ...]:
        """Return the GPUs as they are now."""
        return parse_smi(output("nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"))


def parse_smi(printed: str) -> tuple[NvidiaGpu, ...]:
    """Return the GPUs of `nvidia-smi --query-gpu=... --format=csv,noheader,nounits` in the order of the query."""
    found: list[NvidiaGpu] = []
    for row in csv.reader(io.StringIO(printed), skipinitialspace=True):
        if len(row) != len(_QUERY):
            continue
        name, memory_mib, driver, power_w, clock_mhz, reasons = (value.strip() for value in row)
        memory = _number(memory_mib)
        found.append(
            NvidiaGpu(
                name=name,
                memory_bytes=None if memory is None else round(memory * MIB),
                driver=driver if driver[:1].isdigit() else None,
                power_w=_number(power_w),
                clock_mhz=_number(clock_mhz),
                throttle_reason=reasons_of(int(reasons, 16)) if reasons.startswith("0x") else None,
            )
        )
    return tuple(found)


def reasons_of(bits: int) -> str:
    """Return the names of the reasons in *bits*, comma-separated; "none" where nothing holds the clock down."""
    return ", ".join(name for bit, name in _REASONS.items() if bits & bit) or "none"


class _Memory(ctypes.Structure):
    total: int
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def _check(code: int) -> None:
    if code != 0:
        raise NvmlError(code)


def _number(value: str) -> float | None:
    """A number, or None for the "[N/A]" of a card that does not tell."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
