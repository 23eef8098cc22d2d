"""The pages that exist once for the site: whole in both languages, and whole without data."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from roofbook.charts.cache import FigureCache
from roofbook.facts import Facts, load_facts
from roofbook.pages.concepts import CONCEPTS, World, concepts, tables
from roofbook.pages.engine import Engine
from roofbook.pages.press import Press
from roofbook.pages.prose import Written
from roofbook.pages.settings import read_settings
from roofbook.pages.subjects import subject_views
from roofbook.record import Run, RunFacts, read_run, read_runs, write_run
from roofbook.words import Words, load_words

ROOT = Path(__file__).parents[2]

Pages = dict[str, Written]
Make = Callable[[Sequence[Run], str], Pages]


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts(ROOT / "data" / "facts")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> FigureCache:
    return FigureCache(tmp_path_factory.mktemp("figures"))


@pytest.fixture(scope="module")
def words() -> dict[str, Words]:
    return {lang: load_words(ROOT / "templates" / "locale", lang) for lang in ("ko", "en")}


@pytest.fixture(scope="module")
def make(facts: Facts, cache: FigureCache, words: dict[str, Words]) -> Make:
    """Return a function from runs and a language to the concept pages by address."""

    def made(runs: Sequence[Run], lang: str) -> Pages:
        engine = Engine((ROOT / "templates", ROOT / "site_src"), words[lang])
        press = Press(engine, read_settings(ROOT / "mkdocs.yml"), lang)
        world = World(facts, runs, subject_views(runs, facts))
        return {one.page.uri: one for one in concepts(world, words[lang], press, cache)}

    return made


@pytest.fixture(scope="module")
def published() -> list[Run]:
    return [read_run(ROOT / "data" / "measured" / "article-2026-08-31.parquet")]


@pytest.fixture(scope="module")
def korean(make: Make, published: list[Run]) -> Pages:
    return make(published, "ko")


@pytest.fixture(scope="module")
def english(make: Make, published: list[Run]) -> Pages:
    return make(published, "en")


def anchors(page: Written) -> list[str]:
    return re.findall(r"\{: #([\w-]+) \}|id=\"([\w-]+)\"", page.page.markdown)


def numbers(page: Written) -> list[str]:
    """Return the numbers of the page's tables, as they read in either language."""
    cells = re.findall(r'<td class="rb-number">(.*?)</td>', page.page.markdown)
    return [re.sub(r"[^\d.,]", "", re.sub(r"<[^>]+>", "", cell).replace("&#126;", " ")) for cell in cells]


def test_both_languages_have_the_same_pages_figures_anchors_and_numbers(korean: Pages, english: Pages) -> None:
    assert list(korean) == list(english) == [one.uri for one in CONCEPTS]
    for uri, page in korean.items():
        twin = english[uri]
        assert list(page.page.figures) == list(twin.page.figures), uri
        assert anchors(page) == anchors(twin), uri
        assert [cell.replace("~", "") for cell in numbers(page)] == numbers(twin), uri


def test_every_sentence_is_translated(korean: Pages, words: dict[str, Words]) -> None:
    assert len(korean) == len(CONCEPTS)
    assert words["ko"].missing == set()


def test_every_page_opens_with_an_answer_and_a_figure(english: Pages) -> None:
    """One sentence, then the figure, before any heading of the second level."""
    for uri, one in english.items():
        opening = one.page.markdown.split("\n## ")[0]
        assert opening.count('class="rb-answer"') == 1, uri
        assert opening.count("data-figure") == 1, uri


def test_each_figure_has_its_table_as_csv(english: Pages) -> None:
    found = tables(english.values())
    assert "data/reference-decode-share.csv" in found
    assert len(found) == sum(len(one.page.figures) for one in english.values())


def test_published_figures_and_the_sites_own_are_told_apart_row_by_row(english: Pages) -> None:
    """Nine points of the article's subject have a decode rate; every other row is somebody else's."""
    (drawn,) = (one for one in english["reference.md"].drawn if one.figure.name == "decode-share")
    whose = [row[0] for row in drawn.figure.table.rows]
    assert whose.count("this site") == 9
    assert set(whose) == {"this site", "published", "published, read in a copy"}


