"""Nothing personal passes the scrubber, and nothing else is touched by it."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collect.scrub import HOST, ID, KEY, MAX_LINE, USER, Scrubber, keep_secret, of_this_process

ROOT_HOME = "/" + "root"
"""Where the superuser's files lie: the one home that is in no folder of homes."""

CLEAN = Scrubber(
    users=("jihoon",), hosts=("jihoons-mbp.example.org", "jihoons-mbp"), secrets=("correct-horse-battery",)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # keys, by their form and by what they are called
        ("key sk-proj-abcdefghijklmnop1234", f"key {KEY}"),
        ("hf_AbCdEfGhIjKlMnOpQr in use", f"{KEY} in use"),
        ("ghp_0123456789abcdefABCDEF0123", KEY),
        ("Authorization: Bearer abc.def-123456", f"Authorization: {KEY}"),
        ("authorization: Basic dXNlcjpwYXNz", f"authorization: {KEY}"),
        ("sent Bearer 0123456789abcdef", f"sent Bearer {KEY}"),
        ("--api-key s3cr3t --port 80", f"--api-key {KEY} --port 80"),
        ("--hf-token=s3cr3t -c 1", f"--hf-token={KEY} -c 1"),
        ('{"api_key": "s3cr3t", "n": 1}', '{"api_key": "' + KEY + '", "n": 1}'),
        ("OPENAI_API_KEY=s3cr3t", f"OPENAI_API_KEY={KEY}"),
        ("GET /v1?key=abc123&n=1", f"GET /v1?key={KEY}&n=1"),
        ("http://me:pw@127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123", KEY),
        # what this process knows, wherever it stands
        ("it is correct-horse-battery", f"it is {KEY}"),
        ("jihoon's model, JIHOON", f"{USER}'s model, {USER}"),
        ("model jihoon_tuned-7b", f"model {USER}_tuned-7b"),
        ("on jihoons-mbp.example.org:8080", f"on {HOST}:8080"),
        ("at jihoons-mbp now", f"at {HOST} now"),
        # places
        ("/home/alice/models/a.gguf", "~/models/a.gguf"),
        ("/Users/alice/Library/x", "~/Library/x"),
        (f"path={ROOT_HOME}/x.gguf", "path=~/x.gguf"),
        (r"C:\Users\alice\x.gguf", r"~\x.gguf"),
        ("/private/var/folders/zz/abc_123/T/x", "<tmp>/T/x"),
        ("http://gpu-box:8000/v1", f"http://{HOST}:8000/v1"),
        ("http://192.168.0.12:11434", f"http://{HOST}:11434"),
        ("mac-studio.local answers", f"{HOST} answers"),
        ("mail kim@example.com", f"mail {USER}"),
        # numbers of a machine
        ("Serial Number (system): C02ABC123XYZ", f"Serial Number (system): {ID}"),
        ('"serial_number" : "C02ABC123XYZ"', f'"serial_number" : "{ID}"'),
        ("Hardware UUID: 12345678-1234-1234-1234-123456789ABC", f"Hardware UUID: {ID}"),
        ("GPU-12345678-1234-1234-1234-123456789abc", f"GPU-{ID}"),
        ("00008112-001A2B3C4D5E6F70", ID),
        ("ether a1:b2:c3:d4:e5:f6", f"ether {ID}"),
        # a terminal's escapes and text that turns direction are no text
        ("\x1b[31mred\x1b[0m \u202eabc\x07", "red abc"),
    ],
)
def test_what_is_personal_is_taken_out(text: str, expected: str) -> None:
    """Keys, names, places and numbers of a machine are replaced by what they are."""
    assert CLEAN.text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "qwen2.5:7b",
        "Qwen/Qwen2.5-7B-Instruct-AWQ",
        "qwen2.5-7b-instruct@q4_k_m",
        "sha256-2bada8a7450677000f678be90653b85d364de7db25eb5ea54136ada5f3933730",
        "b9999-0123abc",
        "xllamacpp 2026.10.11549",
        "Ollama 0.33.0-rc2",
        "prompt_tokens: 512, n_tokens = 12, tokens=40",
        "max_tokens=32&seed=1",
        "Basic attention, bearer of news",
        "scikit sk-learn, task-0",
        "AMD EPYC 9354 32-Core Processor",
        "NVIDIA GeForce RTX 4060 Ti",
        "http://127.0.0.1:11434/api/tags and http://localhost:8080",
        "https://github.com/ggml-org/llama.cpp/pull/25655",
        "the serial port, a home for users",
        "n_ctx: 4096\nflash_attn: on",
        "한국어 문장은 그대로",
        "jihoons and jihoonx are other people",
        "12:34:56.789 I srv init",
    ],
)
def test_what_is_not_personal_stays(text: str) -> None:
    """Model names, digests, versions, counts and public addresses pass as they are."""
    assert CLEAN.text(text) == text


def test_common_names_are_no_names() -> None:
    """An account called root or ollama, or a host called mac, does not take ordinary words out."""
    common = Scrubber(users=("root", "ollama", "ab"), hosts=("mac", "localhost"))
    assert common.text("ollama on a mac as root: ab") == "ollama on a mac as root: ab"


