"""Rows for the rules: clean ones, which a case changes."""

from collections.abc import Callable

import pytest

from roofbook.record import Row

MakeRow = Callable[..., Row]


@pytest.fixture
def row() -> MakeRow:
    """Make a clean row: 1,000 tokens read in 2 s, 64 written at 25 a second; keywords change it."""

    def clean_row(index: int = 0, **values: object) -> Row:
        identity: Row = {"run_id": "r", "experiment": "e", "kind": "baseline", "point": "p", "phase": "measured"}
        condition: Row = {"machine": "m", "server": "s", "model": "x", "status": "ok", "order_index": index}
        counted: Row = {"prompt_tokens": 1000, "prompt_tokens_wanted": 1000, "output_tokens": 64}
        times: Row = {"ttft_ms": 2080.0, "last_token_ms": 4600.0, "e2e_ms": 4601.0, "server_prefill_ms": 2000.0}
        return identity | condition | counted | times | {"output_tokens_wanted": 64} | values

    return clean_row
