"""Doubts are told while measuring: once, in the language asked for, with the way out."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collect.doubts import OF_THE_WHOLE, Doubts, in_words, summary
from collect.plan import RunSettings
from collect.schedule import Cell, Unit
from roofbook.record import Row
from roofbook.validity import KINDS, Finding, findings
from roofbook.words import Words, load_words
from roofbook.words.doubts import NAMES, SENTENCES, WAYS_OUT, way_out

LOCALE = Path(__file__).parents[2] / "templates" / "locale"
CELL = Cell("curve", "prefill_curve", "p512-o8", 512, 8, 1, 3, RunSettings())
ANCHOR = replace(CELL, experiment=None, kind=None, point="p64-o8")


def row(index: int, **columns: Any) -> Row:
    return {
        "run_id": "r", "experiment": "curve", "kind": "prefill_curve", "point": "p512-o8", "phase": "measured",
        "order_index": index, "status": "ok", "prompt_tokens": 512, "prompt_tokens_wanted": 512, "cached_tokens": 0,
        "prompt_token_source": "server", "output_tokens": 8, "output_tokens_wanted": 8,
        "output_token_source": "server", "chunks": 8, "first_byte_ms": 100.0, "ttft_ms": 100.0,
        "first_answer_ms": 100.0,
        "last_token_ms": 170.0, "e2e_ms": 171.0, "finish_reason": "length", "attempts": 1, **columns,
    }  # fmt: skip


def left(*repeats: int, cell: Cell = CELL) -> list[Unit]:
    return [Unit(cell, "measured", (repeat,)) for repeat in repeats]


class Clock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_doubt_of_one_row_is_told_at_once_and_once() -> None:
    """400 of 512 tokens from a cache: told after its row, not again after the next."""
    doubts = Doubts(findings, Clock())
    rows = [row(0, cached_tokens=400)]
    assert [one.kind for one in doubts.news(rows, CELL, left(2, 3))] == ["cached_prefix"]
    rows.append(row(1, cached_tokens=400))
    assert doubts.news(rows, CELL, left(3)) == []


def test_what_more_rows_may_mend_waits_for_them() -> None:
    """One row is too few for a median, but two are still to come; at the end of the point it is said."""
    doubts = Doubts(findings, Clock())
    assert doubts.news([row(0)], CELL, left(2, 3)) == []
    assert [one.kind for one in doubts.news([row(0)], CELL, left(1, cell=ANCHOR))] == ["too_few"]


def test_looking_takes_a_fiftieth_of_the_time_at_most() -> None:
    """A look that took 1 s is not repeated for 50 s, but for a point that is complete."""
    clock = Clock()

    def slow(rows: object) -> list[Finding]:
        del rows
        clock.now_s += 1
        return []

    doubts = Doubts(slow, clock)
    doubts.news([], CELL, left(2))
    assert clock.now_s == 1
    doubts.news([], CELL, left(2))
    assert clock.now_s == 1
    clock.now_s = 51.1
    doubts.news([], CELL, left(2))
    assert clock.now_s == 52.1
    doubts.news([], CELL, [])
    assert clock.now_s == 53.1


def test_clean_rows_are_not_doubted() -> None:
    """Three equal rows: nothing."""
    doubts = Doubts(findings, Clock())
    rows = [row(index) for index in range(3)]
    assert doubts.news(rows, CELL, []) == []


def test_a_doubt_in_both_languages() -> None:
    """Where, what, its numbers and the way out."""
    (one,) = [one for one in findings([row(0, cached_tokens=400)]) if one.kind == "cached_prefix"]
    assert in_words(one, Words("en")) == (
        "p512-o8, cache hit: A cache already held 400 of 512 prompt tokens (0 expected), so this is not the time it "
        "takes to read them. Let no other client use the server, and start it without a prompt cache that outlives a "
        "request, where it has such a switch."
    )
    assert "캐시를 끌 수 있으면 끄고 시작하세요" in in_words(one, load_words(LOCALE, "ko", strict=True))


def test_the_end_counts_rows_and_puts_what_spoils_first() -> None:
    """Two rows from a cache and a point of two rows: one line each."""
    found = findings([row(0, cached_tokens=400), row(1, cached_tokens=400)])
    lines = summary(found, Words("en"))
    assert [line.split(":")[0] for line in lines] == ["cache hit (2 rows)", "too few (1 point)"]


@pytest.mark.parametrize(
    ("minutes", "english", "korean"),
    [
        (2.6, "Raise repeats by 2; measuring that takes about 3 min.", "약 3분"),
        (0.02, "Raise repeats by 2; measuring that takes less than a minute.", "1분 이내"),
        (None, "Raise repeats by 2.", "repeats를 2 늘리세요."),
    ],
)
def test_too_few_says_how_many_more_and_how_long(minutes: float | None, english: str, korean: str) -> None:
    """Two more: about three minutes, a moment, or nobody knows how long, because none was timed."""
    values = {"statistic": "median", "n": 1, "needed": 3, "missing": 2, "minutes": minutes}
    assert way_out("too_few", values, Words("en")) == english
    told = way_out("too_few", values, load_words(LOCALE, "ko", strict=True))
    assert korean in told
    assert "2" in told
    assert "알 수 없음" not in told


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_name_a_sentence_and_a_way_out(kind: str) -> None:
    """In Korean too, and no way out names a number that the finding does not have."""
    words = load_words(LOCALE, "ko", strict=True)
    assert re.findall(r"%\((\w+)\)s", WAYS_OUT[kind]) == (["missing", "minutes"] if kind == "too_few" else [])
    for sentences in (NAMES, SENTENCES, WAYS_OUT):
        assert words.translations.gettext(sentences[kind]) != sentences[kind]


def test_kinds_of_the_whole_are_kinds() -> None:
    """A misspelt kind would be told too early."""
    assert set(KINDS) >= OF_THE_WHOLE
