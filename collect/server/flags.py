"""The flags on a server's process line that decide its speed and its memory, and nothing else.

A process line can hold keys, names and paths. So it is never kept: each flag of an allow-list is read into a value of a
known form (a number, or one of a few words), and everything else is forgotten here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

Value = int | float | str | bool

_KV_TYPES: Final = frozenset({
    "f32", "f16", "bf16", "q8_0", "q5_0", "q5_1", "q4_0", "q4_1", "iq4_nl", "auto", "float16", "bfloat16",
    "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "int8", "nvfp4",
})  # fmt: skip
_DTYPES: Final = frozenset({"auto", "half", "float16", "bfloat16", "float", "float32"})
_QUANTIZATIONS: Final = frozenset({
    "awq", "awq_marlin", "gptq", "gptq_marlin", "fp8", "fbgemm_fp8", "w8a8_int8", "w8a8_fp8", "modelopt",
    "modelopt_fp4", "mxfp4", "bitsandbytes", "gguf", "torchao", "compressed-tensors",
})  # fmt: skip
_SWITCH_WORDS: Final = {"on": "on", "1": "on", "true": "on", "off": "off", "0": "off", "false": "off", "auto": "auto"}

# flag -> (its one name, what its value may be)
_COUNT, _NUMBER, _SET, _ON_OFF = "count", "number", "set", "on_off"
_FLAGS: Final[Mapping[str, tuple[str, str | frozenset[str]]]] = {
    spelled: (name, form)
    for name, spellings, form in (
        # llama-server, and Ollama's runner
        ("cache_type_k", "--cache-type-k -ctk", _KV_TYPES),
        ("cache_type_v", "--cache-type-v -ctv", _KV_TYPES),
        ("kv_cache_type", "--kv-cache-type --kv-cache-dtype", _KV_TYPES),
        ("flash_attention", "--flash-attn -fa", _ON_OFF),
        ("context_tokens", "--ctx-size -c", _COUNT),
        ("parallel_slots", "--parallel -np", _COUNT),
        ("threads", "--threads -t", _COUNT),
        ("threads_batch", "--threads-batch -tb", _COUNT),
        ("gpu_layers", "--n-gpu-layers --gpu-layers -ngl", _COUNT),
        ("cpu_moe_layers", "--n-cpu-moe -ncmoe", _COUNT),
        ("batch_tokens", "--batch-size -b", _COUNT),
        ("ubatch_tokens", "--ubatch-size -ub", _COUNT),
        ("cache_ram_mib", "--cache-ram -cram", _COUNT),
        ("kv_unified", "--kv-unified -kvu", _SET),
        ("no_kv_offload", "--no-kv-offload -nkvo", _SET),
        ("swa_full", "--swa-full", _SET),
        ("mlock", "--mlock", _SET),
        ("no_mmap", "--no-mmap", _SET),
        # vLLM, SGLang
        ("max_model_len", "--max-model-len --context-length", _COUNT),
        ("max_num_seqs", "--max-num-seqs --max-running-requests", _COUNT),
        ("max_num_batched_tokens", "--max-num-batched-tokens", _COUNT),
        ("chunked_prefill_tokens", "--chunked-prefill-size", _COUNT),
        ("gpu_memory_utilization", "--gpu-memory-utilization --mem-fraction-static", _NUMBER),
        ("tensor_parallel", "--tensor-parallel-size -tp --tp --tp-size", _COUNT),
        ("block_tokens", "--block-size --page-size", _COUNT),
        ("dtype", "--dtype", _DTYPES),
        ("quantization", "--quantization -q", _QUANTIZATIONS),
        ("prefix_caching", "--enable-prefix-caching", _SET),
        ("no_prefix_caching", "--no-enable-prefix-caching --disable-radix-cache", _SET),
        ("chunked_prefill", "--enable-chunked-prefill", _SET),
        ("enforce_eager", "--enforce-eager", _SET),
        ("cpu_offload_gb", "--cpu-offload-gb", _NUMBER),
        # mlx_lm.server
        ("decode_concurrency", "--decode-concurrency", _COUNT),
        ("prompt_concurrency", "--prompt-concurrency", _COUNT),
    )
    for spelled in spellings.split()
}

# What llama.cpp's server also takes from its environment; no other variable is looked at.
_VARIABLES: Final = {
    "LLAMA_ARG_CACHE_TYPE_K": "--cache-type-k",
    "LLAMA_ARG_CACHE_TYPE_V": "--cache-type-v",
    "LLAMA_ARG_FLASH_ATTN": "--flash-attn",
    "LLAMA_ARG_N_PARALLEL": "--parallel",
    "LLAMA_ARG_CTX_SIZE": "--ctx-size",
}
_LLAMA_SERVERS: Final = ("llama-server", "llama-server.exe", "engine_process.py")

LLAMACPP_DEFAULT_KV_TYPE: Final = "f16"
"""What llama.cpp's server uses where neither flag nor variable says otherwise (its own --help)."""


