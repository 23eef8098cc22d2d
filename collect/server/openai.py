"""Servers that speak OpenAI's API: vLLM, SGLang, LM Studio, mlx_lm and others, by what else they answer."""

import re
from typing import Any, Final

from collect.fields import at, count, first, number, objects, positive, text
from collect.server.ask import Asker
from collect.server.facts import ListedModel, ServerFacts

# What servers write as the owner of a model.
_OWNERS: Final = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt_llm": "tensorrt-llm",
    "Triton Inference Server": "triton",
    "llamacpp": "llama.cpp",
    "organization_owner": "lm-studio",
}
# Of vLLM's cache_config_info and SGLang's get_server_info only these are kept: the latter holds paths and its key.
_VLLM_OPTIONS: Final = (
    "block_size", "cache_dtype", "enable_prefix_caching", "gpu_memory_utilization", "num_gpu_blocks", "num_cpu_blocks",
    "sliding_window", "cpu_offload_gb",
)  # fmt: skip
_SGLANG_COUNTS: Final = (
    "chunked_prefill_size", "max_prefill_tokens", "max_total_num_tokens", "max_running_requests", "tp_size",
    "page_size",
)  # fmt: skip
_SGLANG_FLAGS: Final = ("disable_radix_cache", "disable_cuda_graph", "enable_mixed_chunk")
_LM_STUDIO_KINDS: Final = ("llm", "vlm")
MLX_LM_DEFAULT: Final = "default_model"
"""How mlx_lm.server calls the model that it was started with, whatever its name."""

_SAMPLE: Final = re.compile(r"(?m)^vllm:cache_config_info\{(.*)\}\s")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def recognise(ask: Asker) -> ServerFacts | None:
    """Return what it is as far as it tells; None where it has no list of models in OpenAI's form."""
    listed = ask.get("/v1/models")
    if not isinstance(at(listed.json(), "data"), list):
        return _mlx_lm_without_list(ask)
    models = tuple(ListedModel(name) for card in objects(listed.json(), "data") if (name := text(card, "id")))
    facts = ServerFacts(api="openai", url=ask.url, models=models)
    if (studio := objects(ask.get("/api/v0/models").json(), "data")) and any("state" in card for card in studio):
        return _lm_studio(facts, studio)
    owner = text(listed.json(), "data", 0, "owned_by")
    server = _OWNERS.get(owner or "")
    if server in (None, "sglang") and text(sglang := _sglang_info(ask), "version"):
        return facts.learn("api", server="sglang", server_version=text(sglang, "version"))
    if server is None and owner is None and listed.headers.get("server", "").startswith("BaseHTTP"):
        server = "mlx_lm"  # its cards have no owner, and it is Python's own http.server
    version = text(ask.get("/version").json(), "version") if server in ("vllm", "tensorrt-llm") else None
    return facts.learn("api", server=server, server_version=version)


def _mlx_lm_without_list(ask: Asker) -> ServerFacts | None:
    """Return mlx_lm.server where its list of models fails: it dies over a download cache that does not exist yet, after
    it has said 200."""
    listed = ask.get("/v1/models")
    plain = listed.ok and not listed.text and listed.headers.get("server", "").startswith("BaseHTTP")
    if not plain or text(ask.get("/health").json(), "status") != "ok":
        return None
    facts = ServerFacts(api="openai", url=ask.url, models=(ListedModel(MLX_LM_DEFAULT),))
    return facts.learn("api", server="mlx_lm")


def describe(ask: Asker, facts: ServerFacts) -> ServerFacts:
    """Return *facts* with what the server tells beside the API that all of them share."""
    match facts.server:
        case "vllm":
            return _vllm(ask, facts)
        case "sglang":
            return _sglang(ask, facts)
        case "lm-studio":
            return _lm_studio_model(ask, facts)
        case _:
            return facts.learn("api", context_limit_tokens=positive(_card(ask, facts.model), "max_model_len"))


def _vllm(ask: Asker, facts: ServerFacts) -> ServerFacts:
    labels = cache_config(ask.get("/metrics").text)
    dtype = labels.get("cache_dtype")
    known = facts.learn(
        "api",
        context_limit_tokens=positive(_card(ask, facts.model), "max_model_len"),
        # "auto" is the model's own type, which is not told.
        kv_cache_type=None if dtype == "auto" else dtype,
    )
    return known.with_options(labels)


def cache_config(metrics: str) -> dict[str, str]:
    """Return the allowed labels of vLLM's cache_config_info, of its Prometheus text."""
    found = _SAMPLE.search(metrics)
    labels = dict(_LABEL.findall(found.group(1))) if found else {}
    return {name: labels[name] for name in _VLLM_OPTIONS if re.fullmatch(r"[\w.]{1,20}", labels.get(name, ""))}


def _sglang_info(ask: Asker) -> Any:
    return ask.get("/get_server_info").json() or ask.get("/server_info").json()


def _sglang(ask: Asker, facts: ServerFacts) -> ServerFacts:
    info = _sglang_info(ask)
    dtype = text(info, "kv_cache_dtype")
    counts = {name: found for name in _SGLANG_COUNTS if (found := count(info, name)) is not None}
    flags = {name: info[name] for name in _SGLANG_FLAGS if isinstance(at(info, name), bool)}
    share = number(info, "mem_fraction_static")
    known = facts.learn(
        "api",
        context_limit_tokens=positive(_card(ask, facts.model), "max_model_len") or positive(info, "context_length"),
        kv_cache_type=None if dtype == "auto" else dtype,
        quantization=text(info, "quantization"),
    )
    return known.with_options({**counts, **flags, **({} if share is None else {"mem_fraction_static": share})})


def _lm_studio(facts: ServerFacts, cards: list[dict[str, Any]]) -> ServerFacts:
    models = tuple(
        ListedModel(name, loaded=text(card, "state") == "loaded")
        for card in cards
        if (name := text(card, "id")) and text(card, "type") in _LM_STUDIO_KINDS
    )
    return ServerFacts(api=facts.api, url=facts.url, models=models).learn("api", server="lm-studio")


def _lm_studio_model(ask: Asker, facts: ServerFacts) -> ServerFacts:
    card = first(ask.get("/api/v0/models").json(), "data", id=facts.model)
    return facts.learn(
        "api",
        quantization=text(card, "quantization"),
        context_limit_tokens=positive(card, "loaded_context_length"),
    )


def _card(ask: Asker, model: str | None) -> dict[str, Any]:
    return first(ask.get("/v1/models").json(), "data", id=model)
