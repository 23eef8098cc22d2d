"""A subject's five pages: what the published day says on them, and what they say where data are few, odd or hostile.

Expected figures come from the published runs by hand (shown beside them), or from an independent recomputation of the
published day that the repository's issue lists.
"""

import html
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from collect.plan.load import read_plan
from collect.plan.resolve import resolve
from roofbook.charts.cache import Drawn, FigureCache
from roofbook.charts.figure import checked
from roofbook.facts import load_facts
from roofbook.pages.downloads import plan_files, row_files, run_files
from roofbook.pages.engine import Engine
from roofbook.pages.plan_file import plan_text
from roofbook.pages.press import Press
from roofbook.pages.report import TOPICS
from roofbook.pages.settings import Language, Settings
from roofbook.pages.subjects import SubjectView, subject_views
from roofbook.record import Row, RunFacts, read_run, read_runs, write_run
from roofbook.words import Words, load_words

ROOT = Path(__file__).parents[1]
LANGUAGES = (Language("ko", "한국어", "노트"), Language("en", "English", "Notes"))
PAGES = ("overview", "speed", "prefill", "memory", "data")

# What no page may show: how a program writes that it does not know.
UNSAID = re.compile(r"(?<![\w-])(?:nan|NaN|None|NA|NaT|inf|<NA>|Infinity)(?![\w-])")

MAC = {
    "machine": "mac-mini-m4-32gb", "server": "ollama", "model": "qwen2.5:7b", "api": "ollama",
    "quantization": "Q4_K_M", "kv_cache_type": "q8_0",
}  # fmt: skip


class Undrawn(FigureCache):
    """Figures as specifications: what they say and show is the same, and the pictures have tests of their own."""

    def __init__(self) -> None:
        super().__init__(None)

    def draw(self, build: Callable[..., Any], words: Words, /, **inputs: object) -> Drawn:
        return Drawn(checked(build(words=words, **inputs)), {}, {})


@lru_cache
def words(lang: str, zone: str = "Asia/Seoul") -> Words:
    return load_words(ROOT / "templates" / "locale", lang, zone=zone, strict=True)


@lru_cache
def facts() -> Any:
    return load_facts(ROOT / "data" / "facts")


def page(view: SubjectView, name: str, lang: str = "en") -> str:
    """Return one page of *view* as a reader reads it: Markdown without tags, entities resolved, spaces single."""
    return readable(markdown(view, name, lang))


def markdown(view: SubjectView, name: str, lang: str = "en") -> str:
    said = words(lang)
    engine = Engine((ROOT / "templates", ROOT / "site_src"), said)
    press = Press(engine, Settings(LANGUAGES), lang)
    files = {"rows": sorted(row_files(view)), "runs": sorted(run_files(view))}
    label, context = TOPICS[name]
    shown = context(view, said, Undrawn())
    common = {"view": view, "conditions": view.conditions(said), "files": files}
    made = press.page(f"{view.slug}/{name}.md", f"pages/{name}.md.j2", common | shown, shown["title"], said.say(label))
    return made.markdown


def readable(source: str) -> str:
    plain = re.sub(r"<small[^>]*>", " ", source)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", plain)).split())


def cells(source: str, caption: str) -> list[list[str]]:
    """Return the table named *caption*, row by row, as texts; a line break within a cell is a space."""
    table = re.search(rf'aria-label="{re.escape(caption)}">\s*<table.*?</table>', source, re.DOTALL)
    assert table, f"no table '{caption}'"
    rows = re.findall(r"<tr>(.*?)</tr>", table[0], re.DOTALL)
    return [[readable(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)] for row in rows]


def figures(view: SubjectView, lang: str = "en") -> Iterator[Drawn]:
    for _, context in TOPICS.values():
        yield from context(view, words(lang), Undrawn())["drawn"]


@pytest.fixture(scope="module")
def published() -> SubjectView:
    """The published day of a Mac mini M4, as the repository has it."""
    return subject_views([read_run(ROOT / "data" / "measured" / "article-2026-08-31.parquet")], facts())[0]


MakeView = Callable[..., SubjectView]


@pytest.fixture
def view(tmp_path: Path) -> MakeView:
    """Return the first subject of rows, read from a file as the site reads them."""

    def made(rows: list[Row], **about: Any) -> SubjectView:
        named = [{"run_id": "run", "order_index": place} | row for place, row in enumerate(rows)]
        write_run(tmp_path, named, RunFacts("run", **about))
        return subject_views(read_runs(tmp_path), facts())[0]

    return made


