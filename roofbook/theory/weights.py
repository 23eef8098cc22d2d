"""What a model's weights weigh, and what of them a token reads: from a file's own figures, else by rules."""

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from roofbook.errors import EstimateError
from roofbook.theory.mixtures import MAKERS, MIXTURES, Maker, gguf_bytes
from roofbook.theory.quantization import BLOCKS, FORMATS, Format
from roofbook.theory.shapes import Model, Range
from roofbook.theory.tensors import Tensor, missing_keys, tensors

WeightsBasis = Literal["tensors", "file", "rules", "params"]
"""Where the bytes come from: a file's tensors, its size on disk, rules over the dimensions, a parameter count."""

# A mixture weighs up to this much more a weight than the block it is named after: 1.85 bits in Qwen2.5-0.5B Q4_K_M
# (rows of 896 do not divide by 256), 0.3 to 0.4 in regular shapes.
_MIXTURE_SURPLUS_BITS: Final = Range(0.0, 2.0)

# The share of all parameters that the input embedding has at most, and, untied, the output matrix again.
# From 1e9 parameters on: 0.30 (Gemma 3 1B). Below: 0.63 (Gemma 3 270M).
_TABLE_SHARE_AT_MOST: Final = 1 / 3
_TABLE_SHARE_AT_MOST_SMALL: Final = 2 / 3
_SMALL_PARAMS: Final = 10**9


@dataclass(frozen=True)
class Weights:
    """Bytes of one model's weights: *embedding_bytes* and *expert_bytes* are parts of *total_bytes*."""

    total_bytes: Range
    embedding_bytes: Range
    """The input embedding where the output matrix is another one; 0 where they are the same."""
    expert_bytes: Range
    """The routed experts; 0 in a dense model."""
    basis: WeightsBasis

    @property
    def device_bytes(self) -> Range:
        """The part that llama.cpp puts on the device: an untied input embedding stays in host memory."""
        return self.total_bytes - self.embedding_bytes

    def step_bytes(self, model: Model, batch: int = 1) -> Range:
        """Return the bytes that one decode step of *batch* sequences reads.

        One row of an untied embedding is read, not the table. Of routed experts a step reads those that at least one
        sequence chose: 1 - (1 - k/E)^batch of them with uniform routing. Raises EstimateError where the experts in use
        are not known.
        """
        read = self.device_bytes
        if self.expert_bytes.high == 0:
            return read
        if model.moe is None:
            if batch == 1 and model.params is not None and model.active_params is not None:
                return read * (model.active_params / model.params)
            raise EstimateError("Cannot estimate a step of %(model)s: moe (experts, used) is missing", model=model.id)
        unread = 1 - touched_share(model.moe.experts, model.moe.used, batch)
        return Range(read.low - unread * self.expert_bytes.low, read.high - unread * self.expert_bytes.high)


def touched_share(experts: int, used: int, batch: int) -> float:
    """Return the share of the experts that a step of *batch* tokens reads, each token choosing *used* at random."""
    return float(1 - (1 - used / experts) ** batch)


@cache  # a page of the catalogue asks for the same few hundred again and again, tensor by tensor
def weights(model: Model, quantization: str | None = None) -> Weights:
    """Return the weights of *model* in *quantization* (None: the one its file is in).

    A file's own bytes come first, then the rules over its dimensions, then its parameter count.
    Raises EstimateError, with the missing keys, where none of the three can be.
    """
    held = model.tensors
    wanted = quantization or held.quantization
    same = quantization is None or held.quantization is None or _name(quantization) == _name(held.quantization)
    if same and held.total_bytes is not None:
        return _from_bytes(model, held.total_bytes, "tensors")
    if same and held.file_bytes is not None:
        return _from_bytes(model, held.file_bytes, "file")
    if wanted is None:
        raise EstimateError(
            "Cannot estimate the weights of %(model)s: tensors.total_bytes and tensors.quantization are missing",
            model=model.id,
        )
    name = _name(wanted)
    if name not in MIXTURES and name not in FORMATS:
        raise EstimateError(
            "Cannot estimate the weights of %(model)s: quantization %(name)s is not known; those known are %(known)s",
            model=model.id,
            name=wanted,
            known=", ".join([*MIXTURES, *(other for other in FORMATS if other not in MIXTURES)]),
        )
    if model.params is not None and missing_keys(model):
        return _from_params(model, model.params, name)
    return _by_rules(model, name)


@cache  # asked for once a row
def matmul_params(model: Model) -> Range:
    """Return the weights that one token is multiplied by, the output matrix left out (experts: those it uses).

    Exact from the dimensions; from a parameter count less the embedding where only that is known.
    Raises EstimateError where neither is.
    """
    if not missing_keys(model):
        return Range.of(sum(_used(tensor, model) for tensor in tensors(model) if tensor.role != "output"))
    counted = model.params if model.moe is None and model.active_params is None else model.active_params
    if counted is None:
        raise EstimateError(
            "Cannot count the multiplications of %(model)s: %(keys)s missing or unknown",
            model=model.id,
            keys=", ".join([*missing_keys(model), "active_params" if model.moe else "params"]),
        )
    table = head_params(model)
    if table is None or model.tied is None:
        # Which of the two tables the count holds is open too: at worst both, each of the largest share.
        return Range(counted * (1 - _table_share(counted)), counted)
    tables = 1 if model.tied else 2
    return Range.of(counted - tables * table)


