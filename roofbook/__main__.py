"""The report's commands: ``python -m roofbook COMMAND``, each one module with ``run(arguments) -> exit code``."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from roofbook.errors import RoofbookError, WriteError
from roofbook.places import places_here
from roofbook.words import Words, load_words

COMMANDS: Final = {
    "budget": "roofbook.commands.budget",
    "import": "roofbook.commands.importer",
    "render": "roofbook.commands.render",
}
"""Name -> module, imported only when its command is called."""

EXIT_USAGE: Final = 2
EXIT_CANNOT_WRITE: Final = 5


def main(arguments: Sequence[str]) -> int:
    """Run the command that *arguments* name and return its exit code; what goes wrong is one line on stderr."""
    name, *rest = arguments or [""]
    if name in ("-h", "--help"):
        print(_usage())
        return 0
    if name not in COMMANDS:
        print(_usage(), file=sys.stderr)
        return EXIT_USAGE
    try:
        code: int = import_module(COMMANDS[name]).run(rest)
        sys.stdout.flush()
    except RoofbookError as problem:
        print(_words(rest).say(problem.message, **problem.values), file=sys.stderr)
        return EXIT_CANNOT_WRITE if isinstance(problem, WriteError) else EXIT_USAGE
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _usage() -> str:
    return f"usage: python -m roofbook COMMAND ...\ncommands: {', '.join(COMMANDS)} (each has --help)"


def _words(arguments: Sequence[str]) -> Words:
    """Return the language that *arguments* ask for; English where that very choice is what went wrong."""
    lang = "en"
    for place, argument in enumerate(arguments):
        if argument == "--lang" and place + 1 < len(arguments):
            lang = arguments[place + 1]
        elif argument.startswith("--lang="):
            lang = argument.removeprefix("--lang=")
    try:
        return load_words(places_here().locale, lang)
    except RoofbookError:
        return Words("en")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
