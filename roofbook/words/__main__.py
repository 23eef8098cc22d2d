"""``python -m roofbook.words [update]``: say what the catalogues of the report in this folder lack, or put it in."""

import argparse
import sys
from pathlib import Path

from roofbook.errors import RoofbookError
from roofbook.words.check import complaints
from roofbook.words.update import update


def main() -> int:
    """Print what is wrong with every language below templates/locale; return 1 where something is.

    With ``update``, first put every new sentence into its catalogue, without a translation, and take the dead ones out.
    """
    parser = argparse.ArgumentParser(prog="python -m roofbook.words")
    parser.add_argument("action", nargs="?", choices=("check", "update"), default="check")
    wanted = parser.parse_args()
    root = Path()
    languages = sorted(folder.name for folder in (root / "templates" / "locale").iterdir() if folder.is_dir())
    try:
        if wanted.action == "update":
            print(*(line for lang in languages for line in update(root, lang)), sep="\n")
        found = [f"{lang}: {text}" for lang in languages for text in complaints(root, lang)]
    except RoofbookError as problem:
        found = [str(problem)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