def row(prompt_tokens: int | None = 512, **changes: Any) -> Row:
    """A request that went well: 4.5 ms a token of prefill, 100 ms beside it, 32 tokens at 20 tok/s."""
    prefill_ms = 4.5 * prompt_tokens if prompt_tokens else None
    ttft_ms = None if prefill_ms is None else prefill_ms + 100
    timed = {} if ttft_ms is None else {"ttft_ms": ttft_ms, "last_token_ms": ttft_ms + 1550, "e2e_ms": ttft_ms + 1551}
    return {
        **MAC,
        "experiment": "prefill_curve", "kind": "prefill_curve", "point": f"p{prompt_tokens}", "phase": "measured",
        "status": "ok", "prompt_tokens": prompt_tokens, "prompt_tokens_wanted": prompt_tokens, "output_tokens": 32,
        "output_tokens_wanted": 32, "server_prefill_ms": prefill_ms, "prompt_token_source": "server",
        "output_token_source": "server", **timed, **changes,
    }  # fmt: skip


def failed(**changes: Any) -> Row:
    nothing = dict.fromkeys(("ttft_ms", "last_token_ms", "e2e_ms", "server_prefill_ms", "output_tokens"))
    return row(**{"status": "timeout", **nothing, **changes})


# -- the published day


def test_the_overview_answers_in_one_sentence(published: SubjectView) -> None:
    """Medians of five runs each: 394 ms, 17,960 ms; decode 21.3 x 68/69 = 20.99 tok/s (servers count one more)."""
    assert (
        "The first token comes after 394 ms with a prompt of 74 tokens and after 18.0 s with 3,505; "
        "then the answer is written at 21.0 tok/s."
    ) in page(published, "overview")


def test_the_overview_leads_to_each_page_by_its_own_answer(published: SubjectView) -> None:
    """Four links, each with the sentence that its page opens with."""
    overview = page(published, "overview")
    for name in PAGES[1:]:
        answer = re.search(r'<p class="rb-answer"[^>]*>(.*?)</p>', markdown(published, name))
        assert answer
        assert readable(answer[1]) in overview
        assert f'href="{name}.html"' in markdown(published, "overview")


def test_no_page_has_more_than_two_caveats(published: SubjectView) -> None:
    """What must not be overlooked is little, or it is overlooked."""
    for name in PAGES:
        listed = re.search(r'<ul class="rb-caveats">(.*?)</ul>', markdown(published, name), re.DOTALL)
        assert listed
        assert listed[1].count("<li>") <= 2


def test_the_answer_stands_before_the_figure_and_the_figure_before_the_tables(published: SubjectView) -> None:
    """One answer, one figure, then the tables, then how it was computed."""
    for name in PAGES:
        source = markdown(published, name)
        places = [source.index(sign) for sign in ('class="rb-answer"', "data-figure", "## ")]
        assert places == sorted(places)


def test_speed_holds_both_phases_against_both_roofs(published: SubjectView) -> None:
    """Decode: 4.3706 GB of weights and 74 x 30,464 B of cache, 20.99 times a second: 91.8 GB/s of 100 and of 120.

    Prefill: 48.2 TFLOP in 17.846 s are 2.70 TFLOPS, of 2.9 in a benchmark and 3.17 in another run of this chip, and of
    3.76 to 4.6 as stated.
    """
    source = markdown(published, "speed")

    assert cells(source, "Both phases against both roofs") == [
        ["", "Decode", "Prefill"],
        ["Prompt tokens", "74", "3,505"],
        ["n (requests)", "5", "5"],
        ["Reached", "91.8 GB/s", "2.7 TFLOPS"],
        ["Roof as measured", "100 GB/s", "2.90 to 3.17 TFLOPS"],
        ["Share of it", "92 %", "85 to 93 %"],
        ["Roof as stated", "120 GB/s", "3.76 to 4.60 TFLOPS"],
        ["Share of it", "76 %", "59 to 72 %"],
        # 100 / 91.79 - 1 and 120 / 91.79 - 1; 2.9 / 2.701 - 1 and 4.6 / 2.701 - 1
        ["Could be faster by", "8.9 to 31 %", "7.4 to 70 %"],
        # 8,016 tokens: 17.0 x (4.3706 + 8,016 x 30,464 B) = 78.5 GB/s; 117.5 TFLOP in 48.337 s are 2.43 of 3.17 TFLOPS,
        # and 1,096 tokens 14.54 TFLOP in 5.137 s, 2.83 of 2.9.
        ["Share over all trusted points", "78 to 92 %", "77 to 98 %"],
        ["Verdict", "near the limit with a short prompt only", "near the limit"],
    ]


