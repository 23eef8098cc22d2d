"""A subject as its pages show it: its name, its colour, its conditions, its runs and its dates."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pandas as pd

from roofbook.pages.escape import digest, slug
from roofbook.record import Run, all_rows
from roofbook.words import Words, mark

IDENTITY: Final = (
    "machine",
    "server",
    "model",
    "model_digest",
    "quantization",
    "kv_cache_type",
    "flash_attention",
    "parallel_slots",
)
"""What makes a subject: rows that differ in one of these are never mixed. A server's version is its history."""

_READABLE: Final = tuple(IDENTITY.index(column) for column in ("machine", "server", "model", "quantization"))

SELF_TEST_API: Final = "embedded"

_CONDITIONS: Final = (
    ("machine", mark("Machine")),
    ("server", mark("Server")),
    ("server_version", mark("Server version")),
    ("model", mark("Model")),
    ("model_digest", mark("Model digest")),
    ("quantization", mark("Quantization")),
    ("kv_cache_type", mark("KV cache type")),
    ("flash_attention", mark("Flash attention")),
    ("parallel_slots", mark("Parallel slots")),
    ("context_limit_tokens", mark("Context limit (tokens)")),
)

_SOURCES: Final = {
    "api": mark("said by the server"),
    "process": mark("read from the server's command line"),
    "stated": mark("stated by the person who measured"),
}


@dataclass(frozen=True)
class Condition:
    """One condition: what it is called, its values (none: unknown), and who says so."""

    name: str
    values: tuple[str, ...]
    source: str | None

    @property
    def known(self) -> bool:
        return bool(self.values)


@dataclass(frozen=True)
class Subject:
    """Machine + server + model + the settings that matter, with every row measured under them."""

    slug: str
    colour: int
    rows: pd.DataFrame
    runs: tuple[Run, ...]

    def value(self, column: str) -> str | None:
        """Return what *column* says in the latest row that knows it."""
        known = self.rows[column].dropna()
        return None if known.empty else str(known.iloc[-1])

    @property
    def self_test(self) -> bool:
        """True for the embedded engine: it shows that the path works, and says little about a machine."""
        return bool(self.rows["api"].eq(SELF_TEST_API).fillna(False).all())

    @property
    def measured_at(self) -> datetime | None:
        """When its latest row was measured: by the row's clock, else by the date that an import states."""
        times = self.rows["started_at"].dropna()
        if len(times):
            return times.max().to_pydatetime()
        stated = [_date(run.facts.origin.get("date")) for run in self.runs]
        return max((moment for moment in stated if moment is not None), default=None)

    def title(self, words: Words) -> str:
        """Return its short name: model and machine."""
        model = self.value("model") or words.say("unknown model")
        machine = self.value("machine") or words.say("unknown machine")
        return f"{model} · {machine}"

    def conditions(self, words: Words) -> tuple[Condition, ...]:
        """Return what it ran under, each with its source; what nobody knows is among them, without values."""
        sources = self._sources()
        return tuple(
            Condition(
                name=words.say(label),
                values=tuple(str(value) for value in self.rows[column].dropna().unique()),
                source=words.say(_SOURCES[sources[column]]) if sources.get(column) in _SOURCES else None,
            )
            for column, label in _CONDITIONS
        )

    def _sources(self) -> dict[str, str]:
        merged: dict[str, str] = {}
        for text in self.rows["sources"].dropna().unique():
            merged |= _object(text)
        return merged


def subjects(runs: Sequence[Run]) -> tuple[Subject, ...]:
    """Return the subjects of *runs*, newest first; slug and colour follow who was measured first, and so stay."""
    made: list[Subject] = []
    taken: set[str] = set()
    for _, group in all_rows(runs).groupby(list(IDENTITY), dropna=False, sort=False):
        rows = group.reset_index(drop=True)
        name = _free_slug(
            [None if pd.isna(rows[column].iloc[0]) else str(rows[column].iloc[0]) for column in IDENTITY], taken
        )
        taken.add(name)
        used = set(rows["run_id"].dropna())
        made.append(Subject(name, len(made), rows, tuple(run for run in runs if run.run_id in used)))
    return tuple(sorted(made, key=_newest_first))


def _newest_first(subject: Subject) -> tuple[bool, float, str]:
    moment = subject.measured_at
    return subject.self_test, -moment.timestamp() if moment else 0.0, subject.slug


def _free_slug(key: Sequence[str | None], taken: set[str]) -> str:
    """Return the readable part of the key; a later subject with the same readable part gets the whole key's digest."""
    readable = slug("-".join(key[part] or "" for part in _READABLE))
    return f"{readable}-{digest(repr(key))}" if readable in taken else readable


def _date(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)
    except ValueError:
        return None


def _object(text: str) -> dict[str, str]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return {str(name): str(said) for name, said in value.items()} if isinstance(value, dict) else {}
