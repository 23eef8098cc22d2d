"""Memory explained: weights by precision, what a token keeps, how models differ, and what runs out first."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from roofbook.analysis.memory import memory_table
from roofbook.charts.cache import FigureCache
from roofbook.charts.memory import Filling, TokenCost, Wall, filling_figure, token_figure
from roofbook.errors import EstimateError, UsageError
from roofbook.facts import MachineFact, ModelFact
from roofbook.pages.concepts.grid import Cell, Grid, Source, grid, rounded, source, span, written
from roofbook.pages.concepts.hardware import name_of, usable
from roofbook.pages.concepts.world import FAST_MACHINE, ROOMY_MACHINE, World
from roofbook.theory.kv import Slots, cache_bytes, token_bytes
from roofbook.theory.limits import Limit, gpu_limit
from roofbook.theory.memory import RESERVE_BYTES, Budget, Scarcity, runs_out_first, sequences_that_fit
from roofbook.theory.quantization import BLOCKS
from roofbook.theory.roofline import crossover_batch
from roofbook.theory.shapes import Model, Range
from roofbook.theory.weights import counted_params, weights
from roofbook.units import GB, GIB, KIB
from roofbook.words import Words, mark

MODEL: Final = "qwen2.5-7b"
"""The model of the budget: the one that the site's first measurements are of."""
TABLE_MODEL: Final = "llama-3.1-8b"
"""The model of the table of users and contexts."""
QUANTIZATION: Final = "Q4_K_M"
USERS: Final = (1, 10, 50)
CONTEXTS: Final = (4096, 8192, 32768)
REQUEST_TOKENS: Final = 4096

_PRECISIONS: Final = ("F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0")
_NOMINAL_BITS: Final = {"F16": 16, "Q8_0": 8, "Q6_K": 6, "Q5_K_M": 5, "Q4_K_M": 4, "Q4_0": 4}
"""What the name promises, scales not counted."""

_KV_BLOCKS: Final = (("f16", "F16"), ("q8_0", "Q8_0"), ("q5_1", "Q5_1"), ("q4_0", "Q4_0"))
_LINES: Final = ("f16", "q8_0", "q4_0")
_BARS: Final = ("qwen2.5-7b", "llama-3.1-8b", "gemma-3-12b", "phi-4-14b", "qwen2.5-32b", "llama-3.1-70b", "deepseek-v3")

# A 7B and a 14B, with what published models of those names really have.
_SMALL_PARAMS: Final = Range(5e9, 9e9)
_LARGE_PARAMS: Final = Range(13e9, 16e9)

_SCARCITIES: Final = {
    "context": mark("the model's context"),
    "weights": mark("memory, before the first request"),
    "memory": mark("memory for another cache"),
    "slots": mark("the server's slots"),
    "arithmetic": mark("arithmetic: more requests fit, but decode no longer gains"),
}