def head_params(model: Model) -> int | None:
    """Return the size of the output matrix in weights, None where hidden width or vocabulary are not known."""
    return None if model.hidden is None or model.vocab is None else model.hidden * model.vocab


def counted_params(model: Model) -> int:
    """Return all weights of *model*, counted from its dimensions; raises EstimateError as ``tensors`` does."""
    return sum(tensor.elements for tensor in tensors(model))


def _used(tensor: Tensor, model: Model) -> float:
    if not tensor.matrix:
        return 0
    if tensor.routed and model.moe is not None:
        return tensor.elements * model.moe.used // model.moe.experts
    return tensor.elements


def _from_bytes(model: Model, total: int, basis: WeightsBasis) -> Weights:
    held = model.tensors
    if model.tied:
        embedding = Range.of(0)
    elif held.embedding_bytes is not None:
        low = held.embedding_bytes if model.tied is False else 0
        embedding = Range(low, held.embedding_bytes)
    else:
        share = _table_share(model.params) / 2  # an untied model has a second table of that size
        embedding = Range(0, total * share)
    return Weights(Range.of(total), embedding, _experts_of(model, total), basis)


def _experts_of(model: Model, total: float) -> Range:
    """Return the bytes of the routed experts in *total*: as the file says, else in proportion to the parameters."""
    if model.tensors.expert_bytes is not None:
        return Range.of(model.tensors.expert_bytes)
    if model.moe is None and model.active_params is None:
        return Range.of(0)
    if not missing_keys(model):
        routed = sum(tensor.elements for tensor in tensors(model) if tensor.routed)
        return Range.of(total * routed / counted_params(model))
    if model.params is None or model.active_params is None:
        raise EstimateError(
            "Cannot estimate the experts of %(model)s: tensors.expert_bytes, params or active_params missing",
            model=model.id,
        )
    left_out = total * (1 - model.active_params / model.params)
    if model.moe is None:
        return Range(left_out, total)
    # A token leaves out 1 - k/E of the routed experts.
    return Range.of(min(total, left_out / (1 - model.moe.used / model.moe.experts)))


def _from_params(model: Model, params: int, name: str) -> Weights:
    """Return a range: what *name* costs a weight, with the surplus a mixture may have."""
    if name in MIXTURES:
        base = BLOCKS[MIXTURES[name]].bits_per_value
        surplus = _MIXTURE_SURPLUS_BITS if base < BLOCKS["Q6_K"].bits_per_value else Range.of(0)
        bits = surplus + base
    else:
        form = FORMATS[name]
        share = _table_share(params)
        bits = Range(form.linear_bits, form.linear_bits * (1 - share) + form.table_bits * share)
    total = bits * (params / 8)
    ends = (_experts_of(model, total.low).low, _experts_of(model, total.high).high)
    embedding = Range.of(0) if model.tied else Range(0, total.high * _table_share(params) / 2)
    return Weights(total, embedding, Range(*ends), "params")


def _by_rules(model: Model, name: str) -> Weights:
    if name in MIXTURES:
        made = [_sums(model, name, maker) for maker in MAKERS]
    else:
        made = [_sums_of_format(model, FORMATS[name])]
    total, embedding, experts = (Range(min(column), max(column)) for column in zip(*made, strict=True))
    return Weights(total, embedding, experts, "rules")


def _sums(model: Model, mixture: str, maker: Maker) -> tuple[float, float, float]:
    """Return the bytes of all tensors, of an untied embedding, and of the routed experts."""
    total = embedding = experts = 0
    for tensor in tensors(model):
        size = gguf_bytes(tensor, mixture, model, maker)
        total += size
        embedding += size if tensor.role == "token_embd" and not model.tied else 0
        experts += size if tensor.routed else 0
    return total, embedding, experts


def _sums_of_format(model: Model, form: Format) -> tuple[float, float, float]:
    total = embedding = experts = 0.0
    for tensor in tensors(model):
        size = tensor.elements * _bits(tensor, form) / 8
        total += size
        embedding += size if tensor.role == "token_embd" and not model.tied else 0
        experts += size if tensor.routed else 0
    return total, embedding, experts


def _bits(tensor: Tensor, form: Format) -> float:
    if tensor.role in ("token_embd", "output"):
        return form.table_bits
    if tensor.role in ("vector", "router"):
        return form.table_bits if form.table_bits == 32 else 16.0
    return form.linear_bits if tensor.routed or form.dense_bits is None else form.dense_bits


def _table_share(params: float | None) -> float:
    return _TABLE_SHARE_AT_MOST_SMALL if params is None or params < _SMALL_PARAMS else _TABLE_SHARE_AT_MOST


def _name(quantization: str) -> str:
    return quantization.strip().upper()
