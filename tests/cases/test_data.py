"""Values and times on their way through a file, with look-alikes: B51, B52."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from roofbook.analysis.subjects import subjects
from roofbook.record import RunFacts, all_rows, read_run, write_run
from roofbook.validity import records
from roofbook.words import load_words

ROOT = Path(__file__).parents[2]
KST = timezone(timedelta(hours=9))


def through_a_file(folder: Path, column: str, values: list[Any]) -> list[Any]:
    rows = [{"order_index": i, column: value} for i, value in enumerate(values)]
    return [row[column] for row in records(read_run(write_run(folder, rows, RunFacts("r"))).rows)]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("cached_tokens", [0, None, 2**53 + 1]),  # a count that a float cannot hold
        ("host_is_server", [True, None, False]),  # unknown is neither
        ("thermal_level", ["nominal", None, ""]),  # an empty text is not unknown
        ("chunk_times_ms", [[1.5, 2.0], None, []]),  # nor is an empty list
        ("output_tokens", [69, 70, 71]),  # harmless: nothing missing
        ("model", ["nan", "None", "1e3"]),  # harmless: names that look like something else
    ],
)
def test_b51_what_was_written_is_read(tmp_path: Path, column: str, values: list[Any]) -> None:
    """The same values, null where nothing was known, and of the same type: as JSON they are what they were."""
    found = through_a_file(tmp_path, column, values)
    plain = [None if value is None else list(value) if column == "chunk_times_ms" else value for value in found]
    assert plain == values
    assert json.loads(json.dumps(plain, allow_nan=False)) == values


@pytest.mark.parametrize(
    ("column", "values", "groups"),
    [
        ("kv_cache_type", ["f16", None, None], 2),
        ("parallel_slots", [1, None, 4], 3),
        ("server", [None, None, None], 1),  # harmless: unknown throughout is one subject
        ("server_version", ["1", None, "2"], 1),  # harmless: a version is a subject's history, not another subject
    ],
)
def test_b51_unknown_is_a_group_of_its_own(tmp_path: Path, column: str, values: list[Any], groups: int) -> None:
    """No row falls out because nobody knew something of it."""
    rows = [{"order_index": i, "model": "m", column: value} for i, value in enumerate(values)]
    found = subjects(all_rows([read_run(write_run(tmp_path, rows, RunFacts("r")))]))
    assert len(found) == groups
    assert sum(len(subject.rows) for subject in found) == len(values)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (datetime(2026, 1, 1, 0, 30, tzinfo=KST), datetime(2025, 12, 31, 15, 30, tzinfo=UTC)),
        (
            datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
            datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
        ),  # a night with a missing hour
        (datetime(2026, 1, 1, 0, 30, tzinfo=UTC), datetime(2026, 1, 1, 0, 30, tzinfo=UTC)),  # harmless
    ],
)
def test_b52_a_time_is_kept_in_utc(tmp_path: Path, written: datetime, read: datetime) -> None:
    """Whatever zone it came in, it is the same moment."""
    (found,) = through_a_file(tmp_path, "started_at", [written])
    assert found == read
    assert found.utcoffset() == timedelta(0)


@pytest.mark.parametrize("reader", ["Asia/Seoul", "America/New_York", "UTC"])
def test_b52_a_page_does_not_depend_on_who_builds_it(reader: str) -> None:
    """Built anywhere, a moment is told in the report's zone, and named; a stated day stays that day."""
    program = (
        "from datetime import UTC, date, datetime; from pathlib import Path; from roofbook.words import load_words;"
        "words = load_words(Path('templates/locale'), 'en', zone='Asia/Seoul');"
        "print(words.moment(datetime(2026, 1, 1, 0, 30, tzinfo=UTC)), '|', words.date(date(2026, 8, 31)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={**os.environ, "TZ": reader, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert printed.stdout.strip() == "January 1, 2026 09:30 KST | August 31, 2026"


def test_b52_days_are_counted_in_the_reports_zone() -> None:
    """16:00 UTC is the next day in Seoul, and the same day in London: runs of a day stand together by the zone."""
    moment = datetime(2026, 6, 30, 16, 0, tzinfo=UTC)
    locale = ROOT / "templates" / "locale"
    assert load_words(locale, "en", zone="Asia/Seoul").day(moment).isoformat() == "2026-07-01"
    assert load_words(locale, "en", zone="Europe/London").day(moment).isoformat() == "2026-06-30"
