"""Which process a server is, and what its line says: looked up by the port it listens on, on this machine only."""

import contextlib
from collections.abc import Iterator
from typing import Final

import psutil

from collect.server.flags import ProcessFlags, base_name, read_flags

# What runs the model below `ollama serve`.
_RUNNERS: Final = ("llama-server", "ollama", "ollama_llama_server")


def of_port(port: int, *, model_file: str | None = None) -> ProcessFlags | None:
    """Return the flags of the process that listens on *port*, or of its model runner; None where it cannot be seen.

    Of several runners it is the one that has *model_file* (a base name) open; None where that does not tell them apart.
    """
    listener = _listener(port)
    if listener is None:
        return None
    with contextlib.suppress(psutil.Error, OSError):
        runners = [child for child in listener.children(recursive=True) if _program(child) in _RUNNERS]
        if len(runners) > 1 and model_file is not None:
            runners = [child for child in runners if any(model_file in word for word in child.cmdline())]
        if len(runners) > 1:
            return None
        process = runners[0] if runners else listener
        try:
            environment = process.environ()
        except (psutil.Error, OSError):
            environment = None
        return read_flags(process.cmdline(), environment, name=_program(process))
    return None


def mlx_lm_model(port: int) -> str | None:
    """Return what the mlx_lm.server on *port* was started with, as a request names it: a name, or a folder's path."""
    listener = _listener(port)
    with contextlib.suppress(psutil.Error, OSError):
        words = [] if listener is None else listener.cmdline()
        for at, word in enumerate(words):
            if word == "--model" and at + 1 < len(words):
                return words[at + 1]
            if word.startswith("--model="):
                return word.partition("=")[2]
    return None


def _listener(port: int) -> psutil.Process | None:
    """The process that listens on *port* of this machine; macOS and Linux show us our own."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if _listens(connection.status, connection.laddr, port) and connection.pid:
                return psutil.Process(connection.pid)
        return None
    for process in _own_processes():  # macOS tells the whole list to root only
        with contextlib.suppress(psutil.Error, OSError):
            if any(_listens(one.status, one.laddr, port) for one in process.net_connections("tcp")):
                return process
    return None


def _listens(status: str, address: tuple[object, ...], port: int) -> bool:
    return status == psutil.CONN_LISTEN and len(address) > 1 and address[1] == port


def _own_processes() -> Iterator[psutil.Process]:
    mine = psutil.Process().username()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.username() == mine:
                yield process


def _program(process: psutil.Process) -> str:
    """The program's name; of a Python script the script's."""
    command = process.cmdline()
    if command and base_name(command[0]).startswith("python"):
        for word in command[1:]:
            if not word.startswith("-"):
                return base_name(word)
    return process.name()
