"""A subject's numbers, each computed once for the pages that tell them."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from roofbook.analysis.ceilings import (
    DECODE_LIMIT,
    MEASURED_LIMIT,
    PointCeilings,
    Reached,
    ceilings,
    share_of,
    unjudged,
)
from roofbook.analysis.latency import Point
from roofbook.analysis.memory import KV_TYPES, MemoryTable, Served, memory_table, served
from roofbook.analysis.prefill import Curve
from roofbook.analysis.reference import LONG_PROMPT_TOKENS
from roofbook.analysis.seen import as_seen, own_flops_per_s
from roofbook.analysis.standing import Roofs, Spot, doubtful, roofs, spokesman, spots
from roofbook.errors import EstimateError
from roofbook.pages.subjects import SubjectView
from roofbook.record import Row
from roofbook.theory.limits import Limit, gpu_limit
from roofbook.theory.memory import RESERVE_BYTES, VLLM_PEAK_BYTES, VLLM_SHARE
from roofbook.theory.roofline import crossover_batch
from roofbook.theory.shapes import Machine, Range
from roofbook.validity import clean, records

REQUEST_TOKENS: Final = 4096
"""Of the request that a budget counts in: prompt and answer together. Published budgets use it."""

_BOTH_MACOS: Final[tuple[int | None, ...]] = (15, 26)
"""The systems between which a Mac's limit lies where the run does not say which it was; 15 stands for all before."""


