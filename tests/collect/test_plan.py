"""A plan file becomes a plan, or every fault of it is named with its line and key."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collect.plan import Anchor, Experiment, Plan, PlanFaults, RunSettings, ServerWanted, load_plan, read_plan
from collect.plan.resolve import context_for, resolve
from roofbook.errors import PlanError

SMALLEST = "plan: x\nexperiments:\n  - {kind: baseline, prompt_tokens: 128}\n"


def faults_of(text: str) -> list[str]:
    with pytest.raises(PlanFaults) as caught:
        read_plan(text, "p.yml")
    return [str(fault) for fault in caught.value.faults]


def test_smallest_plan_has_the_defaults_of_the_contract() -> None:
    """What a plan leaves out is what the contract shows: shuffled, one warm-up, five repeats, an anchor of 512 + 32."""
    run = RunSettings("shuffled", None, 1, 5, 0.0, 600.0, "fresh", Anchor(512, 32, 10))
    assert read_plan(SMALLEST, "p.yml") == Plan(
        plan="x",
        machine="this",
        server=ServerWanted("auto", None, None, None, {}, {}),
        run=run,
        slo=None,
        experiments=(Experiment("baseline", "baseline", (128,), 32, run, None, {}),),
    )


def test_experiment_overrides_run_model_and_options() -> None:
    """An experiment's own keys win over those of run and server; options are merged, its anchor may be switched off."""
    plan = read_plan(
        "plan: x\n"
        "server: {api: ollama, model: a:1b, options: {num_ctx: 4096, top_k: 1}}\n"
        "run: {repeats: 4, seed: 7}\n"
        "experiments:\n"
        "  - {kind: baseline, prompt_tokens: 32, model: b:2b, options: {num_ctx: 8192}, repeats: 2, anchor: null}\n"
        "  - {kind: baseline, prompt_tokens: 64}\n",
        "p.yml",
    )
    first, second = plan.experiments
    assert (first.model, first.options, first.run.repeats, first.run.seed, first.run.anchor) == (
        "b:2b", {"num_ctx": 8192, "top_k": 1}, 2, 7, None,
    )  # fmt: skip
    assert (second.name, second.model, second.run.repeats, second.run.anchor) == ("baseline-2", "a:1b", 4, Anchor())


def test_b55_yaml_surprises_are_named_with_their_line_and_key() -> None:
    """B55: duplicate key, 1e3, on, an unquoted version, 1:30, 010, 8_192 and a misspelt key: each with line and key."""
    text = (
        "plan: x\n"  # 1
        "server:\n"  # 2
        "  stated: {server_version: 3.10, flash_attention: on}\n"  # 3
        "run:\n"  # 4
        "  repeats: 3\n"  # 5
        "  timeout_s: 1e3\n"  # 6
        "  pause_s: 1:30\n"  # 7
        "  repeat: 5\n"  # 8
        "  repeats: 5\n"  # 9
        "experiments:\n"  # 10
        "  - {kind: baseline, prompt_tokens: [010, 8_192]}\n"  # 11
    )
    found = faults_of(text)
    wanted = [
        ("line 3", "flash_attention: on", "true"),
        ("line 3", "server_version: 3.10", '"3.10"'),
        ("line 6", "timeout_s: 1e3", "1000"),
        ("line 7", "pause_s: 1:30", "90"),
        ("line 8", "run.repeat", "repeats"),
        ("line 9", "repeats", "line 5"),
        ("line 11", "prompt_tokens: 010", "10"),
        ("line 11", "prompt_tokens: 8_192", "8192"),
    ]
    assert len(found) == len(wanted)
    for (line, key, way_out), message in zip(wanted, found, strict=True):
        assert line in message
        assert key in message
        assert way_out in message


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("run: {repeats: [3]}", "run.repeats"),
        ("run: {repeats: true}", "run.repeats"),
        ('run: {repeats: "3"}', "run.repeats"),
        ("run: {repeats: 3.5}", "run.repeats"),
        ("run: {repeats: 0}", "run.repeats"),
        ("run: {repeats: -1}", "run.repeats"),
        ("run: {repeats: 0x10}", "repeats"),
        ("run: {pause_s: .inf}", "pause_s"),
        ("run: {order: random}", "run.order"),
        ("run: {anchor: 5}", "run.anchor"),
        ("run: {anchor: {evry: 5}}", "run.anchor.evry"),
        ("server: {api: olama}", "server.api"),
        ("server: {url: localhost}", "server.url"),
        ("server: {url: 'http://user:word@host'}", "server.url"),
        ("server: {url: 'http://ex ample/'}", "server.url"),
        ('server: {url: "http://ho\\0st/"}', "server.url"),
        ("server: {url: 'http://[::1'}", "server.url"),
        ("server: {url: 'http://[zz]/'}", "server.url"),
        ("server: {api: embedded, url: 'http://127.0.0.1:1'}", "server.url"),
        ("server: {api: sse}", "server.url"),
        ("server: {model: 3.1}", "server.model"),
        ("server: {api_key_env: SURELY_NOT_SET_HERE}", "server.api_key_env"),
        ("server: {options: {stop: [a]}}", "server.options.stop"),
        ("machine: ../etc", "machine"),
        ("slo: {share: 2}", "slo.share"),
        ("colour: red", "colour"),
        ("<<: {machine: this}", "<<"),
    ],
)
def test_each_wrong_value_is_one_fault_with_its_line_and_key(line: str, key: str) -> None:
    """A list, a switch or text for a number, a value out of range, an unknown choice or key: one fault, in line 4."""
    (message,) = faults_of(SMALLEST + line + "\n")
    assert "line 4" in message
    assert f"'{key}" in message


