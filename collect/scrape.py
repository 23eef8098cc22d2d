"""What the server counts of itself while it is measured: its /metrics, asked for every few seconds by a thread."""

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Self

from collect.client import Target, lookup
from collect.samples import Keep

PERIOD_S: Final = 5.0
"""Queues and caches change within seconds, and each question takes some milliseconds of the server's time."""

_MOST_NAMES: Final = 200
# The servers' own figures; what a Python process or a web framework counts beside them says nothing here.
_SAMPLE: Final = re.compile(
    r"(?m)^((?:vllm|llamacpp|sglang|lmstudio|trtllm|nv_trt_llm|nv_inference)[a-z0-9_:]{1,100})(?:\{.*\})? "
    r"([-+]?[0-9][0-9.eE+-]*)(?: [0-9]+)?$"
)
_SKIPPED: Final = ("_bucket", "_created", "_info")


def samples_of(metrics: str) -> dict[str, float]:
    """Return name to value of a Prometheus text, label sets added up; the buckets of histograms are left out."""
    found: dict[str, float] = {}
    for name, written in _SAMPLE.findall(metrics):
        if name.endswith(_SKIPPED) or (name not in found and len(found) >= _MOST_NAMES):
            continue
        try:
            found[name] = found.get(name, 0.0) + float(written)
        except ValueError:
            continue
    return found


class Scraper:
    """Asks *target* for its metrics while it is open (a context manager); one that has none is asked once.

    *keep* gets what it told each time.
    """

    def __init__(
        self, target: Target, keep: Keep, *, period_s: float = PERIOD_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:  # fmt: skip
        self._target = target
        self._keep = keep
        self._period_s = period_s
        self._now = now
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scraper", daemon=True)

    def __enter__(self) -> Self:
        if self._scrape():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
            self._scrape()

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self._scrape()

    def _scrape(self) -> bool:
        key = self._target.key
        headers = None if key is None else {"Authorization": f"Bearer {key}"}
        moment = self._now()
        found = samples_of(lookup.get(self._target.url, "/metrics", headers=headers).text)
        if found:
            self._keep(moment, found)
        return bool(found)
