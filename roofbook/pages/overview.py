"""A subject's overview: the answer on one screen, its few numbers, and the way to what they stand on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from roofbook.analysis.intervals import REQUESTS_FOR_P99
from roofbook.analysis.latency import Point
from roofbook.analysis.quantities.quantity import Quantity, of_range, of_summary
from roofbook.analysis.regression import LEVEL
from roofbook.charts.cache import Drawn, FigureCache
from roofbook.pages import budget, data, doubts, prefill, request, speed
from roofbook.pages.budget_steps import kv_type_of
from roofbook.pages.sentence import Sentence
from roofbook.pages.study import REQUEST_TOKENS, Study
from roofbook.pages.subjects import SubjectView
from roofbook.pages.values import footing, told
from roofbook.words import Words, mark

_SEVERE: Final = ("unreliable", "drifted", "few_warmups", "throttled", "swapping", "partial_gpu")
"""Doubts that concern the subject as a whole, the worst first."""


@dataclass(frozen=True)
class Number:
    """One of the few numbers: its value, what it is, what it stands on, and the page that shows how."""

    value: str
    what: str
    footing: str
    topic: str
    short_of_95: bool = False
    """The values are too few for an interval of the usual level."""


@dataclass(frozen=True)
class Lead:
    """Another page of the subject, by its own answer."""

    topic: str
    label: str
    answer: Sentence


_READING: Final[Mapping[str, str]] = {
    "measured": mark("of the arithmetic that a benchmark without a model reached on such a machine, while it reads"),
    "seen": mark("of the arithmetic that was measured on such machines, while it reads"),
    "datasheet": mark("of the arithmetic peak stated for the chip, while it reads a prompt"),
}
_WRITING: Final[Mapping[str, str]] = {
    "measured": mark("of the bandwidth that a benchmark without a model reached on such a machine, while it writes"),
    "datasheet": mark("of the bandwidth in the data sheet, while it writes"),
}


def context(view: SubjectView, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``overview.md.j2`` shows."""
    study = Study(view)
    return {
        "title": view.title(words),
        "answer": headline(study, words),
        "numbers": [number for number in _numbers(study, words) if number is not None],
        "caveats": _caveats(study, words),
        "leads": _leads(study, words),
        "drawn": _figure(study, words, figures),
    }


def headline(study: Study, words: Words) -> Sentence:
    """Return how long one waits and how fast the answer is written, as far as that was measured."""
    short, long = study.ends
    if short is None or long is None:
        return _nothing(study, words)
    strong = {"wait": _wait(short, words)}
    others = {"tokens": words.number(short.prompt_tokens)}
    several, rate = long is not short, of_summary("tok_per_s", short.decode)
    if several:
        strong["long_wait"], others["long"] = _wait(long, words), words.number(long.prompt_tokens)
    if rate.known:
        strong["rate"] = told(rate, words)
    match several, rate.known:
        case True, True:
            message = mark(
                "The first token comes after %(wait)s with a prompt of %(tokens)s tokens and after %(long_wait)s with "
                "%(long)s; then the answer is written at %(rate)s."
            )
        case True, False:
            message = mark(
                "The first token comes after %(wait)s with a prompt of %(tokens)s tokens and after %(long_wait)s with "
                "%(long)s."
            )
        case False, True:
            message = mark(
                "The first token comes after %(wait)s with a prompt of %(tokens)s tokens; then the answer is written "
                "at %(rate)s."
            )
        case _:
            message = mark("The first token comes after %(wait)s with a prompt of %(tokens)s tokens.")
    return Sentence(message, strong, others)


def _nothing(study: Study, words: Words) -> Sentence:
    sent, failed = sum(one.requests for one in study.points), sum(one.failed for one in study.points)
    if sent and failed == sent:
        requests = words.say_n("%(n)d request", "%(n)d requests", sent)
        return Sentence(mark("Not one request finished: %(requests)s, all failed."), {"requests": requests})
    return Sentence(mark("How long this subject takes to its first token is not known yet."))