@pytest.mark.parametrize(
    ("line", "way_out"),
    [
        ("run: {timeout_s: .inf}", "is no number to measure by: write one in digits"),
        ("run: {repeats: 100000000000000000000000000}", "has more digits than a number here can have"),
        ("run: {repeats: 0x10}", "write 16,"),
        ("run: {timeout_s: .5}", "write 0.5,"),
    ],
)
def test_the_way_out_is_the_value_that_was_meant(line: str, way_out: str) -> None:
    """What is written tells what is right; a number that nobody meant is not offered."""
    (message,) = faults_of(SMALLEST + line + "\n")
    assert way_out in message


def test_aliases_that_make_a_plan_endless_are_refused_and_others_are_not() -> None:
    """Seven lines that would be five million values: one fault, at once. An alias that spares writing is fine."""
    rows = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    rows += [f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]" for old, new in pairwise("abcdefg")]
    begun = time.monotonic()
    (message,) = faults_of("\n".join(rows))
    assert time.monotonic() - begun < 5
    assert "aliases (*name) make this plan endless" in message
    short = "  - {kind: baseline, prompt_tokens: &few [64, 128]}\n  - {kind: baseline, prompt_tokens: *few}\n"
    assert [one.prompt_tokens for one in read_plan(f"plan: x\nexperiments:\n{short}", "p").experiments] == [
        (64, 128), (64, 128),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("experiment", "key"),
    [
        ("{prompt_tokens: 128}", "experiments[1].kind"),
        ("{kind: prefil_curve, prompt_tokens: 128}", "experiments[1].kind"),
        ("{kind: baseline}", "experiments[1].prompt_tokens"),
        ("{kind: baseline, prompt_tokens: 4}", "experiments[1].prompt_tokens"),
        ("{kind: baseline, prompt_tokens: [64, 64]}", "experiments[1].prompt_tokens"),
        ("{kind: baseline, prompt_tokens: []}", "experiments[1].prompt_tokens"),
        ("{kind: baseline, prompt_tokens: 64, concurrency: 2}", "experiments[1].concurrency"),
        ("{kind: concurrency, prompt_tokens: 64}", "experiments[1].concurrency"),
        ("{kind: concurrency, prompt_tokens: [64, 128], concurrency: 2}", "experiments[1].prompt_tokens"),
        ("{kind: baseline, prompt_tokens: 64, name: a/b}", "experiments[1].name"),
        ("7", "experiments[1]"),
    ],
)
def test_each_wrong_experiment_is_one_fault(experiment: str, key: str) -> None:
    """What an experiment lacks, has too much of, or has twice is named by its place in the list."""
    (message,) = faults_of(f"plan: x\nexperiments:\n  - {experiment}\n")
    assert "line 3" in message
    assert f"'{key}" in message


