"""How one run came about: by what program or publication, when, by which plan, on which host."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import pandas as pd

from roofbook.pages.concepts.grid import Grid, grid, span
from roofbook.pages.row_table import noted
from roofbook.record import Row, Run
from roofbook.theory.shapes import Range
from roofbook.units import GB, GIB, TFLOP
from roofbook.validity import records
from roofbook.validity.known import processor_ceilings
from roofbook.words import Words, mark

_SETTINGS: Final = {
    "order": mark("Order of the requests"),
    "seed": mark("Seed"),
    "warmups": mark("Warm-ups before each point"),
    "repeats": mark("Repeats of each point"),
    "pause_s": mark("Pause before each request (s)"),
    "timeout_s": mark("Longest wait (s)"),
    "connection": mark("Connection"),
}
"""The settings of a plan that bear on its figures."""

_ORDERS: Final = {
    "shuffled": mark("shuffled"),
    "interleaved": mark("one of each point in turn"),
    "as_written": mark("as written, point after point"),
}
_CONNECTIONS: Final = {"fresh": mark("a fresh one for each request"), "reused": mark("kept open")}

_HOST: Final = {
    "chip": mark("Chip"),
    "cores": mark("Cores"),
    "memory_bytes": mark("Memory"),
    "os": mark("System"),
    "governor": mark("Clock governor"),
    "low_power_mode": mark("Low-power mode"),
    "virtual": mark("Virtual machine"),
}


@dataclass(frozen=True)
class RunStory:
    """One run, as the data page tells it; tables are None where nothing is known."""

    run_id: str
    by: str
    when: str
    note: str | None
    source_file: str | None
    experiments: Grid
    settings: Grid | None
    host: Grid | None

    @property
    def note_lang(self) -> str | None:
        """The language of the note, where its letters tell it."""
        return "en" if self.note is not None and self.note.isascii() else None


def story(run: Run, rows: pd.DataFrame, words: Words) -> RunStory:
    """Return the story of *run*, with those of *rows* (a subject's) that belong to it."""
    own = records(rows[rows["run_id"].eq(run.run_id).fillna(False)])
    origin = run.facts.origin
    return RunStory(
        run_id=run.run_id,
        by=_by(origin, words),
        when=_when(own, origin, words),
        note=_text(origin.get(f"note_{words.lang}") or origin.get("note")),
        source_file=_text(origin.get("file")),
        experiments=_experiments(own, words),
        settings=_settings(run.facts.plan, words),
        host=_host(run.facts.host, words),
    )


def _by(origin: Mapping[str, Any], words: Words) -> str:
    if origin.get("source"):
        return words.say("imported from: %(source)s", source=_text(origin.get("source")))
    if origin.get("program"):
        return words.say(
            "measured with %(program)s %(version)s",
            program=_text(origin.get("program")),
            version=_text(origin.get("version")) or words.say("version unknown"),
        )
    return words.say("by what program is not known")


def _when(rows: list[Row], origin: Mapping[str, Any], words: Words) -> str:
    """Return first and last request in the report's zone, which is named; else the day that an import states."""
    times = [row["started_at"] for row in rows if row.get("started_at") is not None]
    if times:
        first, last = words.moment(min(times)), words.moment(max(times))
        return first if first == last else words.say("%(first)s to %(last)s", first=first, last=last)
    stated = _text(origin.get("date"))
    return (
        words.say("on %(day)s, as the source says; times of single requests are not known", day=stated)
        if stated
        else (words.say("date unknown"))
    )


def _experiments(rows: list[Row], words: Words) -> Grid:
    heads = [
        (words.say("Experiment"), False),
        (words.say("Points"), True),
        (words.say("Prompt tokens"), True),
        (words.say("Output tokens"), True),
        (words.say("Measured rows"), True),
        (words.say("Other rows"), True),
        (words.say("Failed"), True),
    ]
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row.get("experiment") or words.say("outside of experiments")), []).append(row)
    return grid(heads, [_experiment(name, group, words) for name, group in groups.items()])


