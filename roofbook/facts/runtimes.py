"""runtimes.yml: what runs on what, and on which day that was so."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roofbook.facts.entries import Entry, Provenance, read_entries

ACCELERATORS: Final = ("metal", "cuda", "rocm", "vulkan", "cpu")
SUPPORT: Final = ("native", "plugin", "source", "none")
KV_LAYOUTS: Final = ("slots", "paged", "growing")
"""How a runtime holds the caches: reserved in advance, in pages of one pool, or growing with each request."""


@dataclass(frozen=True)
class RuntimeFact:
    """A serving runtime: *runs* says for each accelerator how, None where nobody looked."""

    id: str
    name: str
    engine: str
    api: str
    kv_layout: str
    default_slots: int | None
    """Requests it serves at once until it is told otherwise."""
    runs: Mapping[str, str | None]
    formats: tuple[str, ...]
    seen: str
    provenance: Provenance


def read_runtimes(path: Path) -> dict[str, RuntimeFact]:
    """Return the runtimes of the file at *path* by id; raises FactsError."""
    return {entry.name: _runtime(entry) for entry in read_entries(path, "runtimes")}


def _runtime(entry: Entry) -> RuntimeFact:
    entry.only("id", "name", "engine", "api", "kv_layout", "default_slots", "runs", "formats", "seen")
    runs = entry.inner("runs")
    runs.only(*ACCELERATORS, provenance=False)
    return RuntimeFact(
        id=entry.name,
        name=entry.text("name"),
        engine=entry.text("engine"),
        api=entry.text("api"),
        kv_layout=entry.one_of("kv_layout", KV_LAYOUTS),
        default_slots=entry.whole("default_slots"),
        runs={one: None if runs.values.get(one) is None else runs.one_of(one, SUPPORT) for one in ACCELERATORS},
        formats=entry.texts("formats"),
        seen=entry.text("seen"),
        provenance=entry.provenance(),
    )
