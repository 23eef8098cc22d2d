"""What one source says about a model, and its JSON: what ``python -m collect inspect`` prints under the key "model"."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Final

from roofbook.errors import ReaderError
from roofbook.readers.fields import Fields
from roofbook.theory.shapes import Layer, LayerKind, Mla, Model, Moe, Recurrent, Tensors

LAYERS_AT_MOST: Final = 2000
"""Far above any published model (126 in Llama 3.1 405B): a larger count is a damaged source, and would eat memory."""

_KINDS: Final[Mapping[str, LayerKind]] = {"global": "global", "local": "local", "recurrent": "recurrent"}
_NEEDED: Final = ("architecture", "layers", "hidden", "vocab", "tied", "context_limit_tokens")
_NEEDED_OF_A_LAYER: Final = ("heads", "kv_heads", "key_dim", "value_dim")
_NEEDED_OF_TENSORS: Final = ("quantization", "total_bytes", "embedding_bytes")


@dataclass(frozen=True)
class Reading:
    """One source's word: its ``model`` holds what the source holds, and None where it says nothing.

    *source*: config.json, gguf, ollama, llamacpp. *digests*: sha256 in hex, of the weights or of their manifest.
    *assumed* names the fields that the source leaves out and its format defines (a head is hidden / heads wide).
    """

    source: str
    model: Model
    names: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the fields that theory asks for and this source does not hold."""
        model, layers = self.model, self.model.layers or ()
        absent = [name for name in _NEEDED if getattr(model, name) is None]
        if model.mla is None:
            attending = [layer for layer in layers if layer.kind != "recurrent" and layer.kv_heads != 0]
            absent += [
                f"layers.{name}" for name in _NEEDED_OF_A_LAYER if any(getattr(one, name) is None for one in attending)
            ]
        if any(not layer.experts for layer in layers) and model.ffn is None:
            absent.append("ffn")
        if any(layer.experts for layer in layers) and (model.moe is None or model.moe.expert_ffn is None):
            absent.append("moe.expert_ffn")
        if any(layer.kind == "local" for layer in layers) and model.window_tokens is None:
            absent.append("window_tokens")
        if any(layer.kind == "recurrent" for layer in layers) and model.recurrent is None:
            absent.append("recurrent")
        return (*absent, *(f"tensors.{name}" for name in _NEEDED_OF_TENSORS if getattr(model.tensors, name) is None))


def completed(first: Reading, second: Reading) -> Reading:
    """Return *first* with its gaps filled from *second*, a source about the same model.

    Raises ReaderError where both hold a field and say different things.
    """
    differing = disagreements(first, second)
    if differing:
        raise ReaderError(
            "%(first)s and %(second)s disagree about %(fields)s: they do not describe the same model",
            first=first.source,
            second=second.source,
            fields=", ".join(differing),
        )
    model = _filled(first.model, second.model)
    # A source that says "no factors" says nothing: 0 is the shape's word for none known.
    model = replace(model, rope_factors=first.model.rope_factors or second.model.rope_factors)
    return Reading(
        source=f"{first.source} + {second.source}",
        model=model,
        names=_joined(first.names, second.names),
        digests=_joined(first.digests, second.digests),
        assumed=tuple(name for name in first.assumed if name in second.assumed),
    )


def disagreements(first: Reading, second: Reading) -> tuple[str, ...]:
    """Return the names of the fields that both sources hold and do not agree on; an assumed field is no statement."""
    assumed = {*first.assumed, *second.assumed}
    one, other = _stated(first.model), _stated(second.model)
    both = [name for name in one if name in other and name not in assumed]
    return tuple(name for name in both if one[name] != other[name])


def to_json(reading: Reading) -> dict[str, Any]:
    """Return *reading* as a JSON object; equal neighbouring layers stand once, with their count."""
    shape = {name: value for name, value in asdict(reading.model).items() if name != "layers"}
    layers = reading.model.layers
    shape["layers"] = (
        None if layers is None else [{"count": len(list(run)), **asdict(one)} for one, run in groupby(layers)]
    )
    return {
        "source": reading.source,
        "names": list(reading.names),
        "digests": list(reading.digests),
        "assumed": list(reading.assumed),
        "missing": list(reading.missing),
        "shape": shape,
    }


def from_json(value: object) -> Reading:
    """Return the reading that ``to_json`` wrote.

    Raises ReaderError, naming the key, where *value* is something else.
    """
    outer = Fields.of(value, "inspect")
    shape = outer.inner("shape")
    if shape is None:
        raise ReaderError("inspect: the key 'shape' is missing: this is no model that inspect printed")
    return Reading(
        source=outer.text("source") or "inspect",
        model=_model(shape),
        names=outer.texts("names"),
        digests=outer.texts("digests"),
        assumed=outer.texts("assumed"),
    )


