"""Are the catalogues whole: every sentence translated, none stale, none fuzzy, every place filled."""

import inspect
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_file
from babel.messages.pofile import PoFileError, read_po

from roofbook import errors
from roofbook.words.catalogue import SOURCE_LANGUAGE

_ERROR_CLASSES: Final = [
    name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.RoofbookError)
]
KEYWORDS: Final[dict[str, tuple[int, ...] | None]] = {
    "say": None,
    "mark": None,
    "_": None,
    "gettext": None,
    "say_n": (1, 2),
    "ngettext": (1, 2),
    **dict.fromkeys(_ERROR_CLASSES),
}
_SOURCES: Final = (
    ("collect", "*.py", "python"),
    ("roofbook", "*.py", "python"),
    ("templates", "*.j2", "jinja2"),
    ("templates/theme", "*.html", "jinja2"),
    ("site_src", "*.md", "jinja2"),
)
_PLACE: Final = re.compile(r"%(?:\((\w+)\))?[-+ #0]*\d*(?:\.\d+)?([diouxXeEfFgGcrsa%])")

# What reads the same in every language: places, figures, units, names of products and of quantities in capitals.
_SAME_EVERYWHERE: Final = re.compile(
    r"""(?: %\(\w+\)[sd] | %% | [\W\d_]
        | (?:ms|s|min|h|B|kB|MB|GB|GiB|MiB|KiB|tok|GB/s|Hz|W|FLOP|FLOPS|TFLOP|TFLOPS|CSV|JSON|SVG|PNG|URL)\b
        | (?:P50|P95|P99|n|TTFT|TPOT|GPU|CPU|KV|RAM|LLM|GQA|RAG|API|AICc|parquet|Parquet|GitHub|OS|ID|SHA-256)\b
        | (?:Ollama|llama\.cpp|vLLM|LM\ Studio|MLX|mlx_lm|GGUF|Vega-Lite|roofbook|Apple|NVIDIA|macOS|Linux)\b
    )*""",
    re.VERBOSE,
)

Key = tuple[str, ...]
"""A sentence as the catalogue knows it: (message,) or (one, many)."""


@dataclass(frozen=True)
class Entry:
    """One translated sentence of one .po file."""

    path: Path
    line: int | None
    key: Key
    forms: tuple[str, ...]
    fuzzy: bool


@dataclass(frozen=True)
class Said:
    """What the sources say: each sentence with the first place it stands at, and what cannot be translated as it is."""

    keys: dict[Key, str]
    untranslatable: tuple[str, ...]


def said_in(root: Path) -> Said:
    """Return every sentence in the Python and the templates below *root*."""
    found: dict[Key, str] = {}
    skipped = io.StringIO()
    with redirect_stderr(skipped):  # the only way in which Babel tells what it skipped
        for folder, pattern, method in _SOURCES:
            for path in sorted((root / folder).rglob(pattern)):
                options = {"silent": "false", "trimmed": "true"} if method == "jinja2" else {}
                for line, message, _comments, _context in extract_from_file(method, path, KEYWORDS, options=options):
                    key = (message,) if isinstance(message, str) else tuple(message)
                    found.setdefault(key, f"{path.relative_to(root)}:{line}")
    return Said(found, tuple(skipped.getvalue().splitlines()))


def read_entries(folder: Path, lang: str) -> list[Entry]:
    """Return the entries of every catalogue of *lang* below the locale folder, as they are written.

    Raises WordsError for a file that is no catalogue.
    """
    return [entry for path in sorted((folder / lang / "LC_MESSAGES").glob("*.po")) for entry in _entries(path, lang)]


def complaints(root: Path, lang: str) -> list[str]:
    """Return everything that is wrong with the catalogues of *lang*, one line each; empty when they are whole."""
    if lang == SOURCE_LANGUAGE:
        return []
    said = said_in(root)
    wanted = said.keys
    entries = read_entries(root / "templates" / "locale", lang)
    translated = {entry.key[0] for entry in entries}
    lost = [f"{place}: no translation for {key[0]!r}" for key, place in wanted.items() if key[0] not in translated]
    return [
        *said.untranslatable,
        *lost,
        *_contradictions(entries),
        *(text for entry in entries for text in _wrong_with(entry, wanted)),
    ]


def _wrong_with(entry: Entry, wanted: dict[Key, str]) -> Iterator[str]:
    where = f"{entry.path.name}:{entry.line}: {entry.key[0]!r}"
    if entry.key not in wanted:
        yield f"{where} is said nowhere: remove it"
    if entry.fuzzy:
        yield f"{where} is marked fuzzy: read it and remove the mark"
    for form in entry.forms:
        if not form.strip():
            yield f"{where} is not translated"
        elif form == entry.key[-1] and not _SAME_EVERYWHERE.fullmatch(form):
            yield f"{where} equals its English source"
        elif _places(form) != _places(entry.key[-1]):
            yield f"{where} has other places than its source: {form!r}"


def _contradictions(entries: list[Entry]) -> Iterator[str]:
    """Two catalogues are read as one, so the same sentence must not be translated in two ways."""
    first: dict[str, Entry] = {}
    for entry in entries:
        other = first.setdefault(entry.key[0], entry)
        if other.forms != entry.forms:
            yield f"{entry.path.name}:{entry.line}: {entry.key[0]!r} is translated otherwise in {other.path.name}"


def _places(sentence: str) -> set[tuple[str, str]]:
    """Return the names and kinds of the places of *sentence*; a lone per cent sign is one without a name."""
    named = {(name or "", kind) for name, kind in _PLACE.findall(sentence)} - {("", "%")}
    lone = {("", "lone %")} if "%" in _PLACE.sub("", sentence) else set[tuple[str, str]]()
    return named | lone


def _entries(path: Path, lang: str) -> Iterator[Entry]:
    try:
        with path.open("rb") as file:
            catalogue: Catalog = read_po(file, locale=lang, abort_invalid=True)
    except (PoFileError, OSError, ValueError) as problem:
        raise errors.WordsError(
            "%(path)s is no gettext catalogue: %(problem)s", path=path, problem=problem
        ) from problem
    for message in catalogue:
        if message.id:
            yield _entry(path, message)


def _entry(path: Path, message: Message) -> Entry:
    key = (message.id,) if isinstance(message.id, str) else tuple(message.id)
    forms = (message.string or "",) if isinstance(message.string, str | None) else tuple(message.string)
    return Entry(path, message.lineno, key, forms, message.fuzzy)
