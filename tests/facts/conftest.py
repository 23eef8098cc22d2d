"""The catalogue as it is shipped, read once."""

from pathlib import Path

import pytest

from roofbook.facts import Facts, load_facts

FACTS = Path(__file__).parents[2] / "data" / "facts"


@pytest.fixture(scope="session")
def facts() -> Facts:
    return load_facts(FACTS)