@dataclass(frozen=True)
class ProcessFlags:
    """The flags of one server process, by their one name; *complete*: its environment could be read too."""

    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
    complete: bool = False
    is_llama_server: bool = False

    @property
    def kv_cache_type(self) -> str | None:
        """The KV cache's type, "k/v" where the two differ.

        An absent flag is llama.cpp's default only where the whole of its command was seen; else it is unknown.
        """
        if isinstance(both := self.values.get("kv_cache_type"), str):
            return None if both == "auto" else both
        default = LLAMACPP_DEFAULT_KV_TYPE if self.complete and self.is_llama_server else None
        keys, values = (self.values.get(name, default) for name in ("cache_type_k", "cache_type_v"))
        if keys is None or values is None:
            return None
        return str(keys) if keys == values else f"{keys}/{values}"

    @property
    def flash_attention(self) -> str | None:
        """on, off or auto; auto is llama.cpp's default, where the whole of its command was seen."""
        default = "auto" if self.complete and self.is_llama_server else None
        found = self.values.get("flash_attention", default)
        return found if isinstance(found, str) else None

    def integer(self, name: str) -> int | None:
        found = self.values.get(name)
        return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def read_flags(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, name: str | None = None
) -> ProcessFlags:
    """Return what *command* (and llama.cpp's variables in *environment*) sets; *name* is the program's."""
    program = name or (base_name(command[0]) if command else "")
    values: dict[str, Value] = {}
    for variable, flag in _VARIABLES.items():
        if environment and variable in environment:
            _read_into(values, flag, environment[variable])
    for at, word in enumerate(command[1:], start=1):
        flag, joined, value = word.partition("=")
        if not flag.startswith("--") and program not in _LLAMA_SERVERS:
            continue  # one letter means something else in every program
        following = command[at + 1] if at + 1 < len(command) else None
        _read_into(values, flag, value if joined else following)
    return ProcessFlags(values, complete=environment is not None, is_llama_server=program in _LLAMA_SERVERS)


def _read_into(values: dict[str, Value], flag: str, value: str | None) -> None:
    if flag not in _FLAGS:
        return
    name, form = _FLAGS[flag]
    read = _read_value(form, value)
    if read is not None:
        values[name] = read


def _read_value(form: str | frozenset[str], value: str | None) -> Value | None:
    if form == _SET:
        return True
    if form == _ON_OFF:
        # The bare flag of older versions, which the next flag follows, means on.
        return "on" if value is None or value.startswith("-") else _SWITCH_WORDS.get(value.lower())
    if value is None:
        return None
    if isinstance(form, frozenset):
        return value.lower() if value.lower() in form else None
    try:
        read = int(value) if form == _COUNT else float(value)
    except ValueError:
        return None
    return read if 0 <= read < 10**12 else None


def base_name(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).name
