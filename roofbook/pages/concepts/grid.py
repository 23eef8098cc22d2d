"""Tables of the concept pages: cells that are written already, and where each figure comes from."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from roofbook.facts import Provenance
from roofbook.theory.shapes import Range
from roofbook.words import Words, mark

Mark = Literal["yes", "perhaps", "no"]
"""Fits, depends on what is not known, does not fit."""


@dataclass(frozen=True)
class Cell:
    """One cell: its text (None: unknown), whether it is a number, and what it means beyond the text.

    *quoted* is what somebody else says in English: a source, or a name with an aside.
    """

    text: str | None
    number: bool = False
    mark: Mark | None = None
    quoted: bool = False


@dataclass(frozen=True)
class Grid:
    """A table: heads with whether their column holds numbers, then the rows; *wide* columns hold sentences."""

    heads: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[Cell, ...], ...]
    wide: tuple[int, ...] = ()


def grid(
    heads: Iterable[tuple[str, bool]], rows: Iterable[Iterable[str | Cell | None]], wide: Iterable[int] = ()
) -> Grid:
    """Return a table of texts; a cell takes its alignment from its column unless it says otherwise."""
    columns = tuple(heads)
    made = [
        tuple(
            value if isinstance(value, Cell) else Cell(value, number)
            for value, (_, number) in zip(row, columns, strict=True)
        )
        for row in rows
    ]
    return Grid(columns, tuple(made), tuple(wide))


def quoted(text: str) -> Cell:
    """Return a cell with another's words, which stay in English."""
    return Cell(text, quoted=True)


@dataclass(frozen=True)
class Source:
    """Where what is said of *what* comes from, in the catalogue's own words; *doubts*: what nobody checked."""

    what: str
    said_by: tuple[str, ...]
    doubts: tuple[str, ...]


_KEYS: Final = {
    "memory_gib": mark("memory sizes"),
    "bandwidth_gb_s": mark("memory bandwidth"),
    "fp32_tflops": mark("FP32 peak"),
    "fp16_tflops": mark("FP16 peak"),
    "fp16_acc16_tflops": mark("FP16 peak with FP16 accumulation"),
    "int8_tops": mark("INT8 peak"),
    "idle_power_w": mark("idle power"),
    "kv_layout": mark("how it holds the caches"),
    "formats": mark("model formats"),
    "note": mark("the remark"),
    "names": mark("names"),
    "aliases": mark("names"),
    "context_limit_tokens": mark("context limit"),
    "tied": mark("tied embedding"),
    "layers": mark("dimensions"),
    "hidden": mark("dimensions"),
    "ffn": mark("dimensions"),
    "heads": mark("dimensions"),
    "kv_heads": mark("dimensions"),
    "head_dim": mark("dimensions"),
    "vocab": mark("dimensions"),
}
_NAMES: Final = {
    "runs.metal": "Metal",
    "runs.cuda": "CUDA",
    "runs.rocm": "ROCm",
    "runs.vulkan": "Vulkan",
    "runs.cpu": "CPU",
}
"""What a catalogue's key is called: in the page's language, or by a name that is the same in every language."""


def source(what: str, provenances: Iterable[Provenance], words: Words) -> Source:
    """Return the sources of *what*, each once, with the keys that nobody checked in words."""
    said: dict[str, None] = {}
    doubts: dict[str, None] = {}
    for one in provenances:
        said |= dict.fromkeys([one.source, *one.sources.values()])
        doubts |= dict.fromkeys(_key(key, words) for key in one.unverified)
    return Source(what, tuple(said), tuple(doubts))


def span(value: Range, words: Words, digits: int = 3) -> str:
    """Return a range as it is written: one number where the two ends read the same, whole ones without decimals."""
    low, high = written(value.low, words, digits), written(value.high, words, digits)
    return low if low == high else words.say("%(low)s to %(high)s", low=low, high=high)


def written(value: float, words: Words, digits: int = 3) -> str:
    """Return *value* with *digits* significant digits; a whole number has no decimals, and no end is said in words."""
    if math.isinf(value):
        return words.say("without end")
    return words.number(value) if float(value).is_integer() else words.significant(value, digits)


def rounded(value: Range, words: Words, digits: int = 2) -> str:
    """Return a range of large numbers, rounded to *digits* significant digits before the decimal point as well."""
    low, high = (words.number(float(f"{end:.{digits - 1}e}")) for end in (value.low, value.high))
    return low if low == high else words.say("%(low)s to %(high)s", low=low, high=high)


def percent(share: float, words: Words, decimals: int = 0) -> str:
    """Return a share in per cent."""
    return words.say("%(value)s %%", value=words.number(100 * share, decimals))


def _key(key: str, words: Words) -> str:
    return words.say(_KEYS[key]) if key in _KEYS else _NAMES.get(key, key)
