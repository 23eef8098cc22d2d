"""Is the client itself late? A tick of the event loop, and by how much it missed its time while a request ran."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from roofbook.units import NS_PER_MS

# Short against any delay that would matter to a token time, long enough to cost nothing (0.1 % of one core).
TICK_S: Final = 0.005


@dataclass(eq=False)  # each is itself: two that saw the same delay are two
class Lag:
    """The largest delay of the event loop while it was watched."""

    largest_ns: int = 0

    @property
    def largest_ms(self) -> float:
        return self.largest_ns / NS_PER_MS


class LoopWatch:
    """Ticks as long as it is open; every span that runs meanwhile learns of the largest delay."""

    def __init__(self) -> None:
        self._spans: list[Lag] = []
        self._due_ns = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to tick on the running event loop."""
        self._schedule()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @contextmanager
    def span(self) -> Generator[Lag]:
        """Watch for the length of a block; the tick that is overdue when it ends counts too."""
        lag = Lag()
        self._spans.append(lag)
        try:
            yield lag
        finally:
            self._spans.remove(lag)
            if self._timer is not None:
                lag.largest_ns = max(lag.largest_ns, time.perf_counter_ns() - self._due_ns)

    def _schedule(self) -> None:
        self._due_ns = time.perf_counter_ns() + round(TICK_S * 1e9)
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        late_ns = time.perf_counter_ns() - self._due_ns
        for span in self._spans:
            span.largest_ns = max(span.largest_ns, late_ns)
        self._schedule()
