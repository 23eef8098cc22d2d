"""The answer of ``budget`` as a page of a terminal, in one language."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from roofbook.commands.answer import Answer, Counted, Speed
from roofbook.commands.model_source import Found
from roofbook.commands.table import columns
from roofbook.facts import ChipFact, MachineFact, Provenance
from roofbook.theory.shapes import Range
from roofbook.units import GB, GIB, MIB, MS_PER_S
from roofbook.words import Words

_MINUTE_S: Final = 60
_NAMES: Final = ("aliases", "names")
"""Keys that no number here follows from."""
_ACCELERATORS: Final = {"apple": "metal", "nvidia": "cuda", "amd": "rocm", "intel": "vulkan"}


def as_text(
    result: Answer, found: Found, machine: MachineFact, chip: ChipFact | None, words: Words, *, kv_given: bool
) -> str:
    """Return the whole answer: five sentences, the memory, how many by what is counted, the speeds, and the basis."""
    parts = [
        _title(result, found, machine, words),
        _answers(result, words),
        _memory(result, words),
        _by_kv_type(result, words),
        _speeds(result, words),
        _basis(result, found, machine, chip, words, kv_given=kv_given),
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
    needed, limit = _gib(result.budget.needed_bytes, words), _gib(result.limit.limit_bytes, words)
    if result.fits:
        return words.say("Yes: %(needed)s of %(limit)s GiB are taken", needed=needed, limit=limit)
    lacking = Range(max(0.0, -spare.high), max(0.0, -spare.low))
    return words.say(
        "No: %(needed)s GiB are needed and %(limit)s are there; %(lacking)s GiB are lacking",
        needed=needed,
        limit=limit,
        lacking=_gib(lacking, words),
    )


def _how_many(result: Answer, words: Words) -> str:
    count = result.sequences
    if count is None or count.high == 0:
        return words.say("Not one")
    if math.isinf(count.low):
        return words.say("As many as you like: this model's state does not grow")
    return words.say(
        "%(count)s requests of %(tokens)s tokens each, prompt and answer together",
        count=_count(count, words),
        tokens=words.number(result.question.context_tokens),
    )


def _how_fast(result: Answer, words: Words) -> str:
    speed, users = result.datasheet, result.question.users
    if speed is None or speed.alone is None or speed.alone_full is None or speed.together is None:
        return words.say("Not known: the catalogue has no bandwidth for this machine")
    alone = words.say(
        "%(empty)s tokens a second alone, %(full)s with %(tokens)s tokens behind it",
        empty=_rate(speed.alone, words),
        full=_rate(speed.alone_full, words),
        tokens=words.number(result.question.context_tokens),
    )
    if users == 1:
        return alone
    return alone + words.say(
        "; %(users)s at once: %(each)s each, %(together)s together",
        users=words.number(users),
        each=_rate(speed.together * (1 / users), words),
        together=_rate(speed.together, words),
    )


def _first_token(result: Answer, words: Words) -> str:
    speed = result.datasheet
    if speed is None or speed.first_token_ms is None or speed.prompts_per_s is None:
        return words.say("Not known: the catalogue has no arithmetic rate for this machine")
    return words.say(
        "Not before %(seconds)s s for a prompt of %(tokens)s tokens with nothing cached; at most %(rate)s such prompts "
        "a minute",
        seconds=_span(speed.first_token_ms * (1 / MS_PER_S), words),
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
            batch = None if result.crossover is None else result.crossover.datasheet
            return words.say(
                "Arithmetic: from %(batch)s requests at once on, decode waits for computing, not for memory",
                batch=words.say("unknown") if batch is None else _count(batch, words, up=True),
            )
        case _:
            return words.say(
                "Memory: after %(count)s requests there is no room for another cache",
                count=words.say("unknown") if result.sequences is None else _count(result.sequences, words),
            )


def _memory(result: Answer, words: Words) -> list[str]:
    budget = result.budget
    rows = [[words.say("the GPU may use"), f"{_gib(result.limit.limit_bytes, words)} GiB", _limit_basis(result, words)]]
    if budget is not None:
        rows.append([words.say("weights"), f"{_gib(budget.weights_bytes, words)} GiB", _weights_basis(result, words)])
        if budget.projector_bytes.high:
            rows.append([words.say("projector"), f"{_gib(budget.projector_bytes, words)} GiB", ""])
    rows.append([words.say("reserve"), f"{_gib(result.reserve_bytes, words)} GiB", _reserve_basis(result, words)])
    room = result.room_bytes
    if room is not None:
        held = Range(max(0.0, room.low), max(0.0, room.high))
        rows.append([words.say("room for caches"), f"{_gib(held, words)} GiB", ""])
    rows.append([words.say("one request"), _size(result.request_kv_bytes, words), _kv_basis(result, words)])
    return [words.say("Memory"), *columns(rows, right=[1], wrap=True)]


def _reserve_basis(result: Answer, words: Words) -> str:
    if result.question.reserve_bytes is not None:
        return words.say("as you set it")
    if result.question.paged:
        return words.say("an assumption: what its profiling run keeps back; set it by --reserve")
    return words.say("an assumption: desktop and buffers; set it by --reserve")


def _limit_basis(result: Answer, words: Words) -> str:
    macos = result.question.macos
    match result.limit.basis:
        case "reported":
            return words.say("as the system reports it")
        case "wired_limit":
            return words.say("as iogpu.wired_limit_mb sets it")
        case "observed":
            return words.say("as seen on such Macs with macOS %(macos)s", macos=macos)
        case "rule" if macos is None:
            return words.say("by the rules of macOS 15 and 26: choose one by --macos")
        case "rule":
            return words.say("by the rule of macOS %(macos)s; the engine's log has the exact figure", macos=macos)
        case "share":
            return words.say("0.92 of the memory, as vLLM takes it")
        case "memory":
            return words.say("all of it")


def _weights_basis(result: Answer, words: Words) -> str:
    held, quantization = result.weights, result.question.model.tensors.quantization
    match None if held is None else held.basis:
        case "tensors":
            basis = words.say("the file's tensors, to the byte")
        case "file":
            basis = words.say("the file's size on disk")
        case "rules":
            basis = words.say("by the rules of %(quantization)s, tensor by tensor", quantization=quantization)
        case _:
            basis = words.say("by the number of parameters")
    return f"{basis}; {_counted(result.counted, words)}"


def _counted(counted: Counted, words: Words) -> str:
    return words.say("all of them") if counted == "all" else words.say("what lies on the device")


def _kv_basis(result: Answer, words: Words) -> str:
    question = result.question
    token = words.say("%(bytes)s bytes a token", bytes=_bytes(result.token_kv_bytes, words))
    match question.runtime.kv_layout:
        case "slots":
            held = words.say("reserved whole when the server starts")
        case "paged":
            held = words.say("in pages of 16 tokens as it grows")
        case _:
            held = words.say("grows with the request")
    extra = []
    if question.model.count("local"):
        window = words.number(question.model.window_tokens)
        extra = [words.say("layers that look back %(window)s tokens besides", window=window)]
    if question.model.count("recurrent"):
        extra.append(words.say("recurrent layers' state besides"))
    return "; ".join([token, *extra, held])


def _by_kv_type(result: Answer, words: Words) -> list[str]:
    counts = result.by_kv_type
    if not counts:
        return []
    types = list(dict.fromkeys(name for row in counts.values() for name in row))
    chosen = result.question.kv_type
    header = ["", *(f"[{name}]" if name == chosen else name for name in types)]
    rows = [
        [words.say("all weights") if counted == "all" else words.say("weights on the device"),
         *(_count(row[name], words) for name in types)]
        for counted, row in counts.items()
    ]  # fmt: skip
    title = words.say("Requests at once, by what is counted and by the KV type")
    return [title, *columns([header, *rows], right=range(1, len(header)))]


def _speeds(result: Answer, words: Words) -> list[str]:
    rows = [
        _speed_row(words.say("by the datasheet"), result.datasheet, result, words),
        _speed_row(words.say("by what was measured"), result.measured, result, words),
    ]
    kept = [row for row in rows if row]
    if not kept or result.scarcity == "weights":
        return []
    tokens, users = words.number(result.question.context_tokens), result.question.users
    header = ["", "GB/s", "TFLOPS", words.say("alone"), words.say("at %(tokens)s", tokens=tokens)]
    header += [words.say("%(users)s together", users=words.number(users))] if users > 1 else []
    header += [words.say("first token")]
    title = words.say("Speed at best, in tokens a second")
    return [title, *columns([header, *kept], right=range(1, len(header)))]


def _speed_row(label: str, speed: Speed | None, result: Answer, words: Words) -> list[str]:
    if speed is None or speed.rates.bandwidth_bytes_per_s is None:
        return []
    row = [
        label,
        _span(speed.rates.bandwidth_bytes_per_s * (1 / GB), words),
        "–" if speed.rates.flops_per_s is None else _span(speed.rates.flops_per_s * 1e-12, words),
        _rate(speed.alone, words),
        _rate(speed.alone_full, words),
    ]
    row += [_rate(speed.together, words)] if result.question.users > 1 else []
    floor = speed.first_token_ms
    return [*row, "–" if floor is None else f"{_span(floor * (1 / MS_PER_S), words)} s"]


def _basis(
    result: Answer, found: Found, machine: MachineFact, chip: ChipFact | None, words: Words, *, kv_given: bool
) -> list[str]:
    pairs = list(_reasons(result, found, machine, chip, words, kv_given=kv_given))
    return [words.say("What this rests on"), *columns(pairs, wrap=True)] if pairs else []


def _reasons(
    result: Answer, found: Found, machine: MachineFact, chip: ChipFact | None, words: Words, *, kv_given: bool
) -> Iterator[tuple[str, str]]:
    if found.reading is not None:
        yield words.say("model"), found.reading.source
        if found.reading.missing:
            yield ("", words.say("it does not say: %(fields)s", fields=", ".join(found.reading.missing)))
    elif found.provenance is not None:
        yield from _sourced(words.say("model"), found.provenance, words)
    if found.quantization_assumed:
        yield words.say("quantization"), words.say("assumed; choose another by --quantization")
    if not kv_given:
        yield words.say("KV type"), words.say("the runtimes' default; what yours was started with decides")
    if chip is not None:
        yield from _sourced(words.say("chip"), chip.provenance, words)
        if chip.chip.measured is not None and result.measured is not None:
            yield words.say("measured"), chip.chip.measured.source
    yield from _runs_here(result, machine, words)


def _sourced(label: str, provenance: Provenance, words: Words) -> Iterator[tuple[str, str]]:
    yield label, provenance.source
    yield from (("", f"{key}: {source}") for key, source in provenance.sources.items())
    unchecked = [key for key in provenance.unverified if key not in _NAMES]
    if unchecked:
        yield "", words.say("nobody checked: %(keys)s", keys=", ".join(unchecked))


def _runs_here(result: Answer, machine: MachineFact, words: Words) -> Iterator[tuple[str, str]]:
    """Say how many requests the runtime serves unasked, and where it runs on this machine not at all or by a detour."""
    runtime, chip = result.question.runtime, machine.machine.chip
    if runtime.default_slots is not None:
        yield (
            runtime.name,
            words.say_n(
                "serves %(n)d request at once unless told otherwise",
                "serves %(n)d requests at once unless told otherwise",
                runtime.default_slots,
            ),
        )
    accelerator = "cpu" if chip is None or chip.memory_kind == "cpu" else _ACCELERATORS.get(chip.vendor or "", "cpu")
    seen = runtime.seen
    match runtime.runs.get(accelerator):
        case "none":
            how = words.say("does not run on %(accelerator)s (as of %(seen)s)", accelerator=accelerator, seen=seen)
        case "plugin":
            how = words.say("runs on %(accelerator)s by a plugin (as of %(seen)s)", accelerator=accelerator, seen=seen)
        case "source":
            how = words.say(
                "runs on %(accelerator)s only when built from source (as of %(seen)s)",
                accelerator=accelerator,
                seen=seen,
            )
        case _:
            return
    yield runtime.name, how


def _span(value: Range, words: Words, digits: int = 3) -> str:
    return _ends([words.significant(end, digits) if math.isfinite(end) else "∞" for end in (value.low, value.high)])


def _rate(value: Range | None, words: Words) -> str:
    return words.say("unknown") if value is None else _span(value, words)


def _gib(value: Range, words: Words) -> str:
    return _ends([words.number(end / GIB, 2) for end in (value.low, value.high)])


def _size(value: Range, words: Words) -> str:
    """Return a size in MiB, from a GiB on in GiB."""
    if value.high >= GIB:
        return f"{_gib(value, words)} GiB"
    return f"{_ends([words.number(end / MIB, 1) for end in (value.low, value.high)])} MiB"


def _bytes(value: Range, words: Words) -> str:
    return _ends([words.number(end) for end in (value.low, value.high)])


def _count(value: Range, words: Words, *, up: bool = False) -> str:
    """Return a number of requests: whole ones that fit, or with *up* the first that reaches a bound."""
    whole = math.ceil if up else math.floor
    return _ends([words.number(whole(end)) if math.isfinite(end) else "∞" for end in (value.low, value.high)])


def _ends(ends: Sequence[str]) -> str:
    return ends[0] if ends[0] == ends[1] else "–".join(ends)
