"""A GGUF file's header: its metadata and the exact bytes of its tensors, with no tensor read.

The format: docs/gguf.md of ggml. The types and their sizes come from the gguf package, the walk through the header is
ours: that package's own reader builds an object for each of the vocabulary's tokens (two seconds for 49,000 of them)
and wants the tensors' data to be there too.
"""

import mmap
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Final

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType, LlamaFileType

from roofbook.errors import ReaderError
from roofbook.readers.gguf_metadata import Length, TensorInfo, model_of
from roofbook.readers.reading import Reading

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
"""Version 1 (August 2023) had other widths and is long gone."""
_SPLIT: Final = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")

_FORMATS: Final = {
    GGUFValueType.UINT8: "B",
    GGUFValueType.INT8: "b",
    GGUFValueType.UINT16: "H",
    GGUFValueType.INT16: "h",
    GGUFValueType.UINT32: "I",
    GGUFValueType.INT32: "i",
    GGUFValueType.FLOAT32: "f",
    GGUFValueType.BOOL: "?",
    GGUFValueType.UINT64: "Q",
    GGUFValueType.INT64: "q",
    GGUFValueType.FLOAT64: "d",
}

# The vocabulary's arrays say nothing about size or shape but their length.
_KEPT_ITEMS_AT_MOST: Final = 4096


@dataclass(frozen=True)
class Header:
    """One file's header. Long arrays of the metadata are kept as ``Length``."""

    metadata: dict[str, Any]
    tensors: tuple[TensorInfo, ...]


def read_gguf(path: Path) -> Reading:
    """Return what the GGUF file at *path* holds; of a split one, any part will do, if the others lie beside it.

    Raises ReaderError where a file is missing, unreadable, cut short within its header, or no GGUF.
    """
    headers: list[Header] = []
    file_bytes = 0
    paths = _parts(path)
    for part in paths:
        try:
            with part.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                headers.append(read_gguf_header(mapped, part.name))
                file_bytes += len(mapped)
        except (OSError, ValueError) as problem:
            raise ReaderError("Cannot read %(file)s: %(problem)s", file=part.name, problem=_said(problem)) from problem
    whole = Header(headers[0].metadata, tuple(tensor for header in headers for tensor in header.tensors))
    reading = reading_of(whole, paths[0].name)
    model = replace(reading.model, tensors=replace(reading.model.tensors, file_bytes=file_bytes))
    return replace(reading, model=model)


def _said(problem: OSError | ValueError) -> str:
    return (problem.strerror or str(problem)) if isinstance(problem, OSError) else str(problem)


def _parts(path: Path) -> list[Path]:
    """Return all parts of a split file, in order; the file itself where it is whole."""
    found = _SPLIT.search(path.name)
    if found is None:
        return [path]
    stem, total = path.name[: found.start()], int(found[2])
    parts = [path.with_name(f"{stem}-{part:05}-of-{total:05}.gguf") for part in range(1, total + 1)]
    lost = [part.name for part in parts if not part.is_file()]
    if lost:
        raise ReaderError("%(file)s is one part of %(total)d: %(lost)s is not beside it", file=path.name, total=total,
                          lost=", ".join(lost[:3]))  # fmt: skip
    return parts


def reading_of(header: Header, file: str) -> Reading:
    """Return the reading of a whole header, of all parts together."""
    return model_of(
        header.metadata,
        file,
        tensors={tensor.name: tensor for tensor in header.tensors},
        file_type=_file_type(header.metadata),
    )


def _file_type(metadata: dict[str, Any]) -> str | None:
    """Return the mixture's name as people write it: MOSTLY_Q4_K_M is Q4_K_M."""
    number = metadata.get("general.file_type")
    try:
        name = LlamaFileType(number).name
    except ValueError:
        return None
    return None if name == "GUESSED" else name.removeprefix("MOSTLY_").removeprefix("ALL_")


