"""models.yml: shapes of published models, and the quantized files of them that somebody has looked into."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from roofbook.errors import EstimateError, FactsError
from roofbook.facts.entries import Entry, Provenance, read_entries
from roofbook.theory.kv import delta_state, mamba_state
from roofbook.theory.shapes import Layer, LayerKind, Mla, Model, Moe, Range, Recurrent, Tensors
from roofbook.theory.weights import weights
from roofbook.units import MIB

_KINDS: Final[dict[str, LayerKind]] = {"global": "global", "local": "local", "recurrent": "recurrent"}
UNQUANTIZED: Final = "BF16"
"""What a model's plain name means: the checkpoint as published, 16 bits a weight."""


@dataclass(frozen=True)
class FileFact:
    """One published quantization: the names and digests that mean this very file, and the sizes somebody read."""

    quantization: str
    provenance: Provenance
    names: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    tensors: Tensors = field(default_factory=Tensors)
    host_bytes: int | None = None
    """What the engine says it keeps in host memory beside the device's."""


@dataclass(frozen=True)
class ModelFact:
    """A model's shape, its names, and its files."""

    id: str
    name: str
    shape: Model
    provenance: Provenance
    aliases: tuple[str, ...] = ()
    files: tuple[FileFact, ...] = ()

    def file(self, quantization: str) -> FileFact | None:
        """Return the file of *quantization*, None where none is catalogued."""
        wanted = quantization.upper()
        return next((one for one in self.files if one.quantization.upper() == wanted), None)

    def quantized(self, quantization: str) -> Model:
        """Return the shape with what is known about its file of *quantization*."""
        known = self.file(quantization)
        if known is None:
            return replace(self.shape, tensors=Tensors(quantization=quantization))
        return replace(self.shape, tensors=self._with_parts(known.tensors))

    def _with_parts(self, held: Tensors) -> Tensors:
        """Where the rules of quantization give a file's total to the byte, they know its embedding's part too."""
        if held.total_bytes is None or held.embedding_bytes is not None or self.shape.tied:
            return held
        try:
            ruled = weights(replace(self.shape, tensors=Tensors(quantization=held.quantization)))
        except EstimateError:
            return held
        if ruled.total_bytes != Range.of(held.total_bytes) or not ruled.embedding_bytes.known:
            return held
        return replace(held, embedding_bytes=round(ruled.embedding_bytes.low))


def read_models(path: Path) -> dict[str, ModelFact]:
    """Return the models of the file at *path* by id.

    Raises FactsError, also where two models claim the same name or digest.
    """
    models = {entry.name: _model(entry) for entry in read_entries(path, "models")}
    owners: dict[str, str] = {}
    for model in models.values():
        names = [model.id, *model.aliases, *(name for file in model.files for name in (*file.names, *file.digests))]
        for name in names:
            owner = owners.setdefault(name.lower(), model.id)
            if owner != model.id:
                raise FactsError(
                    "%(file)s: '%(name)s' stands for two models, %(first)s and %(second)s",
                    file=path.name,
                    name=name,
                    first=owner,
                    second=model.id,
                )
    return models


def _model(entry: Entry) -> ModelFact:
    entry.only(
        "id", "name", "architecture", "layers", "pattern", "window_tokens", "hidden", "ffn", "heads", "kv_heads",
        "head_dim", "mla", "moe", "delta", "mamba", "rope_factors", "vocab", "tied", "context_limit_tokens", "aliases",
        "files",
    )  # fmt: skip
    mla = _mla(entry.inner("mla")) if "mla" in entry.values else None
    routed = entry.inner("moe") if "moe" in entry.values else None
    shape = Model(
        id=entry.name,
        architecture=entry.text("architecture"),
        layers=_layers(entry, mla, routed),
        hidden=entry.whole("hidden"),
        ffn=entry.whole("ffn"),
        vocab=entry.whole("vocab"),
        tied=entry.flag("tied"),
        window_tokens=entry.whole("window_tokens"),
        mla=mla,
        moe=None if routed is None else _moe(routed),
        recurrent=_recurrent(entry),
        context_limit_tokens=entry.whole("context_limit_tokens"),
        rope_factors=entry.whole("rope_factors") or 0,
    )
    return ModelFact(
        id=entry.name,
        name=entry.text("name"),
        shape=shape,
        provenance=entry.provenance(),
        aliases=entry.texts("aliases"),
        files=tuple(_file(one) for one in entry.inners("files")),
    )


