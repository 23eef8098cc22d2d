"""A subject's prefill page: how long its prompts take to read, how sure that is, and what follows from it."""

from collections.abc import Mapping
from typing import Any, Final, cast

import pandas as pd

from roofbook.analysis.coefficients import beyond, repeats_scatter, wider_curve
from roofbook.analysis.context import decode_over_context, decode_test, printed_excess, window_control
from roofbook.analysis.prefill import prefill_curve
from roofbook.analysis.subjects import UNSEEN_KINDS
from roofbook.charts.beyond import beyond_figure
from roofbook.charts.cache import Drawn, FigureCache
from roofbook.charts.prefill import measured_growth, prefill_figure, time_text
from roofbook.pages import prefill_choice, prefill_context, prefill_law, prefill_sensitivity, prefill_tables
from roofbook.pages.doubts import by_kind
from roofbook.pages.row_table import SHOWN_ROWS, in_order, key, row_table
from roofbook.pages.sentence import Sentence
from roofbook.pages.study import Study
from roofbook.pages.subjects import SubjectView
from roofbook.validity import Finding, clean, records
from roofbook.words import Words, mark

_ROW_COLUMNS: Final = (
    "prompt_tokens", "requests", "server_prefill_ms", "ttft_ms", "output_tokens", "context_limit_tokens", "status",
)  # fmt: skip


