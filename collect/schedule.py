"""In which order a plan is measured: blocks that do not alternate, cells inside them shuffled, anchors along the way.

A block is all that is measured with one model and one set of options: changing either makes a server load again. All of
this is decided before the first request, from the plan and its seed alone, so that a stopped run can be taken up again.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from collect.plan import Anchor, Experiment, Option, Plan, RunSettings

Phase = Literal["calibration", "warmup", "prime", "measured", "anchor"]

Key = tuple[str, str | None, str, int]
"""What makes a request of the schedule unique within a run: phase, experiment, point, repeat."""


@dataclass(frozen=True)
class Cell:
    """One point of an experiment: settings whose requests are repeats of each other; an anchor has no experiment."""

    experiment: str | None
    kind: str | None
    point: str
    prompt_tokens: int
    output_tokens: int
    concurrency: int
    requests: int
    run: RunSettings

    @property
    def tokens(self) -> int:
        """What one of its requests takes of the context."""
        return self.prompt_tokens + self.output_tokens


@dataclass(frozen=True)
class Unit:
    """What is sent without anything else in between: one request, or one level of concurrency."""

    cell: Cell
    phase: Phase
    repeats: tuple[int, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple((self.phase, self.cell.experiment, self.cell.point, repeat) for repeat in self.repeats)


@dataclass(frozen=True)
class Block:
    """What is measured with one model and one set of options, in order."""

    model: str | None
    options: Mapping[str, Option]
    units: tuple[Unit, ...]
    cold: bool = False
    """Whether the model is unloaded before each request; nothing is warmed up then."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Its different cells, anchors among them, as the plan writes them: shortest prompts need no warm cache."""
        return tuple(
            sorted({unit.cell for unit in self.units}, key=lambda cell: (cell.concurrency, cell.prompt_tokens))
        )

    def without(self, done: "set[Key] | frozenset[Key]") -> "Block":
        """Return what is left of the block when *done* is measured already."""
        units = (_left(unit, done) for unit in self.units)
        return Block(self.model, self.options, tuple(unit for unit in units if unit.repeats), self.cold)


def schedule(plan: Plan, seed: int) -> tuple[Block, ...]:
    """Return the blocks of *plan*; *seed* shuffles what the plan wants shuffled without a seed of its own."""
    anchors = _AnchorCount()
    return tuple(
        _block(experiments, random.Random(f"{_seed(experiments[0], seed)}/{number}"), anchors)
        for number, experiments in enumerate(_grouped(plan.experiments))
    )


def alternates(plan: Plan) -> bool:
    """Whether the plan returns to a model or to options that it had left: then its order is not kept."""
    keys = [_server_key(one) for one in plan.experiments]
    changes = sum(one != other for one, other in pairwise(keys))
    return changes >= len(set(keys))


def point_of(
    prompt_tokens: int, output_tokens: int, *, concurrency: int = 1, options: Mapping[str, Option] | None = None
) -> str:
    """Return the stable id of wanted settings: p512-o32, p512-o128-c4, p512-o32-num_ctx=8192."""
    parts = [f"p{prompt_tokens}", f"o{output_tokens}"]
    if concurrency > 1:
        parts.append(f"c{concurrency}")
    parts += [f"{key}={value}" for key, value in sorted((options or {}).items())]
    return "-".join(parts)


@dataclass
class _AnchorCount:
    """Numbers the anchors of the whole run."""

    count: int = 0

    def unit(self, cell: Cell) -> Unit:
        self.count += 1
        return Unit(cell, "anchor", (self.count,))


def _block(experiments: Sequence[Experiment], source: random.Random, anchors: _AnchorCount) -> Block:
    first = experiments[0]
    cold = first.kind == "cold_load"
    units = _ordered([list(_units(one)) for one in experiments], first.run.order, source)
    if first.run.anchor is not None and not cold:
        units = list(_with_anchors(units, first.run, first.run.anchor, anchors))
    return Block(first.model, first.options, tuple(units), cold)


def _grouped(experiments: Sequence[Experiment]) -> Iterator[list[Experiment]]:
    """Yield the experiments that are measured together, so that each model and each set of options comes once."""
    servers: dict[object, dict[object, list[Experiment]]] = {}
    for one in experiments:
        settings = (one.kind == "cold_load", one.run.order, one.run.seed, one.run.anchor)
        servers.setdefault(_server_key(one), {}).setdefault(settings, []).append(one)
    for groups in servers.values():
        # Loading on purpose leaves the server cold, so it comes last.
        yield from sorted(groups.values(), key=lambda group: group[0].kind == "cold_load")


def _server_key(one: Experiment) -> object:
    return one.model, tuple(sorted((key, str(value)) for key, value in one.options.items()))


def _seed(one: Experiment, drawn: int) -> int:
    return drawn if one.run.seed is None else one.run.seed


def _units(one: Experiment) -> Iterator[list[Unit]]:
    """Yield the units of each cell of *one*: its repeats, or its level of concurrency as a whole."""
    for concurrency in one.concurrency:
        for prompt_tokens in one.prompt_tokens:
            cell = Cell(
                experiment=one.name,
                kind=one.kind,
                point=point_of(prompt_tokens, one.output_tokens, concurrency=concurrency),
                prompt_tokens=prompt_tokens,
                output_tokens=one.output_tokens,
                concurrency=concurrency,
                requests=one.run.repeats if one.requests is None else one.requests,
                run=one.run,
            )
            repeats = range(1, cell.requests + 1)
            if one.kind == "concurrency":
                yield [Unit(cell, "measured", tuple(repeats))]
            else:
                yield [Unit(cell, "measured", (repeat,)) for repeat in repeats]


def _ordered(experiments: Sequence[Sequence[list[Unit]]], order: str, source: random.Random) -> list[Unit]:
    cells = [units for cells in experiments for units in cells]
    if order == "as_written":
        return [unit for units in cells for unit in units]
    if order == "interleaved":
        longest = max(len(units) for units in cells)
        return [units[turn] for turn in range(longest) for units in cells if turn < len(units)]
    shuffled = [unit for units in cells for unit in units]
    source.shuffle(shuffled)
    return shuffled


def _with_anchors(units: Sequence[Unit], run: RunSettings, anchor: Anchor, count: _AnchorCount) -> Iterator[Unit]:
    cell = Cell(
        experiment=None, kind=None, point=point_of(anchor.prompt_tokens, anchor.output_tokens),
        prompt_tokens=anchor.prompt_tokens, output_tokens=anchor.output_tokens, concurrency=1, requests=1, run=run,
    )  # fmt: skip
    yield count.unit(cell)
    since = 0
    for number, unit in enumerate(units, start=1):
        yield unit
        since += len(unit.repeats)
        if since >= anchor.every or number == len(units):
            yield count.unit(cell)
            since = 0


def _left(unit: Unit, done: "set[Key] | frozenset[Key]") -> Unit:
    left = tuple(repeat for repeat, key in zip(unit.repeats, unit.keys, strict=True) if key not in done)
    return Unit(unit.cell, unit.phase, left)
