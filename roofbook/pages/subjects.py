"""A subject as its pages show it: its name, its colour, its conditions, its doubts, its runs and its date."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, Final, cast

import pandas as pd

from roofbook.analysis.equipment import Equipment, equipment_of
from roofbook.analysis.latency import Point, points_of
from roofbook.analysis.prefill import Curve
from roofbook.analysis.subjects import Subject, conditions, curve_of, subjects
from roofbook.charts.style import SUBJECT_COLOURS
from roofbook.facts import Facts
from roofbook.record import Run, all_rows
from roofbook.units import GB
from roofbook.validity import Finding, Known, findings, known_of, records
from roofbook.words import Words, mark

_IDENTITY_LABELS: Final[Mapping[str, str]] = {
    "machine": mark("Machine"),
    "server": mark("Server"),
    "model": mark("Model"),
    "model_digest": mark("Model digest"),
    "quantization": mark("Quantization"),
    "kv_cache_type": mark("KV cache type"),
    "flash_attention": mark("Flash attention"),
    "parallel_slots": mark("Parallel slots"),
}
_CONDITION_LABELS: Final[Mapping[str, str]] = {
    "server_version": mark("Server version"),
    "context_limit_tokens": mark("Context limit (tokens)"),
    "output_tokens_wanted": mark("Output tokens asked for"),
    "weights_bytes": mark("Size of the weights"),
    "gpu_fraction": mark("Share of the model on the GPU"),
    "server_options": mark("Server options"),
    "request_options": mark("Request options"),
    "concurrency": mark("Requests at once"),
    "pause_before_ms": mark("Pause before a request (ms)"),
    "connection": mark("Connection"),
    "proxy": mark("Proxy"),
    "power_source": mark("Power"),
}
_TOLD_WHEN_UNKNOWN: Final = ("server_version", "context_limit_tokens")

_SOURCES: Final[Mapping[str, str]] = {
    "api": mark("said by the server"),
    "process": mark("read from the server's command line"),
    "stated": mark("stated by the person who measured"),
}


@dataclass(frozen=True)
class ConditionView:
    """One condition: what it is called, its values (none: unknown), and who says so."""

    name: str
    texts: tuple[str, ...]
    sources: tuple[str, ...]
    partly_unknown: bool = False


@dataclass(frozen=True)
class SubjectView:
    """A subject of the analysis, with its place on the site; *colour* counts from 0 and stays when others come."""

    subject: Subject
    colour: int
    runs: tuple[Run, ...]
    found: tuple[Finding, ...]
    machine: str | None
    """What people call the machine, where the catalogue knows it."""
    equipment: Equipment

    @property
    def slug(self) -> str:
        return self.subject.slug

    @cached_property
    def points(self) -> list[Point]:
        """Its measured points, doubtful rows left out."""
        return points_of(self.subject.records, self.found)

    @cached_property
    def curve(self) -> Curve:
        """Its prefill curve, from the rows that are trusted with it."""
        return curve_of(self.subject, self.found)

    @property
    def measured_on(self) -> datetime | date | None:
        """When its latest row was measured: by the row's clock, else the day that an import states."""
        times = self.subject.rows["started_at"].dropna()
        if len(times):
            return times.max().to_pydatetime()
        stated = [_day(run.facts.origin.get("date")) for run in self.runs]
        return max((day for day in stated if day is not None), default=None)

    @property
    def server_versions(self) -> tuple[str, ...]:
        return tuple(str(version) for version in self.subject.rows["server_version"].dropna().unique())

    def model_name(self, words: Words) -> str:
        return self.subject.model or words.say("unknown model")

    def machine_name(self, words: Words) -> str:
        return self.machine or self.subject.machine or words.say("unknown machine")

    def title(self, words: Words) -> str:
        """Return its short name: model and machine."""
        return f"{self.model_name(words)} · {self.machine_name(words)}"

    def conditions(self, words: Words) -> tuple[ConditionView, ...]:
        """Return what it ran under, each with its source; what matters and nobody knows is among them."""
        said = _said_by(self.subject.rows)
        told = [
            ConditionView(
                words.say(label),
                _texts(name, [getattr(self.subject, name)], words),
                tuple(words.say(_SOURCES[who]) for who in said.get(name, ()) if who in _SOURCES),
            )
            for name, label in _IDENTITY_LABELS.items()
        ]
        for condition in conditions(self.subject):
            label = _CONDITION_LABELS.get(condition.name)
            if label and (condition.values or condition.name in _TOLD_WHEN_UNKNOWN):
                sources = tuple(words.say(_SOURCES[who]) for who in condition.said_by if who in _SOURCES)
                texts = _texts(condition.name, condition.values, words)
                told.append(
                    ConditionView(words.say(label), texts, sources, bool(condition.values) and condition.unknown > 0)
                )
        return tuple(told)


