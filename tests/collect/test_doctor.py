"""Looking before a long run: what the doctor says, and its exit codes."""

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from collect import doctor as doctor_module
from collect.__main__ import main
from collect.fit import Fit
from collect.forecast import at_least
from collect.oracle import Handler, Model, Oracle, Placement, Request, Script, Speed, answer, llamacpp, ollama, openai
from collect.plan import RunSettings
from collect.schedule import Block, Cell, Unit
from collect.spoilers import Look, round_trip_ms, spoilers
from roofbook.facts import load_facts
from roofbook.theory.limits import Limit
from roofbook.theory.shapes import Range
from roofbook.units import GIB
from roofbook.words import Words, load_words

ROOT = Path(__file__).parents[2]
FAST = Speed(fixed_ms=2, linear_ms=0.01, step_ms=0.5)
QUIET = Look("ac", False, "performance", False, 0.02, 32 * GIB, 20 * GIB, 0, 0, "nominal", "none")

Doctor = Callable[..., tuple[int, str]]


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Call the doctor on a server that answers so, on a quiet machine; return its exit code and what it said."""
    (tmp_path / "mkdocs.yml").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor_module, "look", lambda _facts: QUIET)

    def call(handler: Handler, api: str, *arguments: str, more: str = "", prompt: str = "[64, 400]") -> tuple[int, str]:
        with Oracle(handler) as oracle:
            (tmp_path / "p.yml").write_text(
                f"plan: p\nserver: {{api: {api}, url: '{oracle.url}'{more}}}\nrun: {{repeats: 3, anchor: null}}\n"
                f"experiments:\n  - {{kind: prefill_curve, prompt_tokens: {prompt}, output_tokens: 8}}\n"
            )
            code = main(["doctor", "p.yml", *arguments])
        assert not (tmp_path / "data" / "measured").exists()
        return code, capsys.readouterr().out

    return call


def test_a_plan_that_can_be_measured(doctor: Doctor) -> None:
    """Server, model, memory, time and its basis; exit code 0 and nothing written."""
    code, said = doctor(ollama(Model(FAST)), "ollama")
    assert code == 0
    assert "Model: oracle:1b" in said
    assert "Memory: fits." in said
    assert "by the rate of a short request" in said
    assert "Nothing stands in the way" in said
    assert "!" not in said


def test_in_korean(doctor: Doctor) -> None:
    """The same, in the language asked for."""
    code, said = doctor(ollama(Model(FAST)), "ollama", "--lang", "ko")
    assert code == 0
    assert "메모리: 들어갑니다." in said
    assert "측정을 막는 문제가 없습니다" in said


def test_what_cannot_fit_the_context_is_exit_code_4(doctor: Doctor) -> None:
    """3000 + 8 tokens in a slot of 2048."""
    code, said = doctor(llamacpp(Model(FAST, context_tokens=2048)), "llamacpp", prompt="[64, 3000]")
    assert code == 4
    assert "p3000-o8 is not measured: 3008 tokens do not fit into the server's context of 2048" in said


def test_a_model_that_is_not_there_is_exit_code_2(doctor: Doctor) -> None:
    """And the message names those that are."""
    code, said = doctor(openai(Model(FAST)), "openai", more=", model: gpt-9")
    assert code == 2
    assert "oracle-1b" in said


def test_no_server_is_exit_code_3(doctor: Doctor, tmp_path: Path) -> None:
    """A port where nobody listens."""
    doctor(ollama(Model(FAST)), "ollama")
    plan = (tmp_path / "p.yml").read_text()
    (tmp_path / "q.yml").write_text(plan)  # its server is gone by now
    assert main(["doctor", "q.yml"]) == 3


def test_a_server_that_fails_is_seen_before_the_run(doctor: Doctor) -> None:
    """500 to the short request: exit code 4 and the server's own words."""

    def broken(request: Request) -> Script:
        if request.path == "/completion":
            return answer({"error": {"message": "out of memory"}}, status=500)
        return llamacpp(Model(FAST))(request)

    code, said = doctor(broken, "llamacpp")
    assert code == 4
    assert "A short request failed: http_500 out of memory" in said


