"""Columns in a terminal, where a Korean letter is two cells wide."""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

PAGE_CELLS: Final = 100
_GAP: Final = "  "
_WIDE: Final = ("W", "F")


def width(text: str) -> int:
    """Return how many cells *text* takes in a terminal."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in _WIDE else 1
        for letter in text
    )


def columns(rows: Iterable[Sequence[str]], *, right: Sequence[int] = (), wrap: bool = False) -> list[str]:
    """Return one line a row, its cells below one another, the columns *right* flush right.

    With *wrap* the last column takes as many lines as it needs to stay within the page.
    """
    kept = [list(row) for row in rows]
    count = max((len(row) for row in kept), default=0)
    widths = [max((width(row[at]) for row in kept if at < len(row)), default=0) for at in range(count)]
    if wrap and count:
        left = PAGE_CELLS - len(_GAP) * count - sum(widths[:-1])
        kept = [line for row in kept for line in _lines(row, count, left)]
    return [_line(row, widths, right) for row in kept]


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    cells = [
        " " * (widths[at] - width(cell)) + cell if at in right else cell + " " * (widths[at] - width(cell))
        for at, cell in enumerate(row)
    ]
    return (_GAP + _GAP.join(cells)).rstrip()


def _lines(row: Sequence[str], count: int, left: int) -> list[list[str]]:
    """Return *row* as lines, of which all but the first hold a piece of its last cell alone."""
    if len(row) < count:
        return [list(row)]
    first, *rest = wrapped(row[-1], left) or [""]
    return [[*row[:-1], first], *([""] * (count - 1) + [piece] for piece in rest)]


def wrapped(text: str, cells: int) -> list[str]:
    """Return *text* in lines of at most *cells* cells, broken between words."""
    lines: list[str] = []
    for word in text.split():
        if lines and width(lines[-1]) + 1 + width(word) <= cells:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
