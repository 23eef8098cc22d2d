"""Servers are asked what they are and what they run; answers are in their documented formats, written here."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collect import server
from collect.client.lookup import Answer
from collect.oracle import (
    Handler,
    Model,
    Oracle,
    Placement,
    Request,
    Script,
    always,
    answer,
    llamacpp,
    ollama,
    openai,
    routes,
    text,
)
from collect.scrub import Scrubber
from collect.server import ListedModel, ServerFacts
from collect.server.recognise import base_url
from roofbook.errors import ModelError, RoofbookError, ServerError
from roofbook.record import RunFacts, to_table

GIB = 2**30


def props(slots: int, context: int) -> dict[str, Any]:
    return {
        "total_slots": slots, "default_generation_settings": {"n_ctx": context},
        "model_path": "/home/alice/m-q4_k_m.gguf",
        "model_alias": "m", "model_ftype": "Q4_K - Medium", "build_info": "b6500-0123abc",
    }  # fmt: skip


def looked_at(handler: Handler, **wanted: Any) -> ServerFacts:
    with Oracle(handler) as oracle:
        return server.inspect(oracle.url, **wanted)


# ---- each kind of server


def test_ollama_tells_most() -> None:
    """Version, digest, quantization, context and place come from its API, with their source."""
    facts = looked_at(ollama(Model(context_tokens=4096)))
    row = facts.columns(Scrubber())
    assert json.loads(row.pop("sources")) == {
        "server": "api", "server_version": "api", "model_digest": "api", "quantization": "api",
        "context_limit_tokens": "api", "gpu_fraction": "api",
    }  # fmt: skip
    assert row == {
        "api": "ollama", "server": "ollama", "server_version": "0.33.0", "model": "oracle:1b",
        "model_digest": "0123456789abcdef" * 4, "quantization": "Q4_0", "weights_bytes": None, "kv_cache_type": None,
        "flash_attention": None, "context_limit_tokens": 4096, "parallel_slots": None, "gpu_fraction": 1.0,
        "server_options": "{}", "host_is_server": True,
    }  # fmt: skip
    assert facts.reading is not None
    assert facts.reading.model.hidden == 2048


def test_ollama_before_its_model_is_loaded() -> None:
    """Context and place are unknown then, and not the model's largest context."""
    facts = looked_at(ollama(Model(loaded=False)))
    assert (facts.context_limit_tokens, facts.gpu_fraction) == (None, None)
    assert facts.models == (ListedModel("oracle:1b", 600_000_000, loaded=False, digest="0123456789abcdef" * 4),)


@pytest.mark.parametrize(
    ("size", "size_vram", "expected"),
    [
        (21474836480, 13958643712, 0.65),  # 13 of 20 GiB
        (21474836480, 21474836480, 1.0),
        (21474836480, 0, 0.0),
        (21474836480, None, None),  # the field is absent: unknown, not zero
        (0, 0, None),
        (1000, 2000, None),  # more than all of it: no share
        (21474836480, -1, None),
    ],
)
def test_b10_the_share_on_the_gpu(size: int, size_vram: int | None, expected: float | None) -> None:
    """B10: the share of the bytes that lie on the GPU; where it is not told, it is unknown."""
    assert looked_at(ollama(placement=Placement(size, size_vram))).gpu_fraction == expected


def test_llamacpp_tells_its_slots() -> None:
    """/props and /v1/models: slots, the context of one, the exact bytes; the path of its file stays there."""
    meta = {"n_params": 7_615_616_512, "size": 4_677_120_000, "n_embd": 3584, "n_vocab": 152_064, "n_ctx_train": 32768}
    facts = looked_at(
        routes(
            {
                "/props": answer(props(4, 2048)),
                "/v1/models": answer({"object": "list", "data": [{"id": "m", "owned_by": "llamacpp", "meta": meta}]}),
            }
        )
    )
    assert (facts.api, facts.server, facts.server_version) == ("llamacpp", "llama.cpp", "b6500-0123abc")
    assert (facts.parallel_slots, facts.context_limit_tokens, facts.weights_bytes) == (4, 2048, 4_677_120_000)
    assert facts.quantization == "Q4_K - Medium"
    assert "alice" not in json.dumps(facts.as_json(Scrubber()))


