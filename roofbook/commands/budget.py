"""``python -m roofbook budget MODEL --machine M``: does it fit, how many at once, how fast, what runs out first."""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from roofbook.commands.answer import Question, answer
from roofbook.commands.budget_json import as_json
from roofbook.commands.budget_text import as_text
from roofbook.commands.machine_source import find_machine
from roofbook.commands.model_source import find_model
from roofbook.errors import UsageError
from roofbook.facts import load_facts
from roofbook.places import places_here
from roofbook.theory.quantization import known_kv_type
from roofbook.theory.shapes import Range
from roofbook.units import GIB
from roofbook.words import load_words

UNKNOWN_KV: Final = "unknown"
MOST: Final = 100_000_000
"""Of tokens and of requests: more than anybody has, and still counted through in a second."""
DEFAULT_KV: Final = "f16"
"""What every runtime of the catalogue uses unless it is told otherwise: 16 bits a value."""


def run(arguments: Sequence[str], folder: Path | None = None) -> int:
    """Print the budget that *arguments* ask for and return the exit code.

    Raises UsageError, ReaderError, FactsError or EstimateError, each with the way out.
    """
    asked = _parser().parse_args(list(arguments))
    places = places_here(folder)
    facts = load_facts(places.facts)
    runtime = facts.runtime(asked.runtime)
    here = find_machine(asked.machine, facts)
    machine = here.fact
    found = find_model(asked.model, facts, runtime, asked.quantization)
    question = Question(
        model=found.model,
        machine=machine.machine,
        runtime=runtime,
        kv_type=_kv_type(asked.kv),
        context_tokens=asked.context,
        users=asked.users,
        reserve_bytes=None if asked.reserve is None else Range.of(asked.reserve * GIB),
        macos=here.macos if asked.macos is None else asked.macos,
        mac_limits=facts.mac_limits,
    )
    result = answer(question)
    if asked.json:
        print(json.dumps(as_json(result, found), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        chip = None if machine.machine.chip is None else facts.chips.get(machine.machine.chip.id)
        print(
            as_text(result, found, machine, chip, load_words(places.locale, asked.lang), kv_given=asked.kv is not None)
        )
    return 0


def _kv_type(given: str | None) -> str | None:
    """Return the type that the caches have; None where the caller says that nobody knows."""
    if given is None:
        return DEFAULT_KV
    if given == UNKNOWN_KV:
        return None
    if not known_kv_type(given):
        raise UsageError(
            "The KV type '%(kv)s' is not known. Known are f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl, fp8, two of "
            "them as K/V (q8_0/f16), and unknown",
            kv=given,
        )
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m roofbook budget",
        description="Does a model fit a machine, how many requests at once, how fast at best, what runs out first.",
    )
    parser.add_argument("model", metavar="MODEL", help="a catalogue's name, a config.json, a .gguf, or inspect's JSON")
    parser.add_argument(
        "--machine",
        required=True,
        metavar="M",
        help="an id of machines.yml, of a card in chips.yml, or a file of `collect facts`",
    )
    parser.add_argument("--kv", metavar="TYPE", help="type of the KV cache: f16 (default), q8_0, q4_0, fp8 ... unknown")
    parser.add_argument("--context", type=_count, default=4096, metavar="N", help="tokens a request, prompt and answer")
    parser.add_argument("--users", type=_count, default=1, metavar="N", help="requests at once")
    parser.add_argument("--quantization", metavar="Q", help="Q4_K_M, Q8_0, F16, AWQ ... (default: as the name says)")
    parser.add_argument(
        "--runtime", default="llama.cpp", metavar="R", help="an id of runtimes.yml (default: llama.cpp)"
    )
    parser.add_argument("--reserve", type=_gib, metavar="GIB", help="what the machine holds besides (default: 1 to 2)")
    parser.add_argument("--macos", type=_count, choices=(15, 26), help="the Mac's system (default: a range over both)")
    parser.add_argument("--json", action="store_true", help="the numbers as JSON, in bytes and seconds")
    parser.add_argument("--lang", default="en", metavar="LANG", help="en (default) or ko")
    return parser


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= len(str(MOST)) and 1 <= int(text) <= MOST:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from 1 to {MOST:,}")


def _gib(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of GiB from 0 on")
    return value
