"""The machines: what each can hold and how fast it reads it, and how much of a Mac's memory its GPU gets."""

from collections.abc import Sequence
from typing import Any, Final

from roofbook.charts.cache import FigureCache
from roofbook.charts.hardware import Spot, hardware_figure
from roofbook.errors import EstimateError
from roofbook.facts import MachineFact
from roofbook.pages.concepts.grid import Cell, Grid, Source, grid, percent, source, span
from roofbook.pages.concepts.world import FAST_MACHINE, ROOMY_MACHINE, World
from roofbook.theory.limits import gpu_limit
from roofbook.theory.peaks import arithmetic_peak
from roofbook.theory.shapes import Machine, Range
from roofbook.units import GB, GIB, MIB, TFLOP
from roofbook.words import Words

LEFT_TO_MACOS_GIB: Final = 4
"""What the page's command leaves to macOS: with less, it starts to swap."""

_MINI: Final = "Mac mini "
_UNCHECKED: Final = "memory_gib"
_OLD_MACOS: Final = 15


def context(world: World, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``hardware.md.j2`` shows; the comparison is None where a machine is not catalogued."""
    roomy, fast = world.machine(ROOMY_MACHINE), world.machine(FAST_MACHINE)
    pair = None if roomy is None or fast is None else _pair(roomy, fast, world, words)
    title = words.say("How much memory, and how fast: the catalogue's machines") if pair is None else pair["title"]
    drawn = figures.draw(hardware_figure, words, title=title, spots=tuple(_spots(world)))
    return {
        "title": words.say("Hardware: how much fits, and how fast it is read"),
        "drawn": [drawn],
        "pair": pair,
        "minis": _minis(world, words),
        "limits": _limits(world, words),
        "raised": _raised(roomy, words),
        "sources": _sources(world, words),
    }


def is_card(fact: MachineFact) -> bool:
    """Return whether the machine computes on a card with memory of its own."""
    return fact.machine.chip is not None and fact.machine.chip.memory_kind == "discrete"


def name_of(fact: MachineFact) -> str:
    """Return what people call the machine: a card where it is one, else the box."""
    chip = fact.machine.chip
    if chip is not None and is_card(fact):
        return (chip.name or chip.id).removeprefix("NVIDIA GeForce ")
    return fact.machine.name or fact.id


def usable(machine: Machine, world: World) -> Range | None:
    """Return what the GPU may use, over the macOS releases on a Mac; None where the memory is not known."""
    try:
        return gpu_limit(machine, None, world.facts.mac_limits).limit_bytes
    except EstimateError:
        return None


def _pair(roomy: MachineFact, fast: MachineFact, world: World, words: Words) -> dict[str, Any] | None:
    """Return how the two compare, as written; None where a figure of either is missing."""
    held, less = usable(roomy.machine, world), usable(fast.machine, world)
    slower, faster = _bandwidth(roomy.machine), _bandwidth(fast.machine)
    if held is None or less is None or slower is None or faster is None:
        return None
    capacity = span(Range(held.low / less.high, held.high / less.low), words, 2)
    speed = span(Range(faster.low / slower.high, faster.high / slower.low), words, 2)
    return {
        "roomy": name_of(roomy),
        "fast": name_of(fast),
        "capacity": capacity,
        "speed": speed,
        "title": words.say(
            "%(roomy)s holds %(capacity)s times as much, %(fast)s reads %(speed)s times as fast",
            roomy=name_of(roomy),
            fast=name_of(fast),
            capacity=capacity,
            speed=speed,
        ),
        "table": _comparison((roomy, fast), world, words),
    }


def _comparison(pair: Sequence[MachineFact], world: World, words: Words) -> Grid:
    rows: list[list[str | Cell | None]] = [
        [words.say("Memory (GiB)"), *(_told(_memory(one.machine), GIB, words) for one in pair)],
        [words.say("GPU may use (GiB)"), *(_told(usable(one.machine, world), GIB, words) for one in pair)],
        [words.say("Bandwidth (GB/s)"), *(_told(_bandwidth(one.machine), GB, words) for one in pair)],
        [words.say("Bandwidth, measured by others (GB/s)"), *(_told(_stream(one.machine), GB, words) for one in pair)],
        [words.say("Arithmetic peak, 16 bits (TFLOPS)"), *(_told(_peak(one.machine), TFLOP, words) for one in pair)],
        ["CUDA", *(words.say("available") if _has_cuda(one.machine) else words.say("not available") for one in pair)],
        [words.say("Power when idle (W)"), *(_told(one.idle_power_w, 1, words) for one in pair)],
    ]
    return grid([("", False), *((name_of(one), True) for one in pair)], rows)


def _minis(world: World, words: Words) -> Grid:
    """Return which memory each Mac mini is sold with, one row a chip."""
    heads = [
        (words.say("Mac mini with"), False),
        (words.say("Sold since"), True),
        (words.say("Memory (GB)"), False),
        (words.say("Bandwidth (GB/s)"), True),
    ]
    rows: dict[str, list[str | Cell | None]] = {}
    for fact in world.facts.machines.values():
        chip = fact.machine.chip
        if chip is None or not fact.machine.name.startswith(_MINI):
            continue
        sizes = " · ".join(str(size) for size in fact.sold_with_gib)
        if _UNCHECKED in fact.provenance.unverified:
            sizes = words.say("%(sizes)s (not checked)", sizes=sizes)
        year = None if fact.year is None else str(fact.year)
        rows.setdefault(chip.id, [chip.name, year, sizes, _told(_bandwidth(fact.machine), GB, words)])
    return grid(heads, rows.values())


def _limits(world: World, words: Words) -> Grid:
    """Return what macOS lets the GPU have, by memory and release, as logs printed it."""
    seen = world.facts.mac_limits
    releases = sorted({limit.macos for limit in seen})
    heads = [(words.say("Memory (GB)"), True)]
    for release in releases:
        older = words.say("macOS %(release)s and older (GiB)", release=release)
        name = older if release <= _OLD_MACOS else f"macOS {release} (GiB)"
        heads += [(name, True), (words.say("share"), True)]
    rows: list[list[str | Cell | None]] = []
    for memory in sorted({limit.memory_bytes for limit in seen}):
        row: list[str | Cell | None] = [words.number(memory / GIB)]
        for release in releases:
            found = [limit for limit in seen if (limit.macos, limit.memory_bytes) == (release, memory)]
            if found:
                row += [words.significant(found[0].limit_bytes / GIB, 4), percent(found[0].limit_bytes / memory, words)]
            else:
                row += [None, None]
        rows.append(row)
    return grid(heads, rows)


def _raised(roomy: MachineFact | None, words: Words) -> dict[str, str] | None:
    """Return the limit that leaves LEFT_TO_MACOS_GIB to the system, in the command's unit."""
    memory = None if roomy is None else roomy.machine.memory_bytes
    if memory is None:
        return None
    limit = memory - LEFT_TO_MACOS_GIB * GIB
    return {
        "wired_limit_mb": str(limit // MIB),
        "gib": words.number(limit / GIB),
        "left_gib": str(LEFT_TO_MACOS_GIB),
        "memory_gib": words.number(memory / GIB),
    }


def _spots(world: World) -> list[Spot]:
    """Return every machine of the catalogue whose memory and bandwidth are known, those told of last (on top)."""
    colours = {one.view.subject.machine: one.view.colour for one in world.measured}
    spots: list[Spot] = []
    for fact in world.facts.machines.values():
        held, bandwidth = usable(fact.machine, world), _bandwidth(fact.machine)
        if held is None or bandwidth is None:
            continue
        told = fact.id in (ROOMY_MACHINE, FAST_MACHINE) or fact.id in colours
        doubtful = _UNCHECKED in fact.provenance.unverified
        spots.append(
            Spot(
                name_of(fact) if told else fact.machine.name,
                held,
                bandwidth,
                "named" if told else "doubtful" if doubtful else "other",
                colours.get(fact.id),
            )
        )
    return sorted(spots, key=lambda spot: spot.role == "named")


def _sources(world: World, words: Words) -> list[Source]:
    """Return where the figures of the pair, the minis and the limits come from."""
    told: list[Source] = []
    for name in (ROOMY_MACHINE, FAST_MACHINE):
        fact = world.machine(name)
        chip = None if fact is None or fact.machine.chip is None else world.facts.chips.get(fact.machine.chip.id)
        if fact is not None:
            found = [fact.provenance, *([] if chip is None else [chip.provenance])]
            told.append(source(name_of(fact), found, words))
    minis = [fact.provenance for fact in world.facts.machines.values() if fact.machine.name.startswith(_MINI)]
    sizes = tuple(dict.fromkeys(one.of(_UNCHECKED) for one in minis))
    doubts = (words.say("memory sizes"),) if any(_UNCHECKED in one.unverified for one in minis) else ()
    told.append(Source(words.say("Memory sizes of the Mac mini"), sizes, doubts))
    limits = tuple(dict.fromkeys(limit.source for limit in world.facts.mac_limits))
    told.append(Source(words.say("GPU limits by macOS"), limits, ()))
    return told


def _memory(machine: Machine) -> Range | None:
    return None if machine.memory_bytes is None else Range.of(machine.memory_bytes)


def _bandwidth(machine: Machine) -> Range | None:
    return None if machine.chip is None else machine.chip.bandwidth_bytes_per_s


def _stream(machine: Machine) -> Range | None:
    measured = None if machine.ceilings is None else machine.ceilings.bandwidth_bytes_per_s
    return None if measured is None else Range(measured.low, measured.high)


def _peak(machine: Machine) -> Range | None:
    """Return the rate usual for inference: FP16 products, accumulated in FP32."""
    peak = None if machine.chip is None else arithmetic_peak(machine.chip, "F16")
    if peak is None or machine.chip is None or machine.chip.memory_kind != "discrete":
        return peak
    return Range.of(peak.low)


def _has_cuda(machine: Machine) -> bool:
    return machine.chip is not None and machine.chip.vendor == "nvidia"


def _told(value: Range | None, unit: float, words: Words) -> str | None:
    return None if value is None else span(value * (1 / unit), words)
