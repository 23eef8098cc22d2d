"""A publication held to account: what it claimed, what its own rows, the catalogue and the theory give."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from roofbook.analysis.claims import Claim, Evidence, Verdict, claims
from roofbook.charts.cache import FigureCache
from roofbook.charts.claims import Tally, claims_figure
from roofbook.pages.concepts.corrections import corrections
from roofbook.pages.concepts.grid import Cell, Grid, grid
from roofbook.pages.concepts.statements import HONEST, LABELS
from roofbook.pages.concepts.world import Measured, World
from roofbook.record import Run
from roofbook.theory.shapes import Range
from roofbook.units import MS_PER_S
from roofbook.validity import records
from roofbook.words import Words, mark

_VERDICTS: Final[Mapping[Verdict, str]] = {
    "differs": mark("differs"),
    "close": mark("within 5 %%"),
    "other_unit": mark("agrees in another unit"),
    "not_derivable": mark("cannot be checked"),
    "overlaps": mark("overlaps the range"),
    "within": mark("within the range"),
    "same": mark("same number"),
}
"""In the order of the table: what has to be said otherwise comes first."""

_FROM_GOOD: Final[tuple[Verdict, ...]] = (
    "same", "within", "overlaps", "other_unit", "close", "differs", "not_derivable",
)  # fmt: skip
_AGREES: Final[tuple[Verdict, ...]] = ("same", "within", "overlaps")
"""Nothing has to be said otherwise, though an interval may have to be said at all."""
_WRONG: Final[tuple[Verdict, ...]] = ("differs", "not_derivable")

_SECONDS_FROM_MS: Final = 2_000

_MOST_DECIMALS: Final = 6
_SAME: Final = 1e-9

_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    "share": ("%", 0.01),
    "gb": ("GB", 1),
    "kb": ("kB", 1),
    "tok/s": ("tok/s", 1),
    "tflop": ("TFLOP", 1),
    "tflops": ("TFLOPS", 1),
    "bytes": ("B", 1),
    "s": ("s", 1),
    "factor": ("×", 1),
    "ms/token": ("ms/T", 1),
    "ms/token2": ("ms/T²", 1),
    "tokens": ("", 1),
    "requests": ("", 1),
}
"""What is written behind a figure, and what one of it is in the claim's unit."""


@dataclass(frozen=True)
class _Publication:
    run: Run
    measured: Measured
    claims: tuple[Claim, ...]
    evidence: Evidence


