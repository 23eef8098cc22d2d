"""NVIDIA's GPUs, by a library and a tool that answer as theirs do; no such GPU is needed, and none was at hand."""

from types import SimpleNamespace
from typing import Any

import pytest

from collect.host import nvidia
from collect.host.nvidia import NvidiaGpu, Nvml, NvmlError, parse_smi, reasons_of

SMI = (
    "NVIDIA GeForce RTX 4060 Ti, 8188, 560.35.03, 142.37, 2535, 0x0000000000000004\n"
    "Tesla T4, 15360, 560.35.03, [N/A], 585, 0x0000000000000001\n"
)


def test_nvidia_smi() -> None:
    """MiB, watts and MHz; what a card does not tell is unknown."""
    assert parse_smi(SMI) == (
        NvidiaGpu("NVIDIA GeForce RTX 4060 Ti", 8188 * 2**20, "560.35.03", 142.37, 2535.0, "sw_power_cap"),
        NvidiaGpu("Tesla T4", 15360 * 2**20, "560.35.03", None, 585.0, "gpu_idle"),
    )


@pytest.mark.parametrize(
    "printed", ["", "NVIDIA-SMI has failed because it couldn't communicate with the driver\n", ",,\n"]
)
def test_nvidia_smi_without_a_gpu(printed: str) -> None:
    """An error message is no GPU."""
    assert parse_smi(printed) == ()


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (0, "none"),
        (0x1, "gpu_idle"),
        (0x24, "sw_power_cap, sw_thermal_slowdown"),
        (0x48, "hw_slowdown, hw_thermal_slowdown"),
    ],
)
def test_the_reasons_of_a_clock(bits: int, expected: str) -> None:
    """nvmlClocksEventReasons, bit by bit."""
    assert reasons_of(bits) == expected


def library(count: int = 1, *, power: int = 0, started: int = 0) -> SimpleNamespace:
    """NVML's C interface: results through pointers, 0 for success, 3 for "not supported"."""

    def put(value: int, code: int = 0) -> Any:
        def function(*arguments: Any) -> int:
            arguments[-1]._obj.value = value
            return code

        return function

    def put_text(value: bytes) -> Any:
        def function(*arguments: Any) -> int:
            arguments[-2].value = value
            return 0

        return function

    def memory(_handle: Any, pointer: Any) -> int:
        pointer._obj.total = 8188 * 2**20
        return 0

    def clock(_handle: Any, kind: int, pointer: Any) -> int:
        assert kind == 1  # the streaming multiprocessors' clock
        return put(2535)(pointer)

    return SimpleNamespace(
        nvmlInit_v2=lambda: started,
        nvmlDeviceGetCount_v2=put(count),
        nvmlDeviceGetHandleByIndex_v2=put(4096),
        nvmlSystemGetDriverVersion=put_text(b"560.35.03"),
        nvmlDeviceGetName=put_text(b"NVIDIA GeForce RTX 4060 Ti"),
        nvmlDeviceGetMemoryInfo=memory,
        nvmlDeviceGetPowerUsage=put(142_370, power),  # milliwatts
        nvmlDeviceGetClockInfo=clock,
        nvmlDeviceGetCurrentClocksThrottleReasons=put(0x20),
    )


def test_nvml() -> None:
    """Name, memory, driver, power in watts, clock and reason, by the library's C interface."""
    expected = NvidiaGpu("NVIDIA GeForce RTX 4060 Ti", 8188 * 2**20, "560.35.03", 142.37, 2535.0, "sw_thermal_slowdown")
    assert Nvml(library(2)).read() == (expected, expected)


def test_nvml_of_a_card_that_does_not_tell_its_power() -> None:
    """An error code for one figure is one unknown figure."""
    (card,) = Nvml(library(power=3)).read()
    assert (card.power_w, card.clock_mhz) == (None, 2535.0)


@pytest.mark.parametrize("broken", [library(0), library(started=9)])
def test_nvml_without_a_gpu(broken: SimpleNamespace) -> None:
    """No driver, or no GPU: there is nothing to read."""
    with pytest.raises(NvmlError):
        Nvml(broken)


def test_the_tool_stands_in_where_the_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library nvidia-smi is asked; without both there is no GPU."""

    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(nvidia.ctypes, "CDLL", missing)
    monkeypatch.setattr(nvidia, "output", lambda *_: SMI)
    found = nvidia.reader()
    assert found is not None
    assert [gpu.name for gpu in found.read()] == ["NVIDIA GeForce RTX 4060 Ti", "Tesla T4"]
    monkeypatch.setattr(nvidia, "output", lambda *_: "")
    assert nvidia.reader() is None
