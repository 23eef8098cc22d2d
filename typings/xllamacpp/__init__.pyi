"""What the embedded engine uses of xllamacpp."""

from enum import IntEnum
from typing import Any

class GgmlType(IntEnum):
    GGML_TYPE_F16 = 1
    GGML_TYPE_Q4_0 = 2
    GGML_TYPE_Q8_0 = 8

class FlashAttentionType(IntEnum):
    LLAMA_FLASH_ATTN_TYPE_AUTO = -1
    LLAMA_FLASH_ATTN_TYPE_DISABLED = 0
    LLAMA_FLASH_ATTN_TYPE_ENABLED = 1

class DeviceType(IntEnum):
    GGML_BACKEND_DEVICE_TYPE_CPU = 0
    GGML_BACKEND_DEVICE_TYPE_GPU = 1
    GGML_BACKEND_DEVICE_TYPE_IGPU = 2

ggml_type = GgmlType
llama_flash_attn_type = FlashAttentionType
ggml_backend_dev_type = DeviceType

class CpuParams:
    n_threads: int

class CommonParamsModel:
    path: str

class CommonParams:
    model: CommonParamsModel
    model_alias: set[str]
    n_ctx: int
    n_parallel: int
    cpuparams: CpuParams
    cpuparams_batch: CpuParams
    cache_type_k: GgmlType
    cache_type_v: GgmlType
    flash_attn_type: FlashAttentionType
    cache_ram_mib: int
    endpoint_metrics: bool
    endpoint_props: bool
    endpoint_slots: bool
    ui: bool

class Server:
    def __init__(self, params: CommonParams) -> None: ...
    @property
    def listening_address(self) -> str: ...

def get_device_info() -> list[dict[str, Any]]: ...
