"""The calculators: one page that computes in the reader's browser, with the answers to its first questions for others.

The browser combines what ``calculator_data`` hands over; its sentences come with the page, so it speaks one language.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from roofbook.analysis.prefill import prompt_budget
from roofbook.errors import EstimateError
from roofbook.facts import Facts
from roofbook.pages.calculator_data import GROWING, UNKNOWN, Choice, Choices, Preset, calculator_data, choices
from roofbook.pages.press import Press
from roofbook.pages.prose import Head, Written
from roofbook.pages.subjects import SubjectView
from roofbook.theory.kv import Cells, Pages, Slots, cache_bytes
from roofbook.theory.limits import gpu_limit
from roofbook.theory.memory import RESERVE_BYTES, VLLM_PEAK_BYTES, VLLM_SHARE, Budget, sequences_that_fit
from roofbook.theory.prompts import longest_prompt
from roofbook.theory.roofline import Bound, decode_ceiling, prefill_floor_ms
from roofbook.theory.shapes import Machine, MacLimit, Model, Range
from roofbook.theory.weights import Weights, weights
from roofbook.units import GIB, MS_PER_S
from roofbook.words import Words, mark

URI: Final = "calculator.md"
_ORDER: Final = 45
"""Behind the page on memory."""

CONTEXT_TOKENS: Final = 4096
TARGET_MS: Final = 2_000
_MODEL: Final = "qwen2.5-7b"
_QUANTIZATION: Final = "Q4_K_M"
_MACHINE: Final = "mac-mini-m4-32gb"
_SERVER: Final = "llama.cpp"
_KV_TYPE: Final = "f16"

BLOCKS: Final = ("setup", "memory", "prompt", "ceiling")
"""The parts of the page that a script brings to life; each has its place in the text."""

LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "context": (1, 10_000_000), "users": (1, 100_000), "reserve": (0, 1_000), "target": (0.05, 600),
    "cached": (0, 99), "prompt": (1, 1_000_000), "batch": (1, 10_000),
}  # fmt: skip
"""What each field takes: far beyond any server, and small enough for every count to stay exact."""

_PLACE: Final = re.compile(r"%\((\w+)\)s")

SENTENCES: Final[Mapping[str, str]] = {
    "unknown": mark("unknown"),
    "own": mark("Measured here"),
    "machines": mark("Whole machines"),
    "cards": mark("Graphics cards"),
    "models": mark("Catalogue"),
    "chosen": mark("your own choice"),
    "problem_whole": mark("A whole number from %(low)s to %(high)s, please."),
    "problem_number": mark("A number from %(low)s to %(high)s, please."),
    "problem_link": mark("The address asks for '%(value)s', which is not among these."),
    "mend": mark("Mend the marked field, and the answer comes back."),
    # memory
    "fits_yes": mark("Yes: %(needed)s of %(limit)s GiB are taken"),
    "fits_perhaps": mark("Perhaps: that depends on what is a range below"),
    "fits_no": mark("No: %(needed)s GiB are needed and %(limit)s are there; %(lacking)s GiB are lacking"),
    "fits_unknown": mark("Unknown: the weights of this model cannot be estimated"),
    "limit_unknown": mark("Unknown: nobody said how much memory this machine has"),
    "at_once": mark("%(count)s requests of %(tokens)s tokens each, prompt and answer together"),
    "at_once_none": mark("Not one"),
    "at_once_endless": mark("As many as you like: this model's state does not grow"),
    "ask_at_once": mark("How many at once?"),
    "ask_first": mark("What runs out first?"),
    "first_context": mark("The model's context: %(tokens)s tokens at most"),
    "first_weights": mark("Memory, before the first request: weights and reserve leave no room"),
    "first_arithmetic": mark(
        "Arithmetic: from %(batch)s requests at once on, decode waits for computing, not for memory"
    ),
    "first_memory": mark("Memory: after %(count)s requests there is no room for another cache"),
    "item": mark("Item"),
    "size": mark("Size"),
    "limit": mark("the GPU may use"),
    "weights": mark("weights"),
    "projector": mark("projector"),
    "caches": mark("caches of %(users)s requests"),
    "caches_bar": mark("caches"),
    "caches_one": mark("cache of the one request"),
    "reserve": mark("reserve"),
    "left": mark("left over"),
    "lacking": mark("lacking"),
    "basis_reported": mark("as the system reports it"),
    "basis_wired_limit": mark("as iogpu.wired_limit_mb sets it"),
    "basis_observed": mark("as seen on such Macs with macOS %(macos)s"),
    "basis_rule": mark("by the rule of macOS %(macos)s; the engine's log has the exact figure"),
    "basis_rules": mark("by the rules of macOS 15 and 26: choose one above"),
    "basis_share": mark("0.92 of the memory, as vLLM takes it"),
    "basis_memory": mark("all of it"),
    "basis_tensors": mark("the file's tensors, to the byte"),
    "basis_file": mark("the file's size on disk"),
    "basis_by_rules": mark("by the rules of %(quantization)s, tensor by tensor"),
    "basis_params": mark("by the number of parameters"),
    "counted_all": mark("all of them"),
    "counted_device": mark("what lies on the device"),
    "token_bytes": mark("%(bytes)s bytes a token"),
    "held_slots": mark("reserved whole when the server starts"),
    "held_paged": mark("in pages of 16 tokens as it grows"),
    "held_growing": mark("grows with the request"),
    "reserve_set": mark("as you set it"),
    "reserve_paged": mark("an assumption: what its profiling run keeps back"),
    "reserve_assumed": mark("an assumption: desktop and buffers"),
    "each": mark("%(tokens)s tokens a request"),
    "command": mark("The same in a terminal:"),
    "by_kv": mark("Requests at once, by KV type"),
    "bar": mark("What is taken by what, against what the GPU may use"),
    # prompts
    "law_tokens": mark("%(tokens)s tokens, by what was measured here"),
    "law_band": mark("95 %% band %(low)s to %(high)s"),
    "law_endless": mark("no bound"),
    "law_none": mark("At most %(tokens)s tokens, by arithmetic; nobody has measured this combination here"),
    "law_nothing": mark("Unknown: nobody has measured this combination, nor is its arithmetic known"),
    "law_not_one": mark("Not one token, by what was measured here: %(ms)s ms of the wait are no prefill"),
    "law_beyond": mark("The law sets no bound within its reach."),
    "note_overhead": mark("%(ms)s ms of the wait are no prefill (median of the rows) and come off first."),
    "note_longest": mark("That is beyond the longest measured prompt, %(tokens)s tokens: the law is extrapolated."),
    "note_context": mark("The model's context ends at %(tokens)s tokens."),
    "note_misfit": mark("This model does not fit this machine: its weights and the reserve take more than there is."),
    "note_kv": mark("The law was measured with KV cache %(kv)s."),
    "basis": mark("By what"),
    "tokens": mark("Prompt tokens"),
    "fresh": mark("Of them not cached"),
    "row_law": mark("measured here"),
    "row_measured": mark("arithmetic, at rates measured without a model"),
    "row_datasheet": mark("arithmetic, at the datasheet's rates"),
    "at_most": mark("at most %(tokens)s"),
    # ceilings
    "alone": mark("%(empty)s tokens a second alone, %(full)s with %(tokens)s tokens behind it"),
    "together": mark("; %(users)s at once: %(each)s each, %(together)s together"),
    "no_bandwidth": mark("Not known: the catalogue has no bandwidth for this machine"),
    "ask_token": mark("First token?"),
    "first_token": mark(
        "Not before %(seconds)s s for a prompt of %(tokens)s tokens with nothing cached; at most %(rate)s such prompts "
        "a minute"
    ),
    "no_rate": mark("Not known: the catalogue has no arithmetic rate for this machine"),
    "ask_bound": mark("What bounds decode?"),
    "bound_memory": mark("Memory: reading weights and caches, whatever the number of requests"),
    "bound_turns": mark("Memory, up to %(batch)s requests at once; from there on arithmetic"),
    "bound_arithmetic": mark("Arithmetic: from %(batch)s requests on, more of them gain nothing"),
    "ask_step": mark("What does one step take?"),
    "step": mark("It reads %(read)s GB (weights %(weights)s, caches %(caches)s) and computes %(flops)s GFLOP"),
    "quantity": mark("At best"),
    "row_bandwidth": mark("memory (GB/s)"),
    "row_flops": mark("arithmetic (TFLOPS)"),
    "by_datasheet": mark("by the datasheet"),
    "by_measured": mark("by what was measured"),
    "col_alone": mark("alone (tok/s)"),
    "col_full": mark("at %(tokens)s tokens (tok/s)"),
    "col_together": mark("%(users)s together (tok/s)"),
    "col_first": mark("first token (s)"),
}
"""Everything that the script says, with its places."""


@dataclass(frozen=True)
class Case:
    """The question that the page opens with."""

    model: Choice
    quantization: str
    shape: Model
    machine_choice: Choice
    machine: Machine
    server: str
    kv_type: str
    preset: Preset | None

    @property
    def state(self) -> dict[str, str]:
        """The fields of the page, as its address writes them."""
        return {
            "subject": "" if self.preset is None else self.preset.slug,
            "model": self.model.id,
            "weights": self.quantization,
            "machine": self.machine_choice.id,
            "server": self.server,
            "kv": self.kv_type,
            "macos": "" if self.preset is None or self.preset.macos is None else str(self.preset.macos),
            "context": str(CONTEXT_TOKENS),
            "users": "1",
            "reserve": "",
            "target": str(TARGET_MS // MS_PER_S),
            "cached": "0",
            "prompt": str(CONTEXT_TOKENS),
            "batch": "1",
        }


def calculator(facts: Facts, views: Sequence[SubjectView], words: Words, press: Press) -> list[Written]:
    """Return the page of the calculators; none where the catalogue has no model or no machine to compute with."""
    told = choices(facts, views, words)
    case = first_case(told, facts)
    if case is None:
        return []
    title = words.say("Calculators")
    context: dict[str, Any] = {
        "title": title,
        "drawn": [],
        "answers": _answers(case, facts, words),
        "data": {
            "words": {name: _with_places(sentence, words) for name, sentence in SENTENCES.items()},
            "start": case.state,
            "limits": LIMITS,
            **calculator_data(told, facts),
        },
        "limits": LIMITS,
        "start": case.state,
        "has_subjects": bool(told.subjects),
    }
    page = press.page(URI, "pages/calculator.md.j2", context, title=title, label=title)
    blocks = {
        f"calculator-{name}": _one_block(press.part(URI, "parts/calculator.html.j2", {**context, "block": name}))
        for name in BLOCKS
    }
    return [Written(replace(page, figures=blocks), Head(title, title, _ORDER, "basics"))]


def first_case(told: Choices, facts: Facts) -> Case | None:
    """Return the newest subject that can be computed with, else a usual model on a usual machine."""
    models = {choice.id: (choice, offered) for choice, offered in told.models.items()}
    machines = {choice.id: (choice, machine) for choice, machine in told.machines.items()}
    preset = next(iter(told.subjects), None)
    if not models or not machines or not facts.runtimes:
        return None
    wanted_model, wanted_machine = (preset.model, preset.machine) if preset is not None else (_MODEL, _MACHINE)
    model, offered = models.get(wanted_model) or next(iter(models.values()))
    machine_choice, machine = machines.get(wanted_machine) or next(iter(machines.values()))
    wanted = _QUANTIZATION if preset is None else preset.quantization
    quantization = wanted if wanted in offered else next(iter(offered))
    server = preset.server if preset is not None and preset.server is not None else _SERVER
    return Case(
        model=model,
        quantization=quantization,
        shape=offered[quantization],
        machine_choice=machine_choice,
        machine=machine,
        server=server if server in facts.runtimes else next(iter(facts.runtimes)),
        kv_type=_KV_TYPE if preset is None else preset.kv_type,
        preset=preset,
    )


def _answers(case: Case, facts: Facts, words: Words) -> dict[str, Any]:
    """Return the answers for a reader without scripts: what was asked, and each answer with its name."""
    layout = facts.runtimes[case.server].kv_layout
    return {
        "asked": " · ".join(
            [
                f"{case.model.name} {case.quantization}",
                case.machine_choice.name,
                facts.runtimes[case.server].name,
                words.say("KV cache %(kv)s", kv=words.say("unknown") if case.kv_type == UNKNOWN else case.kv_type),
                words.say("%(tokens)s tokens a request", tokens=words.number(CONTEXT_TOKENS)),
            ]
        ),
        "memory": _memory_rows(case, layout, facts.mac_limits, words),
        "prompt": _prompt_rows(case, layout, words),
        "ceiling": _ceiling_rows(case, layout, words),
    }


def _memory_rows(case: Case, layout: str, mac_limits: Sequence[MacLimit], words: Words) -> list[tuple[str, str | None]]:
    try:
        budget, request = _budget(case, layout, mac_limits)
        kv_type = None if case.kv_type == UNKNOWN else case.kv_type
        fitting = sequences_that_fit(budget, case.shape, CONTEXT_TOKENS, kv_type, _cells(layout))
    except EstimateError:
        return [(words.say("How many at once?"), None)]
    return [
        (words.say("How many at once?"), _ends(fitting, words)),
        (words.say("The GPU may use (GiB)"), _gib(budget.limit.limit_bytes, words)),
        (words.say("Weights (GiB)"), _gib(budget.weights_bytes, words)),
        (words.say("Reserve (GiB)"), _gib(budget.reserve_bytes, words)),
        (words.say("Cache of one request (GiB)"), _gib(request, words)),
    ]


def _budget(case: Case, layout: str, mac_limits: Sequence[MacLimit]) -> tuple[Budget, Range]:
    """Return the memory of the case and the cache of one of its requests; raises EstimateError."""
    held, paged = weights(case.shape), layout == "paged"
    macos = None if case.preset is None else case.preset.macos
    limit = gpu_limit(case.machine, macos, mac_limits)
    projector = case.shape.tensors.projector_bytes or 0
    budget = Budget(
        replace(limit, limit_bytes=limit.limit_bytes * VLLM_SHARE, basis="share") if paged else limit,
        _counted(case, layout, held),
        projector_bytes=Range.of(projector),
        reserve_bytes=VLLM_PEAK_BYTES if paged else RESERVE_BYTES,
    )
    kv_type = None if case.kv_type == UNKNOWN else case.kv_type
    return budget, cache_bytes(case.shape, CONTEXT_TOKENS, kv_type, cells=_cells(layout))


def _counted(case: Case, layout: str, held: Weights) -> Range:
    """Return the weights that count: llama.cpp leaves an untied embedding in host memory, another one than a card's."""
    chip, said = case.machine.chip, case.shape.tensors.device_bytes
    if layout != "slots" or chip is None or chip.memory_kind != "discrete":
        return held.total_bytes
    return held.device_bytes if said is None else Range.of(said)