def test_impossible_figures_are_named_and_hollow(english: Pages, facts: Facts) -> None:
    marked = [run for run in facts.published if "decode_impossible" in run.flagged]
    text = english["reference.md"].page.markdown
    listed = re.findall(r'^\d+\. \*\*<span lang="en">', text, re.MULTILINE)
    (drawn,) = (one for one in english["reference.md"].drawn if one.figure.name == "decode-share")
    assert len(listed) == len(marked) == 6
    assert sum(row[6] == "impossible" for row in drawn.figure.table.rows) == 6


def test_what_changes_a_decision_comes_first(english: Pages) -> None:
    text = english["claims.md"].page.markdown
    assert text.index("The KV type decides the budget") < text.index("Claims whose correction changes a decision")
    assert text.index("Claims whose correction changes a decision") < text.index("Other claims, corrected")
    assert len(re.findall(r"^\d\. \*\*", text, re.MULTILINE)) == 5


def test_a_prediction_says_what_the_other_form_of_the_law_would_be(english: Pages) -> None:
    """Six: 4.5263 x 16,384 + 2.0035e-4 x 16,384^2 = 128 s; eight: -57 + 4.671 x 16,384 + 1.681e-4 x 16,384^2 = 122."""
    text = english["next.md"].page.markdown
    assert "The law predicts <strong>128</strong> s" in text
    assert "With all 8 trusted lengths another form of the law is chosen, and that one says 122 s." in text


def test_a_report_without_rows_has_all_pages(make: Make) -> None:
    pages = make([], "en")
    assert "Nothing can be predicted yet" in pages["next.md"].page.markdown
    assert "nothing to hold to account" in pages["claims.md"].page.markdown
    assert pages["next.md"].drawn == pages["claims.md"].drawn == ()
    assert [len(pages[f"{name}.md"].drawn) for name in ("hardware", "memory", "runtimes", "reference")] == [1, 2, 1, 3]


def test_claims_about_an_unknown_machine_are_not_judged(make: Make, published: list[Run], tmp_path: Path) -> None:
    """Without the machine and the model there is nothing to recompute from; the pages say so and stand."""
    rows = [
        {"kind": "prefill_curve", "experiment": "curve", "phase": "measured", "status": "ok", "prompt_tokens": tokens,
         "prompt_tokens_wanted": tokens, "server_prefill_ms": 5.0 * tokens, "ttft_ms": 5.0 * tokens + 100,
         "machine": "nobodys-box", "model": "nobodys-model", "order_index": tokens, "run_id": "odd"}
        for tokens in (128, 256, 512, 1024, 2048)
    ]  # fmt: skip
    write_run(tmp_path, rows, RunFacts("odd", origin={"claims": published[0].facts.origin["claims"]}))
    pages = make(read_runs(tmp_path), "ko")
    assert pages["claims.md"].drawn == pages["next.md"].drawn == ()
    assert len(pages["reference.md"].drawn) == 3


def test_a_machine_that_describes_itself_is_known_on_these_pages(make: Make, facts: Facts, tmp_path: Path) -> None:
    """No catalogue has it: its run says what it is, and it stands among the machines whose curve bends."""
    rows = [
        {"kind": "prefill_curve", "experiment": "curve", "phase": "measured", "status": "ok", "prompt_tokens": tokens,
         "prompt_tokens_wanted": tokens, "server_prefill_ms": 5.0 * tokens + 1e-4 * tokens**2, "order_index": tokens,
         "ttft_ms": 5.0 * tokens + 1e-4 * tokens**2 + 100, "machine": "nobodys-box", "model": "llama3.1:8b",
         "quantization": "Q4_K_M", "run_id": "own"}
        for tokens in (128, 512, 1024, 2048, 4096, 8192)
    ]  # fmt: skip
    host = {"machine": "nobodys-box", "memory_bytes": 64 * 2**30}
    write_run(tmp_path, rows, RunFacts("own", host=host))
    (one,) = World(facts, read_runs(tmp_path), subject_views(read_runs(tmp_path), facts)).measured
    assert one.machine is not None
    assert one.machine.memory_bytes == 64 * 2**30
    (bends,) = (
        drawn for drawn in make(read_runs(tmp_path), "en")["reference.md"].drawn if drawn.figure.name == "bends"
    )
    assert [row[1] for row in bends.figure.table.rows if row[0] == "this site"] == ["nobodys-box"]
