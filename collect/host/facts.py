"""What this machine is: chip, cores, memory, system, GPUs, and the catalogue's id for it; nothing personal."""

import os
import platform
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import psutil

from collect.fields import at, count, objects, positive, text
from collect.host import linux, macos, nvidia
from collect.host.command import output
from collect.scrub import Scrubber, of_this_process
from roofbook.facts import Facts, MachineFact
from roofbook.theory.shapes import Machine
from roofbook.units import GIB

# Words that a processor's name carries beside its name.
_FILLER: Final = re.compile(
    r"(?i)\((?:r|tm)\)|\bcpu\b|\bprocessor\b|@.*$|\bwith .*graphics\b|\b\d+-core\b|\bgeforce\b|\bgpu\b"
)
_MAC_SYSCTL: Final = ("hw.memsize", "machdep.cpu.brand_string", "iogpu.wired_limit_mb")


@dataclass(frozen=True)
class Gpu:
    """A GPU; *memory_bytes* is null where it shares the machine's memory, *cores* where nobody counts them."""

    name: str
    memory_bytes: int | None = None
    cores: int | None = None
    driver: str | None = None


@dataclass(frozen=True)
class HostFacts:
    """A machine as the run's metadata keeps it; null is unknown."""

    chip: str | None
    cores: int | None
    memory_bytes: int | None
    os: str
    os_version: str
    gpus: tuple[Gpu, ...] = ()
    model: str | None = None
    """The kind of machine, as its maker calls it: Mac mini."""
    virtual: bool | None = None
    """Whether it runs under a hypervisor, beside others."""
    gpu_limit_bytes: int | None = None
    """What Metal recommends its GPU to use, as the engine's log has it."""
    wired_limit_mib: int | None = None
    """macOS' iogpu.wired_limit_mb; 0 means the system's own default, not nothing."""
    low_power_mode: bool | None = None
    governor: str | None = None

    @property
    def macos(self) -> int | None:
        """The major version of macOS; None elsewhere."""
        found = re.match(r"\d+", self.os_version)
        return int(found.group()) if self.os == "macOS" and found else None

    def machine_id(self, catalogue: Facts | None = None) -> str:
        """Return the catalogue's id where chip and memory match one machine of it, else a slug of them."""
        return self.machine(catalogue).id

    def machine(self, catalogue: Facts | None = None) -> Machine:
        """Return this machine as the theory takes it: the catalogue's, with the limits that the system reports."""
        found = None if catalogue is None else _machine(self, catalogue)
        known = Machine(self._slug, memory_bytes=self._pool_bytes) if found is None else found.machine
        return replace(known, gpu_limit_bytes=self.gpu_limit_bytes, wired_limit_mib=self.wired_limit_mib)

    def as_json(self, scrubber: Scrubber | None = None) -> dict[str, Any]:
        """Return the facts as a JSON object; every text in it has passed the scrubber."""
        return (scrubber or of_this_process()).json(asdict(self))

    @classmethod
    def from_json(cls, value: object) -> "HostFacts | None":
        """Return what `as_json` gave; None where it does not say which system and which processor or GPU it is."""
        cards = [
            Gpu(name, positive(one, "memory_bytes"), positive(one, "cores"), text(one, "driver"))
            for one in objects(value, "gpus")
            if (name := text(one, "name"))
        ]
        system, chip = text(value, "os"), text(value, "chip")
        if system is None or (chip is None and not cards):
            return None
        return cls(
            chip=chip, cores=positive(value, "cores"), memory_bytes=positive(value, "memory_bytes"), os=system,
            os_version=text(value, "os_version") or "", gpus=tuple(cards), model=text(value, "model"),
            virtual=_truth(value, "virtual"), gpu_limit_bytes=positive(value, "gpu_limit_bytes"),
            wired_limit_mib=count(value, "wired_limit_mib"), low_power_mode=_truth(value, "low_power_mode"),
            governor=text(value, "governor"),
        )  # fmt: skip

    @property
    def _pool_bytes(self) -> int | None:
        """The memory that weights and cache share: the card's, where there is a card."""
        cards = [gpu.memory_bytes for gpu in self.gpus if gpu.memory_bytes is not None]
        return cards[0] if cards else self.memory_bytes

    @property
    def _slug(self) -> str:
        cards = [gpu for gpu in self.gpus if gpu.memory_bytes is not None]
        parts = [f"{len(cards)}x"] if len(cards) > 1 else []
        parts.append(_slug_of(cards[0].name if cards else self.chip or platform.machine()))
        if not cards and self.cores is not None:
            parts.append(f"{self.cores}c")
        if self._pool_bytes is not None:
            parts.append(f"{round(self._pool_bytes / GIB)}gb")
        return "-".join(part for part in parts if part) or "machine"