@pytest.mark.parametrize("kind", ["prefix_cache", "request_rate", "soak"])
def test_b55_a_kind_that_cannot_be_measured_yet_says_so(kind: str) -> None:
    """A kind of the contract that this version does not have is refused before anything is sent, its keys checked."""
    keys = {"prefix_cache": "shared_share: [0, 0.5]", "request_rate": "rate_per_s: 2", "soak": "duration_s: 60"}[kind]
    (message,) = faults_of(f"plan: x\nexperiments:\n  - {{kind: {kind}, prompt_tokens: 64, {keys}}}\n")
    assert f"'experiments[1].kind: {kind}' cannot be measured yet" in message
    _, misspelt = faults_of(f"plan: x\nexperiments:\n  - {{kind: {kind}, prompt_tokens: 64, {keys}, outputs: 5}}\n")
    assert "did you mean 'output_tokens'" in misspelt


def test_two_experiments_of_one_name_are_refused() -> None:
    """Rows are told apart by their experiment's name."""
    one = "  - {kind: baseline, prompt_tokens: 64, name: same}\n"
    (message,) = faults_of(f"plan: x\nexperiments:\n{one}{one}")
    assert "line 4" in message
    assert "'experiments[2].name: same'" in message


def test_b02_num_ctx_through_the_openai_api_is_warned_of() -> None:
    """B02: that API has no num_ctx, so prompts may be cut in silence; the plan says so before sending."""
    text = SMALLEST + "server: {api: openai, options: {num_ctx: 32768}}\n"
    (warning,) = read_plan(text, "p.yml").warnings
    assert "num_ctx" in str(warning)
    assert "line 4" in str(warning)
    own = "plan: x\nserver: {api: openai}\nexperiments:\n"
    (warning,) = read_plan(own + "  - {kind: baseline, prompt_tokens: 64, options: {num_ctx: 4096}}\n", "p").warnings
    assert "num_ctx" in str(warning)
    harmless = SMALLEST + "server: {api: ollama, options: {num_ctx: 32768}}\n"
    assert read_plan(harmless, "p.yml").warnings == ()


@pytest.mark.parametrize(
    "text", ["", "# nothing", "- a list", "plan: [", "a: b: c", "? {x: 1}\n: 2", "&a [*a]", "just words", "\x00"]
)
def test_what_is_no_plan_at_all_is_one_clear_message(text: str) -> None:
    """An empty file, a list, broken YAML: a fault that names the file, never a traceback."""
    assert all(message.startswith("p.yml, line ") for message in faults_of(text))


@given(st.text(alphabet="planexperiments:{}[],-'\"#&*!|>%@`0123456789.e_ \n\t", max_size=120))
def test_any_text_is_a_plan_or_a_plan_error(text: str) -> None:
    """Whatever the file holds, only our own error comes out, and it names a line."""
    lines = [1]
    try:
        read_plan(text, "p.yml")
    except PlanFaults as problem:
        lines = [fault.values["line"] for fault in problem.faults]
    assert lines
    assert all(isinstance(line, int) and line >= 1 for line in lines)


def test_a_missing_plan_names_those_that_are_there(tmp_path: Path) -> None:
    """Who mistypes the name sees what there is."""
    (tmp_path / "first.yml").write_text(SMALLEST)
    with pytest.raises(PlanError, match=r"frist\.yml; there are: .*first\.yml"):
        load_plan(tmp_path / "frist.yml")


@pytest.mark.parametrize("name", ["first", "mac-mini-m4"])
def test_the_plans_of_the_repository_are_good(name: str) -> None:
    """Every plan that is shipped can be read without a warning."""
    plan = load_plan(Path(__file__).parents[2] / "plans" / f"{name}.yml")
    assert plan.plan == name
    assert plan.warnings == ()


def test_ollama_gets_one_num_ctx_that_everything_fits_into() -> None:
    """8,192 + 32 tokens with 3 % and 64 to spare are 8,534, in steps of 1,024: 9,216. Other servers set their own."""
    plan = read_plan("plan: x\nexperiments:\n  - {kind: baseline, prompt_tokens: [128, 8192]}\n", "p.yml")
    assert context_for(plan) == 9216
    resolved = resolve(plan, seed=5, api="ollama")
    assert resolved.experiments[0].options == {"num_ctx": 9216}
    assert (resolved.run.seed, resolved.experiments[0].run.seed) == (5, 5)
    assert resolve(plan, seed=5, api="llamacpp").experiments[0].options == {}
    own = read_plan(SMALLEST + "server: {options: {num_ctx: 2048}}\n", "p.yml")
    assert resolve(own, seed=5, api="ollama").experiments[0].options == {"num_ctx": 2048}
