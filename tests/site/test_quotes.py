"""Prose quotes numbers and figures by name: what it gets, and what a wrong name says."""

from pathlib import Path

import pytest
from markupsafe import Markup

from roofbook.charts.cache import Drawn
from roofbook.charts.figure import Figure, Table
from roofbook.errors import PageError
from roofbook.facts import Facts, load_facts
from roofbook.pages.library import Library, Placeable, Quotable, with_short_names
from roofbook.pages.quotes import PageQuotes
from roofbook.pages.settings import Named
from roofbook.pages.subjects import SubjectView, subject_views
from roofbook.record import Run, RunFacts, read_run
from roofbook.words import Words, load_words

ROOT = Path(__file__).parents[2]
RUN = "article-2026-08-31"


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts(ROOT / "data" / "facts")


@pytest.fixture(scope="module")
def run() -> Run:
    return read_run(ROOT / "data" / "measured" / f"{RUN}.parquet")


@pytest.fixture(scope="module")
def view(run: Run, facts: Facts) -> SubjectView:
    (view,) = subject_views([run], facts)
    return view


def figure(name: str) -> Drawn:
    return Drawn(Figure(name, "title", "description", "caption", (), Table((), ()), {}), {}, {})


def page_of(view: SubjectView, facts: Facts, words: Words | None = None, uri: str = "start.md") -> PageQuotes:
    measured = Quotable(view, {"prefill": "slug/prefill.md"}, [Placeable(figure("prefill"), "data/slug-prefill.csv")])
    named = {"m4": Named(view.slug, RUN), "elsewhere": Named("not-measured-here")}
    subjects = with_short_names([measured], named, [], facts, lambda _: [])
    return PageQuotes(Library(words or Words("en"), facts, subjects, named), uri)


def test_a_number_is_quoted_with_its_unit_and_what_it_stands_on(view: SubjectView, facts: Facts) -> None:
    """The text reads as prose; n and interval wait in the hint."""
    shown = page_of(view, facts).quote("m4", "baseline-74.ttft_ms")

    assert shown == Markup(
        '<span class="rb-quote" title="5 requests, 94 % interval 379 to 403 ms">394 ms</span>'
    )  # fmt: skip


def test_a_number_is_quoted_in_the_pages_language(view: SubjectView, facts: Facts) -> None:
    """Korean writes its units."""
    korean = load_words(ROOT / "templates" / "locale", "ko", strict=True)
    page = page_of(view, facts, korean)

    assert ">38.9~64.9초<" in page.quote("m4", "prefill.hold_out_ms.interval").unescape()
    assert ">8.9배<" in page.quote("m4", "prefill.cached_factor.3505.90")


def test_subject_machine_and_model_have_numbers(view: SubjectView, facts: Facts) -> None:
    """By short name, by address, by the catalogue's id."""
    page = page_of(view, facts)

    assert page.quote(view.slug, "prefill.a_ms_per_token", unit=False) == page.quote(
        "m4", "prefill.a_ms_per_token", unit=False
    )
    assert ">288 GB/s<" in page.quote("desktop-rtx-4060-ti-8gb", "bandwidth_bytes_per_s")
    assert ">68 KiB<" in page.quote("llama-3.1-8b", "kv_bytes.q8_0")


def test_numbers_are_compared(view: SubjectView, facts: Facts) -> None:
    """17,960 / 394 ms is 46 times; 288 / 120 GB/s is 2.4 times."""
    page = page_of(view, facts)

    assert ">46 times<" in page.ratio("m4", "baseline-3505.ttft_ms", "baseline-74.ttft_ms")
    assert ">2.4 times<" in page.ratio(
        "desktop-rtx-4060-ti-8gb", "bandwidth_bytes_per_s", "machine.bandwidth_bytes_per_s", "m4"
    )


def test_a_sentence_that_says_falls_fails_when_it_rises(view: SubjectView, facts: Facts) -> None:
    """19.3 to 17.0 tok/s is 12 % less, and no growth."""
    page, names = page_of(view, facts), ("prefill-128.decode_tok_per_s", "prefill-8192.decode_tok_per_s")

    assert ">12 %<" in page.falls("m4", *names)
    with pytest.raises(PageError, match=r"'prefill-8192\.decode_tok_per_s' is more than"):
        page.grows("m4", *names)


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("m5", "prefill.a_ms_per_token", r"Nothing is called 'm5'.*Near ones: .*m4"),
        ("m4", "prefill.a_ms_per_tokn", r"has no number 'prefill\.a_ms_per_tokn'\. Near ones: prefill\.a_ms_per_token"),
        ("m4", "baseline-75.ttft_ms", r"Near ones: .*baseline-74\.ttft_ms"),
        ("m4", "model.kv_bytes.q8", r"has no number 'model\.kv_bytes\.q8'"),
    ],
)  # fmt: skip
def test_a_wrong_name_says_the_near_ones(
    view: SubjectView, facts: Facts, source: str, name: str, said: str
) -> None:  # fmt: skip
    """The build stops with what was meant."""
    with pytest.raises(PageError, match=said):
        page_of(view, facts).quote(source, name)