def context(world: World, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``memory.md.j2`` shows."""
    machines = [one for name in (ROOMY_MACHINE, FAST_MACHINE) if (one := world.machine(name)) is not None]
    model, table_model = _model(world, MODEL), _model(world, TABLE_MODEL)
    pair = _pair(world)
    budget = None if model is None or not machines else _answer(model, machines[0], world, words)
    drawn = [] if model is None or budget is None else [_filling(model, machines, budget, world, words, figures)]
    if pair is not None:
        drawn.append(_tokens(pair, world, words, figures))
    return {
        "title": words.say("Memory: weights once, a cache for every token"),
        "drawn": drawn,
        "budget": budget,
        "weights": None if model is None else _weights(model, words),
        "model": None if model is None else model.name,
        "four_bits": None if model is None else _four_bits(model, words),
        "kv_types": _kv_types(words),
        "pair": None if pair is None else _pair_told(pair, words),
        "users": None if table_model is None else list(_users_tables(table_model, machines, world, words)),
        "table_model": None if table_model is None else table_model.name,
        "scarcity": None if model is None else _scarcity(model, machines, world, words),
        "reserve": span(RESERVE_BYTES * (1 / GIB), words),
        "request_tokens": REQUEST_TOKENS,
        "sources": _sources(world, words),
    }


def _model(world: World, name: str) -> ModelFact | None:
    try:
        return world.facts.model(name).model
    except UsageError:
        return None


def _answer(model: ModelFact, machine: MachineFact, world: World, words: Words) -> dict[str, str] | None:
    """Return how many requests the machine's memory holds, by KV type, each over the macOS releases."""
    shape = model.quantized(QUANTIZATION)
    try:
        limit = gpu_limit(machine.machine, None, world.facts.mac_limits)
        table = memory_table(shape, limit, REQUEST_TOKENS, kv_types=_LINES)
    except EstimateError:
        return None
    told = {line.kv_type: span(line.sequences, words) for line in table.lines}
    room = {line.kv_type: rounded(line.tokens, words) for line in table.lines}
    return {
        "machine": name_of(machine),
        "f16": told["f16"],
        "q8_0": told["q8_0"],
        "q4_0": told["q4_0"],
        "f16_tokens": room["f16"],
        "q8_0_tokens": room["q8_0"],
    }


def _filling(
    model: ModelFact, machines: Sequence[MachineFact], budget: dict[str, str], world: World, words: Words,
    figures: FigureCache,
) -> Any:  # fmt: skip
    shape = model.quantized(QUANTIZATION)
    held = shape.tensors.file_bytes or weights(shape).total_bytes.high
    fixed = held + (RESERVE_BYTES.low + RESERVE_BYTES.high) / 2
    fillings = tuple(Filling(kv_type, fixed, token_bytes(shape, kv_type).high) for kv_type in _LINES)
    walls = tuple(Wall(name_of(one), limit) for one in machines if (limit := usable(one.machine, world)) is not None)
    farthest = max((wall.limit_bytes.high for wall in walls), default=0.0) - fixed
    return figures.draw(
        filling_figure,
        words,
        title=words.say(
            "%(machine)s is full at %(f16)s tokens in f16, at %(q8_0)s in q8_0",
            machine=budget["machine"],
            f16=budget["f16_tokens"],
            q8_0=budget["q8_0_tokens"],
        ),
        model=f"{model.name} {QUANTIZATION}",
        fillings=fillings,
        walls=walls,
        tokens=round(farthest / fillings[1].token_bytes * 1.15),
    )


def _tokens(pair: tuple[ModelFact, ModelFact], world: World, words: Words, figures: FigureCache) -> Any:
    small, large = pair
    shown = [small, large, *(one for name in _BARS if (one := _model(world, name)) is not None and one not in pair)]
    costs = [
        TokenCost(one.name, token_bytes(one.shape, "f16").high, _sharing(one.shape, words), counted_params(one.shape),
                  one in pair)
        for one in shown
    ]  # fmt: skip
    told = _pair_told(pair, words)
    return figures.draw(
        token_figure,
        words,
        title=words.say(
            "A token of %(large)s takes %(fewer)s times less memory than one of %(small)s",
            large=large.name,
            small=small.name,
            fewer=told["fewer"],
        ),
        costs=tuple(sorted(costs, key=lambda cost: cost.token_bytes)),
        kv_type="f16",
    )


def _pair(world: World) -> tuple[ModelFact, ModelFact] | None:
    """Return a 7B without shared heads and a 14B with them whose token costs least beside it."""
    small = [one for one in _plain(world, _SMALL_PARAMS) if not _shares(one.shape)]
    large = [one for one in _plain(world, _LARGE_PARAMS) if _shares(one.shape)]
    if not small or not large:
        return None
    return max(small, key=_cost), min(large, key=_cost)


def _plain(world: World, params: Range) -> Iterator[ModelFact]:
    """Yield the dense models of that size whose layers all attend to everything."""
    for one in world.facts.models.values():
        shape = one.shape
        if shape.moe is not None or shape.mla is not None or shape.count("global") != len(shape.layers or ()):
            continue
        try:
            if params.low <= counted_params(shape) <= params.high:
                yield one
        except EstimateError:
            continue


def _shares(shape: Model) -> bool:
    return any((layer.kv_heads or 0) < (layer.heads or 0) for layer in shape.layers or ())


def _cost(fact: ModelFact) -> float:
    return token_bytes(fact.shape, "f16").high


def _sharing(shape: Model, words: Words) -> str:
    if shape.mla is not None:
        return words.say("one compressed vector for all heads (MLA)")
    first = next(iter(shape.layers or ()), None)
    if first is None or first.heads is None or first.kv_heads is None:
        return words.say("unknown")
    return words.say("%(heads)s heads, %(kv)s of them with keys and values", heads=first.heads, kv=first.kv_heads)


def _pair_told(pair: tuple[ModelFact, ModelFact], words: Words) -> dict[str, str]:
    small, large = pair
    return {
        "small": small.name,
        "large": large.name,
        "small_heads": _sharing(small.shape, words),
        "large_heads": _sharing(large.shape, words),
        "small_kib": words.significant(_cost(small) / KIB),
        "large_kib": words.significant(_cost(large) / KIB),
        "fewer": words.significant(_cost(small) / _cost(large), 2),
    }


def _weights(model: ModelFact, words: Words) -> Grid:
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


def _four_bits(model: ModelFact, words: Words) -> dict[str, str]:
    whole, small = (weights(model.quantized(name), name).total_bytes.high for name in ("F16", QUANTIZATION))
    return {"factor": words.significant(whole / small), "size": words.significant(small / GB), "name": QUANTIZATION}


def _kv_types(words: Words) -> Grid:
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


def _users_tables(
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


def _scarcity(model: ModelFact, machines: Sequence[MachineFact], world: World, words: Words) -> Grid:
    """Return what ends first on each machine as requests are added."""
    shape = model.quantized(QUANTIZATION)
    heads = [
        (words.say("Machine"), False),
        (words.say("KV cache type"), False),
        (words.say("Requests that memory holds"), True),
        (words.say("Decode gains up to"), True),
        (words.say("Runs out first"), False),
    ]
    rows: list[list[str | Cell | None]] = []
    for machine in machines:
        limit = usable(machine.machine, world)
        if limit is None:
            continue
        discrete = machine.machine.chip is not None and machine.machine.chip.memory_kind == "discrete"
        held = weights(shape).device_bytes if discrete else weights(shape).total_bytes
        budget = Budget(Limit(limit, "rule"), held, reserve_bytes=RESERVE_BYTES)
        for kv_type in ("f16", "q8_0"):
            count = sequences_that_fit(budget, shape, REQUEST_TOKENS, kv_type, Slots())
            crossing = crossover_batch(shape, machine.machine, context_tokens=REQUEST_TOKENS, kv_type=kv_type)
            ends = runs_out_first(
                budget,
                count,
                tokens=REQUEST_TOKENS,
                context_limit_tokens=shape.context_limit_tokens,
                crossover_batch=crossing.datasheet,
            )
            rows.append(
                [
                    name_of(machine),
                    kv_type,
                    span(count, words),
                    None if crossing.datasheet is None else span(crossing.datasheet, words, 2),
                    _scarcity_told(ends, words),
                ]
            )
    return grid(heads, rows)


def _scarcity_told(ends: Scarcity, words: Words) -> str:
    return words.say(_SCARCITIES[ends])


def _sources(world: World, words: Words) -> list[Source]:
    told = [
        source(fact.name, [fact.provenance, *(file.provenance for file in fact.files)], words)
        for name in dict.fromkeys((MODEL, TABLE_MODEL, *(one.id for one in _pair(world) or ())))
        if (fact := _model(world, name)) is not None
    ]
    told.append(
        Source(
            words.say("Block sizes, cache layout, quantization rules"),
            ("llama.cpp: ggml/src/ggml-common.h, src/llama-quant.cpp, src/llama-kv-cache.cpp",),
            (),
        )
    )
    said = "Ollama's source at 0.33.0-rc2 (KV type, slots, reserved context); Homebrew's formula ollama.rb at 0.32.3"
    return [*told, Source(words.say("Ollama's defaults"), (said,), ())]
