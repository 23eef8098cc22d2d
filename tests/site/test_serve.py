"""`mkdocs serve`: what a writer sees while breaking and mending a report."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 60


@dataclass(frozen=True)
class Desk:
    """A report that is being written, and mkdocs serving it."""

    folder: Path
    address: str
    said: Path

    def page(self, uri: str) -> str:
        try:
            with urllib.request.urlopen(self.address + uri, timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:  # not there yet, or the last build has failed and mkdocs lets us wait
            return ""

    def wait_page(self, uri: str, word: str) -> None:
        """Return as soon as the page has *word* in it."""
        self._wait(lambda: word in self.page(uri), f"{word!r} in {uri}")

    def wait_said(self, word: str) -> None:
        """Return as soon as mkdocs has said *word*."""
        self._wait(lambda: word in self.said.read_text(encoding="utf-8"), repr(word))

    def edit(self, name: str, more: str) -> str:
        """Add *more* to the file's end and return what it was before."""
        path = self.folder / name
        before = path.read_text(encoding="utf-8")
        path.write_text(before + more, encoding="utf-8")
        return before

    def mend(self, name: str, content: str) -> None:
        (self.folder / name).write_text(content, encoding="utf-8")

    def _wait(self, reached: Any, what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not reached():
            assert time.monotonic() < until, f"no {what}; mkdocs said:\n{self.said.read_text(encoding='utf-8')}"
            time.sleep(0.1)


@pytest.fixture
def desk(make_report: Any, tmp_path: Path) -> Generator[Desk]:
    folder, said = make_report({}), tmp_path / "said.txt"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", at]
    with said.open("w", encoding="utf-8") as into:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, stdout=into, stderr=into
        )
    try:
        yield Desk(folder, f"http://{at}/", said)
    finally:
        process.terminate()
        process.wait(timeout=10)


def test_serving_goes_on_after_a_mistake_is_mended(desk: Desk) -> None:
    """A broken template and a broken fact file are named; mended, the page comes again with what was written since."""
    template, facts = "templates/pages/home.md.j2", "data/facts/chips.yml"
    desk.wait_page("index.html", "<article")

    whole = desk.edit(template, "\n{{ nothing }}\n")
    desk.wait_said(f"roofbook: {template}:")
    desk.mend(template, f"{whole}\nFirst word.\n")
    desk.wait_page("index.html", "First word.")

    whole_facts = desk.edit(facts, "\na: [\n")
    desk.wait_said(f'"{facts}", line')
    desk.mend(facts, whole_facts)
    desk.edit(template, "\nSecond word.\n")
    desk.wait_page("en/index.html", "Second word.")
