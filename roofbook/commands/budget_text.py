"""The answer of ``budget`` as a page of a terminal, in one language: five questions, and their tables."""

import math
from typing import Final

from roofbook.commands.answer import Answer
from roofbook.commands.budget_basis import basis
from roofbook.commands.budget_tables import by_kv_type, memory, speeds
from roofbook.commands.figures import count, gib, rate, span
from roofbook.commands.model_source import Found
from roofbook.commands.table import columns
from roofbook.facts import ChipFact, MachineFact
from roofbook.theory.shapes import Range
from roofbook.units import MS_PER_S
from roofbook.words import Words

_MINUTE_S: Final = 60


def as_text(
    result: Answer, found: Found, machine: MachineFact, chip: ChipFact | None, words: Words, *, kv_given: bool
) -> str:
    """Return the whole answer: five sentences, the memory, how many by what is counted, the speeds, and the basis."""
    parts = [
        _title(result, found, machine, words),
        _answers(result, words),
        memory(result, words),
        by_kv_type(result, words),
        speeds(result, words),
        basis(result, found, machine, chip, words, kv_given=kv_given),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _title(result: Answer, found: Found, machine: MachineFact, words: Words) -> list[str]:
    question = result.question
    conditions = [
        words.say("%(tokens)s tokens a request", tokens=words.number(question.context_tokens)),
        words.say_n("%(n)d request at once", "%(n)d requests at once", question.users),
        words.say("KV cache %(kv)s", kv=question.kv_type or words.say("unknown")),
        question.runtime.name,
    ]
    quantization = question.model.tensors.quantization
    named = quantization is not None and found.title.upper().endswith(quantization.upper())
    title = found.title if named or quantization is None else f"{found.title} {quantization}"
    return [f"{title}  →  {machine.machine.name or machine.id}", " · ".join(conditions)]


def _answers(result: Answer, words: Words) -> list[str]:
    answers = [(words.say("Does it fit?"), _fits(result, words))]
    if result.weights is not None:
        answers.append((words.say("How many at once?"), _how_many(result, words)))
    if result.weights is not None and result.scarcity != "weights":
        answers.append((words.say("How fast at best?"), _how_fast(result, words)))
        answers.append((words.say("First token?"), _first_token(result, words)))
    if result.scarcity is not None:
        answers.append((words.say("What runs out first?"), _scarcity(result, words)))
    return columns(answers, wrap=True)


def _fits(result: Answer, words: Words) -> str:
    if result.budget is None:
        problem = result.why_not
        return words.say("unknown") if problem is None else words.say(problem.message, **problem.values)
    if result.fits is None:
        return words.say("Perhaps: that depends on what is a range below")
    spare = result.budget.spare_bytes
    needed, limit = gib(result.budget.needed_bytes, words), gib(result.limit.limit_bytes, words)
    if result.fits:
        return words.say("Yes: %(needed)s of %(limit)s GiB are taken", needed=needed, limit=limit)
    lacking = Range(max(0.0, -spare.high), max(0.0, -spare.low))
    return words.say(
        "No: %(needed)s GiB are needed and %(limit)s are there; %(lacking)s GiB are lacking",
        needed=needed,
        limit=limit,
        lacking=gib(lacking, words),
    )


def _how_many(result: Answer, words: Words) -> str:
    fitting = result.sequences
    if fitting is None or fitting.high == 0:
        return words.say("Not one")
    if math.isinf(fitting.low):
        return words.say("As many as you like: this model's state does not grow")
    return words.say(
        "%(count)s requests of %(tokens)s tokens each, prompt and answer together",
        count=count(fitting, words),
        tokens=words.number(result.question.context_tokens),
    )


def _how_fast(result: Answer, words: Words) -> str:
    speed, users = result.datasheet, result.question.users
    if speed is None or speed.alone is None or speed.alone_full is None or speed.together is None:
        return words.say("Not known: the catalogue has no bandwidth for this machine")
    alone = words.say(
        "%(empty)s tokens a second alone, %(full)s with %(tokens)s tokens behind it",
        empty=rate(speed.alone, words),
        full=rate(speed.alone_full, words),
        tokens=words.number(result.question.context_tokens),
    )
    if users == 1:
        return alone
    return alone + words.say(
        "; %(users)s at once: %(each)s each, %(together)s together",
        users=words.number(users),
        each=rate(speed.together * (1 / users), words),
        together=rate(speed.together, words),
    )


def _first_token(result: Answer, words: Words) -> str:
    speed = result.datasheet
    if speed is None or speed.first_token_ms is None or speed.prompts_per_s is None:
        return words.say("Not known: the catalogue has no arithmetic rate for this machine")
    return words.say(
        "Not before %(seconds)s s for a prompt of %(tokens)s tokens with nothing cached; at most %(rate)s such prompts "
        "a minute",
        seconds=span(speed.first_token_ms * (1 / MS_PER_S), words),
        tokens=words.number(result.question.context_tokens),
        rate=words.significant(speed.prompts_per_s * _MINUTE_S, 2),
    )


def _scarcity(result: Answer, words: Words) -> str:
    match result.scarcity:
        case "context":
            limit = result.question.model.context_limit_tokens
            return words.say("The model's context: %(tokens)s tokens at most", tokens=words.number(limit))
        case "weights":
            return words.say("Memory, before the first request: weights and reserve leave no room")
        case "arithmetic":
            batch = None if result.crossover is None else result.crossover.whole
            return words.say(
                "Arithmetic: from %(batch)s requests at once on, decode waits for computing, not for memory",
                batch=words.say("unknown") if batch is None else count(batch, words, up=True),
            )
        case _:
            return words.say(
                "Memory: after %(count)s requests there is no room for another cache",
                count=words.say("unknown") if result.sequences is None else count(result.sequences, words),
            )
