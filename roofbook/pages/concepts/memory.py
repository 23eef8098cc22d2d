"""Memory explained: weights by precision, what a token keeps, how models differ, and what runs out first."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from roofbook.analysis.memory import memory_table
from roofbook.charts.cache import FigureCache
from roofbook.charts.memory import Filling, TokenCost, Wall, filling_figure, token_figure
from roofbook.errors import EstimateError, UsageError
from roofbook.facts import MachineFact, ModelFact
from roofbook.pages.concepts.grid import Source, rounded, source, span
from roofbook.pages.concepts.hardware import is_card, name_of, usable
from roofbook.pages.concepts.memory_tables import (
    QUANTIZATION,
    REQUEST_TOKENS,
    kv_types_table,
    scarcity_table,
    users_tables,
    weights_table,
)
from roofbook.pages.concepts.world import FAST_MACHINE, ROOMY_MACHINE, World
from roofbook.theory.kv import token_bytes
from roofbook.theory.limits import gpu_limit
from roofbook.theory.memory import RESERVE_BYTES
from roofbook.theory.shapes import Model, Range
from roofbook.theory.weights import counted_params, weights
from roofbook.units import GB, GIB, KIB
from roofbook.words import Words

MODEL: Final = "qwen2.5-7b"
"""The model of the budget: the one that the site's first measurements are of."""
TABLE_MODEL: Final = "llama-3.1-8b"
"""The model of the table of users and contexts."""

_LINES: Final = ("f16", "q8_0", "q4_0")
_BARS: Final = ("qwen2.5-7b", "llama-3.1-8b", "gemma-3-12b", "phi-4-14b", "qwen2.5-32b", "llama-3.1-70b", "deepseek-v3")

# A 7B and a 14B, with what published models of those names really have.
_SMALL_PARAMS: Final = Range(5e9, 9e9)
_LARGE_PARAMS: Final = Range(13e9, 16e9)


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
        "weights": None if model is None else weights_table(model, words),
        "model": None if model is None else model.name,
        "four_bits": None if model is None else _four_bits(model, words),
        "kv_types": kv_types_table(words),
        "pair": None if pair is None else _pair_told(pair, words),
        "users": None if table_model is None else list(users_tables(table_model, machines, world, words)),
        "table_model": None if table_model is None else table_model.name,
        "scarcity": None if model is None else scarcity_table(model, machines, world, words),
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
    held = float(shape.tensors.file_bytes or weights(shape).total_bytes.high)
    fixed = RESERVE_BYTES + held
    fillings = tuple(Filling(kv_type, fixed, token_bytes(shape, kv_type).high) for kv_type in _LINES)
    spared = held - weights(shape).device_bytes.low
    walls = tuple(
        Wall(name_of(one), limit, spared if is_card(one) else 0.0)
        for one in machines
        if (limit := usable(one.machine, world)) is not None
    )
    farthest = max((wall.limit_bytes.high for wall in walls), default=0.0) - fixed.low
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


def _four_bits(model: ModelFact, words: Words) -> dict[str, str]:
    whole, small = (weights(model.quantized(name), name).total_bytes.high for name in ("F16", QUANTIZATION))
    return {"factor": words.significant(whole / small), "size": words.significant(small / GB), "name": QUANTIZATION}


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