def _wait(point: Point, words: Words) -> str:
    return told(of_summary("ms", point.ttft), words)


def _numbers(study: Study, words: Words) -> list[Number | None]:
    short, long = study.ends
    ends = [short] if long is short else [short, long]
    return [
        *(_wait_for(point, words) for point in ends),
        _rate(short, words),
        _share(study, words),
        _room(study, words),
    ]


def _wait_for(point: Point | None, words: Words) -> Number | None:
    if point is None:
        return None
    tokens = words.number(point.prompt_tokens)
    what = words.say("until the first token, after a prompt of %(tokens)s tokens", tokens=tokens)
    return _number(of_summary("ms", point.ttft), what, "speed", words)


def _rate(point: Point | None, words: Words) -> Number | None:
    if point is None:
        return None
    return _number(of_summary("tok_per_s", point.decode), words.say("while it writes the answer"), "speed", words)


def _share(study: Study, words: Words) -> Number | None:
    """Return how much of the machine reading reaches, where that is known, else writing; against which of its roofs."""
    for reached, phase in ((study.reading_reached, _READING), (study.writing_reached, _WRITING)):
        if reached is None or reached.basis is None:
            continue
        by_datasheet = of_range("share", reached.datasheet_share)
        if reached.basis == "datasheet":
            return _number(by_datasheet, words.say(phase["datasheet"]), "speed", words)
        seen = reached is study.reading_reached and study.seen_faster is not None
        what = words.say(phase["seen" if seen else "measured"])
        if by_datasheet.known:
            what += " " + words.say("(%(share)s of the stated peak)", share=told(by_datasheet, words))
        falls = reached is study.writing_reached and study.writing_falls
        share = study.writing_span if falls else reached.measured_share
        return _number(of_range("share", share), what, "speed", words)
    return None


def _room(study: Study, words: Words) -> Number | None:
    kv_type = kv_type_of(study)
    what = words.say("requests of %(tokens)s tokens fit into memory at once", tokens=words.number(REQUEST_TOKENS))
    found = of_range("count", study.requests(kv_type))
    if not found.known:
        return None
    return Number(told(found, words), what, words.say("KV cache %(type)s", type=kv_type), "memory")


def _number(quantity: Quantity, what: str, topic: str, words: Words) -> Number | None:
    if not quantity.known:
        return None
    short = quantity.level is not None and quantity.level < LEVEL
    return Number(told(quantity, words), what, footing(quantity, words), topic, short)


def _caveats(study: Study, words: Words) -> list[str]:
    """Return what the answer must not be read without, at most two: the worst doubt, then how few requests it is."""
    view = study.view
    severe = sorted(
        (finding for finding in view.found if finding.kind in _SEVERE), key=lambda one: _SEVERE.index(one.kind)
    )
    told_of = [doubts.sentence(severe[0], words)] if severe else []
    fewest = min((point.ttft.n or 0 for point in study.ends if point is not None), default=0)
    if 0 < fewest < REQUESTS_FOR_P99:
        told_of.append(
            words.say_n(
                "Behind each wait stands %(n)d request: no spread, no slowest one per cent.",
                "Behind each wait stand %(n)d requests: enough for a median, not for the slowest one per cent.",
                fewest,
            )
        )
    if not view.server_versions:
        told_of.append(words.say("The server's version is not known, so exactly this cannot be measured again."))
    return told_of[:2]


def _leads(study: Study, words: Words) -> list[Lead]:
    return [
        Lead("speed", words.say("Speed"), speed.headline(study, words)),
        Lead("prefill", words.say("Prefill"), prefill.headline(study, words)),
        Lead("memory", words.say("Memory"), budget.headline(study, words)),
        Lead("data", words.say("Data"), data.headline(study, words)),
    ]


def _figure(study: Study, words: Words, figures: FigureCache) -> list[Drawn]:
    """Return where the time of a request goes; where that was not measured whole, the prefill curve."""
    parts = request.drawn(study.view, words, figures)
    return parts or prefill.figures_of(study, words, figures)[:1]
