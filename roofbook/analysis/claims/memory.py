"""Published figures about memory, recomputed in the unit they were published in (GB and KB are decimal)."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from roofbook.analysis.claims.claim import Claim, Evidence, claim
from roofbook.analysis.memory import memory_table
from roofbook.theory.kv import cache_bytes, token_bytes
from roofbook.theory.limits import gpu_limit
from roofbook.theory.quantization import head_bytes
from roofbook.theory.roofline import decode_ceiling, implied_bytes_per_s, step_bytes
from roofbook.theory.shapes import Range
from roofbook.theory.weights import weights
from roofbook.units import GB, GIB, KB

_CONTEXT_TOKENS: Final = 4096
_KV_NAMES: Final = {"fp16": "f16", "q8_0": "q8_0", "q4_0": "q4_0"}
_LLAMA: Final = "llama-3.1-8b"
_USERS: Final = (1, 10, 50)
_OLD_MACOS: Final = 15


def budget(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    """Ranges over the macOS releases and the reserve that every page assumes; the author's is an assumption as well."""
    table = memory_table(
        evidence.model,
        gpu_limit(evidence.machine, observed=evidence.facts.mac_limits),
        _CONTEXT_TOKENS,
        quantization=evidence.quantization,
    )
    line, unquantized = table.line(evidence.kv_type), table.line("f16")
    each = token_bytes(evidence.model, evidence.kv_type)
    yield claim("gpu_usable", said["gpu_usable_gb"], _in(table.limit.limit_bytes, GB), "gb").binary()
    yield claim("weights", said["weights_gb"], _in(table.weights_bytes, GB), "gb")
    yield claim("reserve", said["reserve_gb"], None, "gb")
    yield claim("kv_budget", said["kv_budget_gb"], _in(table.room_bytes, GB), "gb").binary()
    yield claim("kv_per_token", said["kv_kb_per_token"], _in(each, KB), "kb", evidence.kv_type).binary()
    if line is not None and unquantized is not None:
        yield claim("kv_tokens", said["tokens"], line.tokens, "tokens", evidence.kv_type)
        yield claim("requests_at_once", said["requests_4k"], line.sequences, "requests", evidence.kv_type)
        usual = claim("requests_at_once", said["requests_4k"], unquantized.sequences, "requests", "f16").decisive()
        yield usual if evidence.kv_type == "f16" else usual.under_another_condition()


def gpu_share(evidence: Evidence, said: Mapping[str, Any]) -> Iterator[Claim]:
    """Of this machine over the macOS releases; and of the smallest with 36 GiB, up to macOS 15."""
    memory = evidence.machine.memory_bytes
    if memory:
        limit = gpu_limit(evidence.machine, observed=evidence.facts.mac_limits).limit_bytes
        yield claim("gpu_share", said["fraction"], limit * (1 / memory), "share", f"{memory / GIB:.0f}")
    seen = [
        limit for limit in evidence.facts.mac_limits if limit.memory_bytes == 36 * GIB and limit.macos <= _OLD_MACOS
    ]
    for limit in seen:
        yield claim("gpu_share", said["fraction"], limit.limit_bytes / limit.memory_bytes, "share", "36")


def weights_8b(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    shape = evidence.facts.model(_LLAMA).model
    for name, quantization in (("fp16", "F16"), ("int8", "Q8_0"), ("int4", "Q4_K_M")):
        total = weights(shape.quantized(quantization), quantization).total_bytes
        yield claim("weights_8b", said[name], _in(total, GB), "gb", quantization)


def weights_32b(evidence: Evidence, said: Mapping[str, Any]) -> Iterator[Claim]:
    """Its speed: between the share of the ceiling that the measured model reaches, and the ceiling."""
    model = evidence.facts.model("qwen2.5-32b").model.quantized("Q4_K_M")
    total = weights(model, "Q4_K_M").total_bytes
    yield claim("weights_32b", said["gb"], _in(total, GB), "gb", "Q4_K_M")
    ceiling = decode_ceiling(model, evidence.machine, "Q4_K_M").datasheet
    share = _decode_share(evidence)
    found = None if ceiling is None or share is None else Range(ceiling.low * share, ceiling.high)
    yield claim("speed_32b", Range(*said["tok_per_s"]), found, "tok/s", "Q4_K_M")


def bytes_per_value(_: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    for name, claimed in said.items():
        kv_type = _KV_NAMES[name]
        yield claim("bytes_per_value", claimed, head_bytes(kv_type, 128, 0) * (1 / 128), "bytes", kv_type)


def llama_token(evidence: Evidence, said: float) -> Iterator[Claim]:
    each = token_bytes(evidence.facts.model(_LLAMA).model.shape, "q8_0")
    yield claim("kv_per_token_8b", said, _in(each, KB), "kb", "q8_0").binary()


def llama_table(evidence: Evidence, said: Mapping[str, list[float | None]]) -> Iterator[Claim]:
    shape = evidence.facts.model(_LLAMA).model.shape
    for tokens, row in said.items():
        for users, claimed in zip(_USERS, row, strict=True):
            if claimed is not None:
                found = cache_bytes(shape, int(tokens), "q8_0", sequences=users)
                yield claim("kv_table_8b", claimed, _in(found, GB), "gb", f"{users} x {tokens}").binary()


def fifty_users(evidence: Evidence, said: float) -> Iterator[Claim]:
    """In the type the figure was meant for, and in the one that the machine ran."""
    shape = evidence.facts.model(_LLAMA).model.shape
    for kv_type in ("f16", evidence.kv_type):
        held = claim("kv_50_users", said, _in(cache_bytes(shape, 8192, kv_type, sequences=50), GB), "gb", kv_type)
        yield held.binary() if kv_type == "f16" else held.binary().under_another_condition()


def four_bit(evidence: Evidence, said: Mapping[str, float]) -> Iterator[Claim]:
    """Against 16 bits: the file, and the bytes that one decode step reads."""
    names = ("F16", evidence.quantization)
    whole, ours = (weights(evidence.model, name).total_bytes.low for name in names)
    step, our_step = (step_bytes(evidence.model, name).low for name in names)
    yield claim("four_bit_memory", said["memory_factor"], whole / ours, "factor")
    yield claim("four_bit_speed", said["speed_factor"], step / our_step, "factor")


def _decode_share(evidence: Evidence) -> float | None:
    point = evidence.baseline(longest=False)
    chip = evidence.machine.chip
    if point is None or point.decode.median is None or chip is None or chip.bandwidth_bytes_per_s is None:
        return None
    used = implied_bytes_per_s(evidence.model, point.decode.median, evidence.quantization, kv_type=evidence.kv_type)
    return used.low / chip.bandwidth_bytes_per_s.high


def _in(quantity: Range, unit: float) -> Range:
    return quantity * (1 / unit)
