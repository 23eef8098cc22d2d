"""What a subject's prefill page says of how much its law hangs on single rows and on what the server really read."""

from typing import Final

from roofbook.analysis.coefficients import wider_curve
from roofbook.analysis.sensitivity import unread_template, without_noted
from roofbook.charts.prefill import time_text
from roofbook.pages.concepts.grid import span
from roofbook.pages.prefill_law import small
from roofbook.pages.study import Study
from roofbook.theory.shapes import Range
from roofbook.words import Words

FAR_TOKENS: Final = 32_768
"""The length at which a change of the law is told: the farthest that the site predicts."""


def without_odd_rows(study: Study, words: Words) -> str | None:
    """Return what the law would be without the rows that are noted as odd and yet fitted; None where there are none."""
    view = study.view
    found = without_noted(view.subject, view.found, study.curve, view.equipment.model)
    if found is None or study.curve.law is None:
        return None
    told = {
        "tokens": ", ".join(words.number(tokens) for tokens in found.tokens),
        "a": words.say("%(ms)s ms", ms=small(found.law.coefficient(1), words)),
        "time": time_text(words, found.law.value(FAR_TOKENS)),
        "far": words.number(FAR_TOKENS),
        "own": time_text(words, study.curve.law.value(FAR_TOKENS)),
    }
    if 2 not in found.law.powers or found.excess is None:
        return words.say(
            "One check: without the rows at %(tokens)s tokens, which are outliers in another figure and yet fitted, "
            "*a* would be %(a)s, and %(far)s tokens would take %(time)s instead of %(own)s.",
            **told,
        )
    return words.say(
        "One check: without the rows at %(tokens)s tokens, which are outliers in another figure and yet fitted, *a* "
        "would be %(a)s, *b* %(b)s, the latter %(excess)s times attention's operations, and %(far)s tokens would take "
        "%(time)s instead of %(own)s.",
        b=words.say("%(ms)s ms", ms=small(found.law.coefficient(2), words)),
        excess=words.significant(found.excess, 2),
        **told,
    )


def unread(study: Study, words: Words) -> str | None:
    """Return what the bend's excess is if a part of a shared template was not read; None where nothing hints at it."""
    view = study.view
    found = unread_template(study.curve, wider_curve(view.subject, view.found), view.equipment.model)
    if found is None:
        return None
    return words.say(
        "A part of that may be no work at all: with a constant the fit's *c* is below zero, as if the server had not "
        "read %(tokens)s tokens of a template that all prompts share. Were it so, the factor would be %(excess)s.",
        tokens=span(Range(round(found.tokens.low), round(found.tokens.high)), words),
        excess=span(found.excess, words, 2),
    )
