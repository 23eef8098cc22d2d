"""A figure before it is drawn: what it says, what it shows, and the table behind it."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

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
    left_out: int = 0
    """How many points of the same kind the table and the chart do not have, because they would be too many."""

    @property
    def anchor(self) -> str:
        return f"fig-{self.name}"


def checked(figure: Figure) -> Figure:
    """Return *figure* if it can be drawn whole.

    Raises PageError for more than MAX_ROWS rows in its table or its chart, for numbers that are none, and for values
    that a logarithmic axis would lose in silence.
    """
    rows = max(len(figure.table.rows), sum(len(values) for values in datasets(figure.spec)))
    if rows > MAX_ROWS:
        raise PageError(
            "The figure '%(name)s' would have %(rows)d rows, more than %(most)d: aggregate them before",
            name=figure.name, rows=rows, most=MAX_ROWS,
        )  # fmt: skip
    try:
        json.dumps([figure.spec, figure.table.rows], allow_nan=False)
    except ValueError as problem:
        raise PageError("The figure '%(name)s' holds a number that is none", name=figure.name) from problem
    lost = sorted(_lost_on_logarithms(figure.spec))
    if lost:
        raise PageError(
            "The figure '%(name)s' has values of zero or less on a logarithmic axis, where they vanish: %(fields)s",
            name=figure.name, fields=", ".join(lost),
        )  # fmt: skip
    return figure


def datasets(spec: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """Return the rows of each data set that a Vega-Lite *spec* holds."""
    named: Mapping[str, Any] = spec.get("datasets", {})
    inline = (part["values"] for part in _parts(spec) if isinstance(part.get("values"), list))
    return [values for values in (*named.values(), *inline) if values and isinstance(values[0], dict)]


def _lost_on_logarithms(spec: Mapping[str, Any]) -> set[str]:
    """Return the fields that stand on a logarithmic scale and have a value that has no logarithm."""
    scaled = [
        part for part in _parts(spec) if isinstance(part.get("scale"), dict) and part["scale"].get("type") == "log"
    ]
    logarithmic = {str(part.get("field")) for part in scaled}
    return {
        field
        for values in datasets(spec)
        for row in values
        for field in logarithmic
        if isinstance(row.get(field), int | float) and row[field] <= 0
    }


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object inside a spec, the rows of its named data sets left out."""
    if isinstance(value, dict):
        part = cast("dict[str, Any]", value)
        yield part
        for name, inner in part.items():
            if name not in ("datasets", "values"):
                yield from _parts(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _parts(inner)


def _csv_cell(value: Value) -> str:
    if value is None:
        return ""
    # A text that a spreadsheet would run as a formula is kept a text.
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return str(value)
