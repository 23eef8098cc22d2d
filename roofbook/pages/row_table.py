"""Rows as they are, for people: one row a request, or a publication's median over several, with what is noted of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from markupsafe import Markup

from roofbook.charts.figure import Column, Table, Value
from roofbook.pages.doubts import name_of
from roofbook.pages.escape import text
from roofbook.record import Row
from roofbook.validity import Finding
from roofbook.validity.derived import decode_tok_per_s
from roofbook.words import Words, mark

SHOWN_ROWS: Final = 200
"""More rows than this are looked at in the file, not on the page."""

_WHERE: Final = "experiment"

Key = tuple[str | None, int | None]


def key(row: Row) -> Key:
    """Return what a finding knows a row by."""
    return row.get("run_id"), row.get("order_index")


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return *rows* run by run, as they were sent (run ids begin with their time)."""
    return sorted(rows, key=lambda row: (str(row.get("run_id") or ""), row.get("order_index") or 0))


def notes(found: Iterable[Finding], words: Words) -> dict[Key, str]:
    """Return the short names of what is noted of each row."""
    names: dict[Key, list[str]] = {}
    for finding in found:
        if finding.order_index is not None:
            names.setdefault((finding.run_id, finding.order_index), []).append(name_of(finding, words))
    return {place: ", ".join(dict.fromkeys(told)) for place, told in names.items()}


def noted(value: str, note: str) -> Markup:
    """Return a cell's value with a small note below it."""
    return text(value) + Markup('<small class="rb-below">') + text(note) + Markup("</small>")


def row_table(rows: Sequence[Row], found: Sequence[Finding], words: Words, columns: Sequence[str]) -> Table:
    """Return *rows* with the *columns* (names of the contract, or one of those derived here) and what is noted.

    What is noted of a row stands below its experiment, or else in a column of its own; a column without any value,
    and the outcome where every row finished, is left out.
    """
    names = [name for name in columns if _tells(name, rows)]
    told = notes(found, words)
    shown = [Column(name, words.say(_LABELS[name][0]), _LABELS[name][1]) for name in names]
    if _WHERE in names:
        return Table(tuple(shown), tuple(_with_note(row, names, told.get(key(row)), words) for row in rows))
    return Table(
        (*shown, Column("noted", words.say("Noted"), None)),
        tuple((*(_value(row, name) for name in names), told.get(key(row), "")) for row in rows),
    )


def _tells(name: str, rows: Sequence[Row]) -> bool:
    values = [_value(row, name) for row in rows]
    if name == "status":
        return any(value != "ok" for value in values)
    return name == _WHERE or not rows or any(value is not None for value in values)


def _with_note(row: Row, names: Sequence[str], note: str | None, words: Words) -> tuple[Value, ...]:
    where = str(row.get(_WHERE) or words.say("unknown"))
    return tuple((noted(where, note) if note else where) if name == _WHERE else _value(row, name) for name in names)


def _requests(row: Row) -> int | None:
    """Return how many requests the row stands for: None where that was not published."""
    stands_for = row.get("aggregate_of")
    return 1 if stands_for is None else stands_for or None


_DERIVED: Final[Mapping[str, Callable[[Row], Value]]] = {"requests": _requests, "decode_tok_per_s": decode_tok_per_s}

_LABELS: Final[Mapping[str, tuple[str, int | None]]] = {
    "experiment": (mark("Experiment"), None),
    "prompt_tokens": (mark("Prompt tokens"), 0),
    "requests": (mark("n (requests)"), 0),
    "output_tokens": (mark("Output tokens"), 0),
    "server_load_ms": (mark("Load (ms)"), 0),
    "server_prefill_ms": (mark("Prefill (ms)"), 0),
    "ttft_ms": (mark("TTFT (ms)"), 0),
    "e2e_ms": (mark("Whole request (ms)"), 0),
    "decode_tok_per_s": (mark("Decode (tok/s)"), 1),
    "context_limit_tokens": (mark("Context limit (tokens)"), 0),
    "status": (mark("Outcome"), None),
}
"""What a column is called, and the decimals of its numbers; None for text."""


def _value(row: Row, name: str) -> Value:
    value = _DERIVED[name](row) if name in _DERIVED else row.get(name)
    return value if isinstance(value, int | float | str) else None