@dataclass(frozen=True)
class Study:
    """One subject with what follows from its rows; None and empty where a machine or a model is not known."""

    view: SubjectView

    @property
    def rows(self) -> list[Row]:
        return self.view.subject.records

    @property
    def points(self) -> list[Point]:
        return self.view.points

    @property
    def curve(self) -> Curve:
        return self.view.curve

    @property
    def curve_rows(self) -> list[Row]:
        """The trusted rows that the curve is made from."""
        rows = self.view.subject.rows
        return records(rows[clean(rows, self.view.found, "prefill") & rows["kind"].fillna("").eq("prefill_curve")])

    @cached_property
    def held(self) -> list[PointCeilings]:
        """The points against the machine's ceilings."""
        model, subject = self.view.equipment.model, self.view.subject
        if self.machine is None or model is None:
            return []
        found = ceilings(self.points, model, self.machine, subject.quantization, subject.kv_cache_type)
        if self.cores_used is None:
            return found
        return [PointCeilings(one.point, unjudged(one.decode), unjudged(one.prefill)) for one in found]

    @cached_property
    def machine(self) -> Machine | None:
        """The machine, its measured arithmetic reaching up to what was seen of such a machine."""
        equipment = self.view.equipment
        if equipment.machine is None:
            return None
        own = None if equipment.model is None else own_flops_per_s(self.points, equipment.model)
        return as_seen(equipment.machine, own, equipment.fastest and equipment.fastest.flops_per_s)

    @property
    def seen_faster(self) -> float | None:
        """By what share others' fastest prefill passes this one's, where it also passes the benchmark; else None."""
        fastest, machine, reached = self.view.equipment.fastest, self.view.equipment.machine, self.reading_reached
        ceiling = machine and machine.ceilings and machine.ceilings.flops_per_s
        if fastest is None or not ceiling or reached is None or fastest.flops_per_s <= ceiling.high:
            return None
        more = fastest.flops_per_s / reached.used.high - 1
        return more if more > 0 else None

    @cached_property
    def cores_used(self) -> tuple[int, int] | None:
        """How many threads the server had of the processor's cores; None where it had all, or nobody knows.

        The ceilings of a processor are measured on all its cores: they judge nothing that ran on fewer.
        """
        machine, cores = self.view.equipment.machine, self.view.equipment.cores
        if machine is None or cores is None or machine.ceilings is None or machine.ceilings.measured_on != "cpu":
            return None
        threads = [_threads(row.get("server_options")) for row in self.rows]
        known = [count for count in threads if count is not None]
        return (max(known), cores) if known and max(known) < cores else None

    @cached_property
    def odd_decodes(self) -> set[str | None]:
        """The points whose decode rate is an outlier."""
        return {
            finding.point
            for finding in self.view.found
            if finding.kind == "outlier" and finding.values.get("figure") == "decode_tok_per_s"
        }

    @cached_property
    def writing_span(self) -> Range | None:
        """From the lowest to the highest share of the decode roof over all trusted points that are no outliers."""
        usual = (one for one in self.held if one.point.point not in self.odd_decodes)
        return _span(self.writing_reached, (one.decode for one in usual if not doubtful(one.point)))

    @cached_property
    def reading_span(self) -> Range | None:
        """The same of reading, over prompts long enough to be bound by arithmetic."""
        long = (one for one in self.held if (one.point.prompt_tokens or 0) >= LONG_PROMPT_TOKENS)
        return _span(self.reading_reached, (one.prefill for one in long if not doubtful(one.point)))

    @property
    def writing_falls(self) -> bool:
        """True where writing is near its roof with a short prompt, and away from it with a longer one."""
        spoken, span = self.writing_reached, self.writing_span
        if spoken is None or span is None or spoken.verdict != "at_the_limit":
            return False
        return span.low < (MEASURED_LIMIT if spoken.basis == "measured" else DECODE_LIMIT)

    @cached_property
    def writing(self) -> Point | None:
        """The point that the decode rate is told by: with the shortest prompt of those repeated most."""
        return spokesman(self.points, lambda point: point.decode, longest=False)

    @cached_property
    def reading(self) -> Point | None:
        """The point that the prefill rate is told by: with the longest prompt of those repeated most."""
        return spokesman(self.points, lambda point: point.prefill, longest=True)

    @property
    def writing_reached(self) -> Reached | None:
        return next((one.decode for one in self.held if one.point is self.writing), None)

    @property
    def reading_reached(self) -> Reached | None:
        return next((one.prefill for one in self.held if one.point is self.reading), None)

    @cached_property
    def roofs(self) -> Roofs | None:
        return None if self.machine is None else roofs(self.machine, self.view.subject.quantization)

    @cached_property
    def spots(self) -> list[Spot]:
        equipment, subject = self.view.equipment, self.view.subject
        if equipment.model is None:
            return []
        return spots(self.held, equipment.model, subject.quantization, subject.kv_cache_type)

    @cached_property
    def limits(self) -> dict[int | None, Limit]:
        """What the GPU may use, by the version of macOS it depends on (None: on none); empty where nobody knows."""
        machine, macos = self.view.equipment.machine, self.view.equipment.macos
        if machine is None:
            return {}
        observed = self.view.equipment.mac_limits
        try:
            limit = gpu_limit(machine, macos, observed)
            if self.paged:
                return {None: Limit(limit.limit_bytes * VLLM_SHARE, "share")}
            if limit.basis != "rule" or macos is not None:
                return {macos if limit.estimated else None: limit}
            return {version: gpu_limit(machine, version, observed) for version in _BOTH_MACOS}
        except EstimateError:
            return {}

    @property
    def paged(self) -> bool:
        """True where the runtime takes a share of the memory at its start and hands it out in pages."""
        runtime = self.view.equipment.runtime
        return runtime is not None and runtime.kv_layout == "paged"

    @property
    def reserve_bytes(self) -> Range:
        """What is held besides weights and caches: an assumption."""
        return VLLM_PEAK_BYTES if self.paged else RESERVE_BYTES

    def memory(self, context_tokens: int = REQUEST_TOKENS) -> dict[int | None, MemoryTable]:
        """Return the budget under each of the limits; empty where weights or caches are not known."""
        if context_tokens not in self._tables:
            self._tables[context_tokens] = self._memory(context_tokens)
        return self._tables[context_tokens]

    @cached_property
    def _tables(self) -> dict[int, dict[int | None, MemoryTable]]:
        """What was computed already: searching for the most requests takes its time."""
        return {}

    def _memory(self, context_tokens: int) -> dict[int | None, MemoryTable]:
        model, subject = self.view.equipment.model, self.view.subject
        if model is None:
            return {}
        own = subject.kv_cache_type
        types = (*KV_TYPES, *([own] if own is not None and own not in KV_TYPES else []))
        try:
            return {
                version: memory_table(
                    model,
                    limit,
                    context_tokens,
                    quantization=subject.quantization,
                    reserve_bytes=self.reserve_bytes,
                    kv_types=types,
                )
                for version, limit in self.limits.items()
            }
        except EstimateError:
            return {}

    def requests(self, kv_type: str, context_tokens: int = REQUEST_TOKENS) -> Range | None:
        """Return how many requests fit at once over all limits; None where that is not known, or has no end."""
        lines = [table.line(kv_type) for table in self.memory(context_tokens).values()]
        ends = [line.sequences for line in lines if line is not None]
        if not ends or not all(math.isfinite(end.high) for end in ends):
            return None
        return Range(min(end.low for end in ends), max(end.high for end in ends))

    @cached_property
    def crossover(self) -> Range | None:
        """From how many requests at once on arithmetic limits decode, each with REQUEST_TOKENS behind it."""
        return self.crossover_of(self.view.subject.kv_cache_type)

    def crossover_of(self, kv_type: str | None) -> Range | None:
        """Return the same for caches of *kv_type*."""
        equipment, subject = self.view.equipment, self.view.subject
        if equipment.machine is None or equipment.model is None:
            return None
        try:
            bound = crossover_batch(
                equipment.model, equipment.machine, subject.quantization,
                context_tokens=REQUEST_TOKENS, kv_type=kv_type,
            )  # fmt: skip
        except EstimateError:
            return None
        found = bound.whole
        return found if found is not None and math.isfinite(found.high) else None

    def served(self, in_flight: float, prompt_tokens: int = REQUEST_TOKENS) -> Served | None:
        """Return what so many requests would get; None without a law, a model or a machine."""
        equipment, subject, law = self.view.equipment, self.view.subject, self.curve.law
        if equipment.machine is None or equipment.model is None or law is None or in_flight < 1:
            return None
        try:
            return served(
                in_flight, prompt_tokens, law, equipment.model, equipment.machine,
                quantization=subject.quantization, kv_type=subject.kv_cache_type,
            )  # fmt: skip
        except (EstimateError, ZeroDivisionError):
            return None

    @property
    def ends(self) -> tuple[Point | None, Point | None]:
        """The points of single requests with the shortest and the longest prompt, those of a baseline first."""
        return ends_of(self.points)


