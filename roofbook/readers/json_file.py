"""A JSON file that a person named."""

import json
from pathlib import Path

from roofbook.errors import ReaderError


def read_json_file(path: Path) -> object:
    """Return what the file at *path* holds; raises ReaderError where it cannot be read or is no JSON."""
    try:
        return json.loads(path.read_bytes())
    except OSError as problem:
        raise ReaderError("Cannot read %(file)s: %(problem)s", file=path.name, problem=problem.strerror) from problem
    except (ValueError, RecursionError) as problem:
        raise ReaderError("%(file)s is not JSON: %(problem)s", file=path.name, problem=problem) from problem
