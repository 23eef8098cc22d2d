"""The table of a subject's speed page on many requests at once: what they got together, and what each of them."""

from statistics import median
from typing import Final

from roofbook.analysis.throughput import Window, throughput
from roofbook.pages.concepts.grid import Grid, grid
from roofbook.pages.row_table import noted
from roofbook.pages.study import Study
from roofbook.record import Row
from roofbook.units import MS_PER_S
from roofbook.validity.derived import decode_tok_per_s, is_ok
from roofbook.words import Words

_KIND: Final = "concurrency"


def levels(study: Study, words: Words) -> Grid | None:
    """Return one line a level of a closed loop, smallest first; None where none was measured.

    A level stands for itself in each run, and in each life of the measuring program: clocks of two do not meet.
    """
    cells: dict[tuple[object, ...], list[Row]] = {}
    for row in study.rows:
        if row.get("kind") == _KIND and row.get("phase") in ("measured", None) and row.get("concurrency"):
            key = tuple(row.get(name) for name in ("run_id", "segment", "experiment", "point"))
            cells.setdefault(key, []).append(row)
    heads = [
        (words.say("Requests at once"), True),
        (words.say("Prompt tokens"), True),
        (words.say("n (requests)"), True),
        (words.say("Failed"), True),
        (words.say("In doubt"), True),
        (words.say("All together, whole level (tok/s)"), True),
        (words.say("All together, with so many in flight (tok/s)"), True),
        (words.say("Each, while it is written (tok/s)"), True),
    ]
    doubted = {(found.run_id, found.order_index) for found in study.view.found if found.doubtful}
    ordered = sorted(
        cells.values(), key=lambda rows: (rows[0]["concurrency"], rows[0].get("prompt_tokens_wanted") or 0)
    )
    return grid(heads, [_level(rows, doubted, words) for rows in ordered]) if ordered else None


def _level(rows: list[Row], doubted: set[tuple[str | None, int | None]], words: Words) -> tuple[str | None, ...]:
    done = [row for row in rows if is_ok(row)]
    in_doubt = [row for row in done if (row.get("run_id"), row.get("order_index")) in doubted]
    prompts = [row["prompt_tokens"] for row in done if row.get("prompt_tokens")]
    rates = [rate for row in done if row not in in_doubt and (rate := decode_tok_per_s(row)) is not None]
    found = throughput(rows, rows[0]["concurrency"])
    return (
        words.number(rows[0]["concurrency"]),
        words.number(median(prompts)) if prompts else None,
        words.number(len(rows)),
        words.number(len(rows) - len(done)),
        words.number(len(in_doubt)),
        _rate(found.full, words),
        _rate(found.steady, words),
        words.significant(median(rates)) if rates else None,
    )


def _rate(window: Window | None, words: Words) -> str | None:
    """Return a window's tokens a second with how long it was; None where nobody knows them."""
    if window is None or window.tok_per_s is None:
        return None
    seconds = words.significant((window.end_ms - window.start_ms) / MS_PER_S, 2)
    return noted(words.significant(window.tok_per_s), words.say("over %(seconds)s s", seconds=seconds))