def test_b38_the_context_is_one_slots() -> None:
    """B38: 8192 in four slots is 2048 each, as /props says; nothing is divided a second time."""
    facts = looked_at(routes({"/props": answer(props(4, 2048)), "/v1/models": answer({"data": [{"id": "m"}]})}))
    assert (facts.context_limit_tokens, facts.parallel_slots) == (2048, 4)


def test_llamacpp_behind_a_key_is_still_known() -> None:
    """With --api-key set /props is closed; the list of models says whose it is, and the rest stays unknown."""
    listed = answer({"data": [{"id": "m", "owned_by": "llamacpp"}]})
    facts = looked_at(routes({"/props": answer({"error": {"code": 401}}, status=401), "/v1/models": listed}))
    assert (facts.server, facts.model, facts.parallel_slots, facts.server_version) == ("llama.cpp", "m", None, None)


def test_the_key_is_sent() -> None:
    """A server that wants a key gets it; without it the message says where to name it."""

    def guarded(request: Request) -> Script:
        if request.headers.get("authorization") != "Bearer s3cr3t":
            return answer({"error": "unauthorized"}, status=401)
        return openai()(request)

    with Oracle(guarded) as oracle:
        assert server.inspect(oracle.url, key="s3cr3t").model == "oracle-1b"
        with pytest.raises(ServerError) as refused:
            server.inspect(oracle.url)
        assert refused.value.message.startswith("The server at %(url)s wants a key: name its environment variable")


VLLM_METRICS = (
    "# TYPE vllm:cache_config_info gauge\n"
    'vllm:cache_config_info{block_size="16",cache_dtype="fp8",calculate_kv_scales="False",enable_prefix_caching="True",'
    'gpu_memory_utilization="0.92",num_gpu_blocks="3076",sliding_window="None",user="/home/alice"} 1.0\n'
)


def test_vllm_tells_its_cache() -> None:
    """/version, max_model_len of the model's card and cache_config_info of /metrics."""
    card = {"id": "Qwen/Qwen2.5-7B-Instruct-AWQ", "owned_by": "vllm", "root": "/home/alice/m", "max_model_len": 8192}
    facts = looked_at(
        routes(
            {
                "/version": answer({"version": "0.32.0"}),
                "/v1/models": answer({"object": "list", "data": [card]}),
                "/metrics": text(VLLM_METRICS),
            }
        )
    )
    assert (facts.api, facts.server, facts.server_version) == ("openai", "vllm", "0.32.0")
    assert (facts.context_limit_tokens, facts.kv_cache_type, facts.parallel_slots) == (8192, "fp8", None)
    assert facts.server_options == {
        "block_size": "16", "cache_dtype": "fp8", "enable_prefix_caching": "True", "gpu_memory_utilization": "0.92",
        "num_gpu_blocks": "3076", "sliding_window": "None",
    }  # fmt: skip


def test_vllms_automatic_type_is_unknown() -> None:
    """cache_dtype="auto" is the model's own type, which it does not tell."""
    metrics = VLLM_METRICS.replace('"fp8"', '"auto"')
    listed = answer({"data": [{"id": "m", "owned_by": "vllm"}]})
    facts = looked_at(routes({"/v1/models": listed, "/metrics": text(metrics)}))
    assert (facts.kv_cache_type, facts.server_options["cache_dtype"]) == (None, "auto")


def test_sglang_tells_its_arguments() -> None:
    """/get_server_info holds all arguments, its key and its paths among them: a few are kept."""
    info = {
        "version": "0.5.4", "model_path": "/home/alice/m", "api_key": "sk-0123456789abcdef", "host": "gpu-box",
        "kv_cache_dtype": "fp8_e5m2", "context_length": 16384, "quantization": "awq", "tp_size": 1,
        "mem_fraction_static": 0.87, "disable_radix_cache": False, "max_total_num_tokens": 123_456,
    }  # fmt: skip
    card = {"id": "m", "owned_by": "sglang", "max_model_len": 16384}
    facts = looked_at(routes({"/get_server_info": answer(info), "/v1/models": answer({"data": [card]})}))
    assert (facts.server, facts.server_version, facts.context_limit_tokens) == ("sglang", "0.5.4", 16384)
    assert (facts.kv_cache_type, facts.quantization) == ("fp8_e5m2", "awq")
    assert facts.server_options == {
        "tp_size": 1, "mem_fraction_static": 0.87, "disable_radix_cache": False, "max_total_num_tokens": 123_456,
    }  # fmt: skip


