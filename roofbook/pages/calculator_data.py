"""What the calculators compute with: coefficients of models, machines and measured laws, as the page carries them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from roofbook.analysis.prefill import FARTHEST, Curve
from roofbook.analysis.sharing import half_width
from roofbook.errors import EstimateError
from roofbook.facts import Facts, ModelFact
from roofbook.pages.subjects import SubjectView
from roofbook.theory.coefficients import KeptHeads, model_coefficients, weights_or_none
from roofbook.theory.counts import ENDLESS
from roofbook.theory.kv import CELL_PAD, Pages, Slots
from roofbook.theory.limits import gpu_limit
from roofbook.theory.memory import RESERVE_BYTES, VLLM_PEAK_BYTES, VLLM_SHARE
from roofbook.theory.peaks import arithmetic_peak
from roofbook.theory.quantization import UNKNOWN_KV_HIGH, UNKNOWN_KV_LOW, kv_block
from roofbook.theory.roofline import ROUNDS, measured_rates
from roofbook.theory.shapes import Machine, MacLimit, Model, Range
from roofbook.words import Words

UNKNOWN: Final = "unknown"
KV_TYPES: Final = ("f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "fp8")
QUANTIZATIONS: Final = ("F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0", "AWQ", "FP8", "MLX-4bit")
"""What people serve; a model offers besides what the catalogue has a file of."""

GROWING: Final = Pages(block_tokens=256)
"""mlx_lm, mlx_lm/models/cache.py: KVCache.step."""

_MACOS: Final = (15, 26)
_ROOT: Final = ""


@dataclass(frozen=True)
class Choice:
    """One model or machine that a reader can choose; *own*: as a run of this report found it."""

    id: str
    name: str
    own: bool = False


@dataclass(frozen=True)
class Choices:
    """Everything to choose from, and its coefficients."""

    models: Mapping[Choice, Mapping[str, Model]]
    """Each with its quantizations."""
    machines: Mapping[Choice, Machine]
    subjects: tuple["Preset", ...]


@dataclass(frozen=True)
class Preset:
    """A subject as a choice of all fields, with its curve; *server* None where the catalogue does not know it."""

    slug: str
    title: str
    model: str
    quantization: str
    machine: str
    server: str | None
    kv_type: str
    macos: int | None
    curve: Curve


def choices(facts: Facts, views: Sequence[SubjectView], words: Words) -> Choices:
    """Return what there is to choose from: what *views* ran on first, then the catalogue.

    A subject whose model or machine nobody knows is no choice: there is nothing to compute with.
    """
    models = {Choice(fact.id, fact.name): _quantized(fact) for fact in facts.models.values()}
    machines = {Choice(one.id, one.machine.name or one.id): one.machine for one in facts.machines.values()}
    cards = (one.chip for one in facts.chips.values() if one.chip.memory_kind == "discrete")
    machines |= {
        Choice(chip.id, chip.name or chip.id): facts.machine(chip.id).machine
        for chip in cards
        if chip.id not in facts.machines
    }
    own_models: dict[Choice, Mapping[str, Model]] = {}
    own_machines: dict[Choice, Machine] = {}
    presets: list[Preset] = []
    for view in views:
        model, machine = _model_of(view, facts, models, own_models), _machine_of(view, facts, own_machines, words)
        if model is None or machine is None:
            continue
        presets.append(
            Preset(
                slug=view.slug,
                title=view.title(words),
                model=model[0],
                quantization=model[1],
                machine=machine,
                server=None if view.equipment.runtime is None else view.equipment.runtime.id,
                kv_type=kv_choice(view.subject.kv_cache_type),
                macos=view.equipment.macos,
                curve=view.curve,
            )
        )
    return Choices({**own_models, **models}, {**own_machines, **machines}, tuple(presets))


def kv_choice(kv_type: str | None) -> str:
    """Return the choice that *kv_type* is; ``unknown`` where its bytes are not known."""
    if kv_type is None:
        return UNKNOWN
    name = kv_type.strip().lower()
    return name if all(kv_block(part) is not None for part in name.split("/")) else UNKNOWN


def _quantized(fact: ModelFact) -> dict[str, Model]:
    names = {name.upper(): name for name in QUANTIZATIONS} | {one.quantization.upper(): one.quantization
                                                              for one in fact.files}  # fmt: skip
    shapes = {name: fact.quantized(name) for name in names.values()}
    known = {name: shape for name, shape in shapes.items() if weights_or_none(shape) is not None}
    return known or {UNKNOWN: fact.shape}


def _model_of(
    view: SubjectView,
    facts: Facts,
    models: dict[Choice, dict[str, Model]],
    own: dict[Choice, Mapping[str, Model]],
) -> tuple[str, str] | None:
    """Return the model and quantization of *view* as choices; what no catalogue has becomes a choice of its own."""
    model = view.equipment.model
    quantization = None if model is None else model.tensors.quantization
    if model is None or quantization is None or weights_or_none(model) is None:
        return None
    fact = facts.models.get(model.id)
    if fact is not None and fact.quantized(quantization) == model:
        offered = models[Choice(fact.id, fact.name)]
        same = next((name for name in offered if name.upper() == quantization.upper()), quantization)
        offered.setdefault(same, model)
        return fact.id, same
    choice = Choice(f"{view.slug}-model", view.subject.model or model.id, own=True)
    own[choice] = {quantization: model}
    return choice.id, quantization


def _machine_of(view: SubjectView, facts: Facts, own: dict[Choice, Machine], words: Words) -> str | None:
    machine = view.equipment.machine
    if machine is None or _limits(machine, facts.mac_limits) is None:
        return None
    if machine.id in facts.machines and facts.machines[machine.id].machine == machine:
        return machine.id
    for choice, known in own.items():
        if known == machine:
            return choice.id
    choice = Choice(f"{view.slug}-machine", view.machine_name(words), own=True)
    own[choice] = machine
    return choice.id


def calculator_data(told: Choices, facts: Facts) -> dict[str, Any]:
    """Return the coefficients as JSON values; a range is a list of two, null is unknown."""
    quantizations = sorted({name for offered in told.models.values() for name in offered})
    classes, chosen = _peak_classes(quantizations, told.machines.values())
    kv_types = dict.fromkeys([*KV_TYPES, UNKNOWN_KV_LOW, UNKNOWN_KV_HIGH])
    parts = dict.fromkeys([*kv_types, *(part for one in told.subjects for part in one.kv_type.split("/"))])
    blocks = {name: block for name in parts if (block := kv_block(name)) is not None}
    slots = Slots()
    return {
        "kv_types": list(dict.fromkeys([*KV_TYPES, *(one.kv_type for one in told.subjects), UNKNOWN])),
        "kv_blocks": {name: [block.values, block.size_bytes] for name, block in blocks.items()},
        "kv_unknown": [UNKNOWN_KV_LOW, UNKNOWN_KV_HIGH],
        "slots": {"ubatch": slots.ubatch_tokens, "pad": CELL_PAD},
        "pages": {name: {"block": pages.block_tokens, "batched": pages.batched_tokens}
                  for name, pages in (("paged", Pages()), ("growing", GROWING))},
        "vllm_share": VLLM_SHARE,
        "vllm_peak": _range(VLLM_PEAK_BYTES),
        "reserve": _range(RESERVE_BYTES),
        "endless": ENDLESS,
        "crossing_rounds": ROUNDS,
        "law_reach": FARTHEST,
        "peak_classes": classes,
        "servers": {one.id: {"name": one.name, "layout": one.kv_layout} for one in facts.runtimes.values()},
        "models": {choice.id: _model(choice, offered) for choice, offered in told.models.items()},
        "machines": {choice.id: _machine(choice, machine, chosen, facts.mac_limits)
                     for choice, machine in told.machines.items()},
        "subjects": {one.slug: _preset(one) for one in told.subjects},
    }  # fmt: skip


def _model(choice: Choice, offered: Mapping[str, Model]) -> dict[str, Any]:
    held = {name: one for name, shape in offered.items() if (one := weights_or_none(shape)) is not None}
    found = model_coefficients(next(iter(offered.values())))
    kept = found.kept
    return {
        "name": choice.name,
        "own": choice.own,
        "kept": kept and {
            "global": _heads(kept.global_heads), "local": _heads(kept.local_heads), "state": kept.state_bytes,
            "local_layers": kept.local_layers, "window": kept.window_tokens,
        },
        "matmul": _range(found.matmul_params),
        "head": found.head_params,
        "pair_flops": {"global": found.global_pair_flops, "local": found.local_pair_flops},
        "layers": {"global": found.global_layers, "local": found.local_layers},
        "window": found.window_tokens,
        "experts": found.experts,
        "experts_used": found.experts_used,
        "context_limit": found.context_limit_tokens,
        "weights": {
            name: {
                "total": _range(one.total_bytes), "embedding": _range(one.embedding_bytes),
                "expert": _range(one.expert_bytes), "device": offered[name].tensors.device_bytes,
                "projector": offered[name].tensors.projector_bytes, "basis": one.basis,
            }
            for name, one in held.items()
        },
    }  # fmt: skip


def _heads(heads: Iterable[KeptHeads]) -> list[list[int]]:
    return [[one.heads, one.key_dim, one.value_dim] for one in heads]


def _machine(
    choice: Choice, machine: Machine, peaks: Mapping[str, Sequence[Range | None]], limits: Sequence[MacLimit]
) -> dict[str, Any]:
    chip, measured = machine.chip, measured_rates(machine)
    return {
        "name": choice.name,
        "own": choice.own,
        "limits": _limits(machine, limits),
        "discrete": chip is not None and chip.memory_kind == "discrete",
        "bandwidth": None if chip is None else _range(chip.bandwidth_bytes_per_s),
        "peaks": [] if chip is None else [_range(one) for one in peaks[chip.id]],
        "measured": {"bandwidth": _range(measured.bandwidth_bytes_per_s), "flops": _range(measured.flops_per_s)},
    }


def _limits(machine: Machine, observed: Sequence[MacLimit]) -> dict[str, Any] | None:
    """Return the memory that the GPU may use, by macOS where that matters; None where it is not known."""
    try:
        found = {_ROOT: gpu_limit(machine, None, observed)}
    except EstimateError:
        return None
    if found[_ROOT].basis in ("rule", "observed"):
        for macos in _MACOS:
            try:
                found[str(macos)] = gpu_limit(machine, macos, observed)
            except EstimateError:
                continue
    return {name: {"bytes": _range(one.limit_bytes), "basis": one.basis} for name, one in found.items()}


def _peak_classes(
    quantizations: Sequence[str], machines: Iterable[Machine]
) -> tuple[dict[str, int], dict[str, list[Range | None]]]:
    """Return the class of each quantization, and each chip's peaks by class: few differ from one another."""
    chips = list({machine.chip.id: machine.chip for machine in machines if machine.chip is not None}.values())
    columns = {name: tuple(arithmetic_peak(chip, name) for chip in chips) for name in quantizations}
    distinct = list(dict.fromkeys(columns.values()))
    classes = {name: distinct.index(column) for name, column in columns.items()}
    return classes, {chip.id: [column[index] for column in distinct] for index, chip in enumerate(chips)}


def _preset(preset: Preset) -> dict[str, Any]:
    curve = preset.curve
    law = None
    fit = curve.law
    if fit is not None and curve.longest is not None:
        law = {
            "powers": list(fit.powers), "coefficients": list(fit.coefficients),
            "covariance": [list(row) for row in fit.covariance], "variance_power": fit.variance_power,
            "sigma": fit.sigma, "t": half_width(fit), "lengths": len(curve.lengths),
            "longest_tokens": curve.longest.tokens, "overhead_ms": curve.overhead_ms,
        }  # fmt: skip
    return {
        "title": preset.title, "model": preset.model, "weights": preset.quantization, "machine": preset.machine,
        "server": preset.server, "kv": preset.kv_type, "macos": preset.macos, "law": law,
    }  # fmt: skip


def _range(found: Range | None) -> list[float] | None:
    return None if found is None else [_number(found.low), _number(found.high)]


def _number(value: float) -> float:
    """Return *value* as a whole number where it is one: fewer digits on the page, the same double."""
    return int(value) if float(value).is_integer() else value
