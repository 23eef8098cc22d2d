"""The embedded engine's process: loads the model, prints its address and GPUs, serves until its parent is gone.

Run by path and not as a module of the package, so that it starts with nothing but the engine itself. It has no signal
handler of its own: the engine would only look at one half a minute later, and the default action ends it at once.
"""

import argparse
import contextlib
import json
import os
import signal
import sys
from typing import Final

import xllamacpp

_PR_SET_PDEATHSIG: Final = 1
_KV_TYPES: Final = {
    "f16": xllamacpp.ggml_type.GGML_TYPE_F16,
    "q8_0": xllamacpp.ggml_type.GGML_TYPE_Q8_0,
    "q4_0": xllamacpp.ggml_type.GGML_TYPE_Q4_0,
}
_FLASH_ATTENTION: Final = {
    "on": xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED,
    "off": xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED,
}


def main() -> None:
    flags = _parse_flags()
    # Whoever presses Ctrl-C means the collector; it ends us when its last row is kept.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if flags.parent is not None:
        _die_with(flags.parent)
    # Only our own line goes to standard output, whatever the engine prints.
    report = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    server = xllamacpp.Server(_params(flags))  # holds the interpreter until the model is loaded
    ready = {"url": server.listening_address, "gpus": _gpus()}
    with contextlib.suppress(BrokenPipeError):
        os.write(report, json.dumps(ready).encode() + b"\n")
    while os.read(sys.stdin.fileno(), 1):
        pass
    # End of input: the parent is gone. No clean-up, it would wait for the requests in flight.
    os._exit(0)


def _parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--ctx-size", type=int, required=True)
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cache-type-k", choices=_KV_TYPES, required=True)
    parser.add_argument("--cache-type-v", choices=_KV_TYPES, required=True)
    parser.add_argument("--flash-attn", choices=_FLASH_ATTENTION, required=True)
    parser.add_argument("--parent", type=int)
    return parser.parse_args()


def _die_with(parent: int) -> None:
    """Ask Linux to kill us when our parent dies; elsewhere the end of standard input says so."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before we could ask
        os._exit(0)


def _gpus() -> list[str]:
    kinds = xllamacpp.ggml_backend_dev_type
    wanted = (kinds.GGML_BACKEND_DEVICE_TYPE_GPU, kinds.GGML_BACKEND_DEVICE_TYPE_IGPU)
    return [str(device["name"]) for device in xllamacpp.get_device_info() if device["type"] in wanted]


def _params(flags: argparse.Namespace) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = flags.model
    params.model_alias = {flags.alias}
    params.n_ctx = flags.ctx_size
    params.n_parallel = flags.parallel
    params.cpuparams.n_threads = flags.threads
    params.cpuparams_batch.n_threads = flags.threads
    params.cache_type_k = _KV_TYPES[flags.cache_type_k]
    params.cache_type_v = _KV_TYPES[flags.cache_type_v]
    params.flash_attn_type = _FLASH_ATTENTION[flags.flash_attn]
    params.cache_ram_mib = 0  # a host-side prompt cache would answer a prompt that we believe to be new
    params.endpoint_metrics = True
    params.endpoint_props = True
    params.endpoint_slots = True
    params.ui = False
    return params


if __name__ == "__main__":
    main()
