"""What a doubt is called and says: a short name, a sentence with its numbers, and the way out; for page and terminal.

A doubt is told by its kind and its values, as ``roofbook.validity`` finds them.
"""

from collections.abc import Mapping
from typing import Final

from roofbook.units import GB, TFLOP
from roofbook.words.catalogue import Words, mark

Values = Mapping[str, float | int | str | None]

NAMES: Final[Mapping[str, str]] = {
    "cold_load": mark("cold load"),
    "reload": mark("reload"),
    "cached_prefix": mark("cache hit"),
    "cached_prefix_implied": mark("likely cache hit"),
    "above_compute_peak": mark("faster than the chip"),
    "above_bandwidth": mark("faster than the memory"),
    "near_bandwidth": mark("close to the memory's peak"),
    "slow_decode": mark("slow decode"),
    "above_measured_compute": mark("faster than measured here"),
    "above_measured_bandwidth": mark("faster than measured here"),
    "truncated": mark("prompt cut off"),
    "long_prompt": mark("longer prompt"),
    "prompt_not_counted": mark("prompt not counted"),
    "cached_beyond_prompt": mark("impossible count"),
    "implausible_prefill": mark("implausible prefill"),
    "short_output": mark("short output"),
    "long_output": mark("long output"),
    "more_pieces": mark("impossible count"),
    "empty_output": mark("no output"),
    "no_answer": mark("no answer"),
    "buffered": mark("buffered stream"),
    "coalesced": mark("tokens in lumps"),
    "held_start": mark("start held back"),
    "lumped_start": mark("several tokens at once"),
    "unseen_tokens": mark("tokens not seen"),
    "first_apart": mark("first piece apart"),
    "clock_error": mark("clock error"),
    "queued": mark("waited for a slot"),
    "client_saturated": mark("client was late"),
    "slept": mark("machine slept"),
    "swapping": mark("swapping"),
    "throttled": mark("throttled"),
    "partial_gpu": mark("partly on the CPU"),
    "mixed_conditions": mark("other conditions"),
    "outlier": mark("outlier"),
    "estimated_counts": mark("estimated counts"),
    "noted": mark("note"),
    "other_model": mark("another model"),
    "unreliable": mark("many failures"),
    "few_warmups": mark("too few warm-ups"),
    "too_few": mark("too few"),
    "drifted": mark("drift"),
}

