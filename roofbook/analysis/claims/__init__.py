"""Claimed and recomputed, line by line: from the rows, the catalogue and the theory, never copied."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from roofbook.analysis.claims import memory, speed
from roofbook.analysis.claims.claim import Claim, Evidence, Verdict
from roofbook.errors import EstimateError

__all__ = ["RECOMPUTED", "Claim", "Evidence", "Verdict", "claims"]

RECOMPUTED: Final[Mapping[str, Callable[[Evidence, Any], Iterator[Claim]]]] = {
    "prefill_fit_ms": speed.fitted,
    "first_fit_prediction_8192_ms": speed.first_fit,
    "refit_prediction_8016_ms": speed.refit,
    "extrapolated_ms": speed.extrapolated,
    "linear_estimate_ms": speed.linear_estimate,
    "share_of_quadratic_term": speed.quadratic_share,
    "prompt_budget_tokens": speed.budget,
    "rag_1600_tokens_ttft_s": speed.rag,
    "decode": speed.decode,
    "prefill": speed.prefill,
    "memory": memory.budget,
    "cache_hit": speed.cache_hit,
    "gpu_share_of_unified_memory": memory.gpu_share,
    "weights_8b_gb": memory.weights_8b,
    "weights_32b_4bit": memory.weights_32b,
    "bytes_per_value": memory.bytes_per_value,
    "llama31_8b_kv_kb_per_token_q8_0": memory.llama_token,
    "llama31_8b_kv_gb_q8_0": memory.llama_table,
    "kv_50_users_8k_fp16_gb": memory.fifty_users,
    "quantization_4bit": memory.four_bit,
    "prefill_work_3505_tokens_tflop": speed.work,
    "ttft_long_over_short": speed.long_over_short,
    "per_token_growth_205_to_4056": speed.growth,
    "prediction_error_8k": speed.error,
    "num_ctx_effect": speed.context_effect,
    "decode_over_context": speed.decode_over_context,
    "qwen3b_over_7b_compute": speed.smaller_model,
}
"""Each key of a publication's claims, and what recomputes it."""


def claims(published: Mapping[str, Any], evidence: Evidence) -> list[Claim]:
    """Return the table of *published* (RunFacts.origin["claims"]) in its order.

    A key that nothing recomputes, or that lacks what its recomputation needs, has no line.
    """
    table: list[Claim] = []
    for key, said in published.items():
        if key in RECOMPUTED:
            try:
                table += RECOMPUTED[key](evidence, said)
            except EstimateError:
                continue
    return table
