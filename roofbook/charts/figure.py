"""A figure before it is drawn: what it says, what it shows, and the table behind it."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from roofbook.errors import PageError

MAX_ROWS: Final = 2_000
"""More marks than this are a smear on the page and a weight for the reader: aggregate before, and say so."""

Value = str | int | float | None

Swatch = Literal["dot", "hollow", "small", "line", "dashed", "band", "range", "cross"]


@dataclass(frozen=True)
class Column:
    """A column of a figure's table: *key* names it in the CSV in every language, *title* on the page."""

    key: str
    title: str
    decimals: int | None = 0
    """Of the numbers on the page; None for text. The CSV has the numbers as they are."""


@dataclass(frozen=True)
class Table:
    """What a figure shows, row by row, one row a mark."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]

    def csv(self) -> str:
        """Return the table as CSV: header of keys, empty cells for what is unknown."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(column.key for column in self.columns)
        writer.writerows([_csv_cell(value) for value in row] for row in self.rows)
        return text.getvalue()


@dataclass(frozen=True)
class Key:
    """One line of the legend."""

    swatch: Swatch
    colour: str
    text: str


@dataclass(frozen=True)
class Figure:
    """A chart with all that stands around it; *spec* is Vega-Lite."""

    name: str
    title: str
    """Its message, as a sentence."""
    description: str
    """What a reader who cannot see it is told."""
    caption: str
    """What the marks stand for, and what was left out."""
    legend: tuple[Key, ...]
    table: Table
    spec: Mapping[str, Any]

    @property
    def anchor(self) -> str:
        return f"fig-{self.name}"


def checked(figure: Figure) -> Figure:
    """Return *figure* if it can be drawn.

    Raises PageError for more than MAX_ROWS rows, and for numbers that are none.
    """
    if len(figure.table.rows) > MAX_ROWS:
        raise PageError(
            "The figure '%(name)s' would have %(rows)d rows, more than %(most)d: aggregate them before",
            name=figure.name, rows=len(figure.table.rows), most=MAX_ROWS,
        )  # fmt: skip
    try:
        json.dumps(figure.spec, allow_nan=False)
    except ValueError as problem:
        raise PageError("The figure '%(name)s' holds a number that is none", name=figure.name) from problem
    return figure


def _csv_cell(value: Value) -> str:
    if value is None:
        return ""
    # A text that a spreadsheet would run as a formula is kept a text.
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return str(value)