def this_host(*, engine_log: str | None = None) -> HostFacts:
    """Return what this machine is; *engine_log* is text of llama.cpp's log, which knows the limit of a Mac's GPU."""
    facts = _mac(engine_log) if platform.system() == "Darwin" else _linux()
    cards = nvidia.reader()
    if cards is None:
        return facts
    gpus = tuple(Gpu(card.name, card.memory_bytes, driver=card.driver) for card in cards.read())
    return replace(facts, gpus=gpus)


def _linux() -> HostFacts:
    name, version = linux.os_release()
    return HostFacts(
        chip=linux.cpu_name(),
        cores=psutil.cpu_count(logical=False) or os.cpu_count(),
        memory_bytes=psutil.virtual_memory().total,
        os=name,
        os_version=version,
        virtual=linux.is_virtual(),
        governor=linux.governor(),
    )


def _mac(engine_log: str | None) -> HostFacts:
    values = macos.parse_sysctl(output("sysctl", *_MAC_SYSCTL))
    hardware = macos.parse_hardware(output("system_profiler", "SPHardwareDataType", "-json", timeout_s=30))
    displays = macos.parse_displays(output("system_profiler", "SPDisplaysDataType", "-json", timeout_s=30))
    return HostFacts(
        chip=values.get("machdep.cpu.brand_string") or hardware.chip,
        cores=psutil.cpu_count(logical=False) or os.cpu_count(),
        memory_bytes=macos.whole(values, "hw.memsize") or psutil.virtual_memory().total,
        os="macOS",
        os_version=platform.mac_ver()[0],
        gpus=tuple(Gpu(gpu.name, cores=gpu.cores) for gpu in displays),
        model=hardware.machine_name,
        gpu_limit_bytes=None if engine_log is None else macos.parse_metal_limit(engine_log),
        wired_limit_mib=macos.whole(values, "iogpu.wired_limit_mb"),
        low_power_mode=macos.parse_low_power(output("pmset", "-g")),
    )


def _truth(value: object, name: str) -> bool | None:
    found = at(value, name)
    return found if isinstance(found, bool) else None


def _machine(facts: HostFacts, catalogue: Facts) -> MachineFact | None:
    """The one machine of the catalogue with this chip and memory; None where none or several fit: no guess."""
    cards = [gpu for gpu in facts.gpus if gpu.memory_bytes is not None]
    if len(cards) == 1:
        return _with_card(cards[0], catalogue)
    if cards or facts.chip is None or facts.memory_bytes is None:
        return None
    gpu_cores = facts.gpus[0].cores if facts.gpus else None
    fitting = [
        one
        for one in catalogue.machines.values()
        if one.machine.chip is not None
        and one.machine.memory_bytes == facts.memory_bytes
        and _bare(one.machine.chip.name) == facts.chip
        and catalogue.chips[one.machine.chip.id].gpu_cores in (None, gpu_cores)
        and (facts.model is None or one.machine.name.startswith(facts.model))
    ]
    return fitting[0] if len(fitting) == 1 else None


def _with_card(card: Gpu, catalogue: Facts) -> MachineFact | None:
    assert card.memory_bytes is not None
    memory_gib = round(card.memory_bytes / GIB)  # a card's usable memory is a little less than it is sold with
    for one in catalogue.chips.values():
        if one.chip.memory_kind == "discrete" and memory_gib in one.memory_gib and _same_card(one.chip.name, card.name):
            whole = [machine for machine in catalogue.machines.values() if machine.machine.chip == one.chip]
            return whole[0] if len(whole) == 1 else catalogue.machine(one.id)
    return None


def _same_card(catalogued: str, reported: str) -> bool:
    """Whether two names are one card's: hyphens, and the size that the catalogue adds, aside."""

    def plain(name: str) -> str:
        return re.sub(r"\s*\d+\s*gb$", "", name.lower().replace("-", " ")).strip()

    return plain(catalogued) == plain(reported)


def _bare(chip: str) -> str:
    """A chip's name without the count of GPU cores that the catalogue adds in brackets."""
    return re.sub(r"\s*\(.*\)$", "", chip)


def _slug_of(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", _FILLER.sub(" ", name).lower()).strip("-")
