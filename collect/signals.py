"""Ctrl-C, SIGTERM and a closed terminal as a wish to stop: the run ends by itself, and writes what it has."""

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_EXIT_BY_SIGNAL: Final = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}


class StopSignals:
    """While open (a context manager), a signal only asks to stop; another one changes nothing, so no writing is cut,
    up to the end of the process.

    A signal that is ignored from the start stays so: under nohup a run goes on when its terminal is closed.
    """

    def __init__(self) -> None:
        self.first: signal.Signals | None = None
        self._tell: Callable[[], object] = lambda: None
        self._before: dict[signal.Signals, Any] = {}

    @property
    def exit_code(self) -> int | None:
        """The exit code that the first signal stands for; None where none came."""
        return None if self.first is None else _EXIT_BY_SIGNAL[self.first]

    def when_asked(self, tell: Callable[[], object]) -> None:
        """Call *tell* at the first signal, or now where it has come already."""
        self._tell = tell
        if self.first is not None:
            tell()

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            # Who was asked to stop is at its end: one more signal must not cut what is left to close.
            signal.signal(number, before if self.first is None else signal.SIG_IGN)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.first is None:
            self.first = signal.Signals(number)
            self._tell()
