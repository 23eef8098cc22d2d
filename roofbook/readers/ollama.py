"""Ollama's /api/show: the metadata of the model's GGUF, its quantization, and the digest of its weights."""

import re
from dataclasses import replace
from typing import Final

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from roofbook.errors import ReaderError
from roofbook.readers.fields import Fields
from roofbook.readers.gguf_metadata import TensorInfo, TensorTable, model_of
from roofbook.readers.reading import Reading

_SOURCE: Final = "/api/show"
_BLOB: Final = re.compile(r"^FROM\s.*sha256[-:]([0-9a-f]{64})\s*$", re.MULTILINE)
_HEX: Final = re.compile(r"[0-9a-f]{12,64}")


def read_ollama(show: object, *, name: str | None = None, digest: str | None = None) -> Reading:
    """Return what an answer of /api/show holds; *name* and *digest* are those of /api/tags, which it does not repeat.

    Its bytes are known where the answer lists the tensors (``verbose``). Raises ReaderError, naming the key.
    """
    answer = Fields.of(show, _SOURCE)
    info = answer.inner("model_info")
    if info is None:
        raise ReaderError("/api/show has no model_info: this Ollama is older than 0.2, or the model is not local")
    details = answer.inner("details")
    level = None if details is None else details.text("quantization_level")
    quantization = None if level is None or level.lower() == "unknown" else level
    reading = model_of(info.values, _SOURCE, tensors=_tensors(answer), file_type=quantization, source="ollama")
    blob = _BLOB.search(answer.text("modelfile") or "")
    digests = [blob[1] if blob else None, _hex(digest)]
    return replace(
        reading,
        model=reading.model if name is None else replace(reading.model, id=name),
        names=(name,) if name else (),
        digests=tuple(dict.fromkeys(filter(None, digests))),
    )


def _hex(digest: str | None) -> str | None:
    found = _HEX.search(digest or "")
    return found[0] if found else None


def _tensors(answer: Fields) -> TensorTable | None:
    listed = answer.inners("tensors")
    if not listed:
        return None
    return {tensor.name: tensor for tensor in map(_tensor, listed)}


def _tensor(one: Fields) -> TensorInfo:
    name, kind, shape = one.text("name"), one.text("type"), one.wholes("shape")
    known = GGMLQuantizationType.__members__.get((kind or "").upper())
    if name is None or shape is None or known is None:
        raise ReaderError("/api/show: the tensor '%(name)s' has no known type and shape", name=name)
    block, block_bytes = GGML_QUANT_SIZES[known]
    whole = TensorInfo(name, shape, 0)
    return replace(whole, size_bytes=whole.elements // block * block_bytes)
