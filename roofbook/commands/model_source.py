"""What MODEL means on the command line: a catalogue's name, a config.json, a GGUF file, or what inspect printed."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from roofbook.errors import ReaderError
from roofbook.facts import Facts, ModelFact, Provenance, RuntimeFact
from roofbook.facts.models import UNQUANTIZED
from roofbook.readers import Reading, completed, disagreements, from_json, read_config, read_gguf, read_ollama
from roofbook.theory.shapes import Model, Tensors

# What a runtime usually serves, by the first format it lists.
_USUAL: Final = {"GGUF": "Q4_K_M", "MLX safetensors": "MLX-4bit"}


@dataclass(frozen=True)
class Found:
    """A model and how it was found."""

    model: Model
    title: str
    quantization_assumed: bool = False
    """True where neither the call nor the model's name or file says which quantization is meant."""
    reading: Reading | None = None
    catalogued: ModelFact | None = None
    """Its entry in the catalogue, where there is one."""

    @property
    def provenance(self) -> Provenance | None:
        return None if self.catalogued is None else self.catalogued.provenance


def find_model(given: str, facts: Facts, runtime: RuntimeFact, quantization: str | None = None) -> Found:
    """Return the model that *given* names: a file that is there, else a name of the catalogue.

    Raises UsageError for an unknown name, with the near ones; ReaderError for a file that holds no model.
    """
    path = Path(given)
    if path.is_dir() and (path / "config.json").is_file():
        path = path / "config.json"
    if path.is_file():
        return _of_reading(read_model_file(path), facts, quantization)
    match = facts.model(given)
    usual = (
        UNQUANTIZED if match.by == "name" else _USUAL.get(runtime.formats[0] if runtime.formats else "", UNQUANTIZED)
    )
    stated = quantization or (match.file.quantization if match.file is not None else None)
    assumed = stated is None and match.by == "id"
    return Found(match.model.quantized(stated or usual), match.model.name, assumed, catalogued=match.model)


def read_model_file(path: Path) -> Reading:
    """Return what the file at *path* says: a GGUF, a config.json, an answer of /api/show, or the JSON of inspect.

    Raises ReaderError where it is none of them.
    """
    if path.suffix.lower() == ".gguf":
        return read_gguf(path)
    try:
        text = path.read_bytes()
        document: object = json.loads(text)
    except OSError as problem:
        raise ReaderError("Cannot read %(file)s: %(problem)s", file=path.name, problem=problem.strerror) from problem
    except (ValueError, RecursionError) as problem:
        raise ReaderError(
            "%(file)s is neither GGUF nor JSON: %(problem)s", file=path.name, problem=problem
        ) from problem
    if isinstance(document, dict):
        held = cast("dict[str, Any]", document)
        if isinstance(held.get("model"), dict):
            return from_json(held["model"])
        if "shape" in held:
            return from_json(held)
        if "model_info" in held:
            return read_ollama(held)
    return read_config(text)


def _of_reading(reading: Reading, facts: Facts, quantization: str | None) -> Found:
    """Return the reading's model, its gaps filled from the catalogue where a digest or a listed name leads there."""
    match = facts.find(reading.names, reading.digests)
    if match is not None:
        held = reading.model.tensors.quantization or (match.file.quantization if match.file is not None else None)
        shape = match.model.shape if held is None else match.model.quantized(held)
        known = Reading("catalogue", shape)
        if disagreements(reading, known):
            match = None  # something else goes by that name
        else:
            reading = completed(reading, known)
    model = reading.model
    if quantization is not None and quantization.upper() != (model.tensors.quantization or "").upper():
        model = replace(model, tensors=Tensors(quantization=quantization))
    return Found(model, model.id, reading=reading, catalogued=None if match is None else match.model)
