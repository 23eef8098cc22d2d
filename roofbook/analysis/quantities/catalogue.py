"""What the catalogue alone gives: a machine's limits, a model's bytes and operations."""

from collections.abc import Sequence
from functools import partial

from roofbook.analysis.quantities.quantity import Quantities, Quantity, asked, estimated, of_range
from roofbook.theory.kv import token_bytes
from roofbook.theory.limits import gpu_limit
from roofbook.theory.roofline import datasheet_rates, measured_rates
from roofbook.theory.shapes import Machine, MacLimit, Model, Range
from roofbook.theory.weights import counted_params, weights
from roofbook.theory.work import prefill_work

_UNQUANTIZED = "F16"


def machine_quantities(
    machine: Machine, mac_limits: Sequence[MacLimit] = (), quantization: str | None = None
) -> Quantities:
    """Return the limits of *machine*: memory, bandwidth, arithmetic (for weights of *quantization*).

    ``gpu_limit_bytes.macos15`` and ``.macos26`` are what a Mac's GPU may use under that system.
    """
    datasheet, measured = datasheet_rates(machine, quantization), measured_rates(machine)
    memory = machine.memory_bytes
    return Quantities(
        {
            "memory_bytes": Quantity("limit_bytes", None if memory is None else float(memory)),
            "bandwidth_bytes_per_s": of_range("bytes_per_s", datasheet.bandwidth_bytes_per_s),
            "measured_bandwidth_bytes_per_s": of_range("bytes_per_s", measured.bandwidth_bytes_per_s),
            "compute_flops_per_s": of_range("flops_per_s", datasheet.flops_per_s),
            "measured_compute_flops_per_s": of_range("flops_per_s", measured.flops_per_s),
            "gpu_limit_bytes": estimated("limit_bytes", lambda: gpu_limit(machine, None, mac_limits).limit_bytes),
            "gpu_limit_bytes.macos15": estimated("limit_bytes", lambda: gpu_limit(machine, 15, mac_limits).limit_bytes),
            "gpu_limit_bytes.macos26": estimated("limit_bytes", lambda: gpu_limit(machine, 26, mac_limits).limit_bytes),
        }
    )


def model_quantities(model: Model, quantization: str | None = None) -> Quantities:
    """Return what *model* weighs, reads and computes; *quantization* None is the one its file is in.

    ``file_bytes`` lie on disk, ``step_bytes`` are read by one decode step.
    """
    held = model.tensors
    size = held.file_bytes or held.total_bytes
    return Quantities(
        {
            "params": estimated("params", lambda: float(model.params or counted_params(model))),
            "layers": Quantity("count", None if model.layers is None else float(len(model.layers))),
            "file_bytes": Quantity("bytes", None if size is None else float(size)),
            "weights_bytes": estimated("bytes", lambda: weights(model, quantization).total_bytes),
            "weights_f16_bytes": estimated("bytes", lambda: weights(model, _UNQUANTIZED).total_bytes),
            "step_bytes": estimated("bytes", lambda: weights(model, quantization).step_bytes(model)),
            "bits_per_weight": estimated(
                "bits", lambda: weights(model, quantization).total_bytes * (8 / counted_params(model))
            ),
        },
        {
            "kv_bytes.KV": asked("kv_bytes", partial(token_bytes, model)),
            "work_flop.TOKENS": asked("flop", partial(_work_flop, model)),
            "attention_share.TOKENS": asked("share", partial(_attention_share, model)),
        },
    )


def _work_flop(model: Model, tokens: int) -> Range:
    return prefill_work(model, tokens).total


def _attention_share(model: Model, tokens: int) -> Range:
    """Return which share of a prefill's operations the attention is, by arithmetic."""
    work = prefill_work(model, tokens)
    return Range(work.attention.low / work.total.low, work.attention.high / work.total.high)
