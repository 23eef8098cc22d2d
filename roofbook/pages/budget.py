"""A subject's memory page: how many requests memory holds at once, and how few of them the arithmetic can serve."""

from typing import Any

from roofbook.analysis.memory import KV_TYPES
from roofbook.charts.budget import Capacity, budget_figure
from roofbook.charts.cache import Drawn, FigureCache
from roofbook.pages.budget_steps import S_PER_MIN, by_type, gib, kv_type_of, rates, rounded_up, span_of, steps
from roofbook.pages.sentence import Sentence
from roofbook.pages.study import REQUEST_TOKENS, Study
from roofbook.pages.subjects import SubjectView
from roofbook.words import Words, mark


def context(view: SubjectView, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``memory.md.j2`` shows."""
    study = Study(view)
    tables = study.memory()
    kv_type = kv_type_of(study)
    return {
        "title": words.say("Memory: %(subject)s", subject=view.title(words)),
        "answer": headline(study, words),
        "caveats": _caveats(study, words),
        "drawn": _figures(study, words, figures),
        "steps": steps(study, tables, kv_type, words) if tables else None,
        "by_type": by_type(study, words) if tables else None,
        "rates": rates(study, kv_type, words),
        "crossover": None if study.crossover is None else rounded_up(study.crossover, words),
        "kv_type": kv_type,
        "kv_known": view.subject.kv_cache_type is not None,
        "request_tokens": REQUEST_TOKENS,
        "lacking": _lacking(view, words),
    }


def headline(study: Study, words: Words) -> Sentence:
    """Return how many requests memory holds, and how many of their prompts a minute the arithmetic can read."""
    kv_type = kv_type_of(study)
    room = study.requests(kv_type)
    if room is None:
        return Sentence(mark("How many requests fit into memory at once cannot be said."))
    strong = {"requests": span_of(room, words)}
    others = {"tokens": words.number(REQUEST_TOKENS), "type": kv_type}
    if room.high < 1:
        return Sentence(
            mark("Memory has no room for even one request of %(tokens)s tokens (KV cache %(type)s)."), {}, others
        )
    found = study.served(max(1.0, room.low))
    if found is None:
        return Sentence(
            mark("Memory has room for %(requests)s requests of %(tokens)s tokens at once (KV cache %(type)s)."),
            strong, others,
        )  # fmt: skip
    strong["rate"] = words.significant(found.rate_per_s * S_PER_MIN, 2)
    return Sentence(
        mark(
            "Memory has room for %(requests)s requests of %(tokens)s tokens at once (KV cache %(type)s), "
            "but the chip reads only %(rate)s such prompts a minute."
        ),
        strong,
        others,
    )


def _caveats(study: Study, words: Words) -> list[str]:
    """Return what the answer must not be read without, at most two."""
    told: list[str] = []
    room = study.requests(kv_type_of(study))
    if room is None:
        return told
    reserve = gib(study.reserve_bytes, words)
    if len(study.limits) > 1:
        told.append(
            words.say(
                "The range comes from the system, which the rows do not tell (macOS 15 and older, or 26), and from a "
                "reserve of %(reserve)s, which is an assumption.",
                reserve=reserve,
            )
        )
    elif not room.known:
        told.append(
            words.say("The range comes from a reserve of %(reserve)s, which is an assumption.", reserve=reserve)
        )
    told.append(_slots(study, words))
    return told[:2]


def _slots(study: Study, words: Words) -> str:
    """Return what the server itself allows, which ends before memory does."""
    slots, runtime = study.view.subject.parallel_slots, study.view.equipment.runtime
    if slots is not None:
        return words.say_n(
            "The server was started with %(n)d slot: that many requests run at once, whatever fits.",
            "The server was started with %(n)d slots: that many requests run at once, whatever fits.",
            slots,
        )
    if runtime is not None and runtime.default_slots is not None:
        return words.say_n(
            "The number of slots is not known; %(name)s takes %(n)d request at once unless it is told more.",
            "The number of slots is not known; %(name)s takes %(n)d requests at once unless it is told otherwise.",
            runtime.default_slots,
            name=runtime.name,
        )
    return words.say("The number of slots is not known: the server may take fewer requests at once than fit.")


def _figures(study: Study, words: Words, figures: FigureCache) -> list[Drawn]:
    own = kv_type_of(study)
    types = [*KV_TYPES, *([] if own in KV_TYPES else [own])]
    capacities = [
        Capacity(kv_type, room, kv_type == own, study.crossover_of(kv_type))
        for kv_type, room in ((kv_type, study.requests(kv_type)) for kv_type in types)
        if room is not None
    ]
    if not capacities:
        return []
    crossover = study.crossover
    title = words.say("At one length of request, the KV cache's type matters most for how many fit")
    if crossover is not None and max(one.requests.high for one in capacities) > crossover.high:
        title = words.say(
            "Memory is not what runs out first: arithmetic limits decode from %(requests)s requests on",
            requests=rounded_up(crossover, words),
        )
    return [
        figures.draw(
            budget_figure,
            words,
            title=title,
            capacities=capacities,
            context_tokens=REQUEST_TOKENS,
            colour=study.view.colour,
        )
    ]


def _lacking(view: SubjectView, words: Words) -> list[str]:
    """Return what would have to be known for a budget."""
    lacking: list[str] = []
    if view.equipment.machine is None:
        lacking.append(words.say("the machine: add it to data/facts/machines.yml"))
    elif view.equipment.machine.memory_bytes is None:
        lacking.append(words.say("how much memory the machine has"))
    if view.equipment.model is None:
        lacking.append(words.say("the model's shape: add it to data/facts/models.yml, or measure with this program"))
    return lacking
