"""What a subject's prefill page says of the choice: the laws that were tried, and what speaks against the best."""

from roofbook.analysis.coefficients import beyond, r_squared
from roofbook.analysis.prefill import Curve
from roofbook.analysis.regression import Fit, LackOfFit
from roofbook.charts.prefill import time_text
from roofbook.pages.concepts.grid import Grid, grid, percent
from roofbook.pages.prefill_law import LAWS, small
from roofbook.pages.prefill_tables import signed
from roofbook.pages.sentence import Sentence
from roofbook.pages.speed_tables import between
from roofbook.words import Words, mark


def candidates(curve: Curve, words: Words) -> Grid | None:
    """Return the laws that were tried, with what decides between them; None where no law was chosen."""
    if curve.chosen is None:
        return None
    repeated = any(one.lack_of_fit for one in curve.candidates)
    heads = [
        (words.say("Law"), False),
        ("a", True),
        ("b", True),
        ("c", True),
        ("AICc", True),
        (words.say("Error when left out"), True),
        ("R²", True),
        *([(words.say("Lack of fit"), True)] if repeated else []),
        (words.say("Chosen"), False),
    ]
    rows: list[tuple[str | None, ...]] = []
    for one in curve.candidates:
        fits = [one.fit.coefficient(power) if power in one.powers else None for power in (1, 2, 0)]
        explained = r_squared(one.fit, curve.lengths)
        rows.append(
            (
                LAWS[one.powers],
                *(None if value is None else small(value, words) for value in fits),
                None if one.fit.aicc is None else words.number(one.fit.aicc, 1),
                None if one.left_out_rms is None else percent(one.left_out_rms, words, 1),
                None if explained is None else words.number(explained, 5),
                *([_lack(one.lack_of_fit, words)] if repeated else []),
                words.say("yes") if one is curve.chosen else "",
            )
        )
    return grid(heads, rows)


def _lack(found: LackOfFit | None, words: Words) -> str | None:
    if found is None:
        return None
    return words.say("p = %(p)s", p=words.significant(found.p_value, 2))


def rejected(curve: Curve, words: Words) -> Sentence | None:
    """Return why the chosen law predicts nothing on this page; None where nothing speaks against it."""
    chosen, held = curve.chosen, curve.hold_out()
    if chosen is None or curve.rejected is None:
        return None
    law, lack = {"law": LAWS[chosen.powers]}, chosen.lack_of_fit
    if curve.rejected == "lack_of_fit" and lack is not None:
        return Sentence(
            mark(
                "%(law)s is the best of the laws that were tried, but it misses the measured lengths by more than "
                "their repeats scatter (lack of fit: F = %(f)s, p = %(p)s). So nothing is predicted from it."
            ),
            law,
            {"f": words.significant(lack.f, 2), "p": words.significant(lack.p_value, 2)},
        )
    return (
        None
        if held is None
        else Sentence(
            mark(
                "%(law)s is the best of the laws that were tried, but fitted to the shorter lengths it misses the "
                "longest by %(error)s, more than its interval allows. So nothing is predicted from it."
            ),
            law,
            {"error": signed(held.error_share, words)},
        )
    )


def wider(curve: Curve, whole: Curve, words: Words) -> dict[str, Grid | Sentence | None] | None:
    """Return the same choice with the subject's other trusted lengths, and what another law would predict.

    None where there are no other lengths, or too few.
    """
    extra = len(whole.lengths) - len(curve.lengths)
    table = candidates(whole, words)
    if extra < 1 or curve.law is None or curve.chosen is None or whole.chosen is None or table is None:
        return None
    values = {"extra": words.number(extra), "all": words.number(len(whole.lengths))}
    laws = {"law": LAWS[whole.chosen.powers]}
    if whole.chosen.powers == curve.chosen.powers:
        told_of = Sentence(
            mark("With the subject's %(extra)s other trusted lengths (%(all)s in all) the choice stays at %(law)s."),
            laws, values,
        )  # fmt: skip
        return {"table": table, "told": told_of, "beyond": None, "negative": None}
    told_of = Sentence(
        mark(
            "With the subject's %(extra)s other trusted lengths (%(all)s in all) %(law)s is chosen instead: so few "
            "points do not settle the law's form."
        ),
        laws, values,
    )  # fmt: skip
    return {
        "table": table,
        "told": told_of,
        "beyond": _by_another_law(curve, whole, words),
        "negative": _negative(whole.chosen.fit, words),
    }


def _by_another_law(curve: Curve, whole: Curve, words: Words) -> Sentence | None:
    """Return what the law of all lengths says of the farthest length that the curve's own is drawn on to."""
    if curve.chosen is None or whole.chosen is None or curve.longest is None:
        return None
    farthest = beyond(curve.chosen.fit, curve.longest.tokens)[-1]
    other = whole.chosen.fit.prediction(farthest.tokens)
    return Sentence(
        mark(
            "All %(all)s trusted lengths together choose another law, %(law)s, and it says %(time)s for %(tokens)s "
            "tokens (95 %% interval %(range)s) where this one says %(own)s: the form alone moves a prediction so far."
        ),
        {"time": time_text(words, other.mid)},
        {
            "all": words.number(len(whole.lengths)),
            "law": LAWS[whole.chosen.powers],
            "tokens": words.number(farthest.tokens),
            "range": between(max(0.0, other.low), other.high, words),
            "own": time_text(words, farthest.law.mid),
        },
    )


def _negative(law: Fit, words: Words) -> Sentence | None:
    """Return what a constant below zero means; None where it is none."""
    if law.coefficient(0) >= 0:
        return None
    return Sentence(
        mark(
            "Its *c* is %(c)s ms. No prompt costs less than nothing, so this is no real cost: the server may count "
            "tokens of the template that it did not have to read again."
        ),
        {},
        {"c": small(law.coefficient(0), words)},
    )
