"""A process line gives the flags of an allow-list, and nothing else of it survives."""

import json
import socket
from dataclasses import asdict

import pytest

from collect.server import process
from collect.server.flags import ProcessFlags, read_flags


def words(*lines: str) -> list[str]:
    return " ".join(lines).split()


# Ollama 0.30 and later start llama.cpp's own server.
OLLAMA_LINE = words(
    "/opt/ollama/lib/llama-server --model /home/alice/.ollama/models/blobs/sha256-2bada8a7 --port 51234",
    "--no-webui -c 16384 -np 1 -b 512 -ub 512 --cache-type-k q8_0 --cache-type-v q8_0 --flash-attn on",
    "--api-key sk-secret-0123456789",
)
# The runner before it, whose --flash-attn takes no value.
OLD_RUNNER_LINE = words(
    "/usr/local/bin/ollama runner --ollama-engine --model /home/alice/x --ctx-size 32768 --batch-size 512",
    "--n-gpu-layers 65 --threads 12 --flash-attn --kv-cache-type q8_0 --parallel 1 --port 34567",
)
VLLM_LINE = words(
    "python -m vllm.entrypoints.openai.api_server --model /home/alice/m --kv-cache-dtype fp8",
    "--max-model-len=8192 --max-num-seqs 16 --gpu-memory-utilization 0.9 --api-key token-abc",
    "--enable-prefix-caching --served-model-name bob",
)


def test_ollamas_runner_line() -> None:
    """What Ollama's llama-server was started with: KV type, flash attention, context, slots, batches."""
    assert dict(read_flags(OLLAMA_LINE).values) == {
        "context_tokens": 16384,
        "parallel_slots": 1,
        "batch_tokens": 512,
        "ubatch_tokens": 512,
        "cache_type_k": "q8_0",
        "cache_type_v": "q8_0",
        "flash_attention": "on",
    }


def test_the_older_runners_line() -> None:
    """A bare --flash-attn means on; the flag that follows it is not its value."""
    flags = read_flags(OLD_RUNNER_LINE)
    assert (flags.kv_cache_type, flags.flash_attention, flags.integer("parallel_slots")) == ("q8_0", "on", 1)


def test_vllms_line() -> None:
    """vLLM's flags, with = and without; its key and its names are gone."""
    assert dict(read_flags(VLLM_LINE).values) == {
        "kv_cache_type": "fp8",
        "max_model_len": 8192,
        "max_num_seqs": 16,
        "gpu_memory_utilization": 0.9,
        "prefix_caching": True,
    }


@pytest.mark.parametrize("line", [OLLAMA_LINE, OLD_RUNNER_LINE, VLLM_LINE])
def test_no_key_name_or_path_of_a_line_is_kept(line: list[str]) -> None:
    """Nothing that was planted in the line is in what is kept of it."""
    kept = json.dumps(asdict(read_flags(line, {"OPENAI_API_KEY": "sk-env", "LLAMA_ARG_MODEL": "/home/alice/m"})))
    assert not any(planted in kept for planted in ("alice", "secret", "token-abc", "sk-", "bob", "sha256", "51234"))


@pytest.mark.parametrize("value", ["/home/alice", "sk-0123456789abcdef", "alice", "99999999999999", "-3", "1e3", ""])
def test_a_value_of_another_form_is_no_value(value: str) -> None:
    """An allowed flag with anything but a number or a known word is left out."""
    line = ["llama-server", "--cache-type-k", value, "--ctx-size", value, f"--parallel={value}", "--dtype", value]
    assert dict(read_flags(line).values) == {}


def test_one_letter_means_something_else_elsewhere() -> None:
    """-c, -t and -b are llama.cpp's; another program's are not read."""
    assert dict(read_flags(["pytest", "-c", "3", "-t", "4", "-q", "awq"]).values) == {}


# B42: the effective type with its source; unknown stays unknown


def test_b42_an_absent_flag_is_the_default_only_where_all_was_seen() -> None:
    """f16 is llama.cpp's default when neither its line nor its environment says otherwise; unseen, it is unknown."""
    line = ["llama-server", "-m", "m.gguf"]
    assert (read_flags(line).kv_cache_type, read_flags(line).flash_attention) == (None, None)
    seen = read_flags(line, {"PATH": "/bin"})
    assert (seen.kv_cache_type, seen.flash_attention) == ("f16", "auto")


def test_b42_the_environment_decides_where_the_line_is_silent() -> None:
    """LLAMA_ARG_CACHE_TYPE_K and its like count; a flag on the line overrides them."""
    environment = {"LLAMA_ARG_CACHE_TYPE_K": "q8_0", "LLAMA_ARG_CACHE_TYPE_V": "q8_0", "LLAMA_ARG_FLASH_ATTN": "1"}
    flags = read_flags(["llama-server"], environment)
    assert (flags.kv_cache_type, flags.flash_attention) == ("q8_0", "on")
    assert read_flags(["llama-server", "-ctv", "q4_0"], environment).kv_cache_type == "q8_0/q4_0"


def test_b42_another_program_has_no_known_default() -> None:
    """What Ollama's old runner or vLLM do by default is not assumed; vLLM's "auto" is the model's type, untold."""
    assert read_flags(["ollama", "runner", "--port", "1"], {}).kv_cache_type is None
    assert read_flags(["vllm", "--kv-cache-dtype", "auto"], {}).kv_cache_type is None


def test_this_process_is_found_by_the_port_it_listens_on() -> None:
    """The listener of a port is found, and this test's own line has none of the flags."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        found = process.of_port(port)
    assert found == ProcessFlags({}, complete=True, is_llama_server=False)


def test_a_port_where_nobody_listens_has_no_process() -> None:
    """No listener, no flags."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # held, so that nobody else takes it, but not listening
        assert process.of_port(bound.getsockname()[1]) is None
