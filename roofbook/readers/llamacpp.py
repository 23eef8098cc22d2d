"""llama.cpp's server: /v1/models knows the model's size, /props its file, and that file knows the rest."""

from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Final

from roofbook.errors import ReaderError
from roofbook.readers.fields import Fields
from roofbook.readers.gguf_header import read_gguf
from roofbook.readers.reading import Reading, completed
from roofbook.theory.shapes import Model, Tensors

_MODELS: Final = "/v1/models"
_PROPS: Final = "/props"


def read_llamacpp(models: object, props: object = None, *, model: str | None = None) -> Reading:
    """Return what the answers of /v1/models and /props hold about *model* (None: the first that is listed).

    ``size`` is the exact bytes of all tensors, ``n_params`` their elements (tools/server/README.md).
    Raises ReaderError, naming the models that are listed.
    """
    listed = Fields.of(models, _MODELS).inners("data") or []
    chosen = next((one for one in listed if model in (None, one.text("id"))), None)
    if chosen is None:
        raise ReaderError(
            "/v1/models does not list the model '%(model)s'; it lists %(listed)s",
            model=model,
            listed=", ".join(filter(None, (one.text("id") for one in listed))) or "none",
        )
    meta = chosen.inner("meta") or Fields({}, _MODELS)
    held = Fields({}, _PROPS) if props is None else Fields.of(props, _PROPS)
    name = _base(chosen.text("id"))
    names = (name, _base(held.text("model_alias")), _base(held.text("model_path")))
    shape = Model(
        id=name or "unknown",
        hidden=meta.whole("n_embd"),
        vocab=meta.whole("n_vocab"),
        context_limit_tokens=meta.whole("n_ctx_train"),
        params=meta.whole("n_params"),
        tensors=Tensors(total_bytes=meta.whole("size")),
    )
    return Reading("llamacpp", shape, names=tuple(dict.fromkeys(filter(None, names))))


def with_gguf_at_its_path(reading: Reading, props: object) -> Reading:
    """Return *reading* completed from the GGUF file that /props names, where this machine can read that file.

    Raises ReaderError where the file is there and describes another model than the server does.
    """
    path = Fields.of(props, _PROPS).text("model_path")
    if not path or not Path(path).is_file():
        return reading
    try:
        header = read_gguf(Path(path))
    except ReaderError:
        return reading
    return replace(completed(reading, header), source=f"{reading.source} + gguf")


def _base(name: str | None) -> str | None:
    """Return the last part of a path, so that no folder of this machine is kept; a name stays as it is."""
    if not name:
        return None
    windows = PureWindowsPath(name)
    is_path = name.startswith(("/", "~", ".")) or windows.drive != "" or name.lower().endswith(".gguf")
    return windows.name if is_path else name
