"""The tables of the memory page: weights, cache types, users and contexts, what runs out first."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from roofbook.facts import MachineFact, ModelFact
from roofbook.pages.concepts.grid import Cell, Grid, grid, span, written
from roofbook.pages.concepts.hardware import is_card, name_of, usable
from roofbook.pages.concepts.world import World
from roofbook.theory.kv import Slots, cache_bytes
from roofbook.theory.limits import Limit
from roofbook.theory.memory import RESERVE_BYTES, Budget, Scarcity, runs_out_first, sequences_that_fit
from roofbook.theory.quantization import BLOCKS
from roofbook.theory.roofline import crossover_batch
from roofbook.theory.shapes import Model, Range
from roofbook.theory.weights import counted_params, weights
from roofbook.units import GB, GIB
from roofbook.words import Words, mark

QUANTIZATION: Final = "Q4_K_M"
REQUEST_TOKENS: Final = 4096
USERS: Final = (1, 10, 50)
CONTEXTS: Final = (4096, 8192, 32768)

_PRECISIONS: Final = ("F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0")
_NOMINAL_BITS: Final = {"F16": 16, "Q8_0": 8, "Q6_K": 6, "Q5_K_M": 5, "Q4_K_M": 4, "Q4_0": 4}
"""What the name promises, scales not counted."""

_KV_BLOCKS: Final = (("f16", "F16"), ("q8_0", "Q8_0"), ("q5_1", "Q5_1"), ("q4_0", "Q4_0"))

_SCARCITIES: Final = {
    "context": mark("the model's context"),
    "weights": mark("memory, before the first request"),
    "memory": mark("memory for another cache"),
    "slots": mark("the server's slots"),
    "arithmetic": mark("arithmetic: more requests fit, but decode no longer gains"),
}


def weights_table(model: ModelFact, words: Words) -> Grid:
    """Return what a model's weights weigh in each precision, beside what its name promises."""
    params = counted_params(model.shape)
    heads = [
        (words.say("Quantization"), False),
        (words.say("As its name says (GB)"), True),
        (words.say("Really (GB)"), True),
        (words.say("Bits a weight"), True),
        (words.say("Smaller than 16 bits by"), True),
        (words.say("Known from"), False),
    ]
    whole = weights(model.quantized("F16"), "F16").total_bytes
    rows: list[list[str | Cell | None]] = []
    for name in _PRECISIONS:
        held = weights(model.quantized(name), name)
        total = held.total_bytes
        rows.append(
            [
                name,
                words.significant(params * _NOMINAL_BITS[name] / 8 / GB),
                span(total * (1 / GB), words),
                span(total * (8 / params), words),
                f"{written(whole.high / total.high, words)}×",
                words.say("the file's tensors") if held.basis == "tensors" else words.say("the rules of its quantizer"),
            ]
        )
    return grid(heads, rows)


def kv_types_table(words: Words) -> Grid:
    """Return what a value costs in each type of the cache."""
    heads = [
        (words.say("KV cache type"), False),
        (words.say("Values in a block"), True),
        (words.say("Bytes in a block"), True),
        (words.say("Bytes a value"), True),
        (words.say("Smaller than f16 by"), True),
    ]
    rows: list[list[str | Cell | None]] = []
    for kv_type, name in _KV_BLOCKS:
        block = BLOCKS[name]
        rows.append(
            [
                kv_type,
                words.number(block.values),
                words.number(block.size_bytes),
                written(block.bytes_per_value, words, 5),
                f"{written(2 / block.bytes_per_value, words)}×",
            ]
        )
    return grid(heads, rows)


def users_tables(
    model: ModelFact, machines: Sequence[MachineFact], world: World, words: Words
) -> Iterator[dict[str, Any]]:
    """Yield one table a machine: GiB of cache by context, type and users, with what fits beside weights and reserve."""
    shape = model.quantized(QUANTIZATION)
    for machine in machines:
        limit = usable(machine.machine, world)
        if limit is None:
            continue
        room = Budget(Limit(limit, "rule"), weights(shape).total_bytes, reserve_bytes=RESERVE_BYTES)
        heads = [
            (words.say("Tokens a request"), True),
            (words.say("KV cache type"), False),
            *((words.say_n("%(n)d user (GiB)", "%(n)d users (GiB)", users), True) for users in USERS),
        ]
        rows: list[list[str | Cell | None]] = []
        for tokens in CONTEXTS:
            for kv_type in ("f16", "q8_0"):
                row: list[str | Cell | None] = [words.number(tokens), kv_type]
                row += [_cell(shape, tokens, kv_type, users, room, words) for users in USERS]
                rows.append(row)
        yield {"machine": name_of(machine), "table": grid(heads, rows)}


def _cell(shape: Model, tokens: int, kv_type: str, users: int, room: Budget, words: Words) -> Cell:
    kept = cache_bytes(shape, tokens, kv_type, sequences=users)
    fits = Budget(room.limit, room.weights_bytes, kept, reserve_bytes=room.reserve_bytes).fits
    return Cell(written(kept.high / GIB, words), True, "perhaps" if fits is None else "yes" if fits else "no")


def scarcity_table(model: ModelFact, machines: Sequence[MachineFact], world: World, words: Words) -> Grid:
    """Return what ends first on each machine as requests are added."""
    shape = model.quantized(QUANTIZATION)
    heads = [
        (words.say("Machine"), False),
        (words.say("KV cache type"), False),
        (words.say("Requests that memory holds"), True),
        (words.say("Arithmetic limits decode from"), True),
        (words.say("Runs out first"), False),
    ]
    rows: list[list[str | Cell | None]] = []
    for machine in machines:
        limit = usable(machine.machine, world)
        if limit is None:
            continue
        held = weights(shape).device_bytes if is_card(machine) else weights(shape).total_bytes
        budget = Budget(Limit(limit, "rule"), held, reserve_bytes=RESERVE_BYTES)
        for kv_type in ("f16", "q8_0"):
            count = sequences_that_fit(budget, shape, REQUEST_TOKENS, kv_type, Slots())
            bound = crossover_batch(shape, machine.machine, context_tokens=REQUEST_TOKENS, kv_type=kv_type)
            crossing = bound.whole  # as on a subject's own memory page
            ends = runs_out_first(
                budget,
                count,
                tokens=REQUEST_TOKENS,
                context_limit_tokens=shape.context_limit_tokens,
                crossover_batch=crossing,
            )
            rows.append(
                [
                    name_of(machine),
                    kv_type,
                    span(count, words),
                    None if crossing is None else _from_on(crossing, words),
                    _scarcity_told(ends, words),
                ]
            )
    return grid(heads, rows)


def _from_on(crossing: Range, words: Words) -> str:
    """Return from how many whole requests on: the next one above where the two limits meet."""
    if math.isinf(crossing.low):
        return words.say("never")
    ends = [end if math.isinf(end) else float(math.ceil(end)) for end in (crossing.low, crossing.high)]
    return span(Range(*ends), words)


def _scarcity_told(ends: Scarcity, words: Words) -> str:
    return words.say(_SCARCITIES[ends])
