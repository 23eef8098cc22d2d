"""A subject's data page: how it was measured, which rows count and why, what to take away, and how to repeat it."""

from typing import Any, Final

from roofbook.analysis.subjects import versions
from roofbook.charts.cache import Drawn, FigureCache
from roofbook.charts.sequence import Sent, Standing, sequence_figure
from roofbook.pages import doubts
from roofbook.pages.concepts.grid import Grid, grid
from roofbook.pages.downloads import plan_files
from roofbook.pages.row_table import SHOWN_ROWS, Key, in_order, key, notes
from roofbook.pages.run_story import RunStory, story
from roofbook.pages.sentence import Sentence
from roofbook.pages.study import Study
from roofbook.pages.subjects import SubjectView
from roofbook.record import Row
from roofbook.validity import MEASURES, Finding, records
from roofbook.words import Words, mark

_MEASURES: Final = {
    "prefill": mark("prefill"),
    "ttft": mark("TTFT"),
    "tpot": mark("decode"),
    "e2e": mark("whole request"),
}
"""The figures that a doubt may keep a row out of."""

_PHASES: Final = {
    "calibration": mark("calibration"),
    "warmup": mark("warm-up"),
    "prime": mark("filling the cache"),
    "anchor": mark("anchor"),
}
"""Rows that only help to measure the others."""


