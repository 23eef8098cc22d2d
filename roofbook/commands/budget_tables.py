"""The tables of ``budget``: the memory, how many fit by what is counted, and the speeds, each with its basis."""

from roofbook.commands.answer import Answer, Counted, Speed
from roofbook.commands.figures import count, gib, rate, size, span, whole
from roofbook.commands.table import columns
from roofbook.theory.shapes import Range
from roofbook.units import GB, MS_PER_S, TFLOP
from roofbook.words import Words


def memory(result: Answer, words: Words) -> list[str]:
    budget = result.budget
    rows = [[words.say("the GPU may use"), f"{gib(result.limit.limit_bytes, words)} GiB", _limit_basis(result, words)]]
    if budget is not None:
        rows.append([words.say("weights"), f"{gib(budget.weights_bytes, words)} GiB", _weights_basis(result, words)])
        if budget.projector_bytes.high:
            rows.append([words.say("projector"), f"{gib(budget.projector_bytes, words)} GiB", ""])
    rows.append([words.say("reserve"), f"{gib(result.reserve_bytes, words)} GiB", _reserve_basis(result, words)])
    room = result.room_bytes
    if room is not None:
        held = Range(max(0.0, room.low), max(0.0, room.high))
        rows.append([words.say("room for caches"), f"{gib(held, words)} GiB", ""])
    rows.append([words.say("one request"), size(result.request_kv_bytes, words), _kv_basis(result, words)])
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
    token = words.say("%(bytes)s bytes a token", bytes=whole(result.token_kv_bytes, words))
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


def by_kv_type(result: Answer, words: Words) -> list[str]:
    counts = result.by_kv_type
    if not counts:
        return []
    types = list(dict.fromkeys(name for row in counts.values() for name in row))
    chosen = result.question.kv_type
    header = ["", *(f"[{name}]" if name == chosen else name for name in types)]
    rows = [
        [words.say("all weights") if counted == "all" else words.say("weights on the device"),
         *(count(row[name], words) for name in types)]
        for counted, row in counts.items()
    ]  # fmt: skip
    title = words.say("Requests at once, by what is counted and by the KV type")
    return [title, *columns([header, *rows], right=range(1, len(header)))]


def speeds(result: Answer, words: Words) -> list[str]:
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
        span(speed.rates.bandwidth_bytes_per_s * (1 / GB), words),
        "–" if speed.rates.flops_per_s is None else span(speed.rates.flops_per_s * (1 / TFLOP), words),
        rate(speed.alone, words),
        rate(speed.alone_full, words),
    ]
    row += [rate(speed.together, words)] if result.question.users > 1 else []
    floor = speed.first_token_ms
    return [*row, "–" if floor is None else f"{span(floor * (1 / MS_PER_S), words)} s"]