def _model(shape: Fields) -> Model:
    mla, moe, recurrent = shape.inner("mla"), shape.inner("moe"), shape.inner("recurrent")
    tensors = shape.inner("tensors")
    return Model(
        id=shape.text("id") or "unknown",
        architecture=shape.text("architecture"),
        layers=_layers(shape),
        hidden=shape.whole("hidden"),
        ffn=shape.whole("ffn"),
        vocab=shape.whole("vocab"),
        tied=shape.flag("tied"),
        window_tokens=shape.whole("window_tokens"),
        mla=mla and Mla(
            kv_rank=mla.needed("kv_rank"),
            rope_dim=mla.needed("rope_dim"),
            nope_dim=mla.needed("nope_dim"),
            value_dim=mla.needed("value_dim"),
            query_rank=mla.whole("query_rank"),
        ),
        moe=moe and Moe(
            experts=moe.needed("experts"),
            used=moe.needed("used"),
            expert_ffn=moe.whole("expert_ffn"),
            shared_ffn=moe.whole("shared_ffn") or 0,
        ),
        recurrent=recurrent and Recurrent(recurrent.needed("state_elements"), recurrent.needed("conv_elements")),
        context_limit_tokens=shape.whole("context_limit_tokens"),
        rope_factors=shape.whole("rope_factors") or 0,
        params=shape.whole("params"),
        active_params=shape.whole("active_params"),
        tensors=Tensors() if tensors is None else Tensors(
            quantization=tensors.text("quantization"),
            total_bytes=tensors.whole("total_bytes"),
            embedding_bytes=tensors.whole("embedding_bytes"),
            expert_bytes=tensors.whole("expert_bytes"),
            file_bytes=tensors.whole("file_bytes"),
            device_bytes=tensors.whole("device_bytes"),
            projector_bytes=tensors.whole("projector_bytes"),
        ),
    )  # fmt: skip


def _layers(shape: Fields) -> tuple[Layer, ...] | None:
    runs = shape.inners("layers")
    if runs is None:
        return None
    layers: list[Layer] = []
    for run in runs:
        kind = _KINDS.get(run.text("kind") or "")
        if kind is None:
            raise ReaderError("inspect: a layer's kind is none of %(known)s", known=", ".join(_KINDS))
        count = check_layer_count(run.needed("count"), "inspect")
        layer = Layer(
            kind=kind,
            heads=run.whole("heads"),
            kv_heads=run.whole("kv_heads"),
            key_dim=run.whole("key_dim"),
            value_dim=run.whole("value_dim"),
            experts=run.flag("experts") or False,
        )
        layers += [layer] * count
        check_layer_count(len(layers), "inspect")
    return tuple(layers)


def check_layer_count(count: int, source: str) -> int:
    """Return *count*, the number of layers that *source* gives.

    Raises ReaderError where no model can have so many.
    """
    if not 1 <= count <= LAYERS_AT_MOST:
        raise ReaderError(
            "%(source)s: %(count)d layers; a model has between 1 and %(most)d",
            source=source,
            count=count,
            most=LAYERS_AT_MOST,
        )
    return count


def _stated(model: Model) -> dict[str, Any]:
    """Return what *model* holds, by name; parts are compared field by field, layers as a whole but for their gaps."""
    stated = {name: value for name, value in asdict(model).items() if value is not None and name not in _NOT_COMPARED}
    for name, value in asdict(model.tensors).items():
        if value is not None:
            stated[f"tensors.{name}"] = value
    layers = model.layers
    if layers is not None:
        stated["layers"] = len(layers)
        stated["layers.kind"] = [layer.kind for layer in layers]
        for name in _NEEDED_OF_A_LAYER:
            values = [getattr(layer, name) for layer in layers]
            if None not in values:
                stated[f"layers.{name}"] = values
    return stated


# The id is ours; factors of 0 mean nobody said; bytes of a device or of a whole file belong to one source alone.
_NOT_COMPARED: Final = ("id", "tensors", "layers", "rope_factors")


def _filled(first: Model, second: Model) -> Model:
    gaps = {name: getattr(second, name) for name in vars(first) if getattr(first, name) is None}
    tensors = first.tensors
    tensors = replace(
        tensors, **{name: getattr(second.tensors, name) for name in vars(tensors) if getattr(tensors, name) is None}
    )
    layers = first.layers
    if layers is not None and second.layers is not None and len(layers) == len(second.layers):
        layers = tuple(_filled_layer(one, other) for one, other in zip(layers, second.layers, strict=True))
    return replace(first, **{"layers": layers, "tensors": tensors, **gaps})


def _filled_layer(first: Layer, second: Layer) -> Layer:
    return replace(
        first, **{name: getattr(second, name) for name in _NEEDED_OF_A_LAYER if getattr(first, name) is None}
    )


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