def test_a_roof_of_all_cores_judges_nothing_that_ran_on_fewer(view: MakeView) -> None:
    """One thread of two cores: shares of what both did, without a verdict; with two threads there is one."""
    spread = {"median": 20e9, "low": 20e9, "high": 20e9, "n": 9}
    host = {
        "machine": "a-box", "cores": 2,
        "ceilings": {"bandwidth_bytes_per_s": spread, "flops_per_s": spread, "source": "measured here"},
    }  # fmt: skip
    rows = [
        MAC | {
            "machine": "a-box", "server": "llama.cpp", "gpu_fraction": 0.0, "run_id": "run", "experiment": "baseline",
            "kind": "baseline", "phase": "measured", "status": "ok", "point": "p", "order_index": index,
            "prompt_tokens": 600, "output_tokens": 11, "ttft_ms": 9_000_000.0, "server_prefill_ms": 9_000_000.0,
            "last_token_ms": 9_010_000.0, "server_options": '{"threads": 1}',
        }
        for index in range(3)
    ]  # fmt: skip
    alone = markdown(view(rows, host=host), "speed")
    whole = markdown(view([row | {"server_options": '{"threads": 2}'} for row in rows], host=host), "speed")

    assert cells(alone, "Both phases against both roofs")[-1] == ["Verdict", "cannot be judged", "cannot be judged"]
    assert "on 1 of the machine&#39;s 2 cores" in alone or "on 1 of the machine's 2 cores" in alone
    assert cells(whole, "Both phases against both roofs")[-1] == ["Verdict", "room to tune", "room to tune"]


def test_medians_have_exact_intervals_and_printed_medians_have_none(published: SubjectView) -> None:
    """Five runs: fastest to slowest hold the median with 1 - 2 x 0.5^5 = 93.75 %; a printed median has no interval."""
    table = {
        (line[0], line[1]): line[2:] for line in cells(markdown(published, "speed"), "Medians with their intervals")
    }

    assert table["baseline", "74"] == [
        "5", "394 ms 379 to 403 ms", "291 ms 282 to 302 ms", "21.0 tok/s 20.8 to 21.2", "94 %",
    ]  # fmt: skip
    assert table["prefill-curve", "8,016"] == ["3", "48.5 s", "48.3 s", "17.0 tok/s", "–"]
    assert table["same-prompt in doubt", "3,473"] == ["–", "–", "–", "–", "–"]


def test_many_at_once_have_their_throughput_beside_each_ones_rate(view: MakeView) -> None:
    """400 tokens in 30 s are 13.3 a second; from 0 to 20 s two are in flight, 350 tokens, 17.5 a second."""
    level = {"kind": "concurrency", "experiment": "load", "point": "c2", "concurrency": 2, "parallel_slots": 2}
    spans = [(0, 10), (0, 10), (10, 20), (10, 30)]
    rows = [
        row(
            512, **level, sent_at_ms=1000.0 * start, e2e_ms=1000.0 * (end - start), output_tokens=100, ttft_ms=0.0,
            last_token_ms=1000.0 * (end - start), output_tokens_wanted=100, server_prefill_ms=None,
        )
        for start, end in spans
    ]  # fmt: skip
    (line,) = cells(markdown(view(rows), "speed"), "Throughput by the number of requests at once")[1:]

    # 99 pauses in 10 s are 9.9 a second; 99 in 20 s the last one's.
    assert line == ["2", "512", "4", "0", "0", "13.3 over 30 s", "17.5 over 20 s", "9.90"]


def test_one_at_a_time_has_no_throughput(published: SubjectView) -> None:
    """The published day never had two requests in flight."""
    assert "Throughput by the number" not in markdown(published, "speed")


def test_p99_is_not_shown_for_five_requests(published: SubjectView) -> None:
    """95 more: at 3,644.6 ms each 5.8 minutes, at 21,400.4 ms each 34 minutes."""
    assert cells(markdown(published, "speed"), "P50 and P99 of the time to the first token")[1:] == [
        ["baseline", "74", "5", "394 ms", "–", "95", "5.8 min"],
        ["baseline", "3,505", "5", "18.0 s", "–", "95", "34 min"],
    ]


def test_p99_is_shown_from_a_hundred_requests_on_and_marked(view: MakeView) -> None:
    """Times of 1 to 100 ms more than 500: the 99th of a hundred is 599 ms, and rests on one request."""
    rows = [row(74, ttft_ms=500.0 + n, server_prefill_ms=400.0) for n in range(1, 101)]

    assert cells(markdown(view(rows), "speed"), "P50 and P99 of the time to the first token")[1][4:6] == [
        "599 ms (weak)", "0",
    ]  # fmt: skip


def test_traps_stand_as_the_rows_they_were(published: SubjectView) -> None:
    """3,473 tokens in 58 ms against a median of 17,846 for 3,505: (17,846 / 3,505) / (58 / 3,473) = 305 times a token.

    51 ms for 40 tokens against a median of 291 for 74: (291 / 74) / (51 / 40) = 3.1.
    """
    assert cells(markdown(published, "speed"), "Rows that look like results")[1:] == [
        ["cold load", "40", "3,010", "297", "74", "291", "–"],
        ["faster than the chip", "40", "–", "51", "74", "291", "3.1 times"],
        ["faster than the chip", "3,473", "–", "58", "3,505", "17,846", "305 times"],
    ]