def test_a_subject_nobody_measured_here_is_a_dash(view: SubjectView, facts: Facts) -> None:
    """mkdocs.yml may name a subject whose rows were taken out: the page says what is missing and can be built."""
    page = page_of(view, facts)

    assert page.quote("elsewhere", "prefill.a_ms_per_token") == (
        '<span class="rb-unknown" title="unknown">–</span>'
    )  # fmt: skip
    assert page.chart("elsewhere", "prefill") == ""
    assert page.where("elsewhere") == "index.md"
    assert (list(page.absent), list(page.quoted)) == (["elsewhere"], [])


def test_an_unknown_value_is_a_dash_too(view: SubjectView, facts: Facts) -> None:
    """A cache hit has no prefill time; the name is right all the same."""
    assert "–" in page_of(view, facts).quote("m4", "same-prompt-3473.prefill_ms")


def test_a_figure_is_placed_with_its_own_anchor(view: SubjectView, facts: Facts) -> None:
    """Two subjects' figures of one kind may stand on one page; the table is published once."""
    page = page_of(view, facts)

    assert page.chart("m4", "prefill") == '\n<div id="fig-m4-prefill" data-figure></div>\n'
    assert page.tables == {"fig-m4-prefill": "data/slug-prefill.csv"}
    with pytest.raises(PageError, match=r"'m4' has no figure 'prefil'; there are: prefill"):
        page.chart("m4", "prefil")


def test_links_to_a_subjects_pages_hold_from_anywhere(view: SubjectView, facts: Facts) -> None:
    """Relative to the page that has the link."""
    assert page_of(view, facts).where("m4") == "slug/prefill.md"
    assert page_of(view, facts, uri="posts/2026-09-02-x.md").where("m4", "prefill") == "../slug/prefill.md"
    with pytest.raises(PageError, match="there are: prefill"):
        page_of(view, facts).where("m4", "speed")


def test_a_short_name_may_mean_one_run_only(run: Run, view: SubjectView, facts: Facts) -> None:
    """With a second run of the subject, the log of a day still quotes that day's rows; the address means them all."""
    clocks = ["server_prefill_ms", "ttft_ms", "e2e_ms"]
    slower = run.rows.assign(run_id="later", **{clock: run.rows[clock] + 50 for clock in clocks})
    later = Run(RunFacts("later"), slower, run.path)
    (both,) = subject_views([run, later], facts)
    measured = Quotable(both, {"prefill": "slug/prefill.md"}, [])
    named = {"m4": Named(view.slug, RUN), "gone": Named(view.slug, "another-run")}
    subjects = with_short_names([measured], named, [run, later], facts, lambda _: [figure("prefill")])
    page = PageQuotes(Library(Words("en"), facts, subjects, named), "start.md")

    assert ">394 ms<" in page.quote("m4", "baseline-74.ttft_ms")
    # 379 384 394 394 403 of that day, 429 434 444 444 453 later: (403 + 429) / 2.
    assert ">416 ms<" in page.quote(both.slug, "baseline-74.ttft_ms")
    assert subjects["m4"].figures[0].csv == "data/m4-prefill.csv"
    assert "–" in page.quote("gone", "baseline-74.ttft_ms")


def test_the_list_says_where_a_number_without_an_interval_comes_from(view: SubjectView, facts: Facts) -> None:
    """A data sheet, a claim, a calculation, a row."""
    page, words = page_of(view, facts), Words("en")
    names = ["machine.bandwidth_bytes_per_s", "claim.memory.requests_4k", "crossover_requests.4096", "prefill.lengths"]
    for name in names:
        page.quote("m4", name)

    assert [page.quoted["m4", name].footing(words) for name in names] == [
        "the catalogue of facts, with its sources",
        "as it was published",
        "theory, from the catalogue",
        "the rows themselves",
    ]
