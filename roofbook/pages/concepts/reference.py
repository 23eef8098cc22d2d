"""Other people's published speeds against their chips, and where this site's subjects stand among them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, Final

from roofbook.analysis.reference import (
    LENGTHS_FOR_A_BEND,
    LONG_PROMPT_TOKENS,
    REACH_FOR_A_BEND,
    Bend,
    DecodeStand,
    PrefillStand,
    StepLaw,
    bends,
    measured_bend,
    measured_decodes,
    measured_prefills,
    middle,
    prefill_stands,
    spread,
)
from roofbook.charts.bends import NamedBend, bends_figure
from roofbook.charts.cache import Drawn, FigureCache
from roofbook.charts.prefill_shares import GroupedPrefill, prefill_share_figure
from roofbook.charts.reference import MeasuredStand, UsualLaw, decode_share_figure
from roofbook.facts import PublishedRun
from roofbook.pages.concepts.grid import Cell, Grid, grid, percent, quoted
from roofbook.pages.concepts.world import Measured, World
from roofbook.words import Words, mark

_MAKERS: Final = {"apple": "Apple", "nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
_WITH_A_LINE: Final = ("apple", "nvidia")
"""Makers with enough machines for a usual law."""

_ASIDE: Final = re.compile(r"\s*\([^)]*\)|\s*\d+-core GPU|\s*\d+\s?GB\b|^Apple |^GeForce ")

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


def context(world: World, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``reference.md.j2`` shows."""
    runs = world.facts.published
    stands, laws, prefills, bent = world.stands, world.laws, prefill_stands(runs), bends(runs)
    usable = [stand.share for stand in stands if stand.usable]
    usual = _usual(laws)
    drawn = [
        _decode_figure(world, stands, usual, words, figures),
        _prefill_figure(world, prefills, words, figures),
        *_bends_figure(world, bent, words, figures),
    ]
    return {
        "title": words.say("Other machines: theory against published figures"),
        "drawn": drawn,
        "figures_drawn": [one.figure.name for one in drawn],
        "low": percent(min(usable, default=0), words),
        "high": percent(max(usable, default=0), words),
        "usual": [
            {"maker": law.name, "machines": law.machines, "k": words.significant(law.k, 2),
             "c": words.significant(law.c_ms, 2)}
            for law in usual
        ],
        "laws_range": _laws_range([law for law in laws if law.vendor == "apple" and law.worst is not None], words),
        "standing": _standing(world, laws, words),
        "impossible": _impossible(stands, words),
        "groups": _groups(prefills, words),
        "bend": _bend_told(world, bent, words),
        "laws": _laws(laws, words),
        "chips": _chips(stands, prefills, words),
        "count": len(runs),
        "machines": len({run.machine for run in runs}),
        "copies": sum(run.read_in_copy for run in runs),
        "sources": _sources(runs, words),
        "long_prompt": LONG_PROMPT_TOKENS,
        "bend_lengths": LENGTHS_FOR_A_BEND,
        "bend_reach": REACH_FOR_A_BEND,
    }  # fmt: skip


def _usual(laws: Sequence[StepLaw]) -> list[UsualLaw]:
    usual: list[UsualLaw] = []
    for vendor in _WITH_A_LINE:
        own = [law for law in laws if law.vendor == vendor]
        if own:
            k, c_ms = median(law.k for law in own), median(law.c_ms for law in own)
            usual.append(UsualLaw(_MAKERS[vendor], len(own), k, c_ms))
    return usual


def _laws_range(laws: Sequence[StepLaw], words: Words) -> dict[str, str] | None:
    if not laws:
        return None
    costs = [law.c_ms for law in laws]
    return {
        "machines": words.number(len(laws)),
        "low": words.significant(min(costs), 2),
        "high": words.significant(max(costs), 2),
    }


def _decode_figure(
    world: World, stands: Sequence[DecodeStand], usual: Sequence[UsualLaw], words: Words, figures: FigureCache
) -> Drawn:
    measured = tuple(
        MeasuredStand(one.view.title(words), one.view.colour, stand)
        for one in world.measured
        for stand in _decodes(one)
    )
    title = words.say(
        "The less there is to read in a step, the smaller the share of the bandwidth: a step costs time of its own"
    )
    return figures.draw(
        decode_share_figure, words, title=title, published=tuple(stands), measured=measured, laws=tuple(usual)
    )


def _decodes(one: Measured) -> list[DecodeStand]:
    if one.model is None or one.machine is None:
        return []
    return measured_decodes(one.points, one.model, one.machine, one.view.subject.kv_cache_type)


def _prefill_figure(world: World, stands: Sequence[PrefillStand], words: Words, figures: FigureCache) -> Drawn:
    grouped = [GroupedPrefill(_group(stand, words), stand) for stand in stands if stand.usable]
    for one in world.measured:
        if one.model is not None and one.machine is not None:
            own = measured_prefills(one.curve, one.model, one.machine)
            grouped += [
                GroupedPrefill(_group(stand, words), stand, one.view.title(words), one.view.colour) for stand in own
            ]
    order = sorted({_order(one.stand): one.group for one in grouped}.items())
    places = {group: place for place, (_, group) in enumerate(order)}
    shown = sorted(grouped, key=lambda one: places[one.group])
    apple = [one.stand.of_usual for one in grouped if one.colour is None and one.stand.vendor == "apple"]
    title = words.say(
        "Prefill on Apple's GPUs reaches %(share)s of the peak in the middle; elsewhere it depends on the kernels",
        share=percent(median(apple), words) if apple else words.say("unknown"),
    )
    return figures.draw(prefill_share_figure, words, title=title, stands=tuple(shown))


