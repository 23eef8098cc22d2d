"""What a prefill law would be if some of what it rests on were otherwise: rows left out, tokens that were not read."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from roofbook.analysis.bends import bend_excess
from roofbook.analysis.prefill import Curve, prefill_curve
from roofbook.analysis.regression import Fit, fit
from roofbook.analysis.subjects import Subject
from roofbook.theory.shapes import Model, Range
from roofbook.validity import Finding, clean

_ONE_TOKEN: Final = 1.0


@dataclass(frozen=True)
class Without:
    """The law of the same form without the lengths at *tokens*, whose rows are noted as odd and yet fitted."""

    tokens: tuple[float, ...]
    law: Fit
    excess: float | None
    """Of the quadratic term over attention's operations; None where it cannot be said."""


@dataclass(frozen=True)
class Unread:
    """How many tokens of a shared template the server may not have read, and what the bend's excess then is."""

    tokens: Range
    excess: Range


def without_noted(subject: Subject, found: Iterable[Finding], curve: Curve, model: Model | None) -> Without | None:
    """Return the law without the rows of the *curve* that are outliers in any figure; None where none is."""
    findings = list(found)
    chosen = curve.chosen
    odd = {(one.run_id, one.order_index) for one in findings if one.kind == "outlier" and one.order_index is not None}
    of_curve = subject.rows["kind"].fillna("").eq("prefill_curve") & clean(subject.rows, findings, "prefill")
    rows = subject.rows[of_curve]
    keys = list(zip(rows["run_id"], rows["order_index"], strict=True))
    if chosen is None or not any(key in odd for key in keys):
        return None
    fewer = prefill_curve(rows[[key not in odd for key in keys]])
    left_out = {length.tokens for length in curve.lengths} - {length.tokens for length in fewer.lengths}
    again = fewer.candidate(chosen.powers)
    if again is None or not left_out:
        return None
    excess = None if model is None else bend_excess(again.fit, model)
    return Without(tuple(sorted(left_out)), again.fit, None if excess is None else excess.mid)


def unread_template(curve: Curve, whole: Curve, model: Model | None) -> Unread | None:
    """Return what a constant below zero would mean; None where a law with a constant has none, or without a bend.

    A server that does not read P tokens again takes a(T - P) + b(T^2 - P^2): c + aT + bT^2 then gives P = -c / a. The
    *curve* alone and all trusted lengths (*whole*) give two such numbers; with each of them the law is fitted again.
    """
    if model is None or curve.chosen is None or 2 not in curve.chosen.powers:
        return None
    unread: list[float] = []
    for one in (curve, whole):
        law = one.candidate((0, 1, 2))
        if law is None or law.fit.coefficient(1) <= 0:
            return None
        unread.append(-law.fit.coefficient(0) / law.fit.coefficient(1))
    if min(unread) < _ONE_TOKEN or max(unread) >= curve.lengths[0].tokens:
        return None
    times = [length.prefill_ms for length in curve.lengths]
    excesses: list[float] = []
    for tokens in unread:
        again = fit([length.tokens - tokens for length in curve.lengths], times, (1, 2))
        excess = None if again is None else bend_excess(again, model)
        if excess is None:
            return None
        excesses.append(excess.mid)
    return Unread(Range(min(unread), max(unread)), Range(min(excesses), max(excesses)))
