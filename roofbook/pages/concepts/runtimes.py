"""Which serving runtime runs on which hardware, as of when, and how each holds its caches."""

from typing import Any, Final, cast

from roofbook.charts.cache import FigureCache
from roofbook.charts.runtimes import Square, Support, runtimes_figure
from roofbook.facts import RuntimeFact
from roofbook.pages.concepts.grid import Cell, Grid, Source, grid, source
from roofbook.pages.concepts.world import World
from roofbook.words import Words, mark

_ACCELERATORS: Final = {
    "metal": mark("Mac GPU"),
    "cuda": "NVIDIA",
    "rocm": "AMD",
    "vulkan": "Vulkan",
    "cpu": "CPU",
}
_SUPPORT: Final = {
    "native": mark("in its own releases"),
    "plugin": mark("by a plugin"),
    "source": mark("built from source"),
    "none": mark("not at all"),
}
_LAYOUTS: Final = {
    "slots": mark("reserved in advance, slot by slot"),
    "paged": mark("pages of one pool"),
    "growing": mark("grows with each request"),
}
_NOTES: Final = {
    "mlx-lm": mark("On Linux it runs on CUDA or on the CPU."),
    "vllm": mark("On a Mac's GPU through vllm-metal, which computes with MLX, since 2026-04."),
    "sglang": mark("No Mac until 2026-02; since then from source only, over MLX."),
    "triton": mark("A server in front of other engines; there is no build for macOS."),
}
"""What a reader should know beside the matrix. A runtime of one's own needs none."""

_PHRASES: Final = {
    phrase: phrase
    for phrase in (
        mark("TensorRT-LLM, vLLM or another backend"),
        mark("llama.cpp or MLX"),
        mark("those of its backend"),
    )
}


def context(world: World, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``runtimes.md.j2`` shows."""
    facts = list(world.facts.runtimes.values())
    native = [one.name for one in facts if one.runs.get("metal") == "native"]
    title = words.say(
        "On a Mac's GPU, %(native)s of %(all)s runtimes run in their own releases",
        native=words.number(len(native)),
        all=words.number(len(facts)),
    )
    drawn = figures.draw(runtimes_figure, words, title=title, squares=tuple(_squares(facts, words)))
    return {
        "title": words.say("Runtimes: what runs on what"),
        "drawn": [drawn],
        "native": ", ".join(native),
        "native_count": words.number(len(native)),
        "count": words.number(len(facts)),
        "table": _table(facts, words),
        "notes": [(one.name, words.say(_NOTES[one.id])) for one in facts if one.id in _NOTES],
        "sources": _sources(facts, words),
    }


def _squares(facts: list[RuntimeFact], words: Words) -> list[Square]:
    squares: list[Square] = []
    for one in facts:
        for key, name in _ACCELERATORS.items():
            support = one.runs.get(key)
            squares.append(
                Square(
                    one.name,
                    words.say(name) if name.startswith("Mac") else name,
                    cast("Support", support or "unknown"),
                    words.say(_SUPPORT[support]) if support else words.say("unknown"),
                    f"runs.{key}" not in one.provenance.unverified,
                )
            )
    return squares


def _table(facts: list[RuntimeFact], words: Words) -> Grid:
    heads = [
        (words.say("Runtime"), False),
        (words.say("Computes with"), False),
        (words.say("API"), False),
        (words.say("Model formats"), False),
        (words.say("Caches"), False),
        (words.say("Requests at once by default"), True),
        (words.say("As of"), True),
    ]
    rows: list[list[str | Cell | None]] = [
        [
            one.name,
            _phrase(one.engine, words),
            one.api,
            ", ".join(_phrase(form, words) for form in one.formats),
            words.say(_LAYOUTS[one.kv_layout]),
            _slots(one, words),
            one.seen,
        ]
        for one in facts
    ]
    return grid(heads, rows, wide=(3, 4))


def _phrase(told: str, words: Words) -> str:
    """Return names as they are, and what the catalogue says in a phrase in the page's language."""
    return words.say(_PHRASES[told]) if told in _PHRASES else told


def _slots(one: RuntimeFact, words: Words) -> str | None:
    if one.default_slots is not None:
        return words.number(one.default_slots)
    return words.say("as many as fit") if one.kv_layout == "paged" else None


def _sources(facts: list[RuntimeFact], words: Words) -> list[Source]:
    return [source(one.name, [one.provenance], words) for one in facts]
