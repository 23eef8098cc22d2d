"""``python -m collect``: measure a plan, or look before measuring.

Exit codes: 0 measured; 2 the plan or the call is wrong; 3 no such server answers; 4 finished, but requests failed or
cells were refused; 5 cannot write; 130 and 143 stopped by a signal, with what was measured kept.
"""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from collect import host, server
from collect.doctor import examine
from collect.hardware import describe_host
from collect.run import Order, collect
from collect.screen import Screen
from collect.tell import Tell
from roofbook.errors import EngineError, ModelError, RoofbookError, ServerError, WriteError
from roofbook.facts import load_facts
from roofbook.places import places_here
from roofbook.words import SOURCE_LANGUAGE, Words, load_words

EXIT_DONE: Final = 0
EXIT_WRONG: Final = 2
EXIT_NO_SERVER: Final = 3
EXIT_CANNOT_WRITE: Final = 5
EXIT_STOPPED: Final = 130

_JSON_COMMANDS: Final = ("inspect", "facts")
_DEFAULT_PLAN: Final = Path("plans/first.yml")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the collector's command line and return its exit code."""
    asked = _parse(sys.argv[1:] if argv is None else argv)
    # What a command prints as JSON is read by a program: a problem must not stand among it.
    out = sys.stderr if asked.command in _JSON_COMMANDS else sys.stdout
    tell = Tell(Words(SOURCE_LANGUAGE), out)
    try:
        places = places_here()
        tell = Tell(load_words(places.locale, asked.lang), out)
        match asked.command:
            case "doctor":
                return examine(asked.plan, places, tell)
            case "inspect":
                Screen(sys.stdout).line(_json(server.inspect(asked.url).as_json()))
                return EXIT_DONE
            case "facts":
                described = {**describe_host(load_facts(places.facts)), "ceilings": asdict(host.measure_ceilings())}
                Screen(sys.stdout).line(_json(described))
                return EXIT_DONE
            case _:
                return collect(_order(asked), places, tell)
    except RoofbookError as problem:
        tell.problem(problem)
        return _exit_code(problem)
    except KeyboardInterrupt:
        tell.line(tell.words.say("Stopped"))
        return EXIT_STOPPED


def _order(asked: argparse.Namespace) -> Order:
    return Order(asked.plan, asked.out, asked.resume, asked.dry_run, asked.lang)


def _exit_code(problem: RoofbookError) -> int:
    match problem:
        case ModelError():
            return EXIT_WRONG
        case ServerError() | EngineError():
            return EXIT_NO_SERVER
        case WriteError():
            return EXIT_CANNOT_WRITE
        case _:
            return EXIT_WRONG


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return what is asked: a command by its first word, else the plan to measure."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--lang", default=SOURCE_LANGUAGE, metavar="LANG", help="the language of messages: en or ko")
    parser = argparse.ArgumentParser(
        prog="python -m collect", parents=[common], description="Measure an LLM server by a plan.",
        epilog="also: doctor [PLAN] looks before a long run; inspect URL prints what a server tells of itself; facts "
        "prints what this machine is and what its processor reaches",
    )  # fmt: skip
    match list(argv[:1]):
        case ["doctor"]:
            parser = argparse.ArgumentParser(prog="python -m collect doctor", parents=[common])
            parser.add_argument("plan", type=Path, nargs="?", default=_DEFAULT_PLAN, metavar="PLAN")
        case ["inspect"]:
            parser = argparse.ArgumentParser(prog="python -m collect inspect", parents=[common])
            parser.add_argument("url", metavar="URL", help="such as http://127.0.0.1:11434")
        case ["facts"]:
            parser = argparse.ArgumentParser(prog="python -m collect facts", parents=[common])
        case _:
            parser.add_argument("plan", type=Path, metavar="PLAN", help="a plan, such as plans/first.yml")
            parser.add_argument("--out", type=Path, metavar="DIR", help="where the rows go (default: data/measured)")
            parser.add_argument("--resume", metavar="RUN_ID", help="take up a run that was stopped")
            parser.add_argument("--dry-run", action="store_true", help="say what would be measured, and send nothing")
            return parser.parse_args(argv, argparse.Namespace(command="measure"))
    return parser.parse_args(argv[1:], argparse.Namespace(command=argv[0]))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def process() -> NoReturn:
    """Run as a process, which one Ctrl-C stops; more of them do not change how it ends."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _stop_once)
    try:
        code = main()
    except KeyboardInterrupt:
        code = EXIT_STOPPED
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def _stop_once(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    process()
