"""Rows of the contract for the analysis tests, with the types that a page would read."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from roofbook.record import Row, RunFacts, all_rows, read_run, write_run

Frame = Callable[[list[Row]], pd.DataFrame]


@pytest.fixture
def frame(tmp_path: Path) -> Frame:
    """Write and read rows as a run: nulls and counts arrive as they do from a file."""

    def written(rows: list[Row]) -> pd.DataFrame:
        return all_rows([read_run(write_run(tmp_path, rows, RunFacts(run_id="test")))])

    return written


@pytest.fixture
def curve_row() -> Callable[..., Row]:
    def row(wanted: int | None, tokens: int, ttft_ms: float | None, prefill_ms: float | None, **more: object) -> Row:
        measured = {"run_id": "test", "kind": "prefill_curve", "phase": "measured", "status": "ok"}
        counted = {"prompt_tokens_wanted": wanted, "prompt_tokens": tokens}
        return measured | counted | {"ttft_ms": ttft_ms, "server_prefill_ms": prefill_ms} | more

    return row


@pytest.fixture
def published_curve(curve_row: Callable[..., Row]) -> list[Row]:
    """The six published lengths (wanted, counted, TTFT, prefill): medians of three runs each."""
    published = [
        (128, 205, 994, 891),
        (512, 578, 3160, 2790),
        (1024, 1096, 5242, 5137),
        (2048, 2091, 10850, 10741),
        (4096, 4056, 22041, 21891),
        (8192, 8016, 48475, 48337),
    ]
    return [curve_row(*row, aggregate_of=3) for row in published]
