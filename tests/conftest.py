"""What holds for all tests: in CI nothing is skipped unseen; and how rows are judged."""

import os
from collections.abc import Callable, Generator, Iterable

import pytest
from hypothesis import settings

from roofbook.record import Row
from roofbook.validity import Finding, Known, findings

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("roofbook", deadline=None)
settings.load_profile("roofbook")

IN_CI = os.environ.get("CI") == "true"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test fails, but for those marked optional: a check that did not run has not passed."""
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail") and "optional" not in item.keywords:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = len(terminalreporter.stats.get("skipped", []))
    terminalreporter.write_line(f"optional tests not run here: {skipped}")


Judge = Callable[..., list[Finding]]


@pytest.fixture
def judge() -> Judge:
    """Return the findings of some kinds (default: of all but too_few, which a short test always has)."""

    def judged(rows: Iterable[Row], *kinds: str, known: Known | None = None) -> list[Finding]:
        found = findings(rows, known)
        return [finding for finding in found if (finding.kind in kinds if kinds else finding.kind != "too_few")]

    return judged
