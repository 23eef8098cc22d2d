"""``python -m roofbook render --out DIR``: the finished Markdown of every language, for any site builder."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from roofbook.pages.render import render
from roofbook.pages.settings import read_settings
from roofbook.places import places_here


def run(arguments: Sequence[str]) -> int:
    """Write the pages into the folder named by ``--out`` and return the exit code.

    Raises a RoofbookError that names what is wrong with the report or the folder.
    """
    parser = argparse.ArgumentParser(prog="python -m roofbook render", description="Write the report as Markdown.")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    wanted = parser.parse_args(list(arguments))
    places = places_here()
    pages = render(places, read_settings(places.root / "mkdocs.yml"), wanted.out, places.root / ".cache" / "roofbook")
    print(f"{len(pages)} pages: {wanted.out}")
    return 0
