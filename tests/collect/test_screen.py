"""What is written fits the terminal, stays readable in any encoding, and leaves no half line behind."""

import io
import os

import pytest

from collect.screen import Screen, aligned, clipped, width


class Terminal(io.StringIO):
    """A terminal of our own."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 7


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """One of 20 columns that can rewrite its line."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((20, 24)))
    return Terminal()


def test_a_status_is_one_line_of_a_narrow_terminal(terminal: Terminal) -> None:
    """A line that wraps could not be taken back: of 20 columns 19 are used, the last of them for the mark."""
    screen = Screen(terminal)
    screen.status("[3/45] baseline p4000-o32  about 1 min left")
    screen.line("done")
    assert terminal.getvalue() == "\r\x1b[2K[3/45] baseline p4…\r\x1b[2Kdone\n"


@pytest.mark.parametrize(
    ("text", "columns", "kept"),
    [
        ("워밍업", 6, "워밍업"),  # two columns each
        ("워밍업", 5, "워밍…"),
        ("워밍업", 4, "워…"),  # 2 + 1: another syllable would need five
        ("warm", 0, "warm"),  # a terminal that does not know how wide it is
        ("warm", 1, "…"),
    ],
)
def test_hangul_takes_two_columns(text: str, columns: int, kept: str) -> None:
    """Cut where the terminal ends, not where a letter count says so."""
    assert clipped(text, columns) == kept
    assert columns <= 0 or width(clipped(text, columns)) <= columns


def test_columns_stand_below_each_other_in_both_scripts() -> None:
    """Three syllables are as wide as six letters."""
    assert aligned([["실험점", "n"], ["p512-o", "3"]]) == ["실험점  n", "p512-o  3"]


def test_a_terminal_that_knows_no_control_codes_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """TERM=dumb, as in an editor's window: lines as in a log."""
    monkeypatch.setenv("TERM", "dumb")
    assert not Screen(Terminal()).rewrites


def test_a_letter_that_the_terminal_lacks_does_not_swallow_the_line() -> None:
    """An ASCII log of a Korean run: the numbers are there."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, "ascii")
    Screen(out).line("요청 45개")
    assert raw.getvalue() == b"?? 45?\n"