def _layers(entry: Entry, mla: Mla | None, routed: Entry | None) -> tuple[Layer, ...]:
    count = entry.needed("layers")
    pattern = entry.texts("pattern") or ("global",)
    unknown = set(pattern) - set(_KINDS)
    if unknown:
        raise FactsError(
            "%(file)s, %(entry)s: '%(key)s' is %(value)s, none of %(known)s",
            file=entry.file,
            entry=entry.name,
            key="pattern",
            value=", ".join(sorted(unknown)),
            known=", ".join(_KINDS),
        )
    heads = entry.needed("heads")
    attending = Layer(heads=heads) if mla is not None else _attention(entry, heads)
    layers: list[Layer] = []
    for index in range(count):
        kind = _KINDS[pattern[index % len(pattern)]]
        experts = routed is not None and _has_experts(routed, index)
        layer = Layer("recurrent") if kind == "recurrent" else replace(attending, kind=kind)
        layers.append(replace(layer, experts=experts))
    return tuple(layers)


def _attention(entry: Entry, heads: int) -> Layer:
    width = entry.needed("head_dim")
    return Layer(heads=heads, kv_heads=entry.needed("kv_heads"), key_dim=width, value_dim=width)


def _has_experts(routed: Entry, index: int) -> bool:
    every = routed.whole("every") or 1
    return index >= (routed.whole("first_dense", zero=True) or 0) and (index + 1) % every == 0


def _mla(entry: Entry) -> Mla:
    entry.only("kv_rank", "rope_dim", "nope_dim", "value_dim", "query_rank", provenance=False)
    ranks = [entry.needed(key) for key in ("kv_rank", "rope_dim", "nope_dim", "value_dim")]
    return Mla(*ranks, query_rank=entry.whole("query_rank"))


def _moe(entry: Entry) -> Moe:
    entry.only("experts", "used", "ffn", "shared_ffn", "first_dense", "every", provenance=False)
    return Moe(entry.needed("experts"), entry.needed("used"), entry.whole("ffn"), entry.whole("shared_ffn") or 0)


def _recurrent(entry: Entry) -> Recurrent | None:
    if "delta" in entry.values:
        delta = entry.inner("delta")
        keys = ("key_heads", "value_heads", "key_dim", "value_dim", "conv")
        delta.only(*keys, provenance=False)
        return delta_state(*(delta.needed(key) for key in keys))
    if "mamba" in entry.values:
        mamba = entry.inner("mamba")
        mamba.only("inner", "state", "conv", "groups", provenance=False)
        groups = mamba.whole("groups", zero=True) or 0
        return mamba_state(mamba.needed("inner"), mamba.needed("state"), mamba.needed("conv"), groups)
    return None


def _file(entry: Entry) -> FileFact:
    entry.only(
        "quantization", "names", "digests", "tensor_bytes", "embedding_bytes", "file_bytes", "device_mib", "host_mib"
    )
    device, host = entry.number("device_mib"), entry.number("host_mib")
    quantization = entry.text("quantization")
    return FileFact(
        quantization=quantization,
        provenance=entry.provenance(),
        names=entry.texts("names"),
        digests=entry.texts("digests"),
        tensors=Tensors(
            quantization=quantization,
            total_bytes=entry.whole("tensor_bytes"),
            embedding_bytes=entry.whole("embedding_bytes"),
            file_bytes=entry.whole("file_bytes"),
            device_bytes=None if device is None else round(device * MIB),
        ),
        host_bytes=None if host is None else round(host * MIB),
    )
