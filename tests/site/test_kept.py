"""Finished pages are kept, and computed anew as soon as anything they are made from has changed."""

from pathlib import Path
from typing import Any

import pytest

from roofbook.charts.cache import FigureCache
from roofbook.pages import report as report_pages
from roofbook.pages.kept import kept_site
from roofbook.pages.settings import read_settings
from roofbook.pages.site import Page, Site
from roofbook.places import Places


def test_what_was_kept_is_what_was_built(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages, figures, files and navigation come back as they were, and nothing is computed for them."""
    settings, figures = read_settings(report / "mkdocs.yml"), FigureCache(report / ".cache" / "roofbook")
    built = kept_site(Places(report), settings, "ko", figures, tmp_path)
    monkeypatch.setattr(report_pages, "build_site", None)

    assert any(page.lead is not None for page in built.pages)
    assert {type(asset).__name__ for asset in built.assets.values()} >= {"bytes", "PosixPath"}
    assert kept_site(Places(report), settings, "ko", figures, tmp_path) == built


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The languages whose pages were really made, each in no time."""
    made: list[str] = []

    def build(places: Places, settings: Any, lang: str, figures: FigureCache) -> Site:  # noqa: ARG001
        made.append(lang)
        return Site(lang, (Page("index.md", "Home", "Home", "text"),), {})

    monkeypatch.setattr(report_pages, "build_site", build)
    return made


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A report's folder with one file in each of its rooms."""
    for name in ("data/measured/a.parquet", "data/facts/chips.yml", "templates/pages/a.md.j2", "site_src/ko/a.md"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("one")
    settings = "{site_name: A, extra: {report: {languages: {en: {name: English, site_name: A}}}}}"
    (tmp_path / "mkdocs.yml").write_text(settings)
    return tmp_path


def pages_of(folder: Path, lang: str = "en") -> Site:
    settings = read_settings(folder / "mkdocs.yml")
    return kept_site(Places(folder), settings, lang, FigureCache(None), folder / ".cache")


@pytest.mark.parametrize(
    "changed", ["data/measured/a.parquet", "data/facts/chips.yml", "templates/pages/a.md.j2", "site_src/ko/a.md"]
)
def test_a_changed_file_is_seen(small: Path, builds: list[str], changed: str) -> None:
    """One letter, of the same length and age, in any room of the report."""
    pages_of(small)
    pages_of(small)
    assert builds == ["en"]
    (small / changed).write_text("two")
    pages_of(small)
    assert builds == ["en", "en"]


def test_a_new_and_a_renamed_file_are_seen(small: Path, builds: list[str]) -> None:
    """A run that was added, and one that has another name now."""
    pages_of(small)
    (small / "data" / "measured" / "b.parquet").write_text("one")
    pages_of(small)
    (small / "data" / "measured" / "b.parquet").rename(small / "data" / "measured" / "c.parquet")
    pages_of(small)
    assert builds == ["en"] * 3


def test_other_settings_are_seen(small: Path, builds: list[str]) -> None:
    """A site of another name is another site."""
    pages_of(small)
    path = small / "mkdocs.yml"
    path.write_text(path.read_text().replace("site_name: A}}", "site_name: B}}"))
    pages_of(small)
    assert builds == ["en", "en"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'{"key": 1}'])
def test_a_damaged_file_is_made_again(small: Path, builds: list[str], damage: bytes) -> None:
    """Half a file, or another one, is no reason to fail."""
    pages_of(small)
    (small / ".cache" / "site-en.json").write_bytes(damage)
    assert pages_of(small).lang == "en"
    assert builds == ["en", "en"]


def test_each_language_is_kept_by_itself(small: Path, builds: list[str]) -> None:
    """The second language does not put the first one out."""
    for lang in ("en", "ko", "en", "ko"):
        pages_of(small, lang)
    assert builds == ["en", "ko"]


def test_what_failed_is_not_kept(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that stops leaves nothing that a later one could take for pages."""

    def fails(*_: Any) -> Site:
        raise LookupError

    monkeypatch.setattr(report_pages, "build_site", fails)
    with pytest.raises(LookupError):
        pages_of(small)
    assert not (small / ".cache").exists()
