"""reference_runs.yml: speeds that others published, held against what their chips can do. Never this report's own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from roofbook.errors import EstimateError, FactsError
from roofbook.facts.chips import ChipFact
from roofbook.facts.entries import Entry, read_document
from roofbook.facts.models import ModelFact
from roofbook.theory.peaks import arithmetic_peak
from roofbook.theory.plausibility import (
    STEP_OVERHEAD_DISCRETE_S,
    STEP_OVERHEAD_S,
    Band,
    decode_band,
    prefill_band,
)
from roofbook.theory.roofline import implied_bytes_per_s, implied_flops_per_s
from roofbook.theory.shapes import Chip, Model, Range
from roofbook.units import GIB, MS_PER_S

FLAGS: Final = (
    "decode_impossible", "prefill_impossible", "prefill_above_fp16", "decode_slow", "decode_low_share", "prefill_slow",
    "decode_unstable", "prefill_unstable", "by_hand",
)  # fmt: skip
_READ: Final = ("source", "copy")
_KV_TYPE: Final = "f16"
"""The default of llama.cpp and its bench; rows with another one say so in their note."""

_GROUP: Final = (
    "source", "read", "date", "runtime", "build", "backend", "machine", "chip", "memory_gib", "model", "quantization",
    "note",
)  # fmt: skip
_ROW: Final = (
    *_GROUP, "id", "prompt_tokens", "prefill_tok_per_s", "prefill_sd", "output_tokens", "decode_tok_per_s", "decode_sd",
    "flagged",
)  # fmt: skip


@dataclass(frozen=True)
class PublishedRun:
    """One published figure: prefill over *prompt_tokens*, decode over *output_tokens* from an empty context."""

    id: str
    source: str
    read_in_copy: bool
    machine: str
    model: str
    runtime: str | None = None
    build: str | None = None
    backend: str | None = None
    date: str | None = None
    quantization: str | None = None
    chip: Chip | None = None
    shape: Model | None = None
    """The catalogued model of the same dimensions."""
    memory_bytes: int | None = None
    prompt_tokens: int | None = None
    prefill_tok_per_s: float | None = None
    prefill_sd: float | None = None
    output_tokens: int | None = None
    decode_tok_per_s: float | None = None
    decode_sd: float | None = None
    flagged: tuple[str, ...] = ()
    note: str | None = None

    @property
    def decode_bytes_per_s(self) -> Range | None:
        """The bytes a second that the decode rate implies; None where a figure is missing."""
        if self.shape is None or self.decode_tok_per_s is None or self.quantization is None:
            return None
        # From an empty context on, a token meets half of what is generated, on average.
        context = (self.output_tokens or 0) // 2
        try:
            return implied_bytes_per_s(
                self.shape, self.decode_tok_per_s, self.quantization, context_tokens=context, kv_type=_KV_TYPE
            )
        except EstimateError:
            return None

    @property
    def prefill_flops_per_s(self) -> Range | None:
        """The FLOP/s that the prefill rate implies; None where a figure is missing."""
        if self.shape is None or self.prompt_tokens is None or self.prefill_tok_per_s is None:
            return None
        took_ms = self.prompt_tokens / self.prefill_tok_per_s * MS_PER_S
        return implied_flops_per_s(self.shape, self.prompt_tokens, took_ms)

    @property
    def bandwidth_bytes_per_s(self) -> Range | None:
        """The chip's datasheet."""
        return None if self.chip is None else self.chip.bandwidth_bytes_per_s

    @property
    def peak_flops_per_s(self) -> Range | None:
        """The chip's arithmetic peak for this quantization."""
        return None if self.chip is None else arithmetic_peak(self.chip, self.quantization)

    @property
    def decode_band(self) -> Band | None:
        """Where the decode rate lies between what the memory can do and what is ordinary; None where not known."""
        read, peak, rate = self.decode_bytes_per_s, self.bandwidth_bytes_per_s, self.decode_tok_per_s
        if read is None or peak is None or rate is None or self.chip is None:
            return None
        discrete = self.chip.memory_kind == "discrete"
        return decode_band(read, peak, 1 / rate, STEP_OVERHEAD_DISCRETE_S if discrete else STEP_OVERHEAD_S)

    @property
    def prefill_band(self) -> Band | None:
        """The same of the prefill rate and the chip's arithmetic."""
        flops, peak, tokens = self.prefill_flops_per_s, self.peak_flops_per_s, self.prompt_tokens
        return None if flops is None or peak is None or tokens is None else prefill_band(flops, peak, tokens)


