"""A warm build of the shipped site against a plain Material build of the same pages."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from roofbook.charts.cache import FigureCache
from roofbook.pages.render import with_figures
from roofbook.pages.report import build_site
from roofbook.pages.settings import read_settings
from roofbook.places import Places
from tests.bench.folder import build, report
from tests.bench.goal import Goal

TITLE = "the shipped site, warm, against plain mkdocs-material"
TIMES = 2


def lines() -> Iterator[str | Goal]:
    """Build both in turn, twice, and compare the fastest of each."""
    with report() as ours, TemporaryDirectory(prefix="bench-") as name:
        cold = build(ours)
        whole, bare = Path(name) / "whole", Path(name) / "bare"
        pages = plain(ours, whole, figures=True)
        plain(ours, bare, figures=False)
        costs = [[build(folder) for folder in (ours, whole, bare)] for _ in range(TIMES)]
        warm, plain_whole, plain_bare = (min(cost.cpu_s for cost in one) for one in zip(*costs, strict=True))
    yield (
        f"{pages} pages in two languages; cold {cold.cpu_s:.1f} s of computing ({cold.wall_s:.1f} s on the wall), "
        f"{cold.memory_mb:.0f} MB; warm {warm:.1f} s"
    )
    yield f"plain mkdocs-material of the same pages: {plain_whole:.1f} s; of their text alone: {plain_bare:.1f} s"
    yield Goal("warm build over a plain one of the same pages", warm / plain_whole, 1.5)
    yield f"over a plain build of the text alone: {warm / plain_bare:.2f}"


def plain(folder: Path, out: Path, *, figures: bool) -> int:
    """Write the pages of both languages into *out* as a site without any plugin of ours; return how many."""
    settings = read_settings(folder / "mkdocs.yml")
    count = 0
    for language in settings.languages:
        site = build_site(Places(folder), settings, language.code, FigureCache(folder / ".cache" / "roofbook"))
        for page in site.pages:
            path = out / "docs" / language.code / page.uri
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(with_figures(page) if figures else page.markdown, encoding="utf-8")
            count += 1
    shutil.copytree(folder / "site_src" / "assets", out / "docs" / "assets")
    config = yaml.load((folder / "mkdocs.yml").read_text(encoding="utf-8"), Loader=_Plain)
    config |= {"docs_dir": "docs", "plugins": ["search"], "extra": {}, "validation": {}, "site_url": ""}
    config["theme"].pop("custom_dir")
    (out / "mkdocs.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return count


class _Plain(yaml.SafeLoader):
    """Takes mkdocs' own tag for the environment as nothing."""


_Plain.add_constructor("!ENV", lambda *_: "")
