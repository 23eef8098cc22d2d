"""Keeping the machine awake while it measures: a laptop that falls asleep in mid-run spoils the run."""

import contextlib
import os
import shutil
import subprocess
import sys
from types import TracebackType
from typing import Self


class KeepAwake:
    """A context manager: while it is open, the machine does not sleep because it is idle.

    macOS: `caffeinate -i`, which ends with us by itself; Linux: systemd-inhibit where it is there and lets us.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def held(self) -> bool:
        """Whether something keeps the machine awake now."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        command = command_for(sys.platform, os.getpid())
        if command is not None and shutil.which(command[0]):
            with contextlib.suppress(OSError):
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.terminate()
        self._process.wait()
        self._process = None


def command_for(platform: str, pid: int) -> list[str] | None:
    """Return the command that holds the assertion until *pid* ends, or until our end of its input closes."""
    if platform == "darwin":
        return ["caffeinate", "-i", "-w", str(pid)]
    if platform == "linux":
        # `cat` ends with its input, and so with us, however we end.
        return [
            "systemd-inhibit", "--what=idle:sleep", "--who=roofbook", "--why=measuring", "--mode=block", "cat",
        ]  # fmt: skip
    return None
