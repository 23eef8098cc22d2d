"""What will spoil the numbers on this machine, looked at before a run: power, other load, memory, heat, distance."""

import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import psutil

from collect import host
from collect.host.facts import HostFacts
from roofbook.units import GIB, MS_PER_S
from roofbook.validity.host import HARMLESS_REASONS, HOT_LEVELS
from roofbook.words import Words

BUSY_SHARE: Final = 0.15
"""Of all cores. A quiet desktop takes a few per cent; from here on somebody computes."""

MEMORY_LOW_SHARE: Final = 0.1
"""Of the memory. With less left, pages of the model are the next to go."""

SWAP_USED_BYTES: Final = 1 * GIB
"""Swap that is used holds what is needed again some day; so much of it means that memory was short."""

FAR_MS: Final = 2.0
"""A round trip in one building takes less; each TTFT has at least one of it inside."""

_LOOK_S: Final = 1.0
_TRIPS: Final = 5


@dataclass(frozen=True)
class Look:
    """This machine at rest, before the run; null is unreadable."""

    power_source: str | None = None
    low_power_mode: bool | None = None
    governor: str | None = None
    virtual: bool | None = None
    busy_share: float | None = None
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None
    swap_used_bytes: int | None = None
    swap_in_bytes: int | None = None
    thermal_level: str | None = None
    throttle_reason: str | None = None


def look(facts: HostFacts) -> Look:
    """Watch this machine for a second."""
    with host.Sampler() as sampler:
        began_s = time.monotonic()
        busy = psutil.cpu_percent(interval=_LOOK_S) / 100
        seen = sampler.sample(began_s)
    return Look(
        power_source=seen["power_source"], low_power_mode=facts.low_power_mode, governor=facts.governor,
        virtual=facts.virtual, busy_share=busy, memory_bytes=psutil.virtual_memory().total,
        memory_free_bytes=seen["memory_free_bytes"], swap_used_bytes=psutil.swap_memory().used,
        swap_in_bytes=seen["swap_in_bytes"], thermal_level=seen["thermal_level"],
        throttle_reason=seen["throttle_reason"],
    )  # fmt: skip


def round_trip_ms(url: str) -> float | None:
    """Return the median time in which a TCP connection to *url* stands: one round trip; None where none stands."""
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    times: list[float] = []
    with suppress(OSError):
        for _ in range(_TRIPS):
            began_s = time.perf_counter()
            socket.create_connection(address, timeout=_LOOK_S).close()
            times.append((time.perf_counter() - began_s) * MS_PER_S)
    return statistics.median(times) if times else None


def spoilers(seen: Look, words: Words) -> Iterator[str]:
    """Yield what is wrong with this machine as a place to measure on, each with the way out."""
    say = words.say
    if seen.power_source == "battery":
        yield say("It runs on its battery, which holds the clocks down: plug it in")
    if seen.low_power_mode:
        yield say("Low-power mode is on: turn it off (macOS: sudo pmset -a lowpowermode 0)")
    if seen.governor == "powersave":
        yield say(
            "The processor's governor is powersave, which may hold the clocks down: "
            "sudo cpupower frequency-set -g performance"
        )
    if seen.busy_share is not None and seen.busy_share > BUSY_SHARE:
        yield say(
            "Other programs take %(share)s %% of the processor: close them, or measure when it is quiet",
            share=words.number(100 * seen.busy_share),
        )
    free, whole = seen.memory_free_bytes, seen.memory_bytes
    if free is not None and whole and free < MEMORY_LOW_SHARE * whole:
        yield say(
            "Only %(free)s of %(whole)s GiB of memory are free: close other programs",
            free=words.significant(free / GIB), whole=words.significant(whole / GIB),
        )  # fmt: skip
    if seen.swap_in_bytes or (seen.swap_used_bytes or 0) > SWAP_USED_BYTES:
        yield say(
            "%(used)s GiB lie in swap, so memory was short: close other programs, or restart the machine",
            used=words.significant((seen.swap_used_bytes or 0) / GIB),
        )
    reasons = [part for part in (seen.throttle_reason or "none").split(", ") if part not in HARMLESS_REASONS]
    if seen.thermal_level in HOT_LEVELS or reasons:
        held_by = ", ".join([*reasons, *([seen.thermal_level] if seen.thermal_level in HOT_LEVELS else [])])
        yield say("The hardware holds its clocks down (%(reason)s): let it cool down", reason=held_by)
    if seen.virtual:
        yield say("It is a virtual machine: its neighbours may take time away that nothing here shows")
