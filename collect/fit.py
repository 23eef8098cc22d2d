"""Will the model and the caches of a plan fit the machine: theory's budget against the memory that the machine has."""

from dataclasses import dataclass
from typing import Final

from collect.host.facts import HostFacts
from collect.plan import Plan
from collect.reach import Reached
from roofbook.errors import EstimateError, UsageError
from roofbook.facts import Facts
from roofbook.theory.kv import Cells, Pages, Slots, cache_bytes
from roofbook.theory.limits import Limit, gpu_limit
from roofbook.theory.memory import RESERVE_BYTES
from roofbook.theory.shapes import Machine, Model, Range
from roofbook.theory.weights import weights

_PAGED: Final = ("vllm", "sglang", "tensorrt-llm", "triton")
_GROWING: Final = ("mlx_lm",)


@dataclass(frozen=True)
class Fit:
    """What is needed beside what there is, in bytes."""

    weights_bytes: Range
    cache_bytes: Range
    limit: Limit

    @property
    def needed_bytes(self) -> Range:
        """Weights, caches, and what the machine holds besides."""
        return self.weights_bytes + self.cache_bytes + RESERVE_BYTES

    @property
    def fits(self) -> bool | None:
        """None where that hangs on what nobody knows to the byte."""
        if self.needed_bytes.high <= self.limit.limit_bytes.low:
            return True
        return False if self.needed_bytes.low > self.limit.limit_bytes.high else None


def model_of(reached: Reached, facts: Facts) -> Model | None:
    """Return the model as the server describes it, else as the catalogue knows it; None where neither does."""
    columns = reached.facts.columns()
    found = facts.find([columns["model"]] if columns["model"] else [], [d for d in [columns["model_digest"]] if d])
    if reached.facts.reading is not None and reached.facts.reading.model.layers:
        return reached.facts.reading.model
    if found is None:
        return None
    quantization = columns["quantization"] or (found.file.quantization if found.file is not None else None)
    return found.model.quantized(quantization) if quantization else found.model.shape


def machine_of(plan: Plan, host: HostFacts | None, facts: Facts) -> Machine | None:
    """Return the server's machine: *host* where its facts are known, else what the plan names; None: nobody said."""
    if host is not None:
        return host.machine(facts)
    try:
        return None if plan.machine == "this" else facts.machine(plan.machine).machine
    except UsageError:
        return None


def fit(plan: Plan, reached: Reached, model: Model, machine: Machine, host: HostFacts | None, facts: Facts) -> Fit:
    """Return the budget of what the server holds while *plan* is measured.

    Raises EstimateError where the model's or the machine's sizes are not known.
    """
    server = reached.facts
    options = [plan.server.options, *(one.options for one in plan.experiments)]
    contexts = [value for one in options if isinstance(value := one.get("num_ctx"), int)]
    cells, sequences = _layout(server.server), server.parallel_slots or 1
    if isinstance(cells, Pages):
        context, sequences = plan.longest_tokens, plan.most_concurrency
    elif reached.api.name == "ollama":
        context = max([*contexts, server.context_limit_tokens or 0]) or plan.longest_tokens
    else:
        context = server.context_limit_tokens or plan.longest_tokens
    macos = None if host is None else host.macos
    return Fit(
        _weights(model),
        cache_bytes(model, context, server.kv_cache_type, sequences=sequences, cells=cells),
        gpu_limit(machine, macos, facts.mac_limits),
    )


def _layout(server: str | None) -> Cells:
    if server in _PAGED:
        return Pages()
    return Pages(block_tokens=256) if server in _GROWING else Slots()


def _weights(model: Model) -> Range:
    try:
        return weights(model).total_bytes
    except EstimateError:
        if model.tensors.total_bytes is None:
            raise
        return Range.of(model.tensors.total_bytes)