def read_published(
    path: Path, chips: Mapping[str, ChipFact], models: Mapping[str, ModelFact]
) -> tuple[PublishedRun, ...]:
    """Return the published figures of the file at *path*, in its order.

    Raises FactsError, also for an id that stands twice and for a chip or model that the catalogue does not have.
    """
    document = read_document(path)
    document.only("schema_version", "models", "groups", provenance=False)
    shapes = _shapes(document.inner("models"), models)
    runs: dict[str, PublishedRun] = {}
    for group in document.inners("groups"):
        group.only(*_GROUP, "rows", provenance=False)
        for run in _rows(group, chips, shapes):
            if run.id in runs:
                raise FactsError("%(file)s has the id '%(id)s' twice", file=path.name, id=run.id)
            runs[run.id] = run
    return tuple(runs.values())


def _shapes(named: Entry, models: Mapping[str, ModelFact]) -> dict[str, Model | None]:
    """Return the shape behind each name of a model that the rows use; None where the catalogue has none."""
    shapes: dict[str, Model | None] = {}
    for name in named.values:
        entry = named.inner(name)
        entry.only("shape", "params", provenance=False)
        shape = entry.text_or_none("shape")
        if shape is not None and shape not in models:
            raise FactsError("%(file)s, %(entry)s: the model '%(model)s' is not in models.yml",
                             file=entry.file, entry=entry.name, model=shape)  # fmt: skip
        shapes[name] = None if shape is None else models[shape].shape
    return shapes


def _rows(group: Entry, chips: Mapping[str, ChipFact], shapes: Mapping[str, Model | None]) -> Iterator[PublishedRun]:
    shared = {key: value for key, value in group.values.items() if key != "rows"}
    for row in group.inners("rows"):
        values: dict[str, Any] = {**shared, **row.values}
        entry = Entry(group.file, str(values.get("id", row.name)), values)
        entry.only(*_ROW, provenance=False)
        yield _run(entry, chips, shapes)


def _run(entry: Entry, chips: Mapping[str, ChipFact], shapes: Mapping[str, Model | None]) -> PublishedRun:
    chip_id, model, memory = entry.text_or_none("chip"), entry.text("model"), entry.whole("memory_gib")
    if chip_id is not None and chip_id not in chips:
        raise FactsError(
            "%(file)s, %(entry)s: the chip '%(chip)s' is not in chips.yml",
            file=entry.file,
            entry=entry.name,
            chip=chip_id,
        )
    flagged = entry.texts("flagged")
    if model not in shapes or set(flagged) - set(FLAGS):
        key, known = ("model", shapes) if model not in shapes else ("flagged", FLAGS)
        raise FactsError(
            "%(file)s, %(entry)s: '%(key)s' is %(value)s, none of %(known)s",
            file=entry.file,
            entry=entry.name,
            key=key,
            value=entry.values[key],
            known=", ".join(known),
        )
    return PublishedRun(
        id=entry.text("id"),
        source=entry.text("source"),
        read_in_copy="read" in entry.values and entry.one_of("read", _READ) == "copy",
        machine=entry.text("machine"),
        model=model,
        runtime=entry.text_or_none("runtime"),
        build=entry.text_or_none("build"),
        backend=entry.text_or_none("backend"),
        date=entry.text_or_none("date"),
        quantization=entry.text_or_none("quantization"),
        chip=None if chip_id is None else chips[chip_id].chip,
        shape=shapes[model],
        memory_bytes=None if memory is None else memory * GIB,
        prompt_tokens=entry.whole("prompt_tokens"),
        prefill_tok_per_s=entry.number("prefill_tok_per_s"),
        prefill_sd=entry.number("prefill_sd", zero=True),
        output_tokens=entry.whole("output_tokens"),
        decode_tok_per_s=entry.number("decode_tok_per_s"),
        decode_sd=entry.number("decode_sd", zero=True),
        flagged=flagged,
        note=entry.text_or_none("note"),
    )