def _prompt_rows(case: Case, layout: str, words: Words) -> list[tuple[str, str | None]]:
    target = words.number(TARGET_MS / MS_PER_S)
    measured = None
    curve = None if case.preset is None else case.preset.curve
    if curve is not None and curve.law is not None and curve.longest is not None:
        found = prompt_budget(curve.law, TARGET_MS, curve.overhead_ms or 0.0, curve.longest.tokens)
        measured = None if found.mid is None else words.number(math.floor(found.mid))
    try:
        bound = longest_prompt(case.shape, case.machine, TARGET_MS, chunk_tokens=_chunk(layout))
    except EstimateError:
        bound = Bound(None, None)
    return [
        (words.say("Prompt tokens until a first token after %(seconds)s s, measured", seconds=target), measured),
        (words.say("The same by arithmetic, at the datasheet's rates"),
         None if bound.datasheet is None else _ends(bound.datasheet, words)),
    ]  # fmt: skip


def _ceiling_rows(case: Case, layout: str, words: Words) -> list[tuple[str, str | None]]:
    kv_type = None if case.kv_type == UNKNOWN else case.kv_type
    try:
        rate = decode_ceiling(case.shape, case.machine, context_tokens=CONTEXT_TOKENS, kv_type=kv_type).datasheet
        floor = prefill_floor_ms(case.shape, case.machine, CONTEXT_TOKENS, chunk_tokens=_chunk(layout)).datasheet
    except EstimateError:
        rate = floor = None
    tokens = words.number(CONTEXT_TOKENS)
    return [
        (words.say("Decode at most (tok/s), with %(tokens)s tokens behind it", tokens=tokens),
         None if rate is None else _span(rate, words)),
        (words.say("First token at the earliest (s), after %(tokens)s tokens", tokens=tokens),
         None if floor is None else _span(floor * (1 / MS_PER_S), words)),
    ]  # fmt: skip


def _cells(layout: str) -> Cells:
    return {"slots": Slots(), "growing": GROWING}.get(layout, Pages())


def _chunk(layout: str) -> int | None:
    return Slots().ubatch_tokens if layout == "slots" else None


def _with_places(sentence: str, words: Words) -> str:
    """Return the sentence in its language, its places left for the script."""
    places = {name: f"%({name})s" for name in _PLACE.findall(sentence)}
    return words.say(sentence, **places)


def _one_block(html: str) -> str:
    """Return the HTML without blank lines: to Markdown one of them ends a block of HTML."""
    return re.sub(r"\n\s*\n", "\n", html).strip()


def _ends(value: Range, words: Words) -> str:
    ends = ["∞" if math.isinf(end) else words.number(math.floor(end)) for end in (value.low, value.high)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def _gib(value: Range, words: Words) -> str:
    ends = [words.number(end / GIB, 2) for end in (value.low, value.high)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def _span(value: Range, words: Words) -> str:
    ends = ["∞" if math.isinf(end) else words.significant(end) for end in (value.low, value.high)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)