def read_gguf_header(data: "bytes | mmap.mmap", file: str) -> Header:
    """Return the header at the front of *data*, which may end where the header does.

    Raises ReaderError, naming *file*, where it is no GGUF, of an unknown version, or cut short.
    """
    if bytes(data[:4]) != _MAGIC:
        raise ReaderError("%(file)s is no GGUF file", file=file)
    cursor = _Cursor(data, file, at=4)
    version = cursor.number(GGUFValueType.UINT32)
    if version not in _VERSIONS:
        raise ReaderError(
            "%(file)s is GGUF version %(version)d (huge: of the other byte order); those known are 2 and 3",
            file=file,
            version=version,
        )
    tensor_count = cursor.number(GGUFValueType.UINT64)
    entry_count = cursor.number(GGUFValueType.UINT64)
    metadata = dict(_entry(cursor) for _ in cursor.times(entry_count))
    return Header(metadata, tuple(_tensors(cursor, tensor_count)))


def _entry(cursor: "_Cursor") -> tuple[str, Any]:
    name = cursor.text()
    return name, cursor.value(cursor.type())


def _tensors(cursor: "_Cursor", count: int) -> Iterator[TensorInfo]:
    seen: set[str] = set()
    for _ in cursor.times(count):
        name = cursor.text()
        dimensions = cursor.number(GGUFValueType.UINT32)
        shape = tuple(cursor.number(GGUFValueType.UINT64) for _ in cursor.times(dimensions))
        number = cursor.number(GGUFValueType.UINT32)
        cursor.number(GGUFValueType.UINT64)  # where its data lies
        if name in seen:
            raise ReaderError("%(file)s lists the tensor %(name)s twice", file=cursor.file, name=name)
        seen.add(name)
        try:
            kind = GGMLQuantizationType(number)
        except ValueError as problem:
            raise ReaderError(
                "%(file)s: tensor %(name)s has type %(type)d, which the gguf package here does not know: update it",
                file=cursor.file,
                name=name,
                type=number,
            ) from problem
        block, block_bytes = GGML_QUANT_SIZES[kind]
        yield TensorInfo(name, shape, prod(shape) // block * block_bytes)


@dataclass
class _Cursor:
    """A place in the header that moves on as values are read; it never runs past the end unseen."""

    data: "bytes | mmap.mmap"
    file: str
    at: int
    end: int = field(init=False)

    def __post_init__(self) -> None:
        self.end = len(self.data)

    def number(self, kind: GGUFValueType) -> Any:
        form = "<" + _FORMATS[kind]
        size = struct.calcsize(form)
        self._need(size)
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return value

    def text(self) -> str:
        size = self.number(GGUFValueType.UINT64)
        self._need(size)
        raw = bytes(self.data[self.at : self.at + size])
        self.at += size
        return raw.decode("utf-8", errors="replace")

    def type(self) -> GGUFValueType:
        number = self.number(GGUFValueType.UINT32)
        try:
            return GGUFValueType(number)
        except ValueError as problem:
            raise ReaderError(
                "%(file)s has a value of the unknown type %(type)d in its metadata", file=self.file, type=number
            ) from problem

    def value(self, kind: GGUFValueType) -> Any:
        if kind == GGUFValueType.STRING:
            return self.text()
        if kind != GGUFValueType.ARRAY:
            return self.number(kind)
        item, count = self.type(), self.number(GGUFValueType.UINT64)
        if item == GGUFValueType.ARRAY:
            raise ReaderError("%(file)s has an array of arrays in its metadata", file=self.file)
        if count > _KEPT_ITEMS_AT_MOST:
            self._skip(item, count)
            return Length(count)
        return [self.value(item) for _ in self.times(count)]

    def times(self, count: int) -> range:
        """Return a loop over *count* things, each of which takes a byte at least: a damaged count ends at once."""
        self._need(count)
        return range(count)

    def _skip(self, item: GGUFValueType, count: int) -> None:
        if item != GGUFValueType.STRING:
            size = count * struct.calcsize("<" + _FORMATS[item])
            self._need(size)
            self.at += size
            return
        for _ in self.times(count):
            size = self.number(GGUFValueType.UINT64)
            self._need(size)
            self.at += size

    def _need(self, size: int) -> None:
        if size > self.end - self.at:
            raise ReaderError("%(file)s ends within its header: it is cut short or damaged", file=self.file)
