"""What the findings say, in words: a short name for a table, a sentence with its numbers for the page."""

from collections.abc import Iterable, Mapping
from typing import Final

from roofbook.units import GB, TFLOP
from roofbook.validity import Finding
from roofbook.words import Words, mark

NAMES: Final[Mapping[str, str]] = {
    "cold_load": mark("cold load"),
    "reload": mark("reload"),
    "cached_prefix": mark("cache hit"),
    "cached_prefix_implied": mark("likely cache hit"),
    "above_compute_peak": mark("faster than the chip"),
    "above_bandwidth": mark("faster than the memory"),
    "near_bandwidth": mark("close to the memory's peak"),
    "truncated": mark("prompt cut off"),
    "short_output": mark("short output"),
    "empty_output": mark("no output"),
    "no_answer": mark("no answer"),
    "buffered": mark("buffered stream"),
    "coalesced": mark("tokens in lumps"),
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
    "unreliable": mark("many failures"),
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
    "truncated": mark(
        "The server read %(prompt_tokens)s of %(wanted_tokens)s prompt tokens: the rest did not fit the context."
    ),
    "short_output": mark("The answer ended after %(output_tokens)s of %(wanted_tokens)s tokens."),
    "empty_output": mark("No token came back; %(wanted_tokens)s were asked for."),
    "no_answer": mark("All %(output_tokens)s tokens went into thinking; there was no answer."),
    "buffered": mark(
        "The stream came in %(chunks)s pieces within %(span_ms)s at the end of %(e2e_ms)s: something held it back."
    ),
    "coalesced": mark("Tokens came in lumps (%(chunks)s pieces), so single gaps cannot be timed."),
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
    "outlier": mark("%(figure)s was %(value)s; the other rows of this point lie around %(usual)s."),
    "estimated_counts": mark("Token counts of %(estimated)s of %(rows)s rows are estimates, not the server's."),
    "unreliable": mark("%(failed)s of %(requests)s requests failed, so what is left may be the lucky ones."),
    "too_few": mark("%(statistic)s needs %(needed)s rows; there are %(n)s."),
    "drifted": mark("The fixed test point changed by %(share)s during the run (%(figure)s: %(first)s, then %(last)s)."),
}


def name_of(finding: Finding, words: Words) -> str:
    """Return the short name of the doubt."""
    return words.say(NAMES[finding.kind])


def sentence(finding: Finding, words: Words) -> str:
    """Return the doubt as a sentence with its numbers."""
    return words.say(
        SENTENCES[finding.kind], **{name: _told(name, value, words) for name, value in finding.values.items()}
    )


def by_kind(found: Iterable[Finding], words: Words) -> list[tuple[str, str, int]]:
    """Return each kind of doubt once: its name, the sentence of its first case, and how many rows have it."""
    kinds: dict[str, list[Finding]] = {}
    for finding in found:
        kinds.setdefault(finding.kind, []).append(finding)
    return [
        (name_of(cases[0], words), sentence(cases[0], words), len({(case.run_id, case.order_index) for case in cases}))
        for cases in kinds.values()
    ]


def _told(name: str, value: float | int | str | None, words: Words) -> str:
    """Return a finding's value with the unit that its name ends in."""
    if value is None or isinstance(value, str):
        return words.say("unknown") if value is None else value
    if name.endswith("_ms"):
        return words.say("%(ms)s ms", ms=words.significant(value))
    if name.endswith("flops_per_s"):
        return f"{words.significant(value / TFLOP)} TFLOPS"
    if name.endswith("bytes_per_s"):
        return f"{words.significant(value / GB)} GB/s"
    if name.endswith("_bytes"):
        return f"{words.significant(value / GB)} GB"
    if name in ("share", "cpu_share", "gpu_fraction"):
        return f"{words.number(100 * value)} %"
    return words.number(value) if float(value).is_integer() else words.significant(value)