def test_prefill_says_what_was_measured_and_what_the_law_smooths(published: SubjectView) -> None:
    """6.030 ms a token at 8,016 against 4.346 at 205: +39 %; the law has 34 %; the title tells the measured one."""
    assert "grew by +39 % as measured; by the fitted law, which smooths over the points, by +34 %" in page(
        published, "prefill"
    )
    assert "each token took 39 % longer than at 205" in next(
        drawn.figure.title for drawn in figures(published) if drawn.figure.name == "prefill"
    )


def test_a_prompts_budget_takes_the_overhead_off(published: SubjectView) -> None:
    """1,000 - 123.5 = 4.5263 T + 2.0035e-4 T^2 gives T = 192; the bounds are where the prediction band meets it."""
    source = markdown(published, "prefill")

    assert [line[:2] for line in cells(source, "Prompt tokens that fit a wait")[1:]] == [
        ["1 s", "192 below the shortest fitted length"], ["2 s", "407"], ["5 s", "1,030"],
    ]  # fmt: skip
    # 4.5263 x 1,600 + 2.0035e-4 x 1,600^2 + 123.5 = 7,878.5 ms
    assert "A prompt of 1,600 tokens, usual for RAG, waits 7.88 s" in readable(source)
    assert "Of the wait, 124 ms are no prefill" in readable(source)
    assert "205 tokens, the shortest length of the curve, had their first token after 994 ms" in readable(source)


def test_the_longest_length_is_held_out(published: SubjectView) -> None:
    """Five shorter points predict 51.9 s, 38.9 to 64.9, against 48.3 s: 7.4 % off; in the fit it misses by 1.7 %."""
    assert (
        "the law predicts 51.9 s for 8,016 tokens (95 % prediction interval 38.9 to 64.9 s). Measured: 48.3 s, inside "
        "the interval; the prediction is off by +7.4 %. The law that has seen this point misses it by +1.7 %"
    ) in page(published, "prefill")


def test_each_length_is_left_out_once_beside_the_shares(published: SubjectView) -> None:
    """Left out: +8.0 -5.1 +1.6 -4.4 -1.4 +7.4 %; bT^2 has 15 % at 4,056, 26 % at 8,016, by arithmetic 5.9 and 11."""
    table = cells(markdown(published, "prefill"), "Length by length")[1:]

    assert [line[6] for line in table] == ["+8.0 %", "-5.1 %", "+1.6 %", "-4.4 %", "-1.4 %", "+7.4 %"]
    assert [line[7:] for line in table[-2:]] == [["15 %", "5.9 %"], ["26 %", "11 %"]]


def test_what_nobody_measured_has_a_band_and_a_straight_line_beside(published: SubjectView) -> None:
    """128 +- 25 s and 363 +- 99 s; 4.5263 ms x 16,384 = 74.2 s, x 32,768 = 148 s."""
    assert cells(markdown(published, "prefill"), "Beyond what was measured")[1:] == [
        ["16,384", "128 s", "103 to 153 s", "74.2 s", "42 %"],
        ["32,768", "363 s", "265 to 462 s", "148 s", "59 %"],
    ]


def test_the_law_is_chosen_by_aicc_and_r_squared_stands_beside(published: SubjectView) -> None:
    """AICc -19.3, -23.4, +0.7 chooses two coefficients; R^2 would always take three."""
    table = cells(markdown(published, "prefill"), "The laws that were tried")[1:]

    assert [(line[0], line[4], line[7]) for line in table] == [
        ("aT", "-19.3", ""), ("aT + bT²", "-23.4", "yes"), ("c + aT + bT²", "0.7", ""),
    ]  # fmt: skip
    assert max(table, key=lambda line: line[6])[0] == "c + aT + bT²"


def test_the_fit_over_eight_lengths_stands_beside(published: SubjectView) -> None:
    """With 74 and 3,505 tokens: a 4.67, b 1.7e-4, c -57, 3.7 % left out; the cold run of 40 tokens is not in it."""
    source = markdown(published, "prefill")
    line = cells(source, "The same laws with all trusted lengths")[3]

    assert line[:4] == ["c + aT + bT²", "4.67", "1.68 × 10⁻⁴", "-56.7"]
    assert (line[5], line[7]) == ("3.7 %", "yes")
    assert "With the subject's 2 other trusted lengths (8 in all) c + aT + bT² is chosen instead" in readable(source)
    # -57 + 4.672 x 32,768 + 1.682e-4 x 32,768^2 = 334 s, as numpy's least squares has it.
    assert "and it says 334 s for 32,768 tokens (95 % interval 266 to 401 s) where this one says 363 s" in readable(
        source
    )
    assert "Its *c* is -56.7 ms. No prompt costs less than nothing, so this is no real cost" in readable(source)


def test_the_law_stands_with_its_numbers_before_the_first_table(published: SubjectView) -> None:
    """a = 4.53 ms, b = 2.0e-4 ms; AICc and F are explained where they stand first."""
    told = page(published, "prefill")

    assert "t = 4.53 ms · T + 2.00 × 10⁻⁴ ms · T²" in told.split("How long may a prompt be?")[0]
    assert told.index("AICc") == told.index("AICc decides, the lowest is best")
    assert "F is one variance over the other, 1 where they are equal" in told


