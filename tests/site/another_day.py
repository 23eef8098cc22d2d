"""mkdocs as it would run on another day: ``python another_day.py SECONDS build --strict`` shifts every clock."""

import datetime as clock
import sys
import time
from typing import Any

SHIFT_S = float(sys.argv[1])

_time, _localtime, _gmtime, _strftime = time.time, time.localtime, time.gmtime, time.strftime


class _Everyone(type):
    """A moment made before the clock was shifted is a moment as well."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


class _ShiftedDate(clock.date, metaclass=_Everyone):
    @classmethod
    def today(cls) -> Any:
        return clock.date.fromtimestamp(time.time())


class _ShiftedMoment(clock.datetime, metaclass=_Everyone):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return _moment.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return _moment.fromtimestamp(time.time(), clock.UTC).replace(tzinfo=None)

    today = now


_moment = clock.datetime

if __name__ == "__main__":
    time.time = lambda: _time() + SHIFT_S
    time.time_ns = lambda: int(time.time() * 1e9)
    time.localtime = lambda seconds=None: _localtime(time.time() if seconds is None else seconds)
    time.gmtime = lambda seconds=None: _gmtime(time.time() if seconds is None else seconds)
    time.strftime = lambda form, moment=None: _strftime(form, moment or time.localtime())
    # Libraries that were written in C ask for the real types: they are loaded before these are exchanged.
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    clock.date, clock.datetime = _ShiftedDate, _ShiftedMoment  # type: ignore[misc]

    from mkdocs.__main__ import cli

    sys.argv = ["mkdocs", *sys.argv[2:]]
    cli()
