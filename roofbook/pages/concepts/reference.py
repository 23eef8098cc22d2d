"""Other people's published speeds against their chips, and where this site's subjects stand among them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median, quantiles
from typing import Any, Final

from roofbook.analysis.bends import LENGTHS_FOR_A_BEND, REACH_FOR_A_BEND, Bend, bends, measured_bend
from roofbook.analysis.reference import LONG_PROMPT_TOKENS, DecodeStand, PrefillStand, measured_prefills, prefill_stands
from roofbook.analysis.steps import StepLaw, one_a_machine
from roofbook.charts.bends import NamedBend, bends_figure
from roofbook.charts.cache import Drawn, FigureCache
from roofbook.charts.prefill_shares import GroupedPrefill, prefill_share_figure
from roofbook.charts.reference import MeasuredStand, UsualLaw, decode_share_figure
from roofbook.charts.thin import short_names
from roofbook.pages.concepts import reference_tables as told
from roofbook.pages.concepts.grid import percent, span
from roofbook.pages.concepts.world import World
from roofbook.theory.shapes import Range
from roofbook.words import Words

_WITH_A_LINE: Final = ("apple", "nvidia")
"""Makers with enough machines for a usual law."""

_ASIDE: Final = re.compile(r"\s*\([^)]*\)|\s*\d+-core GPU|\s*\d+\s?GB\b|^Apple |^GeForce ")


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
             "c": words.significant(law.c_ms, 2), "k_half": span(law.k_half, words, 2),
             "c_half": span(law.c_half_ms, words, 2)}
            for law in usual
        ],
        "laws_range": _laws_range([law for law in one_a_machine(laws) if law.vendor == "apple"], words),
        "standing": told.standing(world, laws, words),
        "impossible": told.impossible(stands, words),
        "groups": told.groups(prefills, words),
        "bend": _bend_told(world, bent, words),
        "laws": told.laws(laws, words),
        "chips": told.chips(stands, prefills, words),
        "count": len(runs),
        "machines": len({run.machine for run in runs}),
        "copies": sum(run.read_in_copy for run in runs),
        "sources": told.sources(runs, words),
        "long_prompt": LONG_PROMPT_TOKENS,
        "bend_lengths": LENGTHS_FOR_A_BEND,
        "bend_reach": REACH_FOR_A_BEND,
    }  # fmt: skip


def _usual(laws: Sequence[StepLaw]) -> list[UsualLaw]:
    usual: list[UsualLaw] = []
    for vendor in _WITH_A_LINE:
        own = [law for law in one_a_machine(laws) if law.vendor == vendor]
        if len(own) > 1:
            k, c_ms = _quartiles([law.k for law in own]), _quartiles([law.c_ms for law in own])
            usual.append(
                UsualLaw(told.MAKERS[vendor], len(own), k[1], c_ms[1], Range(k[0], k[2]), Range(c_ms[0], c_ms[2]))
            )
    return usual


def _quartiles(values: Sequence[float]) -> list[float]:
    return quantiles(values, n=4, method="inclusive")


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
        for stand in told.decodes(one)
    )
    title = words.say(
        "The less there is to read in a step, the smaller the share of the bandwidth: a step costs time of its own"
    )
    return figures.draw(
        decode_share_figure, words, title=title, published=tuple(stands), measured=measured, laws=tuple(usual)
    )


def _prefill_figure(world: World, stands: Sequence[PrefillStand], words: Words, figures: FigureCache) -> Drawn:
    grouped = [GroupedPrefill(told.group(stand, words), stand) for stand in stands if stand.usable]
    for one in world.measured:
        if one.model is not None and one.machine is not None:
            own = measured_prefills(one.curve, one.model, one.machine)
            grouped += [
                GroupedPrefill(told.group(stand, words), stand, one.view.title(words), one.view.colour) for stand in own
            ]
    order = sorted({told.order(one.stand): one.group for one in grouped}.items())
    places = {group: place for place, (_, group) in enumerate(order)}
    shown = sorted(grouped, key=lambda one: places[one.group])
    apple = [one.stand.of_usual for one in grouped if one.colour is None and one.stand.vendor == "apple"]
    title = words.say(
        "Prefill on Apple's GPUs reaches %(share)s of the peak in the middle; elsewhere it depends on the kernels",
        share=percent(median(apple), words) if apple else words.say("unknown"),
    )
    return figures.draw(prefill_share_figure, words, title=title, stands=tuple(shown))


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
    labels = short_names([one.name for one in found])
    return [replace(one, name=labels[one.name]) for one in found]


def _commonest(bent: Iterable[Bend]) -> tuple[str, str | None] | None:
    counted = Counter((bend.model, bend.quantization) for bend in bent)
    return counted.most_common(1)[0][0] if counted else None


def _short(machine: str) -> str:
    """Return a machine's name without memory, cores and asides: a row of the figure has little room."""
    return _ASIDE.sub("", machine).strip(" ,") or machine


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