def test_coefficients_stand_beside_what_counting_gives(published: SubjectView) -> None:
    """a = 4.53 +- 0.29 ms, b = 2.0e-4 +- 0.9e-4; 2 x 6.525e9 / 2.9e12 = 4.50 ms; b is 2.9 times attention's."""
    source = markdown(published, "prefill")

    assert [line[1:4] for line in cells(source, "Coefficients, fitted and counted")[1:]] == [
        ["4.53", "4.23 to 4.82", "4.50"],
        ["2.00 × 10⁻⁴", "1.10 × 10⁻⁴ to 2.90 × 10⁻⁴", "6.92 × 10⁻⁵"],
    ]
    # b/a over 2 x 28 x 128 x 28 / (2 x 6.525e9), to first order with both errors and their correlation of -0.67.
    assert "At that rate the fitted *b* is 2.9 times (1.5 to 4.3) what attention's operations would take" in readable(
        source
    )


def test_the_weighting_is_held_against_the_repeats(published: SubjectView) -> None:
    """SD 7.6 ms at 74 tokens, 207 ms at 3,505: F = 745, p = 1e-5 for equal ms; F = 5.0, p = 0.15 for equal %."""
    assert (
        "scatters by 7.6 ms, the longest by 207 ms. Equal scatter in milliseconds is ruled out (F = 745, "
        "p = 0.00001), equal scatter in per cent is not (F = 5.0, p = 0.15)"
    ) in page(published, "prefill")


def test_the_window_and_the_decode_rate_are_told_beside(published: SubjectView) -> None:
    """21,912 / 21,891 - 1 = 0.10 %; 17.0 / 19.3 - 1 = -11.9 %, of which the cache's bytes explain 5.2 %."""
    told = page(published, "prefill")

    assert "The larger window changes prefill by +0.10 %." in told
    assert "From 205 to 8,016 prompt tokens the decode rate changes by -11.9 %." in told
    assert "those bytes alone would change it by -5.2 %" in told
    assert "That is two medians, of 3 and of 3 requests" in told
    # 19.3 x 68/69 over 21.3 x 68/69 is -9.4 %. None of the five long ones as fast as any short one: p = 2 / C(10, 5).
    assert (
        "5 after 74 tokens and 5 after 3,505. There the median rate changes by -9.4 % (exact test of no difference: "
        "p = 0.008). All requests of one length stand before those of the other"
    ) in told
    # The source prints 21,891 ms for 4,056 tokens under 8,192 twice: in its curve, and in its control.
    assert "The row with 8,192 is to the digit the curve's median at 4,056 tokens" in told


def test_too_few_requests_to_tell_a_change_are_said_to_be_so(view: MakeView) -> None:
    """Three against three, half as fast: p = 2 / C(6, 3) = 0.1 is all that they can give."""
    ends = [(128, 1550), (2048, 3100)]  # 31 pauses in 1.55 s are 20 a second, in 3.1 s 10
    rows = [
        row(tokens, ttft_ms=5.0 * tokens, last_token_ms=5.0 * tokens + written + run, e2e_ms=20_000.0 + run)
        for tokens, written in ends
        for run in range(3)
    ]
    told = page(view(rows), "prefill")

    assert "3 after 128 tokens and 3 after 2,048. There the median rate changes by -50.0 %" in told
    assert "p = 0.1). So few requests cannot give a smaller p" in told


def test_memory_goes_from_bytes_to_requests_in_one_unit(published: SubjectView) -> None:
    """32 x 2/3 - 4.361 - 1..2 GiB leave 14.97 to 15.97; / 29.75 KiB / 4,096: 128 to 137. On macOS 26: 160 to 168."""
    table = {line[0]: line[1:3] for line in cells(markdown(published, "memory"), "From memory to requests")}

    assert table["The GPU may use"] == ["21.33 GiB", "24.96 GiB"]
    assert table["− weights"] == ["4.361 GiB", "4.361 GiB"]
    assert table["− reserve"] == ["1 to 2 GiB", "1 to 2 GiB"]
    assert table["= room for caches"] == ["14.97 to 15.97 GiB", "18.60 to 19.60 GiB"]
    assert table["÷ one token"] == ["29.75 KiB", "29.75 KiB"]
    assert table["÷ 4,096 = requests at once"] == ["128 to 137", "160 to 168"]


def test_memory_says_what_arithmetic_serves(published: SubjectView) -> None:
    """One 4,096-token prompt takes 21.9 s: 2.7 a minute; 128 of them are inside for 128 x 21.9 s = 47 min."""
    source = markdown(published, "memory")

    assert (
        "Memory has room for 128 to 168 requests of 4,096 tokens at once (KV cache q8_0), "
        "but the chip reads only 2.7 such prompts a minute."
    ) in readable(source)
    assert cells(source, "So many requests of 4,096 tokens at once")[-1] == [
        # 15.785 GFLOP a token: 184 a second at 2.9 TFLOPS, 291 at 4.6, and a 128th of them.
        "128", "1.4 to 2.3 tok/s", "184 to 291 tok/s", "2.7", "47 min",
    ]  # fmt: skip


