"""From usable memory to requests at once, step by step in one unit; and what so many requests would get."""

import math
from typing import Final

from roofbook.analysis.memory import KV_TYPES, MemoryTable
from roofbook.charts.prefill import time_text
from roofbook.errors import EstimateError
from roofbook.pages.concepts.grid import Grid, grid, span
from roofbook.pages.study import REQUEST_TOKENS, Study
from roofbook.theory.limits import Limit
from roofbook.theory.roofline import decode_ceiling
from roofbook.theory.shapes import Range
from roofbook.units import GIB, KIB, MS_PER_S
from roofbook.words import Words

CONTEXTS_TOKENS: Final = (4_096, 8_192, 32_768)
"""What a request may hold: a chat, a long chat, a document."""

S_PER_MIN: Final = 60

_FALLBACK_KV: Final = "f16"
"""What runtimes keep unless they are told otherwise; taken where the type is not known."""


def kv_type_of(study: Study) -> str:
    """Return the KV type that the page speaks of: the subject's, else the one that runtimes start with."""
    return study.view.subject.kv_cache_type or _FALLBACK_KV


def steps(study: Study, tables: dict[int | None, MemoryTable], kv_type: str, words: Words) -> Grid:
    """Return the way from the machine's memory to whole requests, in GiB, one column a limit."""
    machine = study.view.equipment.machine
    memory = None if machine is None or machine.memory_bytes is None else gib(Range.of(machine.memory_bytes), words)
    heads = [
        (words.say("Step"), False),
        *((_system(version, words), True) for version in tables),
        (words.say("Basis"), False),
    ]
    whole = list(tables.values())
    model = study.view.equipment.model
    of_file = model is not None and model.tensors.file_bytes is not None
    lines = [table.line(kv_type) for table in whole]
    rows: list[tuple[str | None, ...]] = [
        (
            words.say("Memory of the machine"),
            *(memory for _ in whole),
            words.say("as it is sold")
            if study.view.equipment.chip is not None
            else words.say("as the host reports it"),
        ),
        (
            words.say("A model may use") if study.view.equipment.chip is None else words.say("The GPU may use"),
            *(gib(table.limit.limit_bytes, words) for table in whole),
            "; ".join(dict.fromkeys(_basis(table.limit, words) for table in whole)),
        ),
        (
            words.say("− weights"),
            *(gib(table.weights_bytes, words) for table in whole),
            words.say("the file's size on disk") if of_file else words.say("by the quantization's rules"),
        ),
        (
            words.say("− reserve"),
            *(gib(table.reserve_bytes, words) for table in whole),
            words.say("an assumption: activations and CUDA graphs")
            if study.paged
            else words.say("an assumption: the desktop, the engine's buffers"),
        ),
        (words.say("= room for caches"), *(gib(table.room_bytes, words) for table in whole), ""),
        (
            words.say("÷ one token"),
            *(None if line is None else f"{span(line.token_bytes * (1 / KIB), words, 4)} KiB" for line in lines),
            words.say("keys and values of all layers, %(type)s", type=kv_type),
        ),
        (
            words.say("= tokens of all requests"),
            *(None if line is None else _thousands(line.tokens, words) for line in lines),
            "",
        ),
        (
            words.say("÷ %(tokens)s = requests at once", tokens=words.number(REQUEST_TOKENS)),
            *(None if line is None else _finite(line.sequences, words) for line in lines),
            words.say("whole ones, prompt and answer together"),
        ),
        (
            words.say("… with the weights on the device alone"),
            *(None if line is None else _finite(line.sequences_by_device, words) for line in lines),
            words.say("the input embedding stays in host memory"),
        ),
    ]
    return grid(heads, rows)


