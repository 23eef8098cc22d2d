"""The search index, made to find what a reader of Korean types, and to be read from a folder."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

_WORD: Final = re.compile(r"[가-힣]{2,}")
_TAG: Final = re.compile(r"<[^>]*>")
_SHORTEST: Final = 2


def complete_search(folder: Path) -> None:
    """Rewrite FOLDER/search/search_index.json with the inner words of compounds, and beside it as a script.

    The search finds the beginnings of words: 예산 inside 메모리예산표 only if it stands there as a word of its own too.
    The script is for a site opened from a folder, where nothing can be fetched.
    """
    path = folder / "search" / "search_index.json"
    if not path.is_file():
        return
    index: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    known = {word for entry in index["docs"] for word in _words(entry)}
    for entry in index["docs"]:
        inner = sorted(set(_inner_words(_words(entry), known)))
        if inner:
            entry["text"] = f"{entry['text']} {' '.join(inner)}"
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".js").write_text(f"var __index = {text}", encoding="utf-8")


def _words(entry: dict[str, Any]) -> set[str]:
    return set(_WORD.findall(_TAG.sub(" ", f"{entry['title']} {entry['text']}")))


def _inner_words(words: Iterable[str], known: set[str]) -> Iterator[str]:
    """Yield the known words that stand inside *words*, but not at their beginning, where they are found anyway."""
    for word in words:
        for start in range(1, len(word) - _SHORTEST + 1):
            for end in range(start + _SHORTEST, len(word) + 1):
                if word[start:end] in known:
                    yield word[start:end]