def test_data_says_of_every_row_whether_it_counts_and_why(published: SubjectView) -> None:
    """21 rows, three of them in doubt: a load of 3,010 ms, and two prompts faster than 4.6 TFLOPS could read them."""
    source = markdown(published, "data")
    table = cells(source, "Every row and whether it counts")[1:]

    assert "21 measured rows in 1 run: 18 count everywhere, 3 are kept out of some figure." in readable(source)
    # Ten baseline requests; six medians of the curve and the two of the control.
    assert "10 are single requests and 8 published medians or the like" in readable(source)
    assert len(table) == 21
    assert [line[3] for line in table].count("counts") == 18
    assert table[0][3:] == [
        "not counted in: prefill, TTFT, whole request",
        "The model was loaded during the request (3,010 ms).",
    ]
    assert table[2][4] == "3,473 tokens in 58.0 ms would take 823 TFLOPS, more than the chip's peak of 4.60 TFLOPS."
    assert "imported from: 맥미니 M4로 LLM 서빙 시작하기; on 2026-08-31" in readable(source)


def test_doubts_speak_of_columns_in_words(published: SubjectView) -> None:
    """No column's name and no bare number: the decode rate has its unit, the context limit its name."""
    told = page(published, "speed")

    assert (
        "Decode was 15.1 tok/s; the rows it is compared with (of this point, or of the curve's other lengths) lie "
        "around 18.7 tok/s."
    ) in told
    assert "the context limit in tokens was 16,384, usually 8,192" in told
    assert "decode_tok_per_s" not in told


def test_both_languages_carry_the_same_numbers(published: SubjectView) -> None:
    """Every number of the tables on the English page stands on the Korean one, in its place."""
    for name in PAGES:
        numbers = [
            re.findall(r'<td class="rb-number">([\d.,+-]+)', markdown(published, name, lang)) for lang in ("ko", "en")
        ]
        assert numbers[0] == numbers[1]


def test_glossary_links_lead_to_words_that_are_there(published: SubjectView) -> None:
    """Each link names an anchor of both glossaries."""
    linked = {anchor for name in PAGES for anchor in re.findall(r'glossary\.html#([\w-]+)"', markdown(published, name))}
    anchors = [
        set(re.findall(r"{: #([\w-]+)", (ROOT / "site_src" / lang / "glossary.md").read_text()))
        for lang in ("ko", "en")
    ]

    assert {"prefill", "decode", "ttft", "kv-cache", "median", "order-statistics", "aicc", "leave-one-out"} <= linked
    assert linked <= anchors[0] & anchors[1]


def test_single_runs_of_eight_lengths_are_drawn_again(view: MakeView) -> None:
    """Five runs of each of eight lengths, within 1 % of 4.5 ms a token: the bootstrap's interval of a holds 4.5.

    Published medians cannot be drawn again: their table has no such column.
    """
    lengths = [128 * 2**power for power in range(8)]
    rows = [
        row(tokens, point=f"p{tokens}", server_prefill_ms=4.5 * tokens * (1 + 0.004 * (run - 2)))
        for tokens in lengths
        for run in range(5)
    ]
    table = cells(markdown(view(rows), "prefill"), "Coefficients, fitted and counted")

    assert table[0][3] == "95 %, bootstrap"
    low, _, high = table[1][3].partition(" to ")
    assert float(low) <= 4.5 <= float(high or low)


# -- few, odd and hostile data

