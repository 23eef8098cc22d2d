"""The numbers behind ``budget``: does it fit, how many at once, how fast at best, what runs out first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from roofbook.errors import EstimateError
from roofbook.facts import RuntimeFact
from roofbook.theory.kv import Cells, Pages, Slots, cache_bytes, token_bytes
from roofbook.theory.limits import Limit, gpu_limit
from roofbook.theory.memory import (
    RESERVE_BYTES,
    VLLM_PEAK_BYTES,
    VLLM_SHARE,
    Budget,
    Scarcity,
    runs_out_first,
    sequences_that_fit,
)
from roofbook.theory.queueing import rate_allowed_per_s
from roofbook.theory.roofline import (
    Bound,
    Rates,
    crossover_batch,
    datasheet_rates,
    decode_ceiling,
    measured_rates,
    prefill_floor_ms,
)
from roofbook.theory.shapes import NOTHING, Machine, MacLimit, Model, Range
from roofbook.theory.weights import Weights, weights
from roofbook.units import MS_PER_S

Counted = Literal["all", "device"]
"""Which weights are counted: all that the file holds, or what the engine puts on the device."""

_CELLS: Final[dict[str, Cells]] = {
    "slots": Slots(),
    "paged": Pages(),
    "growing": Pages(block_tokens=256),  # mlx_lm, mlx_lm/models/cache.py: KVCache.step
}
_UBATCH_TOKENS: Final = 512
_KV_TYPES: Final = {"slots": ("f16", "q8_0", "q4_0"), "paged": ("f16", "fp8"), "growing": ("f16",)}


@dataclass(frozen=True)
class Question:
    """What is asked. *kv_type* None: unknown, hence a range; *reserve_bytes* None: the usual assumption."""

    model: Model
    machine: Machine
    runtime: RuntimeFact
    kv_type: str | None
    context_tokens: int
    users: int = 1
    reserve_bytes: Range | None = None
    macos: int | None = None
    mac_limits: Sequence[MacLimit] = ()

    @property
    def cells(self) -> Cells:
        return _CELLS[self.runtime.kv_layout]

    @property
    def paged(self) -> bool:
        return self.runtime.kv_layout == "paged"


@dataclass(frozen=True)
class Speed:
    """The bounds against one denominator; tokens a second."""

    rates: Rates
    alone: Range | None
    """One request, its context still empty."""
    alone_full: Range | None
    """One request with its whole context behind it."""
    together: Range | None
    """All users together, each with its whole context behind it."""
    first_token_ms: Range | None
    """The prefill of a prompt as long as the context, nothing cached."""

    @property
    def prompts_per_s(self) -> float | None:
        """The most uncached prompts of that length a second, at the faster end of the bound."""
        if self.first_token_ms is None or self.first_token_ms.low == 0:
            return None
        return rate_allowed_per_s(self.first_token_ms.low / MS_PER_S)


@dataclass(frozen=True)
class Answer:
    """What theory says to a question; None where it cannot, and *why_not* then says what is missing."""

    question: Question
    limit: Limit
    reserve_bytes: Range
    token_kv_bytes: Range
    """What one more token adds, local and recurrent layers aside."""
    request_kv_bytes: Range
    weights: Weights | None
    counted: Counted
    """Which weights the answer counts: on a card what lies on it, in one shared memory all of them."""
    budget: Budget | None
    sequences: Range | None
    by_kv_type: dict[Counted, dict[str, Range]]
    datasheet: Speed | None
    measured: Speed | None
    crossover: Bound | None
    scarcity: Scarcity | None
    why_not: EstimateError | None

    @property
    def room_bytes(self) -> Range | None:
        """What is left for caches."""
        return None if self.budget is None else self.limit.limit_bytes - self.budget.fixed_bytes

    @property
    def fits(self) -> bool | None:
        """Whether all users fit at once; None where that depends on what is not known."""
        if self.sequences is None or self.budget is None:
            return None
        if self.sequences.low >= self.question.users:
            return True
        return False if self.sequences.high < self.question.users else None


def answer(question: Question) -> Answer:
    """Return what theory says about *question*.

    Raises EstimateError where the machine's memory or the model's caches are not known: nothing can be said then.
    """
    model, cells, kv_type = question.model, question.cells, question.kv_type
    limit = _limit(question)
    reserve = question.reserve_bytes or (VLLM_PEAK_BYTES if question.paged else RESERVE_BYTES)
    token = token_bytes(model, kv_type)
    request = cache_bytes(model, question.context_tokens, kv_type, cells=cells)
    try:
        held = weights(model)
    except EstimateError as problem:
        return Answer(
            question, limit, reserve, token, request, None, "all", None, None, {}, None, None, None, None, problem
        )
    counted: Counted = "device" if _keeps_embedding_on_host(question) else "all"
    budgets: dict[Counted, Budget] = {
        name: _budget(question, limit, reserve, held, name) for name in _countable(question)
    }
    budget = budgets[counted]
    sequences = sequences_that_fit(budget, model, question.context_tokens, kv_type, cells)
    crossover, why_not = _crossover(question)
    return Answer(
        question=question,
        limit=limit,
        reserve_bytes=reserve,
        token_kv_bytes=token,
        request_kv_bytes=request,
        weights=held,
        counted=counted,
        budget=budget,
        sequences=sequences,
        by_kv_type={name: _by_kv_type(question, one) for name, one in budgets.items()},
        datasheet=_speed(question, datasheet_rates(question.machine, model.tensors.quantization), "datasheet"),
        measured=_speed(question, measured_rates(question.machine), "measured"),
        crossover=crossover,
        scarcity=runs_out_first(
            budget,
            sequences,
            tokens=question.context_tokens,
            context_limit_tokens=model.context_limit_tokens,
            crossover_batch=None if crossover is None else crossover.whole,
        ),
        why_not=why_not,
    )


def _limit(question: Question) -> Limit:
    limit = gpu_limit(question.machine, question.macos, question.mac_limits)
    return Limit(limit.limit_bytes * VLLM_SHARE, "share") if question.paged else limit


def _keeps_embedding_on_host(question: Question) -> bool:
    """llama.cpp leaves an untied embedding in host memory: on a card that is another memory, on a Mac the same one."""
    chip = question.machine.chip
    return question.runtime.kv_layout == "slots" and chip is not None and chip.memory_kind == "discrete"


def _countable(question: Question) -> tuple[Counted, ...]:
    return ("all", "device") if question.runtime.kv_layout == "slots" else ("all",)


def _budget(question: Question, limit: Limit, reserve: Range, held: Weights, counted: Counted) -> Budget:
    weighed = held.total_bytes
    if counted == "device":
        said = question.model.tensors.device_bytes
        weighed = held.device_bytes if said is None else Range.of(said)
    projector = question.model.tensors.projector_bytes
    return Budget(
        limit,
        weighed,
        kv_bytes=cache_bytes(
            question.model,
            question.context_tokens,
            question.kv_type,
            sequences=question.users,
            cells=question.cells,
        ),
        projector_bytes=NOTHING if projector is None else Range.of(projector),
        reserve_bytes=reserve,
    )


def _by_kv_type(question: Question, budget: Budget) -> dict[str, Range]:
    types = dict.fromkeys((*_KV_TYPES[question.runtime.kv_layout], *filter(None, [question.kv_type])))
    return {
        name: sequences_that_fit(budget, question.model, question.context_tokens, name, question.cells)
        for name in types
    }


def _crossover(question: Question) -> tuple[Bound | None, EstimateError | None]:
    try:
        return (
            crossover_batch(
                question.model,
                question.machine,
                context_tokens=question.context_tokens,
                kv_type=question.kv_type,
            ),
            None,
        )
    except EstimateError as problem:
        return None, problem


def _speed(question: Question, rates: Rates, which: Literal["datasheet", "measured"]) -> Speed | None:
    if rates.bandwidth_bytes_per_s is None:
        return None
    model, machine, tokens = question.model, question.machine, question.context_tokens

    def against(bound: Bound) -> Range | None:
        return bound.datasheet if which == "datasheet" else bound.measured

    def decode(behind: int, batch: int = 1) -> Range | None:
        return against(decode_ceiling(model, machine, context_tokens=behind, kv_type=question.kv_type, batch=batch))

    chunk = _UBATCH_TOKENS if question.runtime.kv_layout == "slots" else None
    try:
        floor = against(prefill_floor_ms(model, machine, tokens, chunk_tokens=chunk))
    except EstimateError:
        floor = None
    return Speed(rates, decode(0), decode(tokens), decode(tokens, question.users), floor)