def studio_card(name: str, kind: str, state: str, **rest: Any) -> dict[str, Any]:
    return {
        "id": name, "object": "model", "type": kind, "publisher": "p", "arch": "qwen2", "compatibility_type": "gguf",
        "quantization": "Q4_K_M", "state": state, "max_context_length": 32768, **rest,
    }  # fmt: skip


def test_lm_studio_tells_what_is_loaded() -> None:
    """/api/v0/models: the loaded model is taken, embedding models are none, and its context is the loaded one."""
    cards = [
        studio_card("text-embedding-nomic", "embeddings", "loaded"),
        studio_card("a-7b", "llm", "not-loaded"),
        studio_card("b-7b", "llm", "loaded", loaded_context_length=8192),
    ]
    listed = [{"id": card["id"], "object": "model", "owned_by": "organization_owner"} for card in cards]
    facts = looked_at(
        routes({"/api/v0/models": answer({"data": cards}), "/v1/models": answer({"object": "list", "data": listed})})
    )
    assert facts.models == (ListedModel("a-7b", loaded=False), ListedModel("b-7b", loaded=True))
    assert (facts.server, facts.model, facts.quantization) == ("lm-studio", "b-7b", "Q4_K_M")
    assert facts.context_limit_tokens == 8192


def test_mlx_lm_is_known_by_its_plain_server() -> None:
    """Its cards have no owner, and it is Python's own http.server."""
    listed = answer(
        {"object": "list", "data": [{"id": "mlx-community/Qwen2.5-7B-4bit", "object": "model", "created": 1}]}
    )
    plain = Script(listed.pieces, content_type=listed.content_type, headers={"Server": "BaseHTTP/0.6 Python/3.12.4"})
    facts = looked_at(routes({"/v1/models": plain}))
    assert (facts.server, facts.api, facts.model) == ("mlx_lm", "openai", "mlx-community/Qwen2.5-7B-4bit")


def mlx_lm_without_list(**more: Any) -> Handler:
    """mlx_lm.server before anything was downloaded: its list of models dies after it has said 200."""
    table = {
        "/v1/models": Script(content_type="application/json", framing="eof", headers={"Server": "BaseHTTP/0.6"}),
        "/health": answer({"status": "ok"}),
    }
    return routes({**table, **more})


def test_mlx_lm_is_known_where_its_list_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its model is the plan's, else that of its process line, else the name for the one it was started with."""
    assert (facts := looked_at(mlx_lm_without_list(), model="mlx-community/m")).server == "mlx_lm"
    assert [one.name for one in facts.models] == [facts.model] == ["mlx-community/m"]
    assert looked_at(mlx_lm_without_list()).model == "default_model"
    monkeypatch.setattr("collect.server.process.mlx_lm_model", lambda _port: "/home/alice/tiny")
    started = looked_at(mlx_lm_without_list())
    assert (started.model, started.columns(Scrubber())["model"]) == ("/home/alice/tiny", "tiny")


def test_an_empty_answer_alone_is_no_mlx_lm() -> None:
    """Something else of Python's that answers with nothing has no /health that says ok."""
    with pytest.raises(ServerError):
        looked_at(mlx_lm_without_list(**{"/health": answer({}, status=404)}))


@pytest.mark.parametrize(
    ("owner", "expected"),
    [("tensorrt_llm", "tensorrt-llm"), ("Triton Inference Server", "triton"), ("somebody", None)],
)
def test_others_are_known_by_the_owner_they_write(owner: str, expected: str | None) -> None:
    """TensorRT-LLM and Triton name themselves; a stranger is an OpenAI server and nothing more."""
    facts = looked_at(routes({"/v1/models": answer({"data": [{"id": "m", "owned_by": owner}]})}))
    assert (facts.api, facts.server, facts.server_version) == ("openai", expected, None)


def test_a_front_without_a_list_of_models() -> None:
    """Somebody's own front: under api: openai with its path there, and under api: sse, the plan's word is all."""
    own = routes({"/v1/chat/completions": answer({"detail": "Method Not Allowed"}, status=405)})
    facts = looked_at(own, api="openai", model="mine", stated={"kv_cache_type": "q8_0"})
    assert (facts.api, facts.model, facts.server, facts.kv_cache_type) == ("openai", "mine", None, "q8_0")
    assert looked_at(own, api="sse", model="mine").api == "sse"


# ---- what is at an address, and what is not


