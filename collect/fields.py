"""Reading another program's JSON with care: what is missing, of the wrong type or absurd is null."""

import json
import math
import re
from collections.abc import Iterable
from typing import Any, Final, cast

# What a row can hold; a larger count is no count.
_LARGEST: Final = 2**63 - 1
_DIGEST: Final = re.compile(r"(?:sha256[:-])?([0-9a-f]{12,64})")


# The deepest honest answer, a tool's schema, has a dozen levels; what looks through a value goes as deep as it does.
_DEEPEST: Final = 64


def parsed(text: str) -> Any:
    """Return the JSON value that *text* is; None where it is none, or nested too deeply to be an honest one."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if text.count("{") + text.count("[") <= _DEEPEST:
        return value
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return value
    return None


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def at(value: Any, *path: str | int) -> Any:
    """Return what stands at *path* in nested objects and lists; None where it leads nowhere."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = cast("dict[str, Any]", value).get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[step]
        else:
            return None
    return value


def text(value: Any, *path: str | int) -> str | None:
    """Return the text at *path*; None where it is none, or empty."""
    found = at(value, *path)
    return found.strip() or None if isinstance(found, str) else None


def digest(value: Any, *path: str | int) -> str | None:
    """Return the hexadecimal digest at *path*, without the name of its kind; None where it is none."""
    found = _DIGEST.fullmatch(text(value, *path) or "")
    return found.group(1) if found else None


def count(value: Any, *path: str | int) -> int | None:
    """Return the whole number at *path*; None where it is none, negative, or too large to be one."""
    found = at(value, *path)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if 0 <= found <= _LARGEST else None


def positive(value: Any, *path: str | int) -> int | None:
    """Return the count at *path*; None where it is zero too: a limit of zero tokens is no limit that anybody set."""
    return count(value, *path) or None


def number(value: Any, *path: str | int) -> float | None:
    """Return the finite number at *path*."""
    found = at(value, *path)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        return None
    return float(found)


def objects(value: Any, *path: str | int) -> list[dict[str, Any]]:
    """Return the objects of the list at *path*; what is no object in it is left out."""
    found = at(value, *path)
    if not isinstance(found, list):
        return []
    return [cast("dict[str, Any]", entry) for entry in cast("list[Any]", found) if isinstance(entry, dict)]


def first(value: Any, *path: str | int, **wanted: str | None) -> dict[str, Any]:
    """Return the first object of the list at *path* that has the *wanted* values; an empty one where none has."""
    for entry in objects(value, *path):
        if all(found is not None and entry.get(name) == found for name, found in wanted.items()):
            return entry
    return {}