def subject_views(runs: Sequence[Run], facts: Facts) -> tuple[SubjectView, ...]:
    """Return the subjects of *runs* as the site shows them: newest first, self-tests last."""
    rows = all_rows(runs)
    plain = records(rows)
    known = known_of(plain, facts, [run.facts for run in runs])
    found = findings(plain, known)
    by_age = sorted(subjects(rows), key=lambda subject: (_first_measured(subject, runs), subject.slug))
    views = [_view(subject, number, runs, found, known, facts) for number, subject in enumerate(by_age)]
    return tuple(
        sorted(views, key=lambda view: (not view.subject.is_self_test, _ordinal(view.measured_on)), reverse=True)
    )


def _view(
    subject: Subject, number: int, runs: Sequence[Run], found: Sequence[Finding], known: Known, facts: Facts
) -> SubjectView:
    run_ids = set(subject.run_ids)
    keys = {(row.get("run_id"), row.get("order_index")) for row in subject.records}
    points = {(row.get("run_id"), row.get("experiment"), row.get("point")) for row in subject.records}
    own = tuple(
        finding
        for finding in found
        if (finding.run_id, finding.order_index) in keys
        or (finding.order_index is None and (finding.run_id, finding.experiment, finding.point) in points)
        or (finding.of_run and finding.run_id in run_ids)
    )
    machine = known.machines.get(subject.machine)
    own_runs = tuple(run for run in runs if run.run_id in run_ids)
    return SubjectView(
        subject=subject,
        colour=number % SUBJECT_COLOURS,
        runs=own_runs,
        found=own,
        machine=machine.name if machine and machine.name else None,
        equipment=equipment_of(subject, own_runs, facts),
    )


def _first_measured(subject: Subject, runs: Sequence[Run]) -> float:
    times = subject.rows["started_at"].dropna()
    if len(times):
        return times.min().timestamp()
    stated = [_day(run.facts.origin.get("date")) for run in runs if run.run_id in subject.run_ids]
    return min((_ordinal(day) for day in stated if day is not None), default=float("inf"))


def _ordinal(moment: datetime | date | None) -> float:
    """Return *moment* as seconds since 1970, for sorting."""
    return pd.Timestamp(moment).timestamp() if moment is not None else 0.0


def _day(value: Any) -> date | None:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        return None


def _said_by(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Return, for each condition, who is named as its source in any row."""
    merged: dict[str, list[str]] = {}
    for text in rows["sources"].dropna().unique():
        for name, who in _object(text).items():
            if str(who) not in merged.setdefault(name, []):
                merged[name].append(str(who))
    return merged


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _texts(name: str, values: Sequence[Any], words: Words) -> tuple[str, ...]:
    return tuple(_text(name, value, words) for value in values if value is not None)


def _text(name: str, value: Any, words: Words) -> str:
    if name.endswith("_options"):
        options = _object(str(value))
        return ", ".join(f"{option} {options[option]}" for option in sorted(options)) or str(value)
    if name == "weights_bytes":
        return words.say("%(size)s GB", size=words.significant(float(value) / GB))
    if name == "gpu_fraction":
        return words.say("%(percent)s %%", percent=words.number(100 * float(value)))
    if name.endswith("_tokens"):
        return words.number(float(value))
    return str(value)
