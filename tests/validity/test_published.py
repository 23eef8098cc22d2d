"""The published rows, judged with the catalogue: their traps are found, their clean rows are not."""

from pathlib import Path

import pytest

from roofbook.facts import Facts
from roofbook.record import read_run
from roofbook.validity import Finding, clean, findings, known_of, records

RUN = Path(__file__).parents[2] / "data" / "measured" / "article-2026-08-31.parquet"


@pytest.fixture
def found(facts: Facts) -> list[Finding]:
    rows = records(read_run(RUN).rows)
    return findings(rows, known_of(rows, facts))


def test_each_trap_is_found_and_nothing_else(found: list[Finding]) -> None:
    """The cold run, both cached prompts (40 tokens too), the other context of the longest row, the disturbed row."""
    told = [(finding.kind, finding.point, finding.doubtful) for finding in found if finding.order_index is not None]
    assert sorted(told) == [
        ("above_compute_peak", "same-prompt-3473", True),
        ("above_compute_peak", "same-prompt-40", True),
        ("cold_load", "first-run-40", True),
        ("mixed_conditions", "prefill-8192", False),
        ("outlier", "prefill-512", False),
        ("outlier", "prefill-512", False),
    ]


def test_the_disturbed_row_is_told_in_two_columns(found: list[Finding]) -> None:
    """578 tokens: 15.1 tok/s where longer prompts have a median of 18.7, and 370 ms where 123.5 are usual."""
    odd = {
        finding.values["figure"]: (finding.values["value"], finding.values["usual"])
        for finding in found
        if finding.kind == "outlier"
    }
    assert odd == {"decode_tok_per_s": (15.1, pytest.approx(18.7)), "overhead_ms": (370.0, 123.5)}


def test_the_other_context_is_named(found: list[Finding]) -> None:
    """16,384 where the five shorter rows had 8,192."""
    (mixed,) = [finding for finding in found if finding.kind == "mixed_conditions"]
    assert dict(mixed.values) == {"field": "context_limit_tokens", "value": 16384, "usual": 8192}


def test_all_other_rows_may_stand_for_everything(found: list[Finding]) -> None:
    """Ten baseline runs, six lengths, two controls; the cold run still has its time per token."""
    rows = read_run(RUN).rows
    assert list(clean(rows, found)) == [False, False, False] + [True] * 18
    assert list(clean(rows, found, "tpot"))[:3] == [True, True, True]