def context(view: SubjectView, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``data.md.j2`` shows."""
    study = Study(view)
    rows = in_order(study.rows)
    return {
        "title": words.say("Data: %(subject)s", subject=view.title(words)),
        "answer": headline(study, words),
        "caveats": _caveats(view, words),
        "drawn": _figure(view, rows, words, figures),
        "validity": _validity(view, rows[:SHOWN_ROWS], words),
        "rows_hidden": max(0, len(rows) - SHOWN_ROWS),
        "of_the_whole": [_of_the_whole(finding, words) for finding in view.found if finding.order_index is None],
        "versions": _versions(view, words),
        "stories": stories(view, words),
        "plans": sorted(plan_files(view)),
    }


def stories(view: SubjectView, words: Words) -> list[RunStory]:
    """Return how each run was measured."""
    return [story(run, view.subject.rows, words) for run in view.runs]


def headline(study: Study, words: Words) -> Sentence:
    """Return how many rows there are, and how many of them count."""
    view = study.view
    measured = [row for row in study.rows if row.get("phase") in ("measured", None)]
    doubted = _doubted(view)
    failed = sum(row.get("status") != "ok" for row in measured)
    kept_out = sum(row.get("status") == "ok" and key(row) in doubted for row in measured)
    strong = {
        "rows": words.say_n("%(n)d measured row", "%(n)d measured rows", len(measured)),
        "counts": words.number(len(measured) - failed - kept_out),
    }
    others = {
        "runs": words.say_n("%(n)d run", "%(n)d runs", len(view.runs)),
        "doubted": words.number(kept_out),
        "failed": words.number(failed),
    }
    if not measured:
        return Sentence(mark("There is no measured row yet, in %(runs)s."), {}, {"runs": others["runs"]})
    if failed:
        return Sentence(
            mark(
                "%(rows)s in %(runs)s: %(counts)s count everywhere, %(doubted)s are kept out of some figure, "
                "%(failed)s failed."
            ),
            strong,
            others,
        )
    if not kept_out:
        rows = {"rows": strong["rows"]}
        return Sentence(mark("%(rows)s in %(runs)s, and all of them count in every figure."), rows, others)
    return Sentence(
        mark("%(rows)s in %(runs)s: %(counts)s count everywhere, %(doubted)s are kept out of some figure."),
        strong,
        others,
    )


def _caveats(view: SubjectView, words: Words) -> list[str]:
    """Return what the rows must not be read without, at most two."""
    told: list[str] = []
    if view.subject.rows["imported_from"].notna().any():
        told.append(
            words.say(
                "Imported from a publication: what it did not print is unknown here. Of the rows that count "
                "everywhere, %(single)s are single requests and %(several)s published medians or the like, of several.",
                **_alone_and_together(view, words),
            )
        )
    if not view.server_versions:
        told.append(words.say("The server's version is not known, so exactly this cannot be measured again."))
    return told[:2]


def _alone_and_together(view: SubjectView, words: Words) -> dict[str, str]:
    doubted = _doubted(view)
    counting = [row for row in records(view.subject.rows) if _standing(row, doubted) == "counts"]
    several = sum(row.get("aggregate_of") is not None for row in counting)
    return {"single": words.number(len(counting) - several), "several": words.number(several)}


def _figure(view: SubjectView, rows: list[Row], words: Words, figures: FigureCache) -> list[Drawn]:
    if not rows:
        return []
    noted, doubted = notes(view.found, words), _doubted(view)
    sent = [
        Sent(
            place,
            str(row.get("experiment") or words.say("outside of experiments")),
            _standing(row, doubted),
            ", ".join(part for part in (_prompt(row, words), noted.get(key(row))) if part),
        )
        for place, row in enumerate(rows, 1)
    ]
    measured = [one for one in sent if one.standing != "aside"]
    title = words.say(
        "%(counts)s of %(rows)s measured rows count in every figure",
        counts=words.number(sum(one.standing == "counts" for one in measured)),
        rows=words.number(len(measured)),
    )
    return [figures.draw(sequence_figure, words, title=title, sent=sent, colour=view.colour)]


def _doubted(view: SubjectView) -> set[Key]:
    return {(one.run_id, one.order_index) for one in view.found if one.doubtful and one.order_index is not None}


def _standing(row: Row, doubted: set[Key]) -> Standing:
    if row.get("phase") not in ("measured", None):
        return "aside"
    if row.get("status") != "ok":
        return "failed"
    return "doubted" if key(row) in doubted else "counts"


def _prompt(row: Row, words: Words) -> str:
    tokens = row.get("prompt_tokens")
    if tokens is None:
        return words.say("prompt length unknown")
    return words.say("%(tokens)s tokens", tokens=words.number(tokens))


def _validity(view: SubjectView, rows: list[Row], words: Words) -> Grid:
    """Return row by row whether it counts, and why not; what is only noted stands there by its short name."""
    heads = [
        (words.say("Row"), True),
        (words.say("Experiment"), False),
        (words.say("Prompt tokens"), True),
        (words.say("How it stands"), False),
        (words.say("Why"), False),
    ]
    found: dict[Key, list[Finding]] = {}
    for finding in view.found:
        found.setdefault((finding.run_id, finding.order_index), []).append(finding)
    doubted = _doubted(view)
    return grid(
        heads,
        [
            (
                words.number(place),
                str(row.get("experiment") or words.say("outside of experiments")),
                None if row.get("prompt_tokens") is None else words.number(row["prompt_tokens"]),
                _stands(row, doubted, found.get(key(row), []), words),
                _why(row, found.get(key(row), []), words),
            )
            for place, row in enumerate(rows, 1)
        ],
    )


def _stands(row: Row, doubted: set[Key], found: list[Finding], words: Words) -> str:
    standing = _standing(row, doubted)
    if standing == "aside":
        phase = str(row.get("phase"))
        return words.say(_PHASES[phase]) if phase in _PHASES else phase
    if standing == "failed":
        return words.say("failed: %(status)s", status=row.get("status") or words.say("unknown"))
    if standing == "counts":
        return words.say("counts")
    spoilt = [measure for measure in MEASURES if any(measure in finding.spoils for finding in found)]
    if len(spoilt) == len(MEASURES):
        return words.say("not counted")
    return words.say("not counted in: %(figures)s", figures=", ".join(words.say(_MEASURES[one]) for one in spoilt))


def _why(row: Row, found: list[Finding], words: Words) -> str:
    reasons = [doubts.sentence(one, words) if one.doubtful else doubts.name_of(one, words) for one in found]
    error = row.get("error")
    return " ".join([*dict.fromkeys(reasons), *([str(error)] if error else [])])


def _of_the_whole(finding: Finding, words: Words) -> str:
    """Return a doubt about a point or a run, with the place that it speaks of."""
    places = [place for place in dict.fromkeys((finding.experiment, finding.point)) if place]
    return words.say(
        "%(place)s: %(told)s",
        place=", ".join(places) or finding.run_id or words.say("unknown"),
        told=doubts.sentence(finding, words),
    )


def _versions(view: SubjectView, words: Words) -> Grid:
    """Return the server's versions in the order they were met: the subject's history."""
    heads = [
        (words.say("Server version"), False),
        (words.say("Measurement runs"), False),
        (words.say("First request"), False),
        (words.say("Last request"), False),
    ]
    return grid(
        heads,
        [
            (
                version.server_version or words.say("unknown"),
                ", ".join(version.run_ids),
                None if version.first is None else words.moment(version.first.to_pydatetime()),
                None if version.last is None else words.moment(version.last.to_pydatetime()),
            )
            for version in versions(view.subject)
        ],
    )
