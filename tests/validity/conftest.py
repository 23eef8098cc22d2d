"""Rows for the rules: one point of five clean requests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from roofbook.facts import Facts, load_facts
from roofbook.record import Row

ROOT = Path(__file__).parents[2]

MakeRow = Callable[..., Row]


@pytest.fixture
def row() -> MakeRow:
    """Make a clean row: 512 tokens read in 2.5 s, 32 written at 20 tokens a second; keywords change it."""

    def clean_row(index: int = 0, **values: object) -> Row:
        identity: Row = {"run_id": "r", "experiment": "e", "kind": "baseline", "point": "p", "phase": "measured"}
        condition: Row = {"machine": "m", "server": "s", "model": "x", "status": "ok", "order_index": index}
        counted: Row = {"prompt_tokens": 512, "prompt_tokens_wanted": 512, "output_tokens": 32}
        times: Row = {"ttft_ms": 2600.0, "last_token_ms": 4150.0, "e2e_ms": 4151.0, "server_prefill_ms": 2500.0}
        return identity | condition | counted | times | {"output_tokens_wanted": 32} | values

    return clean_row


@pytest.fixture(scope="session")
def facts() -> Facts:
    return load_facts(ROOT / "data" / "facts")
