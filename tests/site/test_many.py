"""A site of many rows and many subjects: what is left out of a chart is told, and no page carries all the others."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from roofbook.charts.figure import MAX_ROWS, datasets

ROWS = 2_400
SUBJECTS = 8
PAGE_BYTES = 120_000

MAC = {"machine": "mac-mini-m4-32gb", "server": "ollama", "api": "ollama", "quantization": "Q4_K_M"}


@pytest.fixture(scope="module")
def many(make_report: Any, build: Any, curve_rows: Any) -> Path:
    """One subject with 400 requests of each of six lengths, and seven that never answered."""
    runs = {"run-0": curve_rows((250, 500, 1000, 2000, 4000, 8000), repeats=ROWS // 6, **MAC, model="model-0:7b")}
    for number in range(1, SUBJECTS):
        failed = {"status": "timeout", "server_prefill_ms": None, "ttft_ms": None, "output_tokens": None}
        runs[f"run-{number}"] = curve_rows([512], repeats=1, **MAC, **failed, model=f"model-{number}:7b")
    return build(make_report(runs))


def pages(site: Path, name: str) -> list[Path]:
    """Return the page of that name of the subject with many rows, in both languages."""
    return [*site.glob(f"*model-0-7b*/{name}.html"), *site.glob(f"en/*model-0-7b*/{name}.html")]


def test_a_chart_of_many_rows_says_what_it_leaves_out(many: Path) -> None:
    """B53: picture, live chart and table have as many of 2,400 rows as fit, and the caption tells both numbers."""
    for page in pages(many, "data"):
        markup = page.read_text(encoding="utf-8").split('id="fig-rows"')[1].split("</figure>")[0]
        spec = json.loads(re.findall(r'<template class="rb-spec">(.*?)</template>', markup)[0].replace("&quot;", '"'))
        caption = re.findall(r'<p class="rb-figure__caption">(.*?)</p>', markup)[0]

        assert markup.count("<tr>") == 1 + MAX_ROWS
        assert sum(len(rows) for rows in datasets(spec)) <= MAX_ROWS
        assert {f"{MAX_ROWS:,}", f"{ROWS:,}"} <= set(re.findall(r"[\d,]{3,}", caption))
    assert len(pages(many, "data")) == 2


def test_a_page_of_many_rows_stays_light(many: Path) -> None:
    """Compressed, no page weighs more than 120 kB."""
    heavy = {
        page.name: size for page in many.rglob("*.html") if (size := len(gzip.compress(page.read_bytes()))) > PAGE_BYTES
    }

    assert heavy == {}


def test_a_page_names_the_other_subjects_once(many: Path) -> None:
    """The menu of a subject's page has its own pages; of each other subject one link leads to the first."""
    (page,) = many.glob("en/*model-0-7b*/overview.html")
    menu = page.read_text(encoding="utf-8").split("md-sidebar--primary")[1].split("md-sidebar--secondary")[0]
    others = re.findall(r'href="\.\./([\w-]*model-[1-9][\w-]*)/', menu)

    assert len(others) == len(set(others)) == SUBJECTS - 1
    assert set(re.findall(r'href="(?:\./)?(\w+)\.html"', menu)) >= {"speed", "prefill", "memory", "data"}
