"""The statements of a publication in words: what each number is about, and how it is said honestly."""

from collections.abc import Mapping
from typing import Final

from roofbook.words import mark

LABELS: Final[Mapping[str, str]] = {
    "prefill_fit_linear": mark("Prefill law: a"),
    "prefill_fit_quadratic": mark("Prefill law: b"),
    "first_fit_prediction": mark("First fit, through two lengths, at %(at)s tokens"),
    "held_out_prediction": mark("Second fit at %(at)s tokens, which it had seen"),
    "extrapolation": mark("Predicted for %(at)s tokens"),
    "linear_estimate": mark("If a token always took equally long: %(at)s tokens"),
    "quadratic_share_by_fit": mark("Share of the quadratic term at %(at)s tokens, by the fit"),
    "quadratic_share_by_theory": mark("Share of the quadratic term at %(at)s tokens, by arithmetic"),
    "prompt_budget": mark("Prompt tokens within a TTFT of %(at)s ms"),
    "rag_ttft": mark("TTFT of a RAG prompt of %(at)s tokens"),
    "decode_ceiling": mark("Most that decode can reach"),
    "decode_measured": mark("Decode, measured"),
    "decode_share": mark("Decode: share of the ceiling"),
    "prefill_reached": mark("Prefill: arithmetic reached"),
    "prefill_peak": mark("Arithmetic peak of the GPU"),
    "prefill_share": mark("Prefill: share of the peak"),
    "prefill_work": mark("Work of a prompt of %(at)s tokens"),
    "gpu_usable": mark("Memory that the GPU may use"),
    "weights": mark("Weights of the model"),
    "reserve": mark("Reserve"),
    "kv_budget": mark("Memory left for the KV cache"),
    "kv_per_token": mark("KV cache a token, %(at)s"),
    "kv_tokens": mark("Tokens that fit, %(at)s"),
    "requests_at_once": mark("Requests of 4,096 tokens that fit, %(at)s"),
    "cache_uncached": mark("Prefill without the cache"),
    "cache_cached": mark("Prefill from the cache"),
    "cache_factor": mark("Gain of a full cache hit"),
    "gpu_share": mark("GPU's share of the memory, %(at)s GB Mac"),
    "weights_8b": mark("An 8B model in %(at)s"),
    "weights_32b": mark("A 32B model in %(at)s"),
    "speed_32b": mark("Its decode"),
    "bytes_per_value": mark("Bytes a value in the KV cache, %(at)s"),
    "kv_per_token_8b": mark("Llama 3.1 8B: KV cache a token, %(at)s"),
    "kv_table_8b": mark("Llama 3.1 8B: cache of users × tokens, %(at)s"),
    "kv_50_users": mark("Llama 3.1 8B: cache of 50 × 8,192 tokens, %(at)s"),
    "four_bit_memory": mark("4 bits against 16: memory"),
    "four_bit_speed": mark("4 bits against 16: bytes a step"),
    "ttft_long_over_short": mark("TTFT of the long prompt over the short one"),
    "per_token_growth": mark("Time a token, at %(at)s tokens against the shortest"),
    "prediction_error_refit": mark("Error of the prediction at %(at)s tokens, second fit"),
    "prediction_error_first": mark("Error of the prediction at %(at)s tokens, first fit"),
    "context_effect": mark("Effect of the context size on prefill"),
    "decode_at_context": mark("Decode at %(at)s tokens of context"),
    "decode_change": mark("Change of decode up to %(at)s tokens of context"),
    "smaller_model_work": mark("Arithmetic of 3B against 7B"),
}
"""By the claim's key; %(at)s is for what it was said."""

HONEST: Final[Mapping[tuple[str, str | None], str]] = {
    ("prefill_fit_quadratic", None): mark("Known to about half of itself: the interval is the news."),
    ("quadratic_share_by_theory", None): mark(
        "The fit has it, attention's arithmetic explains this much of it. The kernel is the likelier rest, heat a "
        "possible one."
    ),
    ("requests_at_once", "f16"): mark("Ollama's own KV type; and it serves one at a time until told otherwise."),
    ("requests_at_once", "q8_0"): mark(
        "As memory's bound alone, from macOS 15 and older to 26, with a reserve of 1 to 2 GiB."
    ),
    ("prediction_error_refit", None): mark("Held out: the fit of the shorter lengths misses it by this much."),
    ("prediction_error_first", None): mark("With one length on both sides."),
    ("held_out_prediction", "8016"): mark("What the shorter lengths alone predict, with its interval."),
    ("extrapolation", "16384"): mark("With its interval; nothing of this length was measured."),
    ("extrapolation", "32768"): mark("With its interval; nothing of this length was measured."),
    ("prompt_budget", "1000"): mark(
        "As a range; the published one leaves out what is no prefill. The law was fitted to longer prompts only."
    ),
    ("prompt_budget", "2000"): mark("As a range; the published one leaves out what is no prefill."),
    ("prompt_budget", "5000"): mark("As a range; the published one leaves out what is no prefill."),
    ("decode_ceiling", None): mark("A step reads one row of the input embedding, not the table."),
    ("decode_measured", None): mark("The server counts the first token and does not time it."),
    ("decode_share", None): mark("Against the ceiling of what a step really reads."),
    ("prefill_reached", None): mark("Counted matrix by matrix, not as 2 × parameters × tokens."),
    ("prefill_work", None): mark("Counted matrix by matrix, not as 2 × parameters × tokens."),
    ("prefill_share", None): mark("A range, for sources dispute the peak: that no runtime is faster does not follow."),
    ("weights", None): mark("The file, to the byte."),
    ("reserve", None): mark(
        "An assumption. Every page here takes 1 to 2 GiB; half a GiB moves the requests by about three in a hundred."
    ),
    ("cache_factor", None): mark("Only where the whole prompt was cached."),
    ("gpu_share", "32"): mark("Up to macOS 15. It is more since macOS 26."),
    ("gpu_share", "36"): mark("From 36 GB on it is three quarters."),
    ("weights_8b", None): mark("Blocks store scales, and some matrices keep more bits."),
    ("weights_32b", None): mark("Blocks store scales, and some matrices keep more bits."),
    ("kv_table_8b", "50 x 4096"): mark("Computed with 4,000 tokens of 68 kB; it is 13.3 GiB."),
    ("kv_50_users", "q8_0"): mark("The machine ran this type, so the cache is half of that."),
    ("four_bit_memory", None): mark("Blocks store scales, and some matrices keep more bits."),
    ("four_bit_speed", None): mark("Blocks store scales, and some matrices keep more bits."),
    ("ttft_long_over_short", None): mark("Cut off rather than rounded."),
    ("per_token_growth", "8016"): mark("The published figure stops at half the curve."),
    ("context_effect", None): mark("One pair, without the scatter of its runs."),
    ("decode_change", None): mark("It falls: each step reads the keys and values of all tokens before it."),
    ("smaller_model_work", None): mark("Nearer to a half than to a quarter."),
}
"""By key and for what; None is every other. What stands as published needs none."""