def test_the_port_says_nothing() -> None:
    """Each is asked what it is; three servers at any ports are found, in the ports' order, and a web page is none."""
    page = always(text("<html>hello</html>", content_type="text/html"))
    with Oracle(ollama()) as first, Oracle(page) as second, Oracle(llamacpp()) as third, Oracle(openai()) as fourth:
        ports = [int(one.url.rsplit(":", 1)[1]) for one in (third, second, first, fourth)]
        found = server.find([*ports, 9])
    assert [(one.server, one.api) for one in found] == [
        ("llama.cpp", "llamacpp"),
        ("ollama", "ollama"),
        (None, "openai"),
    ]


@pytest.mark.parametrize(
    "script",
    [
        text("<html>hello</html>", content_type="text/html"),
        answer([1, 2]),
        answer({"version": "1.0"}),  # something with a version is no Ollama
        answer({"data": "none"}),
        answer({"error": "x"}, status=500),
        text("", status=204),
    ],
)
def test_something_else_answers(script: Script) -> None:
    """A port with something else behind it gives one clear message."""
    with Oracle(always(script)) as oracle, pytest.raises(ServerError) as refused:
        server.inspect(oracle.url)
    assert refused.value.message.startswith("Something answers at %(url)s, but it is no LLM server")
    assert refused.value.values == {"url": oracle.url}


def test_nothing_answers() -> None:
    """No server: the message says where, and what to do; a key in the address is not repeated."""
    with pytest.raises(ServerError) as refused:
        server.inspect("http://me:pw@127.0.0.1:9/v1")
    expected = (
        "No server answers at http://127.0.0.1:9. Start it, or leave out server.url to look for one on this machine"
    )
    assert str(refused.value) == expected


def test_something_listens_and_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that hangs is told apart from one that is not there."""
    monkeypatch.setattr("collect.server.ask.Asker.__init__.__kwdefaults__", {"timeout_s": 0.2})
    with Oracle(always(Script(ending="stall", head_at_ms=60_000))) as oracle, pytest.raises(ServerError) as refused:
        server.inspect(oracle.url)
    assert refused.value.message.startswith("Something listens at %(url)s, but does not answer")


def test_b32_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """B32: HTTP_PROXY does not come between us and a server on this machine."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert looked_at(ollama()).server == "ollama"


@pytest.mark.parametrize("api", ["ollama", "llamacpp"])
def test_an_api_that_the_server_does_not_speak(api: server.Api) -> None:
    """The message says which one it does speak."""
    with Oracle(openai()) as oracle, pytest.raises(ServerError) as refused:
        server.inspect(oracle.url, api=api)
    assert refused.value.values["right"] == "openai"


def test_ollama_may_be_measured_through_openais_api() -> None:
    """The API is the plan's choice; what the server tells of itself is still used."""
    facts = looked_at(ollama(), api="openai")
    assert (facts.api, facts.server, facts.quantization) == ("openai", "ollama", "Q4_0")


