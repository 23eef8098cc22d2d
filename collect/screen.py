"""Where the collector speaks: a terminal whose last line is rewritten, or a log that only grows. It may be gone."""

import contextlib
import io
import os
import unicodedata
from collections.abc import Sequence
from typing import Final, TextIO

_REWRITE: Final = "\r\x1b[2K"


class Screen:
    """Writes lines to *out*, and below them a status that the next one replaces; a screen that is gone is no error."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._status_shown = False
        if isinstance(out, io.TextIOWrapper):
            # A letter that this terminal does not have becomes a question mark: the line is still read.
            out.reconfigure(errors="replace")
        self.rewrites = out.isatty() and os.environ.get("TERM") != "dumb"
        """Whether a status can be replaced; else it would only fill the log."""

    def line(self, text: str = "") -> None:
        """Write one line, in place of the status."""
        self._write((_REWRITE if self._status_shown else "") + text + "\n")
        self._status_shown = False

    def status(self, text: str) -> None:
        """Write a status of one line: what a narrow terminal has no room for is cut, for it would stay there."""
        with contextlib.suppress(OSError, ValueError):
            text = clipped(text, os.get_terminal_size(self._out.fileno()).columns - 1)
        self._write(_REWRITE + text)
        self._status_shown = True

    def _write(self, text: str) -> None:
        # The terminal was closed: the run goes on, and its journal with it.
        with contextlib.suppress(OSError, ValueError):
            self._out.write(text)
            self._out.flush()


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of *table* as lines whose columns stand below each other."""
    widths = [max(width(row[column]) for row in table) for column in range(len(table[0]))]
    return [
        "  ".join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def clipped(text: str, columns: int) -> str:
    """Return as much of *text* as *columns* of a terminal hold; nothing is cut where they are not known (0 or less)."""
    if columns <= 0 or width(text) <= columns:
        return text
    kept = text
    while kept and width(kept) > columns - 1:
        kept = kept[:-1]
    return kept + "…"


def width(text: str) -> int:
    """Return how many columns of a terminal *text* takes: a Hangul syllable takes two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
