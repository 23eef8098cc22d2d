"""What --machine means on the command line: an id of the catalogue, or a file with what `collect facts` printed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from roofbook.errors import ReaderError, UsageError
from roofbook.facts import Facts, MachineFact, Provenance
from roofbook.readers.json_file import read_json_file
from roofbook.theory.shapes import Machine
from roofbook.validity.known import processor_ceilings

_MACOS: Final = re.compile(r"\d+")


@dataclass(frozen=True)
class FoundMachine:
    """A machine, and the major version of its macOS where its facts tell it."""

    fact: MachineFact
    macos: int | None = None


def find_machine(given: str, facts: Facts) -> FoundMachine:
    """Return the machine that *given* names: a file that is there, else an id of the catalogue.

    A machine that no catalogue knows has as denominators what was measured of its processor, where no card of its own
    does the work. Raises UsageError for an unknown id, ReaderError for a file that holds no facts of a machine.
    """
    path = Path(given)
    if not path.is_file():
        return FoundMachine(facts.machine(given))
    host = _read(path)
    name, memory, cards = host.get("machine"), _whole(host.get("memory_bytes")), _cards(host)
    if not isinstance(name, str) or (memory is None and not cards):
        raise ReaderError(
            "%(file)s does not say what a machine is. Print it there: python -m collect facts > %(file)s",
            file=path.name,
        )
    try:
        known = facts.machine(name)
    except UsageError:
        bare = Machine(name, name=str(host.get("chip") or name), memory_bytes=cards[0] if cards else memory)
        measured = None if cards else processor_ceilings(host)
        known = MachineFact(replace(bare, measured=measured), Provenance(source=path.name))
    machine = replace(
        known.machine,
        gpu_limit_bytes=_whole(host.get("gpu_limit_bytes")) or known.machine.gpu_limit_bytes,
        wired_limit_mib=_whole(host.get("wired_limit_mib")) or known.machine.wired_limit_mib,
    )
    version = _MACOS.match(str(host.get("os_version") or "")) if host.get("os") == "macOS" else None
    return FoundMachine(replace(known, machine=machine), int(version.group()) if version else None)


def _read(path: Path) -> Mapping[str, Any]:
    read = read_json_file(path)
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}


def _cards(host: Mapping[str, Any]) -> list[int]:
    """Return the memory of each card that has its own, in bytes."""
    gpus: object = host.get("gpus")
    listed = cast("list[object]", gpus) if isinstance(gpus, list) else []
    sizes = [cast("dict[str, Any]", one).get("memory_bytes") for one in listed if isinstance(one, dict)]
    return [size for size in map(_whole, sizes) if size is not None]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
