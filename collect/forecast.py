"""How long a plan will take: by two short requests to the server itself, else, as the least, by theory."""

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from collect.apis import Ask
from collect.client import LoopWatch, Sender
from collect.pace import Pace
from collect.plan import Option, RunSettings
from collect.prompts import make_prompt
from collect.reach import Reached
from collect.schedule import Block, Cell, Unit
from roofbook.errors import EstimateError
from roofbook.record import Row
from roofbook.theory.roofline import decode_ceiling, prefill_floor_ms
from roofbook.theory.shapes import Machine, Model
from roofbook.units import MS_PER_S

# The first may find the model not loaded; the second is long enough for rates of prefill and decode.
PROBES: Final = ((24, 4), (300, 16))
"""Words of the prompt and tokens of the answer."""


@dataclass(frozen=True)
class Forecast:
    """Seconds for the whole plan, and for its longest single request; *basis* says how they are known."""

    total_s: float
    longest_request_s: float
    basis: Literal["probe", "theory"]


def probe(reached: Reached, options: Mapping[str, Option], *, timeout_s: float) -> tuple[Pace, list[Row]]:
    """Send two short requests with the *options* of the run and return what they teach, and their columns."""
    pace = Pace()
    rows = asyncio.run(_probe(reached, options, timeout_s))
    for row, (words, output_tokens) in zip(rows[-1:], PROBES[-1:], strict=True):
        pace.note({**row, "phase": "calibration"}, _cell(words, output_tokens))
    return pace, rows


async def _probe(reached: Reached, options: Mapping[str, Option], timeout_s: float) -> list[Row]:
    api, watch, source = reached.api, LoopWatch(), random.SystemRandom()
    rows: list[Row] = []
    async with Sender(reached.target, watch) as sender:
        for words, output_tokens in PROBES:
            prompt = make_prompt(words, source, closing=not api.raw_prompt)
            request = api.request(
                Ask(prompt.text, output_tokens, reached.facts.model, options, include_usage=False, ignore_eos=False)
            )
            answer = api.read(await sender.send(request.path, request.body, timeout_s=timeout_s))
            rows.append({"prompt_tokens": words, **{k: v for k, v in answer.columns.items() if v is not None}})
    return rows


def forecast(pace: Pace, blocks: Sequence[Block]) -> Forecast | None:
    """Return how long *blocks* take by what a probe taught; None where it taught nothing."""
    units = list(_all_units(blocks))
    total_s, each = pace.left_s(units), [pace.request_ms(unit.cell) for unit in units]
    if total_s is None or not each:
        return None
    return Forecast(total_s, max(one for one in each if one is not None) / MS_PER_S, "probe")


def at_least(model: Model, machine: Machine, blocks: Sequence[Block]) -> Forecast | None:
    """Return the least time that *blocks* can take on *machine*; None where theory does not know enough."""
    total_s, longest_s = 0.0, 0.0
    for unit in _all_units(blocks):
        try:
            prefill = prefill_floor_ms(model, machine, unit.cell.prompt_tokens).datasheet
            rate = decode_ceiling(model, machine, context_tokens=unit.cell.prompt_tokens).datasheet
        except EstimateError:
            return None
        if prefill is None or rate is None or rate.high <= 0:
            return None
        each_s = prefill.low / MS_PER_S + unit.cell.output_tokens / rate.high
        total_s += each_s * len(unit.repeats) / unit.cell.concurrency
        longest_s = max(longest_s, each_s)
    return Forecast(total_s, longest_s, "theory")


def _all_units(blocks: Sequence[Block]) -> Iterator[Unit]:
    """Yield what is sent, the warm-ups of every cell included."""
    for block in blocks:
        yield from block.units
        if not block.cold:
            for cell in block.cells:
                count = max(cell.run.warmups, cell.concurrency) if cell.run.warmups else 0
                yield Unit(cell, "warmup", tuple(range(1, count + 1)))


def _cell(words: int, output_tokens: int) -> Cell:
    return Cell(
        experiment=None, kind=None, point="probe", prompt_tokens=words, output_tokens=output_tokens, concurrency=1,
        requests=1, run=RunSettings(),
    )  # fmt: skip
