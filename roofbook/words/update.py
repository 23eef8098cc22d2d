"""Bring the catalogues up to what is said: new sentences in, dead ones out, near ones marked for reading."""

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from babel.messages.pofile import denormalize, normalize

from roofbook.words.check import Entry, Key, read_entries, said_in

_NEAR: Final = 0.8
"""An old sentence so much like a new one is taken for it, and marked fuzzy."""


def update(root: Path, lang: str) -> list[str]:
    """Rewrite the catalogues of *lang* below *root* that lack a sentence or have a dead one; return what was done.

    Raises WordsError for a file that is no catalogue.
    """
    said = said_in(root).keys
    entries = read_entries(root / "templates" / "locale", lang)
    dead = [entry for entry in entries if entry.key not in said]
    known = {entry.key[0] for entry in entries if entry.key in said}
    new = {key: place for key, place in said.items() if key[0] not in known}
    homes = {said[entry.key]: entry.path for entry in entries if entry.key in said}
    done: list[str] = []
    for path in sorted({entry.path for entry in dead}):
        gone = {entry.key for entry in dead if entry.path == path}
        path.write_text("\n\n".join(_alive(path, gone)) + "\n", encoding="utf-8")
        done += [f"{path.name}: removed {key[0]!r}" for key in sorted(gone)]
    for key, place in new.items():
        path = _home(place, homes) or entries[0].path
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{_block(key, _near(key, dead))}")
        done.append(f"{path.name}: added {key[0]!r} ({place})")
    return done


def _home(place: str, homes: Mapping[str, Path]) -> Path | None:
    """Return the catalogue that has most sentences of the same file, else of the nearest folder."""
    for folder in PurePosixPath(place.rpartition(":")[0]).parents:
        there = Counter(home for known, home in homes.items() if PurePosixPath(known).is_relative_to(folder))
        own_file = Counter(
            home for known, home in homes.items() if known.rpartition(":")[0] == place.rpartition(":")[0]
        )
        if own_file or there:
            return (own_file or there).most_common(1)[0][0]
    return None


def _alive(path: Path, gone: set[Key]) -> Iterator[str]:
    """Yield the blocks of a catalogue that blank lines part, without the entries in *gone*; comments stay."""
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        if _key(block) not in gone:
            yield block


def _key(block: str) -> Key:
    """Return the sentence that a block of a catalogue translates."""
    held: dict[str, list[str]] = {}
    field = ""
    for line in block.splitlines():
        if line.startswith("msg"):
            field, _, text = line.partition(" ")
            held[field] = [text]
        elif line.startswith('"'):
            held[field].append(line)
    return tuple(denormalize("\n".join(held[name])) for name in ("msgid", "msgid_plural") if name in held)


def _near(key: Key, dead: Sequence[Entry]) -> Entry | None:
    same_form = {entry.key[0]: entry for entry in dead if len(entry.key) == len(key)}
    found = difflib.get_close_matches(key[0], list(same_form), n=1, cutoff=_NEAR)
    return same_form[found[0]] if found else None


def _block(key: Key, near: Entry | None) -> str:
    forms = near.forms if near else ("",)
    fuzzy = "#, fuzzy\n" if near and any(forms) else ""
    ids = "".join(
        f"{name} {normalize(text)}\n" for name, text in zip(("msgid", "msgid_plural"), key, strict=False)
    )  # fmt: skip
    if len(key) == 1:
        return f"{fuzzy}{ids}msgstr {normalize(forms[0])}\n"
    return fuzzy + ids + "".join(f"msgstr[{number}] {normalize(form)}\n" for number, form in enumerate(forms))
