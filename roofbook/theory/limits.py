"""How much of a machine's memory its GPU may use, and how that is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from roofbook.errors import EstimateError
from roofbook.theory.shapes import Machine, MacLimit, Range
from roofbook.units import GIB, MIB

LimitBasis = Literal["reported", "wired_limit", "observed", "rule", "memory", "share"]
"""The system or the engine said it; macOS was told it; Macs like it were seen to have it; a fraction of the memory;
all of the memory; the share of the card that a server takes."""

_OLD_MACOS: Final = 15
_SMALL_MAC_BYTES: Final = 36 * GIB


@dataclass(frozen=True)
class Limit:
    """The bytes a model may use, and how that is known."""

    limit_bytes: Range
    basis: LimitBasis

    @property
    def estimated(self) -> bool:
        """True where nobody measured it on this machine."""
        return self.basis in ("observed", "rule")


def gpu_limit(machine: Machine, macos: int | None = None, observed: Sequence[MacLimit] = ()) -> Limit:
    """Return what the GPU of *machine* may use: as reported, as set, as seen on such Macs, by rule, else all memory.

    On a Mac the system holds a part back. macOS 15 and older give two thirds below 36 GiB and three quarters from
    there on; macOS 26 more, as *observed*. An unknown *macos* gives the range over both. Raises EstimateError where the
    memory is not known, or no Mac under that system was seen.
    """
    if machine.gpu_limit_bytes is not None:
        return Limit(Range.of(machine.gpu_limit_bytes), "reported")
    if machine.wired_limit_mib:  # 0 is the system's own default
        return Limit(Range.of(machine.wired_limit_mib * MIB), "wired_limit")
    memory = machine.memory_bytes
    if memory is None and machine.chip is not None:
        memory = machine.chip.memory_bytes
    if memory is None:
        raise EstimateError("Cannot tell the memory limit of %(machine)s: memory_bytes is missing", machine=machine.id)
    chip = machine.chip
    if chip is None or chip.vendor != "apple" or chip.memory_kind != "unified":
        return Limit(Range.of(memory), "memory")
    return _mac_limit(machine.id, memory, macos, observed)


def _mac_limit(machine_id: str, memory: int, macos: int | None, observed: Sequence[MacLimit]) -> Limit:
    new = [seen for seen in observed if seen.macos > _OLD_MACOS]
    if macos is not None and macos <= _OLD_MACOS:
        return Limit(Range.of(_old_rule(memory)), "rule")
    same = [seen.limit_bytes for seen in new if seen.memory_bytes == memory]
    if same:
        limit, basis = Range(min(same), max(same)), "observed"
    elif new:
        # A size nobody saw: between the fractions of its neighbours.
        below = max((seen for seen in new if seen.memory_bytes < memory), key=_memory, default=min(new, key=_memory))
        above = min((seen for seen in new if seen.memory_bytes > memory), key=_memory, default=max(new, key=_memory))
        shares = sorted(seen.limit_bytes / seen.memory_bytes for seen in (below, above))
        limit, basis = Range(memory * shares[0], memory * shares[1]), "rule"
    elif macos is not None:
        raise EstimateError(
            "Cannot tell the memory limit of %(machine)s under macOS %(macos)s: no Mac under it is in the facts. "
            "Read recommendedMaxWorkingSetSize from the engine's log",
            machine=machine_id,
            macos=macos,
        )
    else:
        return Limit(Range.of(_old_rule(memory)), "rule")
    if macos is None:
        old = _old_rule(memory)
        return Limit(Range(min(old, limit.low), max(old, limit.high)), "rule")
    return Limit(limit, basis)


def _memory(seen: MacLimit) -> int:
    return seen.memory_bytes


def _old_rule(memory: int) -> float:
    """Return the share up to macOS 15: Metal's logs show 2/3 at 16 and 32 GiB, 3/4 at 36 and 96."""
    return memory * 2 / 3 if memory < _SMALL_MAC_BYTES else memory * 3 / 4