def _experiment(name: str, rows: list[Row], words: Words) -> tuple[str | None, ...]:
    measured = [row for row in rows if row.get("phase") in ("measured", None)]
    kinds = dict.fromkeys(str(row["kind"]) for row in rows if row.get("kind") is not None)
    return (
        name if list(kinds) in ([], [name.replace("-", "_")]) else noted(name, ", ".join(kinds)),
        words.number(len({row.get("point") for row in measured})),
        _from_to([row.get("prompt_tokens") or row.get("prompt_tokens_wanted") for row in measured], words),
        _output_tokens(measured, words),
        words.number(len(measured)),
        words.number(len(rows) - len(measured)),
        words.number(sum(row.get("status") != "ok" for row in measured)),
    )


def _output_tokens(rows: list[Row], words: Words) -> str | None:
    """Return how many tokens were written; where that is not known, how many were asked for."""
    written = _from_to([row.get("output_tokens") for row in rows], words)
    asked = _from_to([row.get("output_tokens_wanted") for row in rows], words)
    return written if written is not None or asked is None else words.say("%(tokens)s (asked for)", tokens=asked)


def _from_to(values: list[Any], words: Words) -> str | None:
    known = [float(value) for value in values if value is not None]
    return span(Range(min(known), max(known)), words, 1) if known else None


def _settings(plan: Mapping[str, Any], words: Words) -> Grid | None:
    run: Any = plan.get("run")
    if not isinstance(run, dict):
        return None
    known = cast("dict[str, Any]", run)
    rows = [
        (words.say(label), _setting(name, known[name], words))
        for name, label in _SETTINGS.items()
        if known.get(name) is not None
    ]
    anchor: Any = known.get("anchor")
    if isinstance(anchor, dict):
        found = cast("dict[str, Any]", anchor)
        told = words.say(
            "%(tokens)s tokens, every %(every)s requests", tokens=found.get("prompt_tokens"), every=found.get("every")
        )
        rows.append((words.say("Fixed test point (anchor)"), told))
    return grid([(words.say("Setting"), False), (words.say("Value"), False)], rows) if rows else None


def _setting(name: str, value: Any, words: Words) -> str:
    if name == "order" and value in _ORDERS:
        return words.say(_ORDERS[value])
    if name == "connection" and value in _CONNECTIONS:
        return words.say(_CONNECTIONS[value])
    if name != "seed" and isinstance(value, int | float):
        return words.number(value) if float(value).is_integer() else words.significant(value)
    return str(value)


def _host(host: Mapping[str, Any], words: Words) -> Grid | None:
    rows = [
        (words.say(label), _of_host(name, host, words))
        for name, label in _HOST.items()
        if host.get(name) is not None and host.get(name) != ""
    ]
    gpus: Any = host.get("gpus")
    for gpu in cast("list[Any]", gpus) if isinstance(gpus, list) else []:
        if isinstance(gpu, dict):
            found = cast("dict[str, Any]", gpu)
            parts = [found.get("name"), found.get("driver")]
            rows.append((words.say("GPU"), " ".join(str(part) for part in parts if part)))
    ceilings = processor_ceilings(host)
    if ceilings is not None:
        for label, spread, unit, name in (
            (mark("Processor reads, measured"), ceilings.bandwidth_bytes_per_s, GB, "GB/s"),
            (mark("Processor multiplies, measured"), ceilings.flops_per_s, TFLOP, "TFLOPS"),
        ):
            if spread is not None:
                told = words.say(
                    "%(median)s %(unit)s (%(range)s, n = %(n)s)",
                    median=words.significant(spread.median / unit),
                    unit=name,
                    range=span(Range(spread.low / unit, spread.high / unit), words),
                    n=words.number(spread.n),
                )
                rows.append((words.say(label), told))
    return grid([(words.say("Host"), False), (words.say("Value"), False)], rows) if rows else None


def _of_host(name: str, host: Mapping[str, Any], words: Words) -> str:
    value = host[name]
    if name == "memory_bytes" and isinstance(value, int | float):
        return f"{words.significant(value / GIB)} GiB"
    if name == "os":
        return " ".join(str(part) for part in (value, host.get("os_version")) if part)
    if isinstance(value, bool):
        return words.say("yes") if value else words.say("no")
    return str(value)


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)
