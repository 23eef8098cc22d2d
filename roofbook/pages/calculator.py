"""The calculators: one page that computes in the reader's browser, with the answers to its first questions for others.

The browser combines what ``calculator_data`` hands over; its sentences come with the page, so it speaks one language.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from roofbook.facts import Facts
from roofbook.pages.calculator_answers import answers, first_case
from roofbook.pages.calculator_data import calculator_data, choices
from roofbook.pages.press import Press
from roofbook.pages.prose import Head, Written
from roofbook.pages.subjects import SubjectView
from roofbook.words import Words, mark

URI: Final = "calculator.md"
_ORDER: Final = 45
"""Behind the page on memory."""

BLOCKS: Final = ("setup", "memory", "prompt", "ceiling")
"""The parts of the page that a script brings to life; each has its place in the text."""

LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "context": (1, 10_000_000), "users": (1, 100_000), "reserve": (0, 1_000), "target": (0.05, 600),
    "cached": (0, 99), "prompt": (1, 1_000_000), "batch": (1, 10_000),
}  # fmt: skip
"""What each field takes: far beyond any server, and small enough for every count to stay exact."""

_PLACE: Final = re.compile(r"%\((\w+)\)s")

SENTENCES: Final[Mapping[str, str]] = {
    "unknown": mark("unknown"),
    "own": mark("Measured here"),
    "machines": mark("Whole machines"),
    "cards": mark("Graphics cards"),
    "models": mark("Catalogue"),
    "chosen": mark("your own choice"),
    "problem_whole": mark("A whole number from %(low)s to %(high)s, please."),
    "problem_number": mark("A number from %(low)s to %(high)s, please."),
    "problem_link": mark("The address asks for '%(value)s', which is not among these."),
    "mend": mark("Mend the marked field, and the answer comes back."),
    # memory
    "fits_yes": mark("Yes: %(needed)s of %(limit)s GiB are taken"),
    "fits_perhaps": mark("Perhaps: that depends on what is a range below"),
    "fits_no": mark("No: %(needed)s GiB are needed and %(limit)s are there; %(lacking)s GiB are lacking"),
    "fits_unknown": mark("Unknown: the weights of this model cannot be estimated"),
    "limit_unknown": mark("Unknown: nobody said how much memory this machine has"),
    "at_once": mark("%(count)s requests of %(tokens)s tokens each, prompt and answer together"),
    "at_once_none": mark("Not one"),
    "at_once_endless": mark("As many as you like: this model's state does not grow"),
    "ask_at_once": mark("How many at once?"),
    "ask_first": mark("What runs out first?"),
    "first_context": mark("The model's context: %(tokens)s tokens at most"),
    "first_weights": mark("Memory, before the first request: weights and reserve leave no room"),
    "first_arithmetic": mark(
        "Arithmetic: from %(batch)s requests at once on, decode waits for computing, not for memory"
    ),
    "first_memory": mark("Memory: after %(count)s requests there is no room for another cache"),
    "item": mark("Item"),
    "size": mark("Size"),
    "limit": mark("the GPU may use"),
    "weights": mark("weights"),
    "projector": mark("projector"),
    "caches": mark("caches of %(users)s requests"),
    "caches_bar": mark("caches"),
    "caches_one": mark("cache of the one request"),
    "reserve": mark("reserve"),
    "left": mark("left over"),
    "lacking": mark("lacking"),
    "basis_reported": mark("as the system reports it"),
    "basis_wired_limit": mark("as iogpu.wired_limit_mb sets it"),
    "basis_observed": mark("as seen on such Macs with macOS %(macos)s"),
    "basis_rule": mark("by the rule of macOS %(macos)s; the engine's log has the exact figure"),
    "basis_rules": mark("by the rules of macOS 15 and 26: choose one above"),
    "basis_share": mark("0.92 of the memory, as vLLM takes it"),
    "basis_memory": mark("all of it"),
    "basis_tensors": mark("the file's tensors, to the byte"),
    "basis_file": mark("the file's size on disk"),
    "basis_by_rules": mark("by the rules of %(quantization)s, tensor by tensor"),
    "basis_params": mark("by the number of parameters"),
    "counted_all": mark("all of them"),
    "counted_device": mark("what lies on the device"),
    "token_bytes": mark("%(bytes)s bytes a token"),
    "held_slots": mark("reserved whole when the server starts"),
    "held_paged": mark("in pages of 16 tokens as it grows"),
    "held_growing": mark("grows with the request"),
    "reserve_set": mark("as you set it"),
    "reserve_paged": mark("an assumption: what its profiling run keeps back"),
    "reserve_assumed": mark("an assumption: desktop and buffers"),
    "each": mark("%(tokens)s tokens a request"),
    "command": mark("The same in a terminal:"),
    "by_kv": mark("Requests at once, by KV type"),
    "bar": mark("What is taken by what, against what the GPU may use"),
    # prompts
    "law_tokens": mark("%(tokens)s tokens, by what was measured here"),
    "law_band": mark("95 %% band %(low)s to %(high)s"),
    "law_endless": mark("no bound"),
    "law_none": mark("At most %(tokens)s tokens, by arithmetic; nobody has measured this combination here"),
    "law_nothing": mark("Unknown: nobody has measured this combination, nor is its arithmetic known"),
    "law_not_one": mark("Not one token, by what was measured here: %(ms)s ms of the wait are no prefill"),
    "law_beyond": mark("The law sets no bound within its reach."),
    "note_overhead": mark("%(ms)s ms of the wait are no prefill (median of the rows) and come off first."),
    "note_longest": mark("That is beyond the longest measured prompt, %(tokens)s tokens: the law is extrapolated."),
    "note_context": mark("The model's context ends at %(tokens)s tokens."),
    "note_misfit": mark("This model does not fit this machine: its weights and the reserve take more than there is."),
    "note_kv": mark("The law was measured with KV cache %(kv)s."),
    "basis": mark("By what"),
    "tokens": mark("Prompt tokens"),
    "fresh": mark("Of them not cached"),
    "row_law": mark("measured here"),
    "row_measured": mark("arithmetic, at rates measured without a model"),
    "row_datasheet": mark("arithmetic, at the datasheet's rates"),
    "at_most": mark("at most %(tokens)s"),
    # ceilings
    "alone": mark("%(empty)s tokens a second alone, %(full)s with %(tokens)s tokens behind it"),
    "together": mark("; %(users)s at once: %(each)s each, %(together)s together"),
    "no_bandwidth": mark("Not known: the catalogue has no bandwidth for this machine"),
    "ask_token": mark("First token?"),
    "first_token": mark(
        "Not before %(seconds)s s for a prompt of %(tokens)s tokens with nothing cached; at most %(rate)s such prompts "
        "a minute"
    ),
    "no_rate": mark("Not known: the catalogue has no arithmetic rate for this machine"),
    "ask_bound": mark("What bounds decode?"),
    "bound_memory": mark("Memory: reading weights and caches, whatever the number of requests"),
    "bound_turns": mark("Memory, up to %(batch)s requests at once; from there on arithmetic"),
    "bound_arithmetic": mark("Arithmetic: from %(batch)s requests on, more of them gain nothing"),
    "ask_step": mark("What does one step take?"),
    "step": mark("It reads %(read)s GB (weights %(weights)s, caches %(caches)s) and computes %(flops)s GFLOP"),
    "quantity": mark("At best"),
    "row_bandwidth": mark("memory (GB/s)"),
    "row_flops": mark("arithmetic (TFLOPS)"),
    "by_datasheet": mark("by the datasheet"),
    "by_measured": mark("by what was measured"),
    "col_alone": mark("alone (tok/s)"),
    "col_full": mark("at %(tokens)s tokens (tok/s)"),
    "col_together": mark("%(users)s together (tok/s)"),
    "col_first": mark("first token (s)"),
}
"""Everything that the script says, with its places."""


def calculator(facts: Facts, views: Sequence[SubjectView], words: Words, press: Press) -> list[Written]:
    """Return the page of the calculators; none where the catalogue has no model or no machine to compute with."""
    told = choices(facts, views, words)
    case = first_case(told, facts)
    if case is None:
        return []
    title = words.say("Calculators")
    context: dict[str, Any] = {
        "title": title,
        "drawn": [],
        "answers": answers(case, facts, words),
        "data": {
            "words": {name: _with_places(sentence, words) for name, sentence in SENTENCES.items()},
            "start": case.state,
            "limits": LIMITS,
            **calculator_data(told, facts),
        },
        "limits": LIMITS,
        "start": case.state,
        "has_subjects": bool(told.subjects),
    }
    page = press.page(URI, "pages/calculator.md.j2", context, title=title, label=title)
    blocks = {
        f"calculator-{name}": _one_block(press.part(URI, "parts/calculator.html.j2", {**context, "block": name}))
        for name in BLOCKS
    }
    return [Written(replace(page, figures=blocks), Head(title, title, _ORDER, "basics"))]


def _with_places(sentence: str, words: Words) -> str:
    """Return the sentence in its language, its places left for the script."""
    places = {name: f"%({name})s" for name in _PLACE.findall(sentence)}
    return words.say(sentence, **places)


def _one_block(html: str) -> str:
    """Return the HTML without blank lines: to Markdown one of them ends a block of HTML."""
    return re.sub(r"\n\s*\n", "\n", html).strip()