def by_type(study: Study, words: Words) -> Grid:
    """Return requests at once by KV type and by what one of them may hold, over all limits."""
    own = study.view.subject.kv_cache_type
    heads = [
        (words.say("KV cache type"), False),
        (words.say("One token"), True),
        *((words.say("%(tokens)s tokens", tokens=words.number(tokens)), True) for tokens in CONTEXTS_TOKENS),
    ]
    tables = list(study.memory().values())
    types = [*KV_TYPES, *([] if own is None or own in KV_TYPES else [own])]
    rows: list[tuple[str | None, ...]] = []
    for kv_type in types:
        line = tables[0].line(kv_type)
        each = None if line is None else f"{span(line.token_bytes * (1 / KIB), words, 4)} KiB"
        name = words.say("%(type)s (this subject)", type=kv_type) if kv_type == own else kv_type
        fits = [study.requests(kv_type, tokens) for tokens in CONTEXTS_TOKENS]
        rows.append((name, each, *(None if one is None else span_of(one, words) for one in fits)))
    return grid(heads, rows)


def rates(study: Study, kv_type: str, words: Words) -> Grid | None:
    """Return what so many requests at once would get; None without a law or the machine's rates."""
    room = study.requests(kv_type)
    if room is None or room.high < 1:
        return None
    counts = [1.0]
    if study.crossover is not None and 2 <= math.ceil(study.crossover.high) < room.high:
        counts.append(float(math.ceil(study.crossover.high)))
    if room.low > counts[-1]:
        counts.append(room.low)
    heads = [
        (words.say("Requests at once"), True),
        (words.say("Decode, each"), True),
        (words.say("All together"), True),
        (words.say("Prompts a minute"), True),
        (words.say("Each is inside for"), True),
    ]
    rows: list[tuple[str | None, ...]] = []
    for count in counts:
        found = study.served(count)
        together = _together(study, count, kv_type)
        each = None if together is None else together * (1 / count)
        rows.append(
            (
                words.number(count),
                None if each is None else words.say("%(rate)s tok/s", rate=span(each, words, 2)),
                None if together is None else words.say("%(rate)s tok/s", rate=span(together, words, 2)),
                None if found is None else words.significant(found.rate_per_s * S_PER_MIN, 2),
                None if found is None else _duration(found.residence_s, words),
            )
        )
    return grid(heads, rows) if any(cell is not None for row in rows for cell in row[1:]) else None


def _together(study: Study, count: float, kv_type: str) -> Range | None:
    equipment = study.view.equipment
    if equipment.model is None or equipment.machine is None:
        return None
    try:
        bound = decode_ceiling(
            equipment.model,
            equipment.machine,
            study.view.subject.quantization,
            context_tokens=REQUEST_TOKENS,
            kv_type=kv_type,
            batch=int(count),
        )
    except EstimateError:
        return None
    return bound.whole


def _system(version: int | None, words: Words) -> str:
    if version is None:
        return words.say("This machine")
    if version <= 15:
        return words.say("macOS 15 and older")
    return f"macOS {version}"


def _basis(limit: Limit, words: Words) -> str:
    match limit.basis:
        case "reported":
            return words.say("as the system reported it")
        case "wired_limit":
            return words.say("as it was set (iogpu.wired_limit_mb)")
        case "observed":
            return words.say("seen on such Macs")
        case "rule":
            return words.say("the system's rule")
        case "share":
            return words.say("0.92 of the memory, as vLLM takes it")
        case "memory":
            return words.say("all of it")


def _thousands(value: Range, words: Words) -> str:
    """Return tokens rounded to thousands: more digits would pretend to a precision that the reserve takes away."""
    low, high = (words.number(1000 * math.floor(end / 1000)) for end in (value.low, value.high))
    return low if low == high else words.say("%(low)s to %(high)s", low=low, high=high)


def _finite(value: Range, words: Words) -> str | None:
    return span_of(value, words) if math.isfinite(value.high) else None


def rounded_up(value: Range, words: Words) -> str:
    return span_of(Range(float(math.ceil(value.low)), float(math.ceil(value.high))), words)


def _duration(seconds: float, words: Words) -> str:
    if seconds < 2 * S_PER_MIN:
        return time_text(words, seconds * MS_PER_S)
    return words.say("%(minutes)s min", minutes=words.significant(seconds / S_PER_MIN, 2))


def gib(value: Range, words: Words) -> str:
    return f"{span(value * (1 / GIB), words, 4)} GiB"


def span_of(value: Range, words: Words) -> str:
    """Return a range of whole things, as prose writes it."""
    low, high = words.number(value.low), words.number(value.high)
    return low if low == high else words.say("%(low)s to %(high)s", low=low, high=high)