SENTENCES: Final[Mapping[str, str]] = {
    "cold_load": mark("The model was loaded during the request (%(load_ms)s; once warm, %(warm_ms)s)."),
    "reload": mark("The model was loaded again in the middle of the run (%(load_ms)s; once warm, %(warm_ms)s)."),
    "cached_prefix": mark(
        "A cache already held %(cached_tokens)s of %(prompt_tokens)s prompt tokens (%(expected_tokens)s expected),"
        " so this is not the time it takes to read them."
    ),
    "cached_prefix_implied": mark(
        "Prefill took %(prefill_ms)s where the others took %(median_ms)s: "
        "most of the prompt must have come from a cache."
    ),
    "above_compute_peak": mark(
        "%(prompt_tokens)s tokens in %(prefill_ms)s would take %(flops_per_s)s, "
        "more than the chip's peak of %(peak_flops_per_s)s."
    ),
    "above_bandwidth": mark(
        "%(tok_per_s)s tok/s would move %(bytes_per_s)s, more than the memory's peak of %(peak_bytes_per_s)s."
    ),
    "near_bandwidth": mark(
        "%(tok_per_s)s tok/s would move %(bytes_per_s)s, close to the memory's peak of %(peak_bytes_per_s)s."
    ),
    "slow_decode": mark(
        "%(tok_per_s)s tok/s move only %(bytes_per_s)s of the memory's %(peak_bytes_per_s)s: "
        "something other than the memory decides."
    ),
    "above_measured_compute": mark(
        "%(prompt_tokens)s tokens in %(prefill_ms)s would take %(flops_per_s)s; a matrix product reached "
        "%(measured_flops_per_s)s on this processor (best of %(n)s). That is a measurement, not a limit."
    ),
    "above_measured_bandwidth": mark(
        "%(tok_per_s)s tok/s would move %(bytes_per_s)s; reading memory reached %(measured_bytes_per_s)s on this "
        "processor (best of %(n)s). That is a measurement, not a limit."
    ),
    "truncated": mark(
        "The server read %(prompt_tokens)s of %(wanted_tokens)s prompt tokens: the rest did not fit the context."
    ),
    "long_prompt": mark(
        "The server counted %(prompt_tokens)s prompt tokens where %(wanted_tokens)s were sent: it added to the prompt, "
        "or its count is wrong."
    ),
    "prompt_not_counted": mark(
        "The server did not say how many prompt tokens it read (%(uncounted)s of %(rows)s rows), so nobody knows "
        "whether it read all of the prompt."
    ),
    "cached_beyond_prompt": mark(
        "The server counts %(cached_tokens)s tokens from its cache in a prompt of %(prompt_tokens)s: one of the two is "
        "wrong."
    ),
    "implausible_prefill": mark(
        "The server says that it read %(tokens)s tokens in %(prefill_ms)s (%(tok_per_s)s tok/s; TTFT was %(ttft_ms)s): "
        "no machine reads so fast."
    ),
    "short_output": mark("The answer ended after %(output_tokens)s of %(wanted_tokens)s tokens."),
    "long_output": mark(
        "The server counts %(output_tokens)s output tokens where %(wanted_tokens)s were asked for (%(chunks)s pieces "
        "came)."
    ),
    "more_pieces": mark(
        "%(chunks)s pieces with text came, and the server counts %(output_tokens)s tokens: its count is too small."
    ),
    "empty_output": mark("No token came back; %(wanted_tokens)s were asked for."),
    "no_answer": mark("All %(output_tokens)s tokens went into thinking; there was no answer."),
    "buffered": mark(
        "The stream came in %(chunks)s pieces within %(span_ms)s at the end of %(e2e_ms)s: something held it back."
    ),
    "coalesced": mark("Tokens came in lumps (%(chunks)s pieces), so single gaps cannot be timed."),
    "held_start": mark(
        "The first %(held)s of %(chunks)s pieces came at one moment, the others after them one by one: the first token "
        "was ready about %(late_ms)s before it was seen, and the time per token comes out %(share)s too short."
    ),
    "lumped_start": mark(
        "%(output_tokens)s tokens came in %(chunks)s pieces. If about %(tokens)s came with the first, as later, "
        "the time per token comes out %(share)s too short."
    ),
    "unseen_tokens": mark(
        "The server wrote for %(decode_ms)s, and the stream shows %(span_ms)s of it: tokens were held back, or came in "
        "a form that is not recognised."
    ),
    "first_apart": mark(
        "The first piece came after %(ttft_ms)s, the next %(gap_ms)s later, the others every %(usual_ms)s: the first "
        "was no token, or something stood between them."
    ),
    "clock_error": mark("The times contradict each other: %(earlier)s %(earlier_ms)s, %(later)s %(later_ms)s."),
    "queued": mark("The request waited %(waited_ms)s for a free slot, and that is part of its TTFT of %(ttft_ms)s."),
    "client_saturated": mark("The measuring program itself was late (by up to %(loop_lag_ms)s)."),
    "slept": mark("The machine slept: %(wall_ms)s by the calendar clock, %(monotonic_ms)s awake."),
    "swapping": mark("Memory ran short: %(swap_in_bytes)s were read back from disk."),
    "throttled": mark("The hardware held its clock down (%(reason)s)."),
    "partial_gpu": mark("Only %(gpu_fraction)s of the model was on the GPU."),
    "mixed_conditions": mark(
        "Ran under other conditions than its neighbours: %(field)s was %(value)s, usually %(usual)s."
    ),
    "outlier": mark(
        "%(figure)s was %(value)s; the rows it is compared with (of this point, or of the curve's other lengths) lie "
        "around %(usual)s."
    ),
    "estimated_counts": mark("Token counts of %(estimated)s of %(rows)s rows are estimates, not the server's."),
    "noted": mark("The answer was kept with a note: %(note)s."),
    "other_model": mark("The plan asked for the model %(model)s, and the answer names %(answered)s."),
    "unreliable": mark("%(failed)s of %(requests)s requests failed, so what is left may be the lucky ones."),
    "few_warmups": mark(
        "Only %(warmups)s requests warmed up for %(concurrency)s at once, so some of them met a cold slot."
    ),
    "too_few": mark("%(statistic)s needs %(needed)s rows; there are %(n)s."),
    "drifted": mark("The fixed test point changed by %(share)s during the run (%(figure)s: %(first)s, then %(last)s)."),
}

_WITHOUT_WARM: Final[Mapping[str, str]] = {
    "cold_load": mark("The model was loaded during the request (%(load_ms)s)."),
    "reload": mark("The model was loaded again in the middle of the run (%(load_ms)s)."),
}
"""Where no load time of a warm request is known beside it."""

