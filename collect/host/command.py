"""Running one of the system's own tools, briefly and quietly."""

import os
import subprocess
from typing import Final

_TIMEOUT_S: Final = 10.0


def output(*command: str, timeout_s: float = _TIMEOUT_S) -> str:
    """Return what *command* prints; empty where it is missing, fails or takes too long."""
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")
