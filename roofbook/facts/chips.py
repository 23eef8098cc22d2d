"""chips.yml: what each chip's memory and arithmetic can do, as published."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roofbook.facts.entries import Entry, Provenance, read_entries
from roofbook.theory.shapes import Ceilings, Chip, MemoryKind, Peaks, Spread
from roofbook.units import GB, GIB, TFLOP

_KINDS: Final[dict[str, MemoryKind]] = {"unified": "unified", "discrete": "discrete", "cpu": "cpu"}
_PEAKS: Final = ("fp32_tflops", "fp16_tflops", "fp16_acc16_tflops", "int8_tops", "fp8_tflops", "fp4_tflops")


@dataclass(frozen=True)
class ChipFact:
    """A chip with what is known beside its speed, and where that comes from."""

    chip: Chip
    provenance: Provenance
    memory_gib: tuple[int, ...] = ()
    """The sizes it is sold with."""
    gpu_cores: int | None = None
    tdp_w: float | None = None

    @property
    def id(self) -> str:
        return self.chip.id


def read_chips(path: Path) -> dict[str, ChipFact]:
    """Return the chips of the file at *path* by id; raises FactsError."""
    return {entry.name: _chip(entry) for entry in read_entries(path, "chips")}


def _chip(entry: Entry) -> ChipFact:
    entry.only(
        "id", "name", "vendor", "memory", "gpu_cores", "memory_gib", "bandwidth_gb_s", "tdp_w", "measured",
        "channels", "mega_transfers_s", *_PEAKS,
    )  # fmt: skip
    kind = _KINDS[entry.one_of("memory", _KINDS)]
    sizes = entry.sizes("memory_gib") if "memory_gib" in entry.values else ()
    chip = Chip(
        id=entry.name,
        name=entry.text("name"),
        vendor=entry.text_or_none("vendor"),
        memory_kind=kind,
        memory_bytes=sizes[0] * GIB if len(sizes) == 1 else None,
        bandwidth_bytes_per_s=entry.range("bandwidth_gb_s", GB),
        peaks=Peaks(*(entry.range(key, TFLOP) for key in _PEAKS)),
        measured=_measured(entry.inner("measured")) if "measured" in entry.values else None,
    )
    return ChipFact(chip, entry.provenance(), sizes, entry.whole("gpu_cores"), entry.number("tdp_w"))


def _measured(entry: Entry) -> Ceilings:
    entry.only("bandwidth_gb_s", "gemm_fp32_tflops", "gemm_fp16_tflops")
    flops = entry.number("gemm_fp16_tflops") or entry.number("gemm_fp32_tflops")
    return Ceilings(
        bandwidth_bytes_per_s=_published(entry.number("bandwidth_gb_s"), GB),
        flops_per_s=_published(flops, TFLOP),
        source=entry.text("source"),
    )


def _published(figure: float | None, factor: float) -> Spread | None:
    """Return a published figure, which came without its spread or its number of runs."""
    return None if figure is None else Spread(figure * factor, figure * factor, figure * factor)
