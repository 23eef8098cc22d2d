"""Whose numbers they are: rows fall into subjects, and a subject has conditions and a history.

A subject is machine, server, model (its digest, else its name), quantization, KV type, flash attention and slots; an
unknown among them is a value of its own. The context's length is a condition, the server's version a subject's history.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, cast

import pandas as pd

from roofbook.analysis.prefill import Curve, prefill_curve
from roofbook.record import Row
from roofbook.validity import Finding, clean, records

IDENTITY: Final = (
    "machine", "server", "model_digest", "model", "quantization", "kv_cache_type", "flash_attention", "parallel_slots",
)  # fmt: skip

CONDITIONS: Final = (
    "api", "server_version", "context_limit_tokens", "weights_bytes", "gpu_fraction", "server_options",
    "request_options", "concurrency", "rate_per_s", "pause_before_ms", "output_tokens_wanted", "template_tokens",
    "connection", "proxy", "host_is_server", "power_source",
)  # fmt: skip
"""What is shown of a subject beside its identity, and may differ between its rows."""

UNSEEN_KINDS: Final = ("baseline",)
"""Rows of these kinds are single prefills beside the curve, which can be held against them."""

_SLUG_LENGTH: Final = 72
"""A readable file name; what is cut off is still in its digest."""


@dataclass(frozen=True)
class Condition:
    """One condition over a subject's rows: the values it had, most frequent first, and how many rows lack it."""

    name: str
    values: tuple[Any, ...]
    unknown: int
    said_by: tuple[str, ...]
    """api, process or stated, where the rows say so."""


@dataclass(frozen=True)
class Version:
    """A version of the server that a subject ran under; None is an unknown one."""

    server_version: str | None
    run_ids: tuple[str, ...]
    first: pd.Timestamp | None
    last: pd.Timestamp | None


@dataclass(frozen=True)
class Subject:
    """One subject with its rows of all runs; *slug* names its pages and depends on nothing but its identity."""

    slug: str
    machine: str | None
    server: str | None
    model: str | None
    model_digest: str | None
    quantization: str | None
    kv_cache_type: str | None
    flash_attention: str | None
    parallel_slots: int | None
    rows: pd.DataFrame = field(repr=False, compare=False)

    @cached_property
    def records(self) -> list[Row]:
        """Its rows as plain values, made once: to be read, not changed."""
        return records(self.rows)

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(sorted(str(run_id) for run_id in self.rows["run_id"].dropna().unique()))

    @property
    def is_self_test(self) -> bool:
        """True for the embedded engine: it shows that measuring works, and is nobody's server."""
        return len(self.rows) > 0 and bool(self.rows["api"].eq("embedded").fillna(False).all())


def subjects(rows: pd.DataFrame) -> list[Subject]:
    """Return the subjects of *rows*, ordered by slug; no row is left out for an unknown."""
    plain = records(rows)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, row in enumerate(plain):
        groups.setdefault(_identity(row), []).append(position)
    found = [_subject(plain[positions[0]], rows.iloc[positions]) for positions in groups.values()]
    return sorted(found, key=lambda subject: subject.slug)


def conditions(subject: Subject) -> tuple[Condition, ...]:
    """Return what the subject's measured rows ran under, condition by condition, with the spread of each."""
    plain = [row for row in subject.records if row.get("phase") in ("measured", None)]
    return tuple(_condition(name, plain) for name in CONDITIONS)


def versions(subject: Subject) -> tuple[Version, ...]:
    """Return the server's versions in the order in which they were first met, unknown times last."""
    groups: dict[str | None, list[Row]] = {}
    for row in subject.records:
        groups.setdefault(row.get("server_version"), []).append(row)
    met = [_version(name, group) for name, group in groups.items()]
    return tuple(sorted(met, key=lambda version: (version.first is None, version.first or 0)))


def curve_of(subject: Subject, found: Iterable[Finding]) -> Curve:
    """Return the subject's prefill curve from its trusted rows, held against its other prefills without any doubt."""
    doubts, kind = list(found), subject.rows["kind"].fillna("")
    return prefill_curve(
        subject.rows[clean(subject.rows, doubts, "prefill") & kind.eq("prefill_curve")],
        subject.rows[clean(subject.rows, doubts) & kind.isin(UNSEEN_KINDS)],
    )


def _identity(row: Row) -> tuple[Any, ...]:
    model = row.get("model_digest") or row.get("model")
    server = row.get("server") or row.get("api")
    return (row.get("machine"), server, model, *(row.get(name) for name in IDENTITY[4:]))


def _subject(row: Row, rows: pd.DataFrame) -> Subject:
    identity = _identity(row)
    named = [row.get("machine"), identity[1], row.get("model"), *identity[3:5]]
    words = [re.sub(r"[^a-z0-9]+", "-", str(part).lower()).strip("-") for part in named if part is not None]
    digest = hashlib.sha256(json.dumps(identity, ensure_ascii=True).encode()).hexdigest()[:6]
    readable = "-".join(word for word in words if word)[:_SLUG_LENGTH].strip("-")
    return Subject(
        slug=f"{readable}-{digest}" if readable else digest,
        machine=row.get("machine"),
        server=identity[1],
        model=row.get("model"),
        model_digest=row.get("model_digest"),
        quantization=row.get("quantization"),
        kv_cache_type=row.get("kv_cache_type"),
        flash_attention=row.get("flash_attention"),
        parallel_slots=row.get("parallel_slots"),
        rows=rows,
    )


def _condition(name: str, rows: list[Row]) -> Condition:
    known = [row[name] for row in rows if row.get(name) is not None]
    said_by = {_said_by(row).get(name) for row in rows if row.get(name) is not None} - {None}
    ordered = tuple(value for value, _ in Counter(known).most_common())
    return Condition(name, ordered, len(rows) - len(known), tuple(sorted(str(who) for who in said_by)))


def _said_by(row: Row) -> dict[str, Any]:
    try:
        said: object = json.loads(row.get("sources") or "{}")
    except ValueError:
        return {}
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}


def _version(name: str | None, rows: list[Row]) -> Version:
    times = [pd.Timestamp(row["started_at"]) for row in rows if row.get("started_at") is not None]
    run_ids = dict.fromkeys(str(row["run_id"]) for row in rows if row.get("run_id") is not None)
    return Version(name, tuple(run_ids), min(times, default=None), max(times, default=None))