_CALLED: Final[Mapping[str, str]] = {
    "decode_tok_per_s": mark("decode"),
    "prefill_ms": mark("prefill"),
    "ttft_ms": mark("TTFT"),
    "overhead_ms": mark("the time between prefill and first token"),
    "first_byte_ms": mark("the first byte"),
    "last_token_ms": mark("the last token"),
    "first_answer_ms": mark("the first token of the answer"),
    "e2e_ms": mark("the end of the request"),
    "server_prefill_ms": mark("the server's prefill"),
    "server_decode_ms": mark("the server's decode time"),
    "server_total_ms": mark("the server's total"),
    "median": mark("a median"),
    "machine": mark("the machine"),
    "server": mark("the server"),
    "server_version": mark("the server's version"),
    "model_digest": mark("the model's digest"),
    "answered_model": mark("the model that the answer names"),
    "quantization": mark("the quantization"),
    "kv_cache_type": mark("the KV cache type"),
    "flash_attention": mark("flash attention"),
    "context_limit_tokens": mark("the context limit in tokens"),
    "parallel_slots": mark("the number of slots"),
    "gpu_fraction": mark("the share on the GPU"),
    "pause_before_ms": mark("the pause before a request in ms"),
    "power_source": mark("the power source"),
    "concurrency": mark("the number of requests at once"),
    "request_options": mark("the request's options"),
    "server_options": mark("the server's options"),
}
"""What the columns and figures are called that a finding names; others stand as they are."""

_NAMES_SOMETHING: Final = ("field", "figure", "statistic", "earlier", "later")
_OF_A_FIGURE: Final = ("value", "usual", "first", "last")

_CACHE_OFF: Final = mark(
    "Let no other client use the server, and start it without a prompt cache that outlives a request, where it has "
    "such a switch."
)
_RAW_STREAM: Final = mark(
    "Look at the stream itself (curl -N): what it sends first, and under which names its text comes. A proxy's "
    "buffering is turned off there (nginx: proxy_buffering off)."
)
_SERVER_COUNT: Final = mark(
    "Compare the server's usage with the text of one answer, and measure by an API whose counts are its own (ollama, "
    "llamacpp)."
)
_PAST_THE_PROXY: Final = mark("Measure past the proxy, or turn its buffering off (nginx: proxy_buffering off).")
_WRONG_MACHINE: Final = mark(
    "Compare the model's size and the machine named in the plan with what was really measured: one of them is another."
)
_BUSY_CEILING: Final = mark(
    "Measure again on a quiet machine: a busy one shows a low ceiling. If it stays, the prompt came from a cache."
)
_TOO_LARGE: Final = mark(
    "Close other programs, or choose a smaller model, a smaller quantization or a shorter context."
)