def test_absurd_answers_are_unknown() -> None:
    """Negative, huge, fractional and wrongly typed facts are null; a zero context is no context."""
    bad = {"total_slots": -4, "default_generation_settings": {"n_ctx": 0}, "model_ftype": 7, "build_info": ["x"]}
    meta = {"size": 2**70, "n_params": "many"}
    listed = answer({"data": [{"id": "m", "owned_by": "llamacpp", "meta": meta}, "no card", {"id": 5}]})
    facts = looked_at(routes({"/props": answer(bad), "/v1/models": listed}))
    assert (facts.parallel_slots, facts.context_limit_tokens, facts.quantization) == (None, None, None)
    assert (facts.weights_bytes, facts.server_version, len(facts.models)) == (None, None, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PATHS = ("/", "/props", "/v1/models", "/api/version", "/api/tags", "/api/ps", "/api/show", "/api/v0/models", "/metrics",
         "/version", "/get_server_info", "/health")  # fmt: skip


def truths() -> dict[str, Any]:
    """Good answers of all kinds of servers at once, by path."""
    card = {"id": "m", "owned_by": "llamacpp", "max_model_len": 9, "meta": {"size": 5, "n_embd": 3}}
    entry = {
        "name": "m:latest",
        "size": 5,
        "size_vram": 5,
        "digest": "0" * 64,
        "details": {"quantization_level": "Q4_0"},
    }
    return {
        "/props": props(4, 2048), "/v1/models": {"data": [card]}, "/api/version": {"version": "1"},
        "/api/tags": {"models": [entry]}, "/api/ps": {"models": [entry]}, "/version": {"version": "1"},
        "/api/show": {"model_info": {"general.architecture": "llama", "llama.block_count": 2}},
        "/get_server_info": {"version": "1", "tp_size": 1}, "/api/v0/models": {"data": []},
    }  # fmt: skip


def with_a_hole(value: Any, hole: Any, at: int) -> tuple[Any, int]:
    """Put *hole* in the place of the *at*-th value inside *value*."""
    if at == 0:
        return hole, -1
    at -= 1
    if isinstance(value, dict):
        made = dict(value)
        for name in value:
            made[name], at = with_a_hole(value[name], hole, at)
            if at < 0:
                return made, at
        return made, at
    if isinstance(value, list):
        copy = list(value)
        for n, inner in enumerate(value):
            copy[n], at = with_a_hole(inner, hole, at)
            if at < 0:
                return copy, at
        return copy, at
    return value, at


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    without=st.sets(st.sampled_from(PATHS), max_size=6),
    broken=st.sampled_from(PATHS),
    hole=JSON,
    at=st.integers(0, 12),
    greeting=st.booleans(),
)
def test_whatever_a_server_answers(
    monkeypatch: pytest.MonkeyPatch, without: set[str], broken: str, hole: Any, at: int, greeting: bool
) -> None:
    """Answers missing, and any value of any of them replaced: an error of ours, or facts that fit the contract."""
    told = {path: body for path, body in truths().items() if path not in without}
    if broken in told:
        told[broken], _ = with_a_hole(told[broken], hole, at)

    def ask(_method: str, _url: str, path: str, *_rest: Any) -> Answer:
        if path == "/":
            return Answer(200, "Ollama is running" if greeting else "")
        return Answer(200, json.dumps(told[path])) if path in told else Answer(404)

    monkeypatch.setattr("collect.client.lookup._ask", ask)
    with contextlib.suppress(RoofbookError):
        facts = server.inspect("http://127.0.0.1:9")
        row = facts.columns()
        assert to_table([row], RunFacts("run")).num_rows == 1
        assert json.loads(json.dumps(facts.as_json(), allow_nan=False))["api"] == facts.api


# ---- which model


LISTED = {
    "models": [
        {"name": "big:70b", "size": 40 * GIB, "digest": "a"},
        {"name": "small:1b", "size": GIB, "digest": "b"},
        {"name": "llama3.2:latest", "size": 2 * GIB, "digest": "c"},
    ]
}


def of_ollama(running: list[dict[str, Any]]) -> Handler:
    return routes(
        {
            "/": text("Ollama is running"),
            "/api/version": answer({"version": "0.12.0"}),
            "/api/tags": answer(LISTED),
            "/api/ps": answer({"models": running}),
        }
    )


def test_the_loaded_model_is_taken_else_the_smallest() -> None:
    """Without a name: what is loaded, whatever its size; with nothing loaded, the smallest."""
    assert looked_at(of_ollama([{"name": "big:70b"}])).model == "big:70b"
    assert looked_at(of_ollama([])).model == "small:1b"


def test_what_cannot_be_measured_here_is_not_taken() -> None:
    """A model of Ollama's cloud is a few bytes here, and an embedding model writes no text."""
    remote = {"name": "gpt-oss:120b-cloud", "size": 384, "remote_host": "https://ollama.com:443"}
    embedding = {"name": "nomic-embed-text:latest", "size": 274_302_450, "details": {"family": "nomic-bert"}}
    handler = routes(
        {
            "/": text("Ollama is running"),
            "/api/version": answer({"version": "0.12.0"}),
            "/api/tags": answer({"models": [remote, embedding, *LISTED["models"]]}),
            "/api/ps": answer({"models": []}),
        }
    )
    assert looked_at(handler).model == "small:1b"


def test_a_name_without_a_tag_means_latest() -> None:
    """As Ollama has it: llama3.2 is llama3.2:latest."""
    assert looked_at(of_ollama([]), model="llama3.2").model == "llama3.2:latest"


def test_a_model_that_is_not_there() -> None:
    """The message names those that are there, and of Ollama what to type."""
    with pytest.raises(ModelError) as refused:
        looked_at(of_ollama([]), model="qwen2.5:7b")
    assert str(refused.value).endswith(
        "does not have the model 'qwen2.5:7b'. It has: big:70b, small:1b, llama3.2:latest. "
        "To add it: ollama pull qwen2.5:7b"
    )


