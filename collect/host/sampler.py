"""What the machine does while requests run: memory, swap, heat, power and the GPU's clock, as columns of a row.

The system's tools take milliseconds to answer, and a request must not wait for them: a thread of its own looks every
now and then, and a row gets what was seen between the request's start and its end.
"""

import platform
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Self

import psutil

from collect.host import linux, macos, nvidia
from collect.host.command import output
from collect.samples import Keep
from roofbook.record import Row

# The GPU's power and clock follow a request within a second or two; macOS' tools are processes, so they come seldom.
PERIOD_S: Final = 1.0
_SLOW_EVERY: Final = 10
# An hour of readings: longer than any request.
_KEPT: Final = 3600

_LEVELS: Final = ("nominal", "fair", "moderate", "serious", "heavy", "trapping", "critical", "sleeping")
_NUMBERS: Final = ("memory_free_bytes", "swapped_in_bytes", "gpu_power_w", "gpu_clock_mhz")


@dataclass(frozen=True)
class Reading:
    """The machine at one moment; null is unreadable. *swapped_in_bytes* and *throttles* count since it started."""

    at_s: float
    swapped_in_bytes: int | None = None
    memory_free_bytes: int | None = None
    thermal_level: str | None = None
    power_source: str | None = None
    gpu_power_w: float | None = None
    gpu_clock_mhz: float | None = None
    throttle_reasons: frozenset[str] = frozenset()
    throttles: int | None = None
    throttle_known: bool = False


def seen(readings: list[Reading]) -> Row:
    """Return the columns of a request during which *readings* were taken, the first just before it.

    Memory is the least that was free, heat the worst, GPU power and clock the mean, reasons all that were seen.
    """
    first, last, during = readings[0], readings[-1], readings[1:] or readings
    swapped = _difference(first.swapped_in_bytes, last.swapped_in_bytes)
    reasons = {reason for reading in during for reason in reading.throttle_reasons} - {"none"}
    if _difference(first.throttles, last.throttles):
        reasons.add("cpu_thermal")
    known = any(reading.throttle_known for reading in during)
    return {
        "swap_in_bytes": swapped,
        "memory_free_bytes": min(
            (one.memory_free_bytes for one in during if one.memory_free_bytes is not None), default=None
        ),
        "thermal_level": max(
            (one.thermal_level for one in during if one.thermal_level), key=_LEVELS.index, default=None
        ),
        "power_source": last.power_source,
        "gpu_power_w": _mean([one.gpu_power_w for one in during]),
        "gpu_clock_mhz": _mean([one.gpu_clock_mhz for one in during]),
        "throttle_reason": ", ".join(sorted(reasons)) or ("none" if known else None),
    }


class Sampler:
    """Looks at this machine once a second while it is open (a context manager); `sample` gives a row its columns.

    *keep* gets the numbers of each look.
    """

    def __init__(
        self, keep: Keep | None = None, *, period_s: float = PERIOD_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._keep = keep
        self._period_s = period_s
        self._clock = clock
        self._looker = _Looker()
        self._readings: deque[Reading] = deque(maxlen=_KEPT)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self._note(self._looker.look(self._clock(), slow=True))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def sample(self, since_s: float | None = None) -> Row:
        """Return the columns of what was seen since *since_s* (of the sampler's clock; default: the last look)."""
        now = self._looker.quick(self._clock(), self._readings[-1] if self._readings else None)
        kept = list(self._readings)
        start = since_s if since_s is not None else (kept[-1].at_s if kept else now.at_s)
        before = [reading for reading in kept if reading.at_s <= start][-1:] or kept[:1]
        during = [reading for reading in kept if start < reading.at_s <= now.at_s]
        return seen([*before, *during, now])

    def _note(self, reading: Reading) -> None:
        self._readings.append(reading)
        if self._keep is None:
            return
        numbers = {name: float(value) for name in _NUMBERS if (value := getattr(reading, name)) is not None}
        ago_s = self._clock() - reading.at_s
        self._keep(datetime.fromtimestamp(time.time() - ago_s, UTC), numbers)

    def _run(self) -> None:
        turn = 0
        while not self._stop.wait(self._period_s):
            turn += 1
            self._note(self._looker.look(self._clock(), slow=turn % _SLOW_EVERY == 0, last=self._readings[-1]))


class _Looker:
    """Looks at this machine: quickly by psutil, and at what takes longer."""

    def __init__(self) -> None:
        self._gpus = nvidia.reader()
        self._is_mac = platform.system() == "Darwin"

    def quick(self, at_s: float, last: Reading | None) -> Reading:
        """Memory and swap now, the rest as last seen; but the GPU's power and clock, which change too fast for that."""
        return replace(
            last or Reading(at_s),
            at_s=at_s,
            swapped_in_bytes=psutil.swap_memory().sin if self._is_mac else linux.swapped_in_bytes(),
            memory_free_bytes=psutil.virtual_memory().available,
            gpu_power_w=None,
            gpu_clock_mhz=None,
        )

    def look(self, at_s: float, *, slow: bool, last: Reading | None = None) -> Reading:
        """Everything; what is slow only where asked, else as it was last seen."""
        reading = self.quick(at_s, last)
        if not self._is_mac:
            reading = _more_of_linux(reading)
        elif slow:
            reading = _more_of_mac(reading)
        if self._gpus is None:
            return reading
        cards = self._gpus.read()
        told = [card.throttle_reason for card in cards if card.throttle_reason is not None]
        powers = [card.power_w for card in cards if card.power_w is not None]
        return replace(
            reading,
            gpu_power_w=sum(powers) if powers else None,
            gpu_clock_mhz=min((card.clock_mhz for card in cards if card.clock_mhz is not None), default=None),
            throttle_reasons=frozenset(reason for one in told for reason in one.split(", ")),
            throttle_known=reading.throttle_known or bool(told),
        )


def _more_of_mac(reading: Reading) -> Reading:
    held = macos.parse_therm(output("pmset", "-g", "therm"))
    return replace(
        reading,
        thermal_level=macos.parse_thermal_pressure(output("notifyutil", "-g", "com.apple.system.thermalpressurelevel")),
        power_source=macos.parse_batt(output("pmset", "-g", "batt")),
        throttle_reasons=frozenset() if held is None else frozenset({held}),
        throttle_known=held is not None,
    )


def _more_of_linux(reading: Reading) -> Reading:
    count = linux.throttle_count()
    return replace(
        reading,
        thermal_level=linux.thermal_level(),
        power_source=linux.power_source(),
        throttles=count,
        throttle_known=count is not None,
    )


def _difference(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else max(0, last - first)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
