"""The published site's Korean pages: no English stands on them but names, units, code, and others' own words."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest

_SMALL_WORDS: Final = (
    "a|an|and|are|as|at|be|been|but|by|can|do|does|for|from|has|have|how|if|in|into|is|it|its|may|more|no|not|of|on|or|"
    "so|than|that|the|their|then|there|these|they|this|to|was|were|what|when|where|which|who|why|will|with|you|your"
)
ENGLISH: Final = re.compile(
    rf"[A-Za-z'-]+ (?:{_SMALL_WORDS}) [A-Za-z'-]+"  # "Desktop with a": a small word between two others
    rf"|(?:^|[.!?] )(?:{_SMALL_WORDS}) [a-z]+"
    r"|\b[a-z]{2,} [a-z]{2,} [a-z]{3,}\b",  # three plain words in a row
)
_QUIET: Final = {"script", "style", "code", "pre", "kbd", "template", "noscript"}
_VOID: Final = {"meta", "link", "br", "hr", "img", "input", "source", "wbr"}
_INLINE: Final = {"a", "strong", "em", "b", "i", "s", "sup", "sub", "small", "abbr", "tspan"}
_SPOKEN: Final = ("title", "aria-label", "alt", "placeholder", "content")


class Korean(HTMLParser):
    """What a reader or listener meets of a page in the page's own language, block by block."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = [""]
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        elsewhere = (said.get("lang") or "ko") != "ko" or tag in _QUIET
        quiet = elsewhere or self._quiet
        if tag not in _INLINE:
            self.blocks.append("")
        if not quiet and not (tag == "meta" and said.get("name") not in ("description",)):
            self.blocks += [said[name] or "" for name in _SPOKEN if said.get(name)] + [""]
        if tag not in _VOID:
            self._open.append((tag, quiet))

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            closed, _ = self._open.pop()
            if closed == tag:
                break
        if tag not in _INLINE:
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        if not self._quiet:
            self.blocks[-1] += data

    @property
    def _quiet(self) -> bool:
        return bool(self._open) and self._open[-1][1]


def english_in(source: str) -> list[str]:
    parser = Korean()
    parser.feed(source)
    texts = [" ".join(block.split()) for block in parser.blocks]
    return [text for text in texts if ENGLISH.search(text)]


def test_no_english_sentence_stands_on_a_korean_page(shipped: Path) -> None:
    """Every page at the root of the published site, what is drawn and what is only heard among it."""
    pages = [path for path in shipped.rglob("*.html") if "en" not in path.relative_to(shipped).parts]
    found = {path.relative_to(shipped).as_posix(): found for path in pages if (found := english_in(path.read_text()))}
    assert len(pages) > 20
    assert found == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>Desktop with a GeForce RTX 4060 Ti 8 GB</p>", True),
        ("<p>시간은 <b>the</b> time it takes</p>", True),
        ('<td title="not measured yet here">–</td>', True),
        ('<p>출처: <span lang="en">the card\'s entry in chips.yml</span></p>', False),
        ("<p><code>ollama pull the model</code> 명령을 실행하세요.</p>", False),
        ("<p>Mac mini M4, 32 GB · qwen2.5:7b Q4_K_M · Ollama</p>", False),
    ],
)
def test_english_is_told_from_names(source: str, found: bool) -> None:
    assert bool(english_in(source)) is found