def context(view: SubjectView, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``prefill.md.j2`` shows."""
    study = Study(view)
    curve, subject, equipment = study.curve, view.subject, view.equipment
    law = curve.chosen and curve.chosen.fit
    rows = _curve_rows(study)
    places = {key(row) for row in rows}
    found = [finding for finding in view.found if (finding.run_id, finding.order_index) in places]
    return {
        "title": words.say("Prefill: %(subject)s", subject=view.title(words)),
        "answer": headline(study, words),
        "caveats": _caveats(study, found, words),
        "curve": curve,
        "law": curve.chosen,
        "longest": curve.longest,
        "longest_time": time_text(words, curve.longest.prefill_ms) if curve.longest else None,
        "formula": prefill_law.formula(curve, words),
        "rejected": prefill_choice.rejected(curve, words),
        "repeated": any(one.lack_of_fit for one in curve.candidates),
        "growth": prefill_law.growth(curve, words),
        "drawn": figures_of(study, words, figures),
        "budgets": prefill_tables.budgets(curve, words),
        "overhead": None if curve.overhead_ms is None else time_text(words, curve.overhead_ms),
        "below": prefill_tables.below_the_shortest(curve, study.points, words),
        "rag": prefill_tables.rag(curve, words),
        "held_out": prefill_tables.held_out(curve, words),
        "lengths": prefill_tables.by_length(curve, equipment.model, words),
        "predicted": prefill_tables.predicted(curve, words),
        "coefficients": prefill_law.coefficients(study, words),
        "excess": prefill_law.excess(study, words),
        "unread": prefill_sensitivity.unread(study, words),
        "without_odd": prefill_sensitivity.without_odd_rows(study, words),
        "candidates": prefill_choice.candidates(curve, words),
        "wider": prefill_choice.wider(curve, wider_curve(subject, view.found), words),
        "weighting": prefill_law.weighting(repeats_scatter(_measured(study)), words),
        "window": prefill_context.window(window_control(study.rows), curve, words),
        "decode": _decode(study, words),
        "as_printed": prefill_context.as_printed(printed_excess(_curve_rows(study)), words),
        "row_table": row_table(rows[:SHOWN_ROWS], found, words, _ROW_COLUMNS),
        "rows_hidden": max(0, len(rows) - SHOWN_ROWS),
        "failed": sum(row.get("status") != "ok" for row in rows),
        "doubts": by_kind([finding for finding in found if "prefill" in finding.spoils], words),
        # What a run's anchors did says something of every length that was measured between them.
        "notes": by_kind(
            [finding for finding in found if "prefill" not in finding.spoils]
            + [
                finding
                for finding in view.found
                if finding.of_run and finding.run_id in {run_id for run_id, _ in places}
            ],
            words,
        ),
        "medians": any(length.rows == 1 and (length.runs or 2) > 1 for length in curve.lengths),
        "law_has_square": law is not None and 2 in law.powers,
    }


def headline(study: Study, words: Words) -> Sentence:
    """Return how long the longest measured prompt takes to read."""
    longest = study.curve.longest
    if longest is None:
        return Sentence(mark("No prefill time of this subject could be measured yet."))
    return Sentence(
        mark("Reading a prompt of %(tokens)s tokens takes %(time)s; only then does the first token appear."),
        {"tokens": words.number(longest.tokens), "time": time_text(words, longest.prefill_ms)},
    )


def _decode(study: Study, words: Words) -> dict[str, Any] | None:
    """Return how the prompt's length slows the answer, and what stands behind that."""
    view = study.view
    rates = decode_over_context(study.points, list(study.odd_decodes), view.equipment.model, view.subject.kv_cache_type)
    trusted = records(view.subject.rows[clean(view.subject.rows, view.found, "tpot")])
    measured = [row for row in trusted if row.get("phase") in ("measured", None) and row.get("status") == "ok"]
    return prefill_context.decode(rates, decode_test(measured), words)


def _curve_rows(study: Study) -> list[dict[str, Any]]:
    """Return the rows of the curve, shortest prompt first."""
    rows = [row for row in _measured(study) if row.get("kind") == "prefill_curve"]
    return sorted(in_order(rows), key=lambda row: row.get("prompt_tokens") or float("inf"))


def _measured(study: Study) -> list[dict[str, Any]]:
    return [row for row in study.rows if row.get("phase") in ("measured", None)]


def figures_of(study: Study, words: Words, figures: FigureCache) -> list[Drawn]:
    """Return the curve, and its law beyond what was measured where there is one."""
    curve, view = study.curve, study.view
    rows = _doubtful_rows(view).head(SHOWN_ROWS)
    doubtful = [length for place in range(len(rows)) for length in prefill_curve(rows.iloc[[place]]).lengths]
    drawn = [figures.draw(prefill_figure, words, curve=curve, doubtful=doubtful, colour=view.colour)]
    law = curve.law
    if law is None or curve.longest is None:
        return drawn
    ahead = beyond(law, curve.longest.tokens)
    title = words.say(
        "At %(tokens)s tokens the law says %(time)s, and the interval is %(width)s wide",
        tokens=words.number(ahead[-1].tokens),
        time=time_text(words, ahead[-1].law.mid),
        width=time_text(words, ahead[-1].law.high - max(0.0, ahead[-1].law.low)),
    )
    return [
        *drawn,
        figures.draw(
            beyond_figure,
            words,
            title=title,
            law=law,
            lengths=curve.lengths,
            predicted=ahead,
            colour=view.colour,
        ),
    ]


def _doubtful_rows(view: SubjectView) -> pd.DataFrame:
    """Return the finished prefills that neither made the curve nor may be held against it."""
    rows = view.subject.rows
    kind, measured = rows["kind"].fillna(""), rows["phase"].fillna("measured").eq("measured")
    of_curve = kind.eq("prefill_curve") & ~clean(rows, view.found, "prefill")
    beside = kind.isin(UNSEEN_KINDS) & ~clean(rows, view.found)
    return rows[measured & (of_curve | beside)]


def _caveats(study: Study, found: list[Finding], words: Words) -> list[str]:
    """Return what the answer must not be read without, at most two."""
    curve, told = study.curve, list[str]()
    if not curve.lengths:
        return told
    if curve.clock == "client":
        told.append(
            words.say("The server reports no prefill time, so the client's time to the first token stands for it.")
        )
    if any(length.rows == 1 and (length.runs or 2) > 1 for length in curve.lengths):
        told.append(
            words.say_n(
                "The length is a published median; the single runs behind it are not known.",
                "Of each length one median is published: the intervals here tell how far %(n)d lengths lie from the "
                "law.",
                len(curve.lengths),
            )
        )
    orders = {_order(run.facts.plan) for run in study.view.runs}
    if len(curve.lengths) > 1 and measured_growth(curve.lengths) > 0 and orders - {"shuffled", "interleaved"}:
        told.append(
            words.say("It is not known in which order the lengths ran: growing heat would bend the curve as well.")
            if None in orders
            else words.say("The lengths ran one after the other: growing heat would bend the curve as well.")
        )
    if any(finding.kind == "mixed_conditions" for finding in found):
        told.append(words.say("Not all lengths ran under one context limit (see the rows)."))
    return told[:2]


def _order(plan: Mapping[str, Any]) -> str | None:
    """Return the order in which the plan sent its requests; None where there is no plan."""
    run: Any = plan.get("run")
    return str(cast("dict[str, Any]", run).get("order")) if isinstance(run, dict) else None
