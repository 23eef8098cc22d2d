"""A subject's prefill page: how long its prompts take to read, and how sure that is."""

from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from roofbook.analysis.prefill import Curve, prefill_curve
from roofbook.analysis.subjects import curve_of
from roofbook.charts.cache import FigureCache
from roofbook.charts.figure import Column, Table
from roofbook.charts.prefill import prefill_figure, time_text
from roofbook.pages.doubts import by_kind, name_of
from roofbook.pages.subjects import SubjectView
from roofbook.validity import Finding, clean
from roofbook.words import Words

SHOWN_ROWS: Final = 200
"""More rows than this are looked at in the file, not on the page."""


def context(view: SubjectView, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``prefill.md.j2`` shows."""
    rows = _curve_rows(view)
    found = _about(rows, view.found)
    curve = curve_of(view.subject, view.found)
    doubtful = rows[~clean(rows, found, "prefill")]
    drawn = figures.draw(
        prefill_figure, words, curve=curve, doubtful=prefill_curve(doubtful).lengths, colour=view.colour
    )
    return {
        "title": words.say("Prefill: %(subject)s", subject=view.title(words)),
        "curve": curve,
        "law": curve.chosen,
        "longest": curve.longest,
        "longest_time": time_text(words, curve.longest.prefill_ms) if curve.longest else None,
        "drawn": [drawn],
        "row_table": _row_table(rows.head(SHOWN_ROWS), found, words),
        "rows_hidden": max(0, len(rows) - SHOWN_ROWS),
        "failed": int((~rows["status"].eq("ok").fillna(False)).sum()),
        "doubts": by_kind([finding for finding in found if "prefill" in finding.spoils], words),
        "notes": by_kind([finding for finding in found if "prefill" not in finding.spoils], words),
        "coefficients": _coefficients(curve, words),
        "left_out": _left_out(curve, words),
    }


def _curve_rows(view: SubjectView) -> pd.DataFrame:
    """Return the rows of the curve: measured, of kind prefill_curve, in the order of their lengths."""
    rows = view.subject.rows
    wanted = rows["kind"].eq("prefill_curve").fillna(False) & rows["phase"].eq("measured").fillna(False)
    return rows[wanted].sort_values(["prompt_tokens", "order_index"], kind="stable", na_position="last")


def _about(rows: pd.DataFrame, found: Sequence[Finding]) -> list[Finding]:
    """Return the doubts about single rows of *rows*."""
    keys = set(zip(rows["run_id"], rows["order_index"], strict=True))
    return [finding for finding in found if (finding.run_id, finding.order_index) in keys]


def _row_table(rows: pd.DataFrame, found: Sequence[Finding], words: Words) -> Table:
    """Return *rows* as they are, for people: one row a request, or a publication's median over several."""
    columns = (
        Column("prompt_tokens", words.say("Prompt tokens")),
        Column("requests", words.say("n (requests)")),
        Column("server_prefill_ms", words.say("Prefill (ms)"), 1),
        Column("ttft_ms", words.say("TTFT (ms)"), 1),
        Column("output_tokens", words.say("Output tokens")),
        Column("context_limit_tokens", words.say("Context limit (tokens)")),
        Column("status", words.say("Outcome"), None),
        Column("noted", words.say("Noted"), None),
    )
    doubts: dict[tuple[Any, Any], list[str]] = {}
    for finding in found:
        doubts.setdefault((finding.run_id, finding.order_index), []).append(name_of(finding, words))
    table = [
        (
            _number(row["prompt_tokens"]),
            1 if pd.isna(row["aggregate_of"]) else (int(row["aggregate_of"]) or None),
            _number(row["server_prefill_ms"]),
            _number(row["ttft_ms"]),
            _number(row["output_tokens"]),
            _number(row["context_limit_tokens"]),
            None if pd.isna(row["status"]) else str(row["status"]),
            ", ".join(dict.fromkeys(doubts.get((row["run_id"], row["order_index"]), []))),
        )
        for row in rows.to_dict("records")
    ]
    return Table(columns, tuple(table))


def _coefficients(curve: Curve, words: Words) -> list[dict[str, str]]:
    """Return the law's coefficients with their intervals, as they are written."""
    if curve.chosen is None:
        return []
    names = {0: ("c", "ms"), 1: ("a", words.say("ms per token")), 2: ("b", words.say("ms per token squared"))}
    told: list[dict[str, str]] = []
    for power in curve.chosen.powers:
        interval = curve.chosen.fit.coefficient_interval(power)
        name, unit = names[power]
        told.append(
            {
                "name": name,
                "value": words.significant(interval.mid),
                "low": words.significant(interval.low, 2),
                "high": words.significant(interval.high, 2),
                "unit": unit,
            }
        )
    return told


def _left_out(curve: Curve, words: Words) -> list[tuple[str, str, str]]:
    """Return the fit's lengths, each with what the law says of it and what the law of the others would have said."""
    if curve.chosen is None or curve.chosen.left_out is None:
        return []
    errors = zip(curve.lengths, curve.chosen.fit.residuals, curve.chosen.left_out, strict=True)
    return [
        (words.number(length.tokens), _percent(words, residual), _percent(words, left_out))
        for length, residual, left_out in errors
    ]


def _percent(words: Words, share: float) -> str:
    return f"{'+' if share > 0 else ''}{words.number(100 * share, 1)} %"


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)
