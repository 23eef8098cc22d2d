"""The search index finds Korean words inside compounds, and can be read from a folder."""

import json
from pathlib import Path

from roofbook.pages.search import complete_search


def index(folder: Path, *texts: str) -> list[str]:
    """Complete an index of these texts and return what the texts have become."""
    (folder / "search").mkdir()
    path = folder / "search" / "search_index.json"
    docs = [{"location": str(number), "title": "", "text": text} for number, text in enumerate(texts)]
    path.write_text(json.dumps({"config": {}, "docs": docs}), encoding="utf-8")
    complete_search(folder)
    assert path.with_suffix(".js").read_text(encoding="utf-8") == f"var __index = {path.read_text(encoding='utf-8')}"
    return [doc["text"] for doc in json.loads(path.read_text(encoding="utf-8"))["docs"]]


def test_a_word_inside_a_compound_is_found(tmp_path: Path) -> None:
    """B47: 캐시 is a word of the second page, so 콜드캐시 of the first gets it; at a beginning it is found anyway."""
    assert index(tmp_path, "서버를 켰다. 콜드캐시 측정.", "<p>캐시</p> 캐시비율") == [
        "서버를 켰다. 콜드캐시 측정. 캐시",
        "<p>캐시</p> 캐시비율",
    ]


def test_a_site_without_search_is_left_alone(tmp_path: Path) -> None:
    """No index, nothing to do."""
    complete_search(tmp_path)

    assert list(tmp_path.iterdir()) == []
