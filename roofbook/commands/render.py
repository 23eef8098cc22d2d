"""``python -m roofbook render --out DIR``: the finished Markdown of every language, for any site builder."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from roofbook.pages.render import render
from roofbook.pages.settings import read_settings
from roofbook.places import places_here

_HOW: Final = """Write the report as Markdown that any site builder can publish. The other builder needs three things
from mkdocs.yml: its markdown_extensions, pages that are called NAME.html (use_directory_urls: false), and the files of
extra_css and extra_javascript on every page."""


def run(arguments: Sequence[str]) -> int:
    """Write the pages into the folder named by ``--out`` and return the exit code.

    Raises a RoofbookError that names what is wrong with the report or the folder.
    """
    parser = argparse.ArgumentParser(prog="python -m roofbook render", description=_HOW)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    wanted = parser.parse_args(list(arguments))
    places = places_here()
    pages = render(places, read_settings(places.root / "mkdocs.yml"), wanted.out, places.root / ".cache" / "roofbook")
    print(f"{len(pages)} pages: {wanted.out}")
    return 0