def test_a_model_that_lies_partly_on_the_processor_is_said_with_the_context_of_the_run(doctor: Doctor) -> None:
    """65 % on the GPU once it is loaded, and it is loaded with the num_ctx that the plan will be measured with."""
    asked: list[Request] = []
    inner = ollama(Model(FAST), placement=Placement(1_000, 650))

    def handle(request: Request) -> Script:
        asked.append(request)
        return inner(request)

    code, said = doctor(handle, "ollama", more=", options: {num_ctx: 4096}")
    assert code == 0
    assert "! partly on the CPU: Only 65 % of the model was on the GPU." in said
    contexts = [one.json["options"]["num_ctx"] for one in asked if one.path == "/api/generate"]
    assert contexts == [4096, 4096]


def test_more_requests_than_slots_and_unknown_facts_are_said(doctor: Doctor) -> None:
    """What to set: nobody tells the KV type, so it may be stated."""
    _, said = doctor(llamacpp(Model(FAST)), "llamacpp", more=", options: {num_ctx: 4096}")
    assert "The server does not tell kv_cache_type, flash_attention" in said
    assert "p.yml, line 2: num_ctx is not sent" in said


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (QUIET, None),
        (replace(QUIET, power_source="battery"), "It runs on its battery"),
        (replace(QUIET, low_power_mode=True), "Low-power mode is on"),
        (replace(QUIET, governor="powersave"), "The processor's governor is powersave"),
        (replace(QUIET, busy_share=0.5), "Other programs take 50 % of the processor"),
        (replace(QUIET, memory_free_bytes=2 * GIB), "Only 2.00 of 32.0 GiB of memory are free"),
        (replace(QUIET, swap_used_bytes=4 * GIB), "4.00 GiB lie in swap"),
        (replace(QUIET, thermal_level="serious"), "The hardware holds its clocks down (serious)"),
        (replace(QUIET, throttle_reason="hw_thermal_slowdown, gpu_idle"), "(hw_thermal_slowdown)"),
        (replace(QUIET, virtual=True), "It is a virtual machine"),
        (Look(), None),  # unknown is no accusation
        (replace(QUIET, busy_share=0.1, swap_used_bytes=GIB // 2, throttle_reason="gpu_idle"), None),  # everyday
    ],
)
def test_what_spoils_numbers_is_named(look: Look, said: str | None) -> None:
    """One trouble, one sentence; a quiet machine and an unreadable one get none."""
    found = list(spoilers(look, Words("en")))
    if said is None:
        assert found == []
    else:
        (one,) = found
        assert said in one


def test_spoilers_in_korean() -> None:
    """Each sentence is translated."""
    words = load_words(ROOT / "templates" / "locale", "ko", strict=True)
    bad = Look("battery", True, "powersave", True, 0.9, 32 * GIB, GIB, 9 * GIB, 5, "critical", "cpu_thermal")
    assert len(list(spoilers(bad, words))) == 8


def test_a_round_trip_to_this_machine_is_short() -> None:
    """Loopback is under 50 ms even on a busy machine; where nobody listens there is no trip."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        here = round_trip_ms(url)
    assert here is not None
    assert 0 < here < 50
    assert round_trip_ms(url) is None


@pytest.mark.parametrize(
    ("weights", "cache", "fits"),
    [(4, 1, True), (12, 1, False), (8, 0.5, None)],
)
def test_a_budget_fits_or_not_or_nobody_knows(weights: float, cache: float, fits: bool | None) -> None:
    """Of 10 GiB, 1 to 2 are the system's: 4 + 1 + 2 = 7 fit; 12 + 1 + 1 = 14 do not; 8.5 + 1 to 2 = 9.5 to 10.5 may."""
    found = Fit(Range.of(weights * GIB), Range.of(cache * GIB), Limit(Range.of(10 * GIB), "memory"))
    assert found.fits is fits


def test_the_least_time_by_theory() -> None:
    """Qwen2.5 7B on an M4: 4.37 GB a step and 120 GB/s allow 27.5 tokens a second, so 100 x 276 take 1004 s."""
    facts = load_facts(ROOT / "data" / "facts")
    model = facts.model("qwen2.5-7b").model.quantized("Q4_K_M")
    cell = Cell("x", "baseline", "p", 16, 276, 1, 100, RunSettings(warmups=0))
    found = at_least(
        model,
        facts.machine("mac-mini-m4-32gb").machine,
        [Block(None, {}, (Unit(cell, "measured", tuple(range(100))),))],
    )
    assert found is not None
    assert found.basis == "theory"
    assert 1000 < found.total_s < 1100  # beside it 100 prefills of 16 tokens, a step each