def test_a_server_without_models() -> None:
    """An empty list of models says so; of an Ollama just installed, with the command that fills it."""
    fresh = routes({"/": text("Ollama is running"), "/api/version": answer({"version": "0.12.0"}),
                    "/api/tags": answer({"models": []}), "/api/ps": answer({"models": []})})  # fmt: skip
    with pytest.raises(ModelError) as refused:
        looked_at(fresh, model="qwen2.5:7b")
    assert str(refused.value).endswith("has no model. Add one: ollama pull qwen2.5:7b")
    with pytest.raises(ModelError) as refused:
        looked_at(routes({"/v1/models": answer({"object": "list", "data": []})}))
    assert refused.value.message.startswith("The server at %(url)s has no model")


# ---- what the plan states


def test_what_is_stated_fills_gaps_and_overrides_nobody() -> None:
    """A stated fact stands where nobody else told it, marked as such; where the server says otherwise, that is kept."""
    facts = looked_at(ollama(), stated={"kv_cache_type": "q8_0", "quantization": "Q8_0", "context": 5})
    assert (facts.kv_cache_type, facts.sources["kv_cache_type"]) == ("q8_0", "stated")
    assert (facts.quantization, facts.sources["quantization"]) == ("Q4_0", "api")
    assert facts.disputed == {"quantization": "Q8_0"}


def test_what_is_stated_and_true_is_no_dispute() -> None:
    """The same word twice is one fact, and the server's."""
    facts = looked_at(ollama(), stated={"quantization": "Q4_0"})
    assert (facts.disputed, facts.sources["quantization"]) == ({}, "api")


# ---- nothing personal


PLANTED = ("sk-0123456789abcdef", "jihoon", "/home/jihoon", "/Users/jihoon", "C02ABC123XYZ", "jihoons-mbp")
CLEAN = Scrubber(users=("jihoon",), hosts=("jihoons-mbp",))


def poisoned(value: Any) -> Any:
    """Every text of an answer, with all that must not be kept around it."""
    if isinstance(value, dict):
        return {name: poisoned(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [poisoned(inner) for inner in value]
    if isinstance(value, str):
        return f"/home/jihoon/jihoons-mbp/api_key=sk-0123456789abcdef Serial Number: C02ABC123XYZ /Users/jihoon/{value}"
    return value


@pytest.mark.parametrize("handler", [ollama(), llamacpp(), openai()])
def test_nothing_personal_is_kept_of_any_answer(handler: Handler) -> None:
    """With a key, a user, a host, a serial number and home paths in every text that the server sends, none is kept."""

    def poisoning(request: Request) -> Script:
        script = handler(request)
        if script.content_type != "application/json":
            return script
        body = json.loads(b"".join(piece.data for piece in script.pieces))
        if "data" in body:  # the owner of a model is how llama.cpp is known
            body = {"data": [{**poisoned(card), "owned_by": card.get("owned_by")} for card in body["data"]]}
            return answer(body)
        return answer(poisoned(body), status=script.status)

    with Oracle(poisoning) as oracle:
        facts = server.inspect(oracle.url)
    kept = json.dumps([facts.columns(CLEAN), facts.as_json(CLEAN)])
    assert facts.model is not None
    assert not [planted for planted in PLANTED if planted in kept]


# ---- its address


@pytest.mark.parametrize(
    "written",
    ["{url}", "{url}/", "{url}/v1", "{url}/v1/", "{url}/v1/chat/completions", "{url}/api/generate", "{url}/api/chat"],
)
def test_an_address_copied_with_its_path_is_the_same_server(written: str) -> None:
    """People copy what an example of curl has; each API adds its own path to the address."""
    with Oracle(ollama()) as oracle:
        assert server.inspect(written.format(url=oracle.url)).url == oracle.url


def test_a_front_below_a_path_of_its_own_keeps_it() -> None:
    """https://HOST/api/v1 is an API below /api; only the last part is the API's."""
    assert base_url("https://example.org/api/v1") == "https://example.org/api"
    assert base_url("example.org:8000") == "http://example.org:8000"


def test_the_address_that_a_server_listens_on_is_this_machine() -> None:
    """0.0.0.0, as OLLAMA_HOST has it: its facts are this host's."""
    with Oracle(ollama()) as oracle:
        assert server.inspect(oracle.url.replace("127.0.0.1", "0.0.0.0")).host_is_server is True