WAYS_OUT: Final[Mapping[str, str]] = {
    "cold_load": mark("Warm up more often (run.warmups), so that the model is loaded before it is measured."),
    "reload": mark("Keep the model loaded: the same options throughout, no other client, a longer keep-alive."),
    "cached_prefix": _CACHE_OFF,
    "cached_prefix_implied": _CACHE_OFF,
    "above_compute_peak": _WRONG_MACHINE,
    "above_bandwidth": _WRONG_MACHINE,
    "near_bandwidth": _WRONG_MACHINE,
    "slow_decode": mark("See whether all layers are on the GPU, and what else the machine does."),
    "above_measured_compute": _BUSY_CEILING,
    "above_measured_bandwidth": _BUSY_CEILING,
    "truncated": mark("Give the server a larger context, or shorten the prompt."),
    "long_prompt": mark(
        "Look for a system prompt or template that the server adds, and whether its usage counts several requests."
    ),
    "prompt_not_counted": mark(
        "Measure by an API that counts, or a server version that does; where only some rows lack the count, their "
        "prompts came from a cache."
    ),
    "cached_beyond_prompt": _SERVER_COUNT,
    "implausible_prefill": mark(
        "Look whether the server's times are in the unit that its API promises, and switch off its prompt cache."
    ),
    "long_output": mark(
        "See whether the server knows the limit by another name (server.options), and whether its count is right."
    ),
    "more_pieces": _SERVER_COUNT,
    "short_output": mark(
        "The model ended by itself: ask for fewer tokens, or let it go on (ignore_eos among server.options, where the "
        "server knows it)."
    ),
    "empty_output": mark("Look into the server's log: it answered without a token."),
    "no_answer": mark("Ask for more output tokens, or turn thinking off, where the first token of the answer counts."),
    "buffered": _PAST_THE_PROXY,
    "coalesced": mark("Ask for more output tokens: over a long answer the mean gap still holds."),
    "held_start": _PAST_THE_PROXY,
    "lumped_start": mark(
        "Ask for more output tokens: over a long answer it weighs little. Or let the server send each token by itself "
        "(its stream interval, a proxy's buffer)."
    ),
    "unseen_tokens": _RAW_STREAM,
    "first_apart": _RAW_STREAM,
    "clock_error": mark("Look at the row: something set the clock, or the server's times are not its own."),
    "queued": mark("Send fewer requests at once, start the server with more slots, and let no other client use it."),
    "client_saturated": mark(
        "Measure from another machine, or leave the client a core: fewer threads for the server, less concurrency."
    ),
    "slept": mark("Keep the machine awake while it measures: power on, lid open, no sleep timer."),
    "swapping": _TOO_LARGE,
    "throttled": mark("Let the machine cool down, plug it in, and leave pauses between requests (run.pause_s)."),
    "partial_gpu": _TOO_LARGE,
    "mixed_conditions": mark("Measure this again under one condition, or in a run of its own."),
    "outlier": mark("See what else ran at that moment; where there are several, measure again on a quiet machine."),
    "estimated_counts": mark(
        "Measure by an API that counts (ollama, llamacpp), or ask the server's authors for counts."
    ),
    "noted": mark("Look at the answer that the server sends (curl -N): what the note names is not in the row."),
    "other_model": mark(
        "See what the server does with a name that it does not know; name in the plan the model that it lists."
    ),
    "unreliable": mark("Look into the server's log; send fewer requests at once, or wait longer (run.timeout_s)."),
    "few_warmups": mark("Raise run.warmups to the concurrency."),
    "too_few": mark("Raise repeats by %(missing)s; measuring that takes %(minutes)s."),
    "drifted": mark("Let the machine come to rest (heat, other programs), then measure again."),
}
"""What to do about each kind of doubt."""

_WITHOUT_MINUTES: Final = mark("Raise repeats by %(missing)s.")
"""Where no request was timed, by which those that are missing could be."""


def name_of(kind: str, words: Words) -> str:
    """Return the short name of a kind of doubt."""
    return words.say(NAMES[kind])


def sentence(kind: str, values: Values, words: Words) -> str:
    """Return a doubt as a sentence with its numbers."""
    without = kind in _WITHOUT_WARM and values.get("warm_ms") is None
    told = words.say(_WITHOUT_WARM[kind] if without else SENTENCES[kind], **_all_told(values, words))
    return told[:1].upper() + told[1:]


def way_out(kind: str, values: Values, words: Words) -> str:
    """Return what to do about a doubt."""
    untimed = kind == "too_few" and values.get("minutes") is None
    return words.say(_WITHOUT_MINUTES if untimed else WAYS_OUT[kind], **_all_told(values, words))


def _all_told(values: Values, words: Words) -> dict[str, str]:
    figure = str(values.get("figure") or "")
    told: dict[str, str] = {}
    for name, value in values.items():
        if name in _NAMES_SOMETHING and value in _CALLED:
            told[name] = words.say(_CALLED[str(value)])
        elif name in _OF_A_FIGURE and figure.endswith(("_ms", "_tok_per_s")) and isinstance(value, int | float):
            sentence = mark("%(rate)s tok/s") if figure.endswith("_tok_per_s") else mark("%(ms)s ms")
            told[name] = words.say(sentence, rate=words.significant(value), ms=words.significant(value))
        else:
            told[name] = _told(name, value, words)
    return told


def _told(name: str, value: float | int | str | None, words: Words) -> str:
    """Return a finding's value with the unit that its name ends in."""
    if value is None or isinstance(value, str):
        return words.say("unknown") if value is None else value
    if name == "minutes":
        if value < 1:
            return words.say("less than a minute")
        return words.say("about %(minutes)s min", minutes=words.number(value))
    if name.endswith("_ms"):
        return words.say("%(ms)s ms", ms=words.significant(value))
    if name.endswith("flops_per_s"):
        return f"{words.significant(value / TFLOP)} TFLOPS"
    if name.endswith("bytes_per_s"):
        return f"{words.significant(value / GB)} GB/s"
    if name.endswith("_bytes"):
        return f"{words.significant(value / GB)} GB"
    if name in ("share", "cpu_share", "gpu_fraction"):
        return words.say("%(value)s %%", value=words.number(100 * value))
    return words.number(value) if float(value).is_integer() else words.significant(value)
