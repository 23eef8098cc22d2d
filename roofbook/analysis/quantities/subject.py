"""All the numbers of one subject: its points, its prefill law, what memory and arithmetic allow, what was claimed."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from roofbook.analysis.latency import points_of
from roofbook.analysis.memory import memory_table, served
from roofbook.analysis.prefill import Curve
from roofbook.analysis.quantities.catalogue import machine_quantities, model_quantities
from roofbook.analysis.quantities.curve import curve_quantities
from roofbook.analysis.quantities.points import point_quantities
from roofbook.analysis.quantities.quantity import Quantities, Quantity, Unit, asked
from roofbook.analysis.seen import as_seen, own_flops_per_s
from roofbook.analysis.subjects import Subject, curve_of
from roofbook.theory.limits import gpu_limit
from roofbook.theory.roofline import crossover_batch
from roofbook.theory.shapes import Machine, MacLimit, Model, Range
from roofbook.units import GB, MS_PER_S
from roofbook.validity import Finding

_CLAIM_UNITS: Final[tuple[tuple[str, Unit, float], ...]] = (
    (r"tok_per_s|decode\.measured|decode_over_context", "tok_per_s", 1),
    (r"_ms(\.|$)", "ms", 1),
    (r"ttft_s$", "ms", MS_PER_S),
    (r"share|error|growth|effect|fraction|3b_over_7b", "share", 1),
    (r"factor|long_over_short", "factor", 1),
    (r"_gb(\.|$)|\.gb$", "bytes", GB),
    (r"linear_per_token", "ms_per_token", 1),
    (r"quadratic_per_token2", "ms_per_token2", 1),
    (r"prompt_budget_tokens|memory\.tokens", "tokens", 1),
)
"""What a claim's name says of its unit: a pattern, the unit, one of it in that unit; without one a count."""


@dataclass(frozen=True)
class Known:
    """What the catalogue has on a subject's machine and model; None where it has neither."""

    machine: Machine | None = None
    model: Model | None = None
    mac_limits: Sequence[MacLimit] = ()
    seen_flops_per_s: float | None = None
    """Of the fastest prefill that others published of the same chip."""


def subject_quantities(
    subject: Subject, found: Iterable[Finding], known: Known, claims: Mapping[str, Any] | None = None
) -> Quantities:
    """Return all numbers of *subject*, doubtful rows left out; those of a point with ``raw.`` before hold all its rows,
    those with ``seen.`` count the machine's measured arithmetic up to the fastest run that was seen of it.

    *claims* are what a publication concluded, as its import keeps them; they stand under ``claim.``.
    """
    findings, machine, model = list(found), known.machine, known.model
    curve = curve_of(subject, findings)
    points = points_of(subject.records, findings)
    told = point_quantities(subject, points, machine, model)
    if machine is not None and model is not None:
        seen = as_seen(machine, known.seen_flops_per_s, own_flops_per_s(points, model))
        told |= point_quantities(subject, points, seen, model).under("seen")
    told |= point_quantities(subject, points_of(subject.records, ()), machine, model).under("raw")
    told |= curve_quantities(curve, model).under("prefill")
    if machine is not None:
        told |= machine_quantities(machine, known.mac_limits, subject.quantization).under("machine")
    if model is not None:
        told |= model_quantities(model, subject.quantization).under("model")
    if machine is not None and model is not None:
        told |= _capacity(subject, curve, machine, model, known.mac_limits)
    return told | Quantities(_claims(claims or {}, "claim"))


def _capacity(
    subject: Subject, curve: Curve, machine: Machine, model: Model, limits: Sequence[MacLimit]
) -> Quantities:  # fmt: skip
    """Return how many requests memory holds at once, and how many of them arithmetic can serve."""
    quantization, kv_type = subject.quantization, subject.kv_cache_type

    def fits(tokens: int, kv: str, macos: int | None = None) -> Range:
        limit = gpu_limit(machine, macos, limits)
        return memory_table(model, limit, tokens, quantization=quantization, kv_types=(kv,)).lines[0].sequences

    def together(count: int, tokens: int) -> Range | None:
        if curve.law is None:
            return None
        args = (count, tokens, curve.law, model, machine)
        return served(*args, quantization=quantization, kv_type=kv_type).decode_tok_per_s_each

    def crossover(tokens: int) -> Range | None:
        """From how many whole requests of *tokens* on arithmetic limits decode."""
        bound = crossover_batch(model, machine, quantization, context_tokens=tokens, kv_type=kv_type)
        found = bound.whole
        if found is None or not math.isfinite(found.high):
            return None
        return Range(math.ceil(found.low), math.ceil(found.high))

    return Quantities(
        {},
        {
            "crossover_requests.TOKENS": asked("count", crossover),
            "fits_requests.TOKENS.KV": asked("count", fits),
            "fits_requests.TOKENS.KV.MACOS": asked("count", fits),
            "together_tok_per_s.COUNT.TOKENS": asked("tok_per_s", together),
        },
    )


def _claims(claims: Mapping[str, Any], prefix: str) -> dict[str, Quantity]:
    told: dict[str, Quantity] = {}
    for key, value in claims.items():
        name = f"{prefix}.{key}"
        if isinstance(value, dict):
            told |= _claims(cast("dict[str, Any]", value), name)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            unit, size = next(
                ((unit, size) for pattern, unit, size in _CLAIM_UNITS if re.search(pattern, name)), ("count", 1)
            )
            told[name] = Quantity(cast("Unit", unit), value * size, printed=True)
    return told
