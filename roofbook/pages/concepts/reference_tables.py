"""The tables of the page about other machines."""

from collections.abc import Sequence
from typing import Any, Final

from roofbook.analysis.reference import DecodeStand, PrefillStand, measured_decodes, middle, spread
from roofbook.analysis.steps import StepLaw
from roofbook.facts import PublishedRun
from roofbook.pages.concepts.grid import Cell, Grid, grid, percent, quoted
from roofbook.pages.concepts.world import Measured, World
from roofbook.words import Words, mark

MAKERS: Final = {"apple": "Apple", "nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}

_WHY_IMPOSSIBLE: Final = {
    "xd-m1-7-core-gpu-8gb-macbook-air-13-8b-q4km-8192": mark(
        "The run failed for want of memory, and its timer measured nothing."
    ),
    "15013-rtx-5060-12gb-as-printed-in-two-copies": mark(
        "The same figures stand under another card; this one does not exist with 12 GB."
    ),
    "vault-strixhalo-8192-rocm-hip-rocwmma-fa": mark(
        "As fast with 8,192 tokens behind it as with 128, although the cache adds half as many bytes again."
    ),
    "neg-specpicks-m4pro20": mark("A claim without rows; others measured half of it on the same chip."),
    "neg-specpicks-m4pro16": mark("A claim without rows, taken at its upper end."),
    "neg-gpuflow-4090-f16": mark("A claim without rows, taken at its upper end; others measured three quarters of it."),
}
"""What is known about an impossible figure beside its impossibility. One that is not here is shown all the same."""


def standing(world: World, laws: Sequence[StepLaw], words: Words) -> Grid | None:
    """Return what each measured subject reaches beside what the law of its own chip says, fitted to others' figures."""
    rows: list[list[str | Cell | None]] = []
    for one in world.measured:
        stands = decodes(one)
        least = min(stands, key=lambda stand: stand.step_ms, default=None)
        if least is None:
            continue
        same = [law for law in laws if law.chip == least.chip]
        predicted = [law.share(middle(least.ideal_ms)) for law in same]
        rows.append(
            [
                one.view.title(words),
                words.significant(least.tok_per_s),
                percent(least.share, words),
                None if not predicted else " · ".join(percent(share, words) for share in predicted),
                " · ".join(words.significant(law.c_ms, 2) for law in same) or None,
            ]
        )
    heads = [
        (words.say("Subject"), False),
        (words.say("Decode (tok/s)"), True),
        (words.say("Of the bandwidth"), True),
        (words.say("By the law of its chip"), True),
        (words.say("Overhead of a step there (ms)"), True),
    ]
    return grid(heads, rows) if rows else None


def impossible(stands: Sequence[DecodeStand], words: Words) -> list[dict[str, Any]]:
    """Return the figures that no such chip can reach, in their order, which is that of the numbers in the figure."""
    return [
        {
            "machine": stand.machine,
            "rate": words.significant(stand.tok_per_s),
            "share": percent(stand.share, words),
            "source": stand.source,
            "read_in_copy": stand.read_in_copy,
            "why": words.say(_WHY_IMPOSSIBLE[stand.id]) if stand.id in _WHY_IMPOSSIBLE else None,
        }
        for stand in stands
        if stand.impossible
    ]


def groups(stands: Sequence[PrefillStand], words: Words) -> Grid:
    """Return one row for each maker and precision."""
    heads = [
        (words.say("Group"), False),
        (words.say("Figures"), True),
        (words.say("Of the usual peak, median"), True),
        (words.say("from … to"), True),
        (words.say("Of the fastest peak, highest"), True),
    ]
    found: dict[tuple[int, bool], list[PrefillStand]] = {}
    for stand in stands:
        if stand.usable:
            found.setdefault(order(stand), []).append(stand)
    rows: list[list[str | Cell | None]] = []
    for _, members in sorted(found.items()):
        told = spread([stand.of_usual for stand in members])
        if told is not None:
            rows.append(
                [
                    group(members[0], words),
                    words.number(told.n),
                    percent(told.median, words),
                    f"{percent(told.low, words)} … {percent(told.high, words)}",
                    percent(max(stand.of_fastest for stand in members), words),
                ]
            )
    return grid(heads, rows)


def laws(laws: Sequence[StepLaw], words: Words) -> Grid:
    """Return one row for each machine whose steps give a law."""
    heads = [
        (words.say("Machine"), False),
        (words.say("Steps"), True),
        (words.say("In doubt"), False),
        (words.say("k (of the bandwidth)"), True),
        (words.say("c (ms a step)"), True),
        (words.say("Worst error"), True),
        (words.say("Source"), False),
    ]
    rows: list[list[str | Cell | None]] = [
        [
            quoted(law.machine),
            words.number(law.steps),
            words.say("in doubt") if law.doubtful else "",
            words.number(law.k, 2),
            words.number(law.c_ms, 1),
            None if law.worst is None else percent(law.worst, words, 1),
            quoted(law.source),
        ]
        for law in laws
    ]
    return grid(heads, rows)


def chips(stands: Sequence[DecodeStand], prefills: Sequence[PrefillStand], words: Words) -> Grid:
    """Return one row a chip: how many figures, and between which shares they lie."""
    heads = [
        (words.say("Chip"), False),
        (words.say("Decode figures"), True),
        (words.say("Of the bandwidth, median"), True),
        (words.say("from … to"), True),
        (words.say("Prefill figures"), True),
        (words.say("Of the usual peak, median"), True),
        (words.say("from … to"), True),
    ]
    decode: dict[str, list[float]] = {}
    prefill: dict[str, list[float]] = {}
    for stand in stands:
        if stand.usable:
            decode.setdefault(stand.chip, []).append(stand.share)
    for stand in prefills:
        if stand.usable:
            prefill.setdefault(stand.chip, []).append(stand.of_usual)
    rows: list[list[str | Cell | None]] = [
        [chip, *_spread_cells(decode.get(chip, []), words), *_spread_cells(prefill.get(chip, []), words)]
        for chip in sorted({*decode, *prefill})
    ]
    return grid(heads, rows)


def _spread_cells(shares: list[float], words: Words) -> list[str | None]:
    told = spread(shares)
    if told is None:
        return ["0", None, None]
    return [
        words.number(told.n),
        percent(told.median, words),
        f"{percent(told.low, words)} … {percent(told.high, words)}",
    ]


def sources(runs: Sequence[PublishedRun], words: Words) -> Grid:
    """Return one row a source: how many figures, of when, and whether it was read there or in a copy."""
    heads = [
        (words.say("Source, in the catalogue's words"), False),
        (words.say("Figures"), True),
        (words.say("Date"), True),
        (words.say("Read"), False),
    ]
    found: dict[str, list[PublishedRun]] = {}
    for run in runs:
        found.setdefault(run.source, []).append(run)
    rows: list[list[str | Cell | None]] = []
    for name, own in found.items():
        dates = sorted({run.date for run in own if run.date})
        copies = sum(run.read_in_copy for run in own)
        read = words.say("in a copy") if copies == len(own) else words.say("there") if not copies else words.say("both")
        rows.append(
            [
                quoted(name),
                words.number(len(own)),
                " … ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else None,
                read,
            ]
        )
    return grid(heads, rows)


def decodes(one: Measured) -> list[DecodeStand]:
    """Return a subject's decode rates against its chip; none where model or machine are unknown."""
    if one.model is None or one.machine is None:
        return []
    return measured_decodes(one.points, one.model, one.machine, one.view.subject.kv_cache_type)


def order(stand: PrefillStand) -> tuple[int, bool]:
    """Return what sorts the groups: makers in the order of MAKERS, 16 bits before quantized."""
    makers = list(MAKERS)
    return (makers.index(stand.vendor) if stand.vendor in MAKERS else len(makers), not stand.sixteen_bits)


def group(stand: PrefillStand, words: Words) -> str:
    """Return what the group of a prefill is called."""
    maker = MAKERS.get(stand.vendor or "", words.say("Others"))
    if stand.sixteen_bits:
        return words.say("%(maker)s, 16 bits", maker=maker)
    return words.say("%(maker)s, quantized", maker=maker)