def _span(spoken: Reached | None, reached: Iterable[Reached | None]) -> Range | None:
    """Return from the lowest to the highest share of the roof that *spoken* is held against; None without one."""
    if spoken is None or spoken.basis is None:
        return None
    shares = [share for one in reached if one is not None and (share := share_of(one, spoken.basis)) is not None]
    return Range(min(one.low for one in shares), max(one.high for one in shares)) if shares else None


def _threads(options: object) -> int | None:
    """Return the server's threads by its options (JSON), the most of either phase; None where they do not say."""
    try:
        told: object = json.loads(options) if isinstance(options, str) else None
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    known = cast("dict[str, Any]", told)
    counts = [known.get(name) for name in ("threads", "threads_batch")]
    return max((count for count in counts if isinstance(count, int) and count > 0), default=None)


def ends_of(points: Sequence[Point]) -> tuple[Point | None, Point | None]:
    """Return the points with the shortest and the longest prompt whose TTFT is known; one request at a time."""
    known = [
        point
        for point in points
        if point.ttft.median is not None
        and point.prompt_tokens
        and (point.concurrency or 1) == 1
        and point.rate_per_s is None
    ]
    known = [point for point in known if point.kind == "baseline"] or known
    ordered = sorted(known, key=lambda point: point.prompt_tokens or 0.0)
    return (ordered[0], ordered[-1]) if ordered else (None, None)
