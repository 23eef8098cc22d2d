"""The answer of ``budget`` as JSON: bytes, tokens and seconds; a figure that is not known to the digit has two ends."""

import math
from typing import Any

from roofbook.commands.answer import Answer, Speed
from roofbook.commands.model_source import Found
from roofbook.theory.shapes import Range


def as_json(result: Answer, found: Found) -> dict[str, Any]:
    """Return *result* as a JSON object; null is unknown or, as the upper end of a range, without limit."""
    question, budget, held = result.question, result.budget, result.weights
    return {
        "model": question.model.id,
        "quantization": question.model.tensors.quantization,
        "quantization_assumed": found.quantization_assumed,
        "machine": question.machine.id,
        "runtime": question.runtime.id,
        "kv_type": question.kv_type,
        "context_tokens": question.context_tokens,
        "users": question.users,
        "fits": result.fits,
        "requests_at_once": _range(result.sequences),
        "runs_out_first": result.scarcity,
        "memory": {
            "limit_bytes": _range(result.limit.limit_bytes),
            "limit_basis": result.limit.basis,
            "weights_bytes": None if budget is None else _range(budget.weights_bytes),
            "weights_basis": None if held is None else held.basis,
            "weights_counted": result.counted,
            "projector_bytes": None if budget is None else _range(budget.projector_bytes),
            "reserve_bytes": _range(result.reserve_bytes),
            "room_bytes": _range(result.room_bytes),
            "kv_bytes_per_token": _range(result.token_kv_bytes),
            "kv_bytes_per_request": _range(result.request_kv_bytes),
        },
        "requests_at_once_by_weights_and_kv_type": {
            counted: {kv_type: _range(count) for kv_type, count in counts.items()}
            for counted, counts in result.by_kv_type.items()
        },
        "arithmetic_bound_from_requests": None if result.crossover is None else _range(result.crossover.whole),
        "speed": {"datasheet": _speed(result.datasheet), "measured": _speed(result.measured)},
        "cannot_estimate": None if result.why_not is None else str(result.why_not),
        "missing": [] if found.reading is None else list(found.reading.missing),
    }


def _speed(speed: Speed | None) -> dict[str, Any] | None:
    if speed is None:
        return None
    floor = speed.first_token_ms
    return {
        "bandwidth_bytes_per_s": _range(speed.rates.bandwidth_bytes_per_s),
        "flops_per_s": _range(speed.rates.flops_per_s),
        "decode_tok_per_s": _range(speed.alone),
        "decode_tok_per_s_full_context": _range(speed.alone_full),
        "decode_tok_per_s_all_users": _range(speed.together),
        "first_token_ms_at_least": None if floor is None else _range(floor),
        "uncached_prompts_per_s_at_most": speed.prompts_per_s,
    }


def _range(value: Range | None) -> Any:
    if value is None:
        return None
    ends = [_number(value.low), _number(value.high)]
    return ends[0] if value.known else {"low": ends[0], "high": ends[1]}


def _number(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else value
