"""Curves to draw, from the six published lengths of a Mac mini M4 (each the median of three runs)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from roofbook.analysis.prefill import Curve, Length, prefill_curve
from roofbook.record import Row, RunFacts, all_rows, read_run, write_run
from roofbook.words import Words, load_words

PUBLISHED = [(205, 891), (578, 2790), (1096, 5137), (2091, 10741), (4056, 21891), (8016, 48337)]
LOCALE = Path(__file__).parents[2] / "templates" / "locale"

MakeCurve = Callable[[list[Row]], Curve]


def row(tokens: int, prefill_ms: float | None) -> Row:
    return {
        "kind": "prefill_curve", "phase": "measured", "status": "ok", "prompt_tokens": tokens,
        "prompt_tokens_wanted": tokens, "server_prefill_ms": prefill_ms, "ttft_ms": (prefill_ms or 900.0) + 100,
    }  # fmt: skip


@pytest.fixture
def curve_of(tmp_path: Path) -> Callable[..., Curve]:
    def made(points: list[tuple[int, float | None]]) -> Curve:
        rows = [row(tokens, prefill_ms) | {"aggregate_of": 3} for tokens, prefill_ms in points]
        return prefill_curve(all_rows([read_run(write_run(tmp_path, rows, RunFacts("run")))]))

    return made


@pytest.fixture
def published(curve_of: Callable[..., Curve]) -> Curve:
    return curve_of(PUBLISHED)


@pytest.fixture
def impossible() -> Length:
    """3,473 tokens in 58 ms: a prefix cache's doing."""
    return Length(3473, 58, 58, 58, rows=1, runs=None, contexts=(), spread_share=None)


@pytest.fixture
def english() -> Words:
    return Words("en")


@pytest.fixture
def korean() -> Words:
    return load_words(LOCALE, "ko", strict=True)
