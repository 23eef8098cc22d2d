"""Did the client keep up, and was the machine awake, cool and not swapping?"""

from collections.abc import Iterator
from typing import Final

from roofbook.record import Row
from roofbook.units import MIB, MS_PER_S
from roofbook.validity.derived import is_ok
from roofbook.validity.finding import MEASURES, Finding, Measure, of_row

LAG_MS: Final = 10.0
"""A pause of the client's event loop below this is the scheduler's and the garbage collector's everyday."""

LAG_SHARE: Final = 0.05
"""Of the figure that the pause may have moved."""

BUSY_SHARE: Final = 0.9
"""Of one core: the client runs on one, and above this its stamps wait in line."""

SLEPT_MS: Final = 5 * MS_PER_S
"""A clock that is set by the network jumps by less than a second; a machine that sleeps is gone for longer."""

SWAP_BYTES: Final = 64 * MIB
"""Other programs' pages come back all the time; this much takes tens of ms from an SSD."""

HOT_LEVELS: Final = ("serious", "critical", "heavy", "trapping", "sleeping")
"""The thermal states at which macOS holds the clocks down (its two interfaces name them differently)."""

HARMLESS_REASONS: Final = (
    "none",
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "sync_boost",
    "display_clock_setting",
)
"""Why a GPU's clock is not at its highest though nothing is wrong: idle, set so, or at its rated power."""


def client(rows: list[Row]) -> Iterator[Finding]:
    """Find rows whose own client was late: its event loop stood still, or its core was full."""
    for row in rows:
        lag, busy = row.get("loop_lag_ms"), row.get("client_cpu_share")
        spoils: set[Measure] = set()
        if is_ok(row) and lag is not None and lag > LAG_MS:
            first, last = row.get("ttft_ms"), row.get("last_token_ms")
            if first is not None and lag > LAG_SHARE * first:
                spoils.add("ttft")
            if first is not None and last is not None and lag > LAG_SHARE * (last - first):
                spoils.add("tpot")
        if is_ok(row) and busy is not None and busy > BUSY_SHARE:
            spoils |= {"ttft", "tpot"}
        if spoils:
            yield of_row("client_saturated", row, spoils, loop_lag_ms=lag, cpu_share=busy)


def slept(rows: list[Row]) -> Iterator[Finding]:
    """Find rows during which the machine slept: the wall clock went on, the monotonic one did not."""
    for row in rows:
        wall, monotonic = row.get("wall_elapsed_ms"), row.get("e2e_ms")
        # The wall clock also saw the connection being made, which the other time begins after.
        connecting = row.get("connect_ms") or 0.0
        if wall is not None and monotonic is not None and wall - monotonic - connecting > SLEPT_MS:
            yield of_row("slept", row, MEASURES, wall_ms=wall, monotonic_ms=monotonic)


def swapping(rows: list[Row]) -> Iterator[Finding]:
    """Find rows during which the server's machine read from swap."""
    for row in rows:
        swapped = row.get("swap_in_bytes")
        if swapped is not None and swapped > SWAP_BYTES and row.get("host_is_server"):
            yield of_row("swapping", row, MEASURES, swap_in_bytes=swapped)


def throttled(rows: list[Row]) -> Iterator[Finding]:
    """Find rows during which heat or power held the server's machine down; a soak is run to see that."""
    for row in rows:
        if not row.get("host_is_server"):
            continue
        level, reason = row.get("thermal_level"), row.get("throttle_reason")
        reasons = [] if reason is None else [part.strip() for part in reason.split(",")]
        held_by = [part for part in reasons if part not in HARMLESS_REASONS] + [level] * (level in HOT_LEVELS)
        if held_by:
            yield of_row("throttled", row, () if row.get("kind") == "soak" else MEASURES, reason=", ".join(held_by))
