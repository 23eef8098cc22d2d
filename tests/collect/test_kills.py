"""A small version of ``python tests/collect/kills.py``: ten kills, judged by the server's own list."""

import importlib.util
import sys
from pathlib import Path
from typing import Any


def load_kills() -> Any:
    """The script is no module of a package: it is loaded by its path, as one calls it."""
    path = Path(__file__).with_name("kills.py")
    spec = importlib.util.spec_from_file_location("kills", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kills"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_ten_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    """At any moment and inside writes: what was answered is in the rows, once; what was in the air is sent again."""
    verdict = load_kills().kill(10, seed=4, folder=tmp_path)
    assert (verdict.lost, verdict.repeated, verdict.skipped, verdict.torn) == ([], [], [], [])
    assert verdict.kills == {"any_moment": 8, "half_a_line": 1, "before_its_sync": 1}
    assert verdict.answered > 100