ODD: dict[str, list[Row]] = {
    "one point": [row()],
    "every request failed": [failed(), failed(status="http_500"), failed(status="connect_error")],
    "nothing known": [row(machine=None, model=None, server=None, api=None, quantization=None, kv_cache_type=None)],
    "unknown machine": [row(machine="x86-64-64-cores-256gb")],
    "unknown model": [row(model="my-own:1b", quantization=None)],
    "no tokens": [row(0), row(prompt_tokens=None, output_tokens=0)],
    "zero times": [row(server_prefill_ms=0.0, ttft_ms=0.0, last_token_ms=0.0, e2e_ms=0.0)],
    "no server clock": [row(tokens, server_prefill_ms=None) for tokens in (128, 256, 512, 1024, 2048)],
    "only warm-ups": [row(phase="warmup"), row(phase="calibration")],
    "a long name": [row(model="m" * 60, experiment="e" * 80)],
    "slots and a measured limit": [row(parallel_slots=4)],
    "a paged server": [row(machine="nvidia-rtx-4090", server="vllm", api="openai", kv_cache_type=None)],
    "a curve of five": [row(tokens) for tokens in (128, 256, 512, 1024, 2048)],
    "load": [row(concurrency=8, kind="concurrency", experiment="concurrency") for _ in range(3)],
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("lang", ["ko", "en"])
def test_odd_data_say_what_is_missing_and_nothing_breaks(view: MakeView, case: str, lang: str) -> None:
    """Every page in both languages, strict words: no page says nan, None or inf, and each has its answer."""
    made = view(ODD[case])
    for name in PAGES:
        source = markdown(made, name, lang)
        assert not UNSAID.search(readable(source))
        answer = re.search(r'<p class="rb-answer"[^>]*>(.*?)</p>', source)
        assert answer
        assert readable(answer[1])
    for drawn in figures(made, lang):
        assert not UNSAID.search(" ".join(key.text for key in drawn.figure.legend) + drawn.figure.title)


@pytest.mark.parametrize(
    ("case", "name", "said"),
    [
        ("one point", "prefill", "A law needs at least five prompt lengths; 4 more are missing."),
        ("one point", "speed", "1 request carries no spread"),
        ("every request failed", "overview", "Not one request finished: 3 requests, all failed."),
        ("every request failed", "data", "0 count everywhere, 0 are kept out of some figure, 3 failed."),
        ("every request failed", "data", "failed: http_500"),
        ("every request failed", "speed", "Neither how fast it reads nor how fast it writes could be measured."),
        ("nothing known", "overview", "unknown model · unknown machine"),
        ("nothing known", "memory", "How many requests fit into memory at once cannot be said."),
        ("unknown machine", "memory", "the machine: add it to data/facts/machines.yml"),
        ("unknown machine", "speed", "how near the limit that is cannot be judged"),
        ("unknown machine", "speed", "There is no roofline here"),
        ("unknown model", "memory", "the model's shape: add it to data/facts/models.yml"),
        ("no server clock", "prefill", "the client's time to the first token stands for it"),
        ("no server clock", "speed", "how fast it reads a prompt is not known"),
        ("only warm-ups", "data", "There is no measured row yet, in 1 run."),
        ("only warm-ups", "speed", "No request of this subject was measured."),
        ("slots and a measured limit", "memory", "The server was started with 4 slots"),
        ("a paged server", "memory", "0.92 of the memory, as vLLM takes it"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(view: MakeView, case: str, name: str, said: str) -> None:
    """One sentence for each gap, and the way out where there is one."""
    assert said in page(view(ODD[case]), name)


HOSTILE = "<script>alert(1)</script> [x](javascript:alert(2)) **b** `c` {{ 7*7 }} | \"q' #"


def test_long_names_of_a_users_experiments_are_told_apart_on_the_axis(view: MakeView) -> None:
    """Sixty signs that differ at their ends: short on the axis, whole in the tooltip and the table."""
    names = ["prefill-curve-on-the-quiet-machine-in-the-evening-" + end for end in ("warm-start", "cold-start")]
    made = view([row(512, experiment=name, point=name) for name in names for _ in range(3)])
    (drawn,) = (one for one in figures(made) if one.figure.name == "rows")

    marks = next(iter(drawn.figure.spec["datasets"].values()))
    assert {one["experiment"] for one in marks} == set(names)
    assert len({one["label"] for one in marks}) == 2
    assert max(len(one["label"]) for one in marks) < 30
    assert {line[1] for line in drawn.figure.table.rows} == set(names)


def test_names_with_markup_are_text_everywhere(view: MakeView) -> None:
    """In model, experiment, error and version: no tag, no link, no emphasis, no template of it comes alive."""
    made = view(
        [
            row(tokens, model=HOSTILE, experiment=HOSTILE, server_version=HOSTILE, error=HOSTILE, status=HOSTILE)
            for tokens in (128, 256)
        ]
        + [row(512, model=HOSTILE, experiment=HOSTILE, server_version=HOSTILE)],
        origin={"source": HOSTILE, "note": HOSTILE, "file": HOSTILE, "date": HOSTILE},
    )
    for name in PAGES:
        source = markdown(made, name).split("---", 2)[2]  # what stands before is YAML
        assert "<script" not in source
        assert "](javascript" not in source
        assert "**b**" not in source
        assert "{{ 7" not in source
        assert "49" not in re.findall(r"alert.{0,80}", readable(source))


def test_b49_no_field_of_a_chart_is_a_name_from_the_data(view: MakeView) -> None:
    """Names with dot, colon and bracket are values: all points are drawn, and fields are fixed words."""
    lengths = (128, 256, 512, 1024, 2048)
    made = view([row(tokens, experiment="p50.ttft", point=f"lat[{tokens}]:ms") for tokens in lengths])
    drawn = list(figures(made))

    assert {one.figure.name for one in drawn} == {"prefill", "beyond", "roofline", "budget", "rows"}
    for one in drawn:
        assert set("".join(_fields(one.figure.spec))) <= set("abcdefghijklmnopqrstuvwxyz_")
    rows = next(one for one in drawn if one.figure.name == "rows").figure
    assert [line[1] for line in rows.table.rows] == ["p50.ttft"] * 5


def _fields(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("field"), str):
            yield value["field"]
        for inner in value.values():
            yield from _fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner)


def test_b51_unknown_is_a_group_and_counts_stay_counts(tmp_path: Path) -> None:
    """Q4_K_M, unknown, Q8_0 are three subjects; 69, unknown, 71 output tokens read 69, a dash, 71."""
    rows = [
        row(512, quantization=quantization, output_tokens=tokens, run_id="run", order_index=place)
        for place, (quantization, tokens) in enumerate(zip(["Q4_K_M", None, "Q8_0"], [69, None, 71], strict=True))
    ]
    write_run(tmp_path, rows, RunFacts("run"))
    views = subject_views(read_runs(tmp_path), facts())

    assert {one.subject.quantization for one in views} == {"Q4_K_M", None, "Q8_0"}
    outputs = {}
    for one in views:
        table = cells(markdown(one, "speed"), "Every measured row")
        place = table[0].index("Output tokens") if "Output tokens" in table[0] else None
        outputs[one.subject.quantization] = "–" if place is None else table[1][place]
    assert outputs == {"Q4_K_M": "69", None: "–", "Q8_0": "71"}


@pytest.mark.parametrize("zone", ["Asia/Seoul", "America/New_York", "UTC"])
def test_b52_times_do_not_move_with_the_readers_clock(
    view: MakeView, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """Half past midnight UTC is 09:30 in the report's zone, named, wherever the site is built."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        told = page(view([row(started_at=datetime(2026, 1, 1, 0, 30, tzinfo=UTC))]), "data")
    finally:
        os.environ.pop("TZ", None)
        time.tzset()

    assert "January 1, 2026 09:30 KST" in told


def test_a_run_of_ours_says_plan_host_and_how_to_repeat_it(view: MakeView) -> None:
    """Program and version, the settings in words, the processor's measured rates, the command."""
    spread = {"median": 30e9, "low": 28e9, "high": 31e9, "n": 9}
    made = view(
        [row(started_at=datetime(2026, 10, 1, 3, tzinfo=UTC), gpu_fraction=0.0)],
        plan=resolve(read_plan(PLAN, "x.yml"), seed=7, api="ollama").as_dict(),
        host={
            "machine": MAC["machine"], "chip": "Apple M4", "cores": 10, "memory_bytes": 34359738368, "os": "macOS",
            "os_version": "26.1", "gpus": [], "ceilings": {"bandwidth_bytes_per_s": spread, "flops_per_s": None},
        },
        origin={"program": "roofbook", "version": "0.1.0"},
    )  # fmt: skip
    source = markdown(made, "data")

    assert "measured with roofbook 0.1.0; October 1, 2026 12:00 KST." in readable(source)
    assert ["Order of the requests", "shuffled"] in cells(source, "Settings of the run")
    assert ["Seed", "7"] in cells(source, "Settings of the run")
    assert ["Processor reads, measured", "30.0 GB/s (28 to 31, n = 9)"] in cells(
        source, "The host that sent the requests"
    )
    assert "make collect PLAN=plans/run.plan.yml" in source
    # macOS 26 is known, so memory has one limit and no range over two systems.
    assert [line[1] for line in cells(markdown(made, "memory"), "From memory to requests")[:1]] == ["macOS 26"]


PLAN = """
plan: series
machine: mac-mini-m4-32gb
server: {api: ollama, url: "http://127.0.0.1:11434", model: "qwen2.5:7b", options: {num_ctx: 16384}}
run: {order: shuffled, repeats: 4, anchor: null}
slo: {ttft_ms: 2000, tpot_ms: 60, share: 0.95}
experiments:
  - {kind: baseline, prompt_tokens: [74, 3505], output_tokens: 64}
  - {kind: prefill_curve, prompt_tokens: [128, 512], output_tokens: 32, warmups: 0, options: {num_ctx: 8192}}
  - {kind: concurrency, concurrency: [1, 2], requests: 12, prompt_tokens: 512, output_tokens: 64, model: "qwen2.5:3b"}
"""


def test_a_published_plan_measures_the_same_again(view: MakeView) -> None:
    """Read back, the file of a resolved plan is that plan: the seed and every override are in it."""
    resolved = resolve(read_plan(PLAN, "series.yml"), seed=7, api="ollama")
    made = view([row()], plan=resolved.as_dict())
    text = plan_files(made)["data/run.plan.yml"].decode()

    assert read_plan(text, "run.plan.yml").as_dict() == resolved.as_dict()


def test_an_import_has_no_plan(published: SubjectView) -> None:
    """There is nothing to repeat exactly, and the page says so."""
    assert plan_text({}) is None
    assert plan_files(published) == {}
    assert "there is no command that repeats exactly them" in page(published, "data")