def test_json_is_scrubbed_inside_and_out() -> None:
    """Texts at any depth are scrubbed, secrets go by their key, counts of tokens stay."""
    found = CLEAN.json(
        {
            "api_key": "s3cr3t",
            "auth": {"token": "abc", "password": None},
            "paths": ["/home/alice/a", 3],
            "jihoon": 1,
            "max_tokens": 5,
            "total_tokens": "12",
            "tokenizer": "gpt2",
            "share": 0.5,
        }
    )
    assert found == {
        "api_key": KEY,
        "auth": {"token": KEY, "password": None},
        "paths": ["~/a", 3],
        USER: 1,
        "max_tokens": 5,
        "total_tokens": "12",
        "tokenizer": "gpt2",
        "share": 0.5,
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/home/alice/models/qwen2.5-7b-q4_k_m.gguf", "qwen2.5-7b-q4_k_m.gguf"),
        (r"D:\models\alice\m.gguf", "m.gguf"),
        ("models/alice/m.gguf", "m.gguf"),
        ("~/m", "m"),
        ("./work/alice/m", "m"),
        ("work/alice/m", "m"),
        ("qwen2.5:7b", "qwen2.5:7b"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("hf.co/bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M", "hf.co/bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M"),
        ("/data/hub/models--Qwen--Qwen2.5-7B/snapshots/0a1b2c", "Qwen/Qwen2.5-7B"),
        ("/models/jihoon-tuned.gguf", f"{USER}-tuned.gguf"),
        ("", ""),
    ],
)
def test_a_model_keeps_its_base_name(name: str, expected: str) -> None:
    """Of a path only the last part stays; a name in a registry stays whole."""
    assert CLEAN.model_name(name) == expected


def test_a_url_keeps_no_more_than_scheme_host_and_port() -> None:
    """Path, query and user go; a host that is not this machine is not named."""
    assert CLEAN.url("http://me:pw@127.0.0.1:8000/v1?key=abc") == "http://127.0.0.1:8000"
    assert CLEAN.url("https://gpu-box.corp:8443/v1") == f"https://{HOST}:8443"


def test_a_line_is_one_short_line() -> None:
    """A fact that runs over lines becomes one; what is too long is cut, with an ellipsis."""
    assert CLEAN.line("two\n lines\t here") == "two lines here"
    assert CLEAN.line("x" * 1000) == "x" * (MAX_LINE - 1) + "…"


def test_this_process_knows_the_keys_of_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable whose name says that it holds a key is taken out, and the key that a plan names, whatever its name."""
    monkeypatch.setattr("collect.scrub._keys", set[str]())
    monkeypatch.setenv("MY_SPECIAL_KEY", "lowercase words only")
    monkeypatch.setenv("MINE", "another thing")
    of_this_process.cache_clear()
    try:
        keep_secret("another thing")
        assert of_this_process().text("lowercase words only, another thing") == f"{KEY}, {KEY}"
    finally:
        of_this_process.cache_clear()


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("ab!12", "bad key ab!12.", f"bad key {KEY}."),
        ("a1", "a1=a1, but a1b2c3 is a digest", f"{KEY}={KEY}, but a1b2c3 is a digest"),
        # harmless: what people set where nobody looks at it
        ("ollama", "ollama 0.9", "ollama 0.9"),
        ("EMPTY", "an empty answer, EMPTY", "an empty answer, EMPTY"),
        ("lm-studio", "lm-studio", "lm-studio"),
    ],
)
def test_a_key_that_the_plan_names_is_one_however_short(key: str, text: str, expected: str) -> None:
    """A short one goes wherever it stands as a word; a word that is no secret stays."""
    assert Scrubber(keys=(key,)).text(text) == expected


@pytest.mark.parametrize("planted", ["zz9plain.alicepass!0042", "sk-abcdefghijklmnop1234", "correct-horse-battery"])
def test_a_cut_leaves_no_half_of_a_key(planted: str) -> None:
    """Wherever the cut of a long line goes through a key, by its form or known, no eight characters of it stay."""
    clean = Scrubber(secrets=("correct-horse-battery",), keys=("zz9plain.alicepass!0042",))
    for before in range(3_972, 4_000, 5):
        found = clean.text("y" * (before - 1) + " " + planted + " tail")
        assert not any(planted[n : n + 8] in found for n in range(len(planted) - 7))


def test_a_line_without_end_takes_no_time() -> None:
    """A megabyte without a space is cut, not looked at for ever; lines after it stay."""
    begun = time.monotonic()
    found = CLEAN.text("a.b-c" * 200_000 + "\nlast line of /home/alice")
    assert time.monotonic() - begun < 2
    assert found.endswith("\nlast line of ~")
    assert len(found) < 10_000


SECRETS = ("correct-horse-battery", "jihoon", "/home/alice", "/Users/alice")


@given(st.lists(st.sampled_from([*SECRETS, "model", "7b", "\n", ":", "/", "x=1", "gguf"]), min_size=1, max_size=8))
def test_planted_secrets_never_pass(parts: list[str]) -> None:
    """However they are put together, no key, user or home path comes through, and scrubbing twice changes nothing."""
    once = CLEAN.text(" ".join(parts))
    assert not any(secret in once for secret in SECRETS)
    assert CLEAN.text(once) == once
    assert not any(secret in json.dumps(CLEAN.json({"a": [" ".join(parts)]})) for secret in SECRETS)