def _order(stand: PrefillStand) -> tuple[int, bool]:
    makers = list(_MAKERS)
    return (makers.index(stand.vendor) if stand.vendor in _MAKERS else len(makers), not stand.sixteen_bits)


def _group(stand: PrefillStand, words: Words) -> str:
    maker = _MAKERS.get(stand.vendor or "", words.say("Others"))
    if stand.sixteen_bits:
        return words.say("%(maker)s, 16 bits", maker=maker)
    return words.say("%(maker)s, quantized", maker=maker)


def _bends_figure(world: World, bent: Sequence[Bend], words: Words, figures: FigureCache) -> list[Drawn]:
    """Return the figure of the pair of model and quantization that most machines were measured with."""
    common = _commonest(bent)
    shown = [NamedBend(_short(bend.machine), bend) for bend in bent if (bend.model, bend.quantization) == common]
    shown += _own_bends(world)
    if common is None or not shown:
        return []
    model = " ".join(part for part in common if part)
    above = sum(one.bend.excess.low > 1 for one in shown)
    title = words.say(
        "In %(above)s of %(all)s series the quadratic term costs more than attention's arithmetic",
        above=words.number(above),
        all=words.number(len(shown)),
    )
    ordered = tuple(sorted(shown, key=lambda one: one.bend.excess.mid))
    return [figures.draw(bends_figure, words, title=title, bends=ordered, model=model)]


def _own_bends(world: World) -> list[NamedBend]:
    found: list[NamedBend] = []
    for one in world.measured:
        bend = None
        if one.model is not None and one.machine is not None:
            bend = measured_bend(one.curve, one.model, one.machine)
        if bend is not None:
            found.append(NamedBend(_short(bend.machine), bend, one.view.colour))
    return found


def _commonest(bent: Iterable[Bend]) -> tuple[str, str | None] | None:
    counted = Counter((bend.model, bend.quantization) for bend in bent)
    return counted.most_common(1)[0][0] if counted else None


def _short(machine: str) -> str:
    """Return a machine's name without memory, cores and asides: a row of the figure has little room."""
    return _ASIDE.sub("", machine).strip(" ,") or machine


def _standing(world: World, laws: Sequence[StepLaw], words: Words) -> Grid | None:
    """Return what each measured subject reaches beside what the law of its own chip says, fitted to others' figures."""
    rows: list[list[str | Cell | None]] = []
    for one in world.measured:
        stands = _decodes(one)
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


def _impossible(stands: Sequence[DecodeStand], words: Words) -> list[dict[str, Any]]:
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


def _groups(stands: Sequence[PrefillStand], words: Words) -> Grid:
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
            found.setdefault(_order(stand), []).append(stand)
    rows: list[list[str | Cell | None]] = []
    for _, group in sorted(found.items()):
        told = spread([stand.of_usual for stand in group])
        if told is not None:
            rows.append(
                [
                    _group(group[0], words),
                    words.number(told.n),
                    percent(told.median, words),
                    f"{percent(told.low, words)} … {percent(told.high, words)}",
                    percent(max(stand.of_fastest for stand in group), words),
                ]
            )
    return grid(heads, rows)


def _bend_told(world: World, bent: Sequence[Bend], words: Words) -> dict[str, Any] | None:
    """Return the measured subjects' bends in words, beside the span of the published ones."""
    common = _commonest(bent)
    published = [bend.excess.mid for bend in bent if (bend.model, bend.quantization) == common]
    own = _own_bends(world)
    if not published:
        return None
    return {
        "model": " ".join(part for part in common or () if part),
        "low": words.significant(min(published), 2),
        "high": words.significant(max(published), 2),
        "own": [
            {
                "name": one.bend.machine,
                "excess": words.significant(one.bend.excess.mid, 2),
                "low": words.significant(one.bend.excess.low, 2),
                "high": words.significant(one.bend.excess.high, 2),
            }
            for one in own
        ],
    }


def _laws(laws: Sequence[StepLaw], words: Words) -> Grid:
    heads = [
        (words.say("Machine"), False),
        (words.say("Steps"), True),
        (words.say("k (of the bandwidth)"), True),
        (words.say("c (ms a step)"), True),
        (words.say("Worst error"), True),
        (words.say("Source"), False),
    ]
    rows: list[list[str | Cell | None]] = [
        [
            quoted(law.machine),
            words.number(law.steps),
            words.number(law.k, 2),
            words.number(law.c_ms, 1),
            None if law.worst is None else percent(law.worst, words, 1),
            quoted(law.source),
        ]
        for law in laws
    ]
    return grid(heads, rows)


def _chips(stands: Sequence[DecodeStand], prefills: Sequence[PrefillStand], words: Words) -> Grid:
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


def _sources(runs: Sequence[PublishedRun], words: Words) -> Grid:
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
