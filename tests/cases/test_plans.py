"""Plans whose YAML means something else than it says, or asks for what the API has not, with look-alikes: B02, B55."""

import pytest

from collect.plan import PlanFaults, read_plan

ONE = "experiments:\n  - {kind: baseline, prompt_tokens: 128}\n"


def faults_of(text: str) -> list[str]:
    try:
        read_plan(text, "p.yml")
    except PlanFaults as caught:
        return [str(fault) for fault in caught.faults]
    return []


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("run: {repeats: 0x10}", "repeats"),  # hexadecimal: 16
        ("run: {repeats: 0o17}", "repeats"),  # a text in YAML 1.1, 15 in 1.2
        ("run: {timeout_s: .inf}", "timeout_s"),
        ("run: {timeout_s: .nan}", "timeout_s"),
        ("run: {repeats: yes}", "repeats"),  # a boolean
        ("run: {repeats: 3.0}", "repeats"),  # no whole number by its writing
        ("run: {repeats: '5'}", "repeats"),  # a text
        ("run: {seed: 1_000}", "seed"),
        ("run: {order: no}", "order"),
        ("server: {stated: {model_digest: 0123456}}", "model_digest"),  # 42798 to YAML 1.1
        ("server: {stated: {quantization: 1.58}}", "quantization"),
        ("run: {repeats: -1}", "repeats"),
        ("run: {repeats: 5, 'repeats': 3}", "repeats"),  # the same key, once quoted
        ("runs: {repeats: 5}", "runs"),
    ],
)
def test_b55_a_value_that_yaml_reads_otherwise(line: str, named: str) -> None:
    """Each is refused with its line and key, once, and nothing is measured by a number that nobody wrote."""
    (message,) = faults_of(f"plan: x\n{line}\n{ONE}")
    assert "p.yml, line 2" in message
    assert named in message


@pytest.mark.parametrize(
    "line",
    [
        "server: {stated: {server_version: '3.10', quantization: \"Q4_K_M\"}}",
        "run: {timeout_s: 0.5, pause_s: 0}",
        "run: {timeout_s: 600}",  # a whole number where a fraction is allowed
        "server: {model: 'on'}",  # a text by its quotes
        "server: {model: 'qwen2.5:7b'}",  # a colon in a name
        "run: {seed: null, anchor: null}",
        "# repeats: 3\nrun: {repeats: 3}  # repeats: 5",  # comments are no keys
    ],
)
def test_b55_what_only_looks_odd_is_fine(line: str) -> None:
    """Quoted versions and names, zeros, fractions, nulls where the contract has them, comments."""
    assert faults_of(f"plan: x\n{line}\n{ONE}") == []


@pytest.mark.parametrize(
    ("server", "warned"),
    [
        ("{api: openai, options: {num_ctx: 8192}}", True),
        ("{api: llamacpp, options: {num_ctx: 8192}}", True),  # its context is set when it starts
        ("{api: ollama, options: {num_ctx: 8192}}", False),  # harmless: its own API has it
        ("{api: sse, url: 'http://127.0.0.1:1/x', options: {num_ctx: 8192}}", False),  # harmless: sent on as it is
        ("{api: openai, options: {temperature: 0}}", False),  # harmless: another option
        ("{api: openai, stated: {context_limit_tokens: 8192}}", False),  # harmless: stated, not asked for
    ],
)
def test_b02_a_context_that_cannot_be_asked_for(server: str, warned: bool) -> None:
    """num_ctx is Ollama's own; where it would be dropped that is said before anything is sent."""
    warnings = read_plan(f"plan: x\nserver: {server}\n{ONE}", "p.yml").warnings
    assert ["num_ctx" in str(warning) for warning in warnings] == [True] * warned