def context(world: World, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``claims.md.j2`` shows; nothing but its title where no run brings claims."""
    title = words.say("Claimed and recomputed")
    found = _publication(world)
    if found is None:
        return {"title": title, "drawn": [], "origin": None}
    decisive = [one for one in found.claims if one.changes_decision]
    others = [one for one in found.claims if not one.changes_decision]
    agreeing = sorted((one for one in others if one.verdict in _AGREES), key=lambda one: _FROM_GOOD.index(one.verdict))
    amended = sorted(
        (one for one in others if one.verdict not in _AGREES), key=lambda one: list(_VERDICTS).index(one.verdict)
    )
    counts = Counter(one.verdict for one in found.claims if one.verdict != "differs" or not one.elsewhere)
    elsewhere = sum(one.verdict == "differs" and one.elsewhere for one in found.claims)
    fared = {
        "all": words.number(len(found.claims)),
        "same": words.number(counts["same"]),
        "within": words.number(counts["within"] + counts["overlaps"]),
        "near": words.number(counts["other_unit"] + counts["close"]),
        "differ": words.number(counts["differs"]),
        "elsewhere": words.number(elsewhere),
        "unknown": words.number(counts["not_derivable"]),
    }
    drawn = figures.draw(
        claims_figure,
        words,
        title=words.say(
            "Of %(all)s checks %(same)s give the same number, %(within)s agree with a range and %(differ)s differ; "
            "%(elsewhere)s more differ under conditions that were not claimed",
            **fared,
        ),
        tallies=tuple(_tallies(found.claims, words)),
    )
    origin = {key: str(found.run.facts.origin.get(key, "")) for key in ("source", "date")}
    return {
        "title": title,
        "drawn": [drawn],
        "origin": origin,
        "fared": fared,
        "corrections": corrections(found.measured, found.evidence, found.claims, words),
        "decisive": _table(decisive, words),
        "amended": _table(amended, words),
        "agreeing": _table(agreeing, words),
        "amended_count": len(amended),
        "agreeing_count": len(agreeing),
    }


def _publication(world: World) -> _Publication | None:
    """Return the first run that brings claims about a subject whose model and machine are known."""
    for run in world.runs:
        published = run.facts.origin.get("claims")
        if not isinstance(published, Mapping) or not published:
            continue
        for one in world.measured:
            evidence = _evidence(run, one, world)
            if evidence is not None:
                return _Publication(run, one, tuple(claims(published, evidence)), evidence)  # pyright: ignore[reportUnknownArgumentType] - JSON
    return None


def _evidence(run: Run, one: Measured, world: World) -> Evidence | None:
    subject = one.view.subject
    if run.run_id not in subject.run_ids or one.model is None or one.machine is None:
        return None
    if subject.quantization is None or subject.kv_cache_type is None:
        return None
    return Evidence(
        rows=tuple(records(run.rows)),
        points=one.points,
        curve=one.curve,
        facts=world.facts,
        model=one.model,
        machine=one.machine,
        quantization=subject.quantization,
        kv_type=subject.kv_cache_type,
    )


def _tallies(found: Sequence[Claim], words: Words) -> list[Tally]:
    counted: list[Tally] = []
    for verdict in _FROM_GOOD:
        of_verdict = [one for one in found if one.verdict == verdict]
        apart = sum(one.elsewhere for one in of_verdict) if verdict == "differs" else 0
        counted.append(Tally(words.say(_VERDICTS[verdict]), len(of_verdict) - apart, verdict in _WRONG))
        if apart:
            counted.append(Tally(words.say("differs, under another condition"), apart, verdict in _WRONG))
    return [one for one in counted if one.count]


def _table(found: Sequence[Claim], words: Words) -> Grid:
    heads = [
        (words.say("What"), False),
        (words.say("Claimed"), True),
        (words.say("Recomputed"), True),
        (words.say("Verdict"), False),
        (words.say("Said honestly"), False),
    ]
    said = [_honest(one, words) for one in found]
    rows: list[list[str | Cell | None]] = [
        [
            _label(one, words),
            _figure(one.claimed, None, one, words),
            None if one.recomputed is None else _figure(one.recomputed, one.mid, one, words),
            _verdict(one, words),
            honest if honest != before else "",  # said once for a group of lines
        ]
        for one, honest, before in zip(found, said, ["", *said], strict=False)
    ]
    return grid(heads, rows, wide=(0, 4))


def _verdict(one: Claim, words: Words) -> str:
    if one.verdict == "differs" and one.elsewhere:
        return words.say("differs, under another condition")
    return words.say(_VERDICTS[one.verdict])


def _label(one: Claim, words: Words) -> str:
    """Return what the number is about; a statement without a label shows its key."""
    label = LABELS.get(one.key)
    if label is None:
        return one.key if one.at is None else f"{one.key} ({one.at})"
    return words.say(label, at=_at(one.at, words))


def _at(at: str | None, words: Words) -> str:
    if at is None:
        return ""
    parts = [words.number(int(part)) if part.isdigit() else part for part in at.split()]
    return " ".join("×" if part == "x" else part for part in parts)


def _figure(value: Range, mid: float | None, one: Claim, words: Words) -> str:
    """Return the figure with its unit; an interval stands behind its middle."""
    unit, size = _unit(one)

    def told(number: float) -> str:
        if value is one.claimed:
            return words.number(number / size, _decimals(number / size))
        return words.number(number) if unit == "" else words.significant(number / size)

    if value.known:
        return _with_unit(told(value.low), unit, words)
    bounds = f"{told(value.low)} … {told(value.high)}"
    return _with_unit(bounds, unit, words) if mid is None else f"{_with_unit(told(mid), unit, words)} ({bounds})"


def _with_unit(number: str, unit: str, words: Words) -> str:
    if unit == "%":
        return words.say("%(value)s %%", value=number)
    return f"{number}{unit}" if unit in ("", "×") else f"{number} {unit}"


def _decimals(printed: float) -> int:
    """Return how many decimals *printed* has, as people print: a long tail comes from computing, and is cut."""
    for decimals in range(_MOST_DECIMALS):
        if math.isclose(round(printed, decimals), printed, rel_tol=_SAME):
            return decimals
    return _MOST_DECIMALS if abs(printed) < 1 else 2


def _unit(one: Claim) -> tuple[str, float]:
    if one.unit == "ms":
        return ("s", MS_PER_S) if one.claimed.high >= _SECONDS_FROM_MS else ("ms", 1)
    return _UNITS.get(one.unit, (one.unit, 1))


def _honest(one: Claim, words: Words) -> str:
    """Return how the number should be said; nothing for one that stands as it is."""
    if one.verdict == "other_unit":
        unit = "GiB" if one.unit == "gb" else "KiB"
        return words.say("Right in %(unit)s, which is what was computed.", unit=unit)
    special = HONEST.get((one.key, one.at)) or HONEST.get((one.key, None))
    if special is not None and (one.verdict not in _AGREES or one.changes_decision or (one.key, one.at) in HONEST):
        return words.say(special)
    return ""
