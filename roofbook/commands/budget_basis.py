"""What an answer of ``budget`` rests on: the sources of its figures, what nobody checked, what was assumed."""

from collections.abc import Iterator
from typing import Final

from roofbook.commands.answer import Answer
from roofbook.commands.model_source import Found
from roofbook.commands.table import columns
from roofbook.facts import ChipFact, MachineFact, Provenance
from roofbook.words import Words

_NAMES: Final = ("aliases", "names")
"""Keys that no number here follows from."""
_ACCELERATORS: Final = {"apple": "metal", "nvidia": "cuda", "amd": "rocm", "intel": "vulkan"}


def basis(
    result: Answer, found: Found, machine: MachineFact, chip: ChipFact | None, words: Words, *, kv_given: bool
) -> list[str]:
    pairs = list(_reasons(result, found, machine, chip, words, kv_given=kv_given))
    return [words.say("What this rests on"), *columns(pairs, wrap=True)] if pairs else []


def _reasons(
    result: Answer, found: Found, machine: MachineFact, chip: ChipFact | None, words: Words, *, kv_given: bool
) -> Iterator[tuple[str, str]]:
    if found.reading is not None:
        yield words.say("model"), found.reading.source
        if found.reading.missing:
            yield ("", words.say("it does not say: %(fields)s", fields=", ".join(found.reading.missing)))
    elif found.provenance is not None:
        yield from _sourced(words.say("model"), found.provenance, words)
    if found.quantization_assumed:
        yield words.say("quantization"), words.say("assumed; choose another by --quantization")
    if not kv_given:
        yield words.say("KV type"), words.say("the runtimes' default; what yours was started with decides")
    if chip is not None:
        yield from _sourced(words.say("chip"), chip.provenance, words)
        if chip.chip.measured is not None and result.measured is not None:
            yield words.say("measured"), chip.chip.measured.source
    yield from _runs_here(result, machine, words)


def _sourced(label: str, provenance: Provenance, words: Words) -> Iterator[tuple[str, str]]:
    yield label, provenance.source
    yield from (("", f"{key}: {source}") for key, source in provenance.sources.items())
    unchecked = [key for key in provenance.unverified if key not in _NAMES]
    if unchecked:
        yield "", words.say("nobody checked: %(keys)s", keys=", ".join(unchecked))


def _runs_here(result: Answer, machine: MachineFact, words: Words) -> Iterator[tuple[str, str]]:
    """Say how many requests the runtime serves unasked, and where it runs on this machine not at all or by a detour."""
    runtime, chip = result.question.runtime, machine.machine.chip
    if runtime.default_slots is not None:
        yield (
            runtime.name,
            words.say_n(
                "serves %(n)d request at once unless told otherwise",
                "serves %(n)d requests at once unless told otherwise",
                runtime.default_slots,
            ),
        )
    accelerator = "cpu" if chip is None or chip.memory_kind == "cpu" else _ACCELERATORS.get(chip.vendor or "", "cpu")
    seen = runtime.seen
    match runtime.runs.get(accelerator):
        case "none":
            how = words.say("does not run on %(accelerator)s (as of %(seen)s)", accelerator=accelerator, seen=seen)
        case "plugin":
            how = words.say("runs on %(accelerator)s by a plugin (as of %(seen)s)", accelerator=accelerator, seen=seen)
        case "source":
            how = words.say(
                "runs on %(accelerator)s only when built from source (as of %(seen)s)",
                accelerator=accelerator,
                seen=seen,
            )
        case _:
            return
    yield runtime.name, how
