"""The question that the calculators open with, and its answers for a reader without scripts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from roofbook.analysis.prefill import prompt_budget
from roofbook.errors import EstimateError
from roofbook.facts import Facts
from roofbook.pages.calculator_data import GROWING, UNKNOWN, Choice, Choices, Preset
from roofbook.theory.kv import Cells, Pages, Slots, cache_bytes
from roofbook.theory.limits import gpu_limit
from roofbook.theory.memory import RESERVE_BYTES, VLLM_PEAK_BYTES, VLLM_SHARE, Budget, sequences_that_fit
from roofbook.theory.prompts import longest_prompt
from roofbook.theory.roofline import Bound, decode_ceiling, prefill_floor_ms
from roofbook.theory.shapes import Machine, MacLimit, Model, Range
from roofbook.theory.weights import Weights, weights
from roofbook.units import GIB, MS_PER_S
from roofbook.words import Words

CONTEXT_TOKENS: Final = 4096
TARGET_MS: Final = 2_000
_MODEL: Final = "qwen2.5-7b"
_QUANTIZATION: Final = "Q4_K_M"
_MACHINE: Final = "mac-mini-m4-32gb"
_SERVER: Final = "llama.cpp"
_KV_TYPE: Final = "f16"


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


def answers(case: Case, facts: Facts, words: Words) -> dict[str, Any]:
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


def _ends(value: Range, words: Words) -> str:
    ends = ["∞" if math.isinf(end) else words.number(math.floor(end)) for end in (value.low, value.high)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def _gib(value: Range, words: Words) -> str:
    ends = [words.number(end / GIB, 2) for end in (value.low, value.high)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def _span(value: Range, words: Words) -> str:
    ends = ["∞" if math.isinf(end) else words.significant(end) for end in (value.low, value.high)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)
