"""A mistake in a fact file is one message that names file, entry and key."""

from pathlib import Path
from shutil import copytree

import pytest

from roofbook.errors import FactsError
from roofbook.facts import load_facts

FACTS = Path(__file__).parents[2] / "data" / "facts"

# One entry of each file, whole and right; what a test adds to it is wrong.
CHIP = "{id: x, name: X, memory: discrete, memory_gib: 8, bandwidth_gb_s: 100, source: s%s}"
MACHINE = "{id: x, name: X, chip: %s, memory_gib: %s, source: s}"
MODEL = (
    "{id: x, name: X, architecture: llama, layers: 2, heads: 4, kv_heads: 2, head_dim: 8, hidden: 32, ffn: 64,"
    " vocab: 100, source: s%s}"
)
RUNTIME = "{id: x, name: X, engine: e, api: openai, kv_layout: slots, seen: '2026', source: s, runs: {%s}%s}"
LIMIT = "{macos: 15, memory_gib: 16, source: s%s}"


def complaint(tmp_path: Path, file: str, text: str) -> str:
    """Return what reading the catalogue says where *file* holds *text*."""
    folder = copytree(FACTS, tmp_path / "facts")
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(FactsError) as caught:
        _ = load_facts(folder).published
    assert "\n" not in str(caught.value)
    return str(caught.value)


def listed(key: str, *entries: str) -> str:
    return f"schema_version: 1\n{key}:\n" + "".join(f"  - {entry}\n" for entry in entries)


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (", colour: red", "chips.yml, x: the key 'colour' is not known; those known are bandwidth_gb_s, channels,"),
        (", tdp_w: '75'", "chips.yml, x: 'tdp_w' is '75', not a number above 0"),
        (", tdp_w: 0", "chips.yml, x: 'tdp_w' is 0, not a number above 0"),
        (", tdp_w: .inf", "chips.yml, x: 'tdp_w' is inf, not a number above 0"),
        (", tdp_w: .nan", "chips.yml, x: 'tdp_w' is nan, not a number above 0"),
        (", tdp_w: yes", "chips.yml, x: 'tdp_w' is True, not a number above 0"),
        (", gpu_cores: 2.5", "chips.yml, x: 'gpu_cores' is 2.5, not a whole number"),
        (", int8_tops: {low: 4, high: 3}", "chips.yml, x: 'int8_tops' is no range from low to high"),
        (", int8_tops: {low: 4}", "chips.yml, x: 'int8_tops' is no range from low to high"),
        (", int8_tops: {low: 4, hi: 5}", "chips.yml, x, int8_tops: the key 'hi' is not known"),
        (", int8_tops: [3, 4]", "chips.yml, x: 'int8_tops' is [3, 4], not a number above 0"),
        (", unverified: [tdp]", "chips.yml, x: 'sources' or 'unverified' names 'tdp', which the entry does not have"),
        (", sources: {tdp: s}", "chips.yml, x: 'sources' or 'unverified' names 'tdp', which the entry does not have"),
        (", unverified: name", "chips.yml, x: 'unverified' is 'name', not a list"),
        (", sources: {name: 3}", "chips.yml, x, sources: 'name' is 3, not text"),
        (", note: ''", "chips.yml, x: 'note' is '', not text"),
        (", measured: {bandwidth_gb_s: 9}", "chips.yml, x, measured: the key 'source' is missing"),
        (", name: Y", "chips.yml is not YAML: the key 'name' stands twice"),
    ],
)
def test_a_mistake_in_a_chip(tmp_path: Path, added: str, expected: str) -> None:
    """One message, and the place in it."""
    assert expected in complaint(tmp_path, "chips.yml", listed("chips", CHIP % added))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (listed("chips", "{id: x, name: X, memory: cpu}"), "chips.yml, x: the key 'source' is missing"),
        (listed("chips", "{id: x, source: s, memory: cpu}"), "chips.yml, x: the key 'name' is missing"),
        (listed("chips", "{id: x, memory: big}"), "chips.yml, x: 'memory' is 'big', none of unified, discrete, cpu"),
        (listed("chips", "{name: X}"), "chips.yml, the file, chips 1: the key 'id' is missing"),
        (listed("chips", "{id: 7}"), "chips.yml, the file, chips 1: 'id' is 7, not text"),
        (listed("chips", "x"), "chips.yml, the file: 'chips' is ['x'], not a list of mappings"),
        (listed("chips", CHIP % "", CHIP % ""), "chips.yml has the id 'x' twice"),
        ("schema_version: 1\nchips: 3\n", "chips.yml, the file: 'chips' is 3, not a list"),
        ("schema_version: 1\nchips: []\ncpus: []\n", "chips.yml, the file: the key 'cpus' is not known"),
        ("schema_version: 2\nchips: []\n", "chips.yml has schema_version 2, this program knows 1"),
        ("chips: []\n", "chips.yml has schema_version None, this program knows 1"),
        ("schema_version: 1\nchips: [\n", "chips.yml is not YAML: "),
        ("", "chips.yml holds no mapping"),
    ],
)
def test_a_mistake_in_a_whole_file(tmp_path: Path, text: str, expected: str) -> None:
    """The file, and the entry by its place where it has no id."""
    assert expected in complaint(tmp_path, "chips.yml", text)


@pytest.mark.parametrize(
    ("chip", "sizes", "expected"),
    [
        ("y", "16", "machines.yml, x: the chip 'y' is not in chips.yml"),
        ("apple-m4", "[16, 24]", "machines.yml, x: an id with {memory} in it and a list of memory_gib go together"),
        ("apple-m4", "null", "machines.yml, x: 'memory_gib' is None, not a whole number or a list of them"),
        ("apple-m4", "[]", "machines.yml, x: 'memory_gib' is [], not a whole number or a list of them"),
    ],
)
def test_a_mistake_in_a_machine(tmp_path: Path, chip: str, sizes: str, expected: str) -> None:
    """A chip that is nowhere, a size that is none."""
    assert expected in complaint(tmp_path, "machines.yml", listed("machines", MACHINE % (chip, sizes)))


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (", pattern: [glob]", "models.yml, x: 'pattern' is glob, none of global, local, recurrent"),
        (", tied: 1", "models.yml, x: 'tied' is 1, not true or false"),
        (", moe: 8", "models.yml, x: 'moe' is 8, not a mapping"),
        (", moe: {experts: 8}", "models.yml, x, moe: the key 'used' is missing"),
        (", mamba: {inner: 8, state: 2}", "models.yml, x, mamba: the key 'conv' is missing"),
        (", files: [{quantization: Q4_0, names: y, source: s}]", "models.yml, x, files 1: 'names' is 'y', not a list"),
        (", files: [{quantization: Q4_0}]", "models.yml, x, files 1: the key 'source' is missing"),
        (", aliases: [1]", "models.yml, x: 'aliases' is [1], not a list of texts"),
    ],
)
def test_a_mistake_in_a_model(tmp_path: Path, added: str, expected: str) -> None:
    """The part of the entry is named too."""
    assert expected in complaint(tmp_path, "models.yml", listed("models", MODEL % added))


def test_a_name_that_two_models_claim(tmp_path: Path) -> None:
    """Capitals make no other name."""
    first, second = MODEL % ", aliases: [a]", MODEL.replace("id: x", "id: y") % ", aliases: [A]"
    found = complaint(tmp_path, "models.yml", listed("models", first, second))
    assert found == "models.yml: 'A' stands for two models, x and y"


@pytest.mark.parametrize(
    ("runs", "added", "expected"),
    [
        ("cpu: native", ", default_slots: none", "runtimes.yml, x: 'default_slots' is 'none', not a whole number"),
        ("cpu: yes", "", "runtimes.yml, x, runs: 'cpu' is True, not text"),
        ("cpu: often", "", "runtimes.yml, x, runs: 'cpu' is 'often', none of native, plugin, source, none"),
        ("tpu: native", "", "runtimes.yml, x, runs: the key 'tpu' is not known"),
    ],
)
def test_a_mistake_in_a_runtime(tmp_path: Path, runs: str, added: str, expected: str) -> None:
    """YAML's yes is a switch and no word."""
    assert expected in complaint(tmp_path, "runtimes.yml", listed("runtimes", RUNTIME % (runs, added)))


@pytest.mark.parametrize(("added", "count"), [("", 0), (", limit_mib: 1, limit_mb: 1", 2)])
def test_a_limit_stands_in_one_unit(tmp_path: Path, added: str, count: int) -> None:
    """MiB, GiB or MB, as the log had it."""
    found = complaint(tmp_path, "macos.yml", listed("limits", LIMIT % added))
    wanted = "one of limit_mib, limit_gib, limit_mb is wanted"
    assert found == f"macos.yml, the file, limits 1: {wanted}, not {count} of them"


PUBLISHED = """\
schema_version: 1
models: {M: {shape: qwen2.5-7b}}
groups:
  - source: s
    machine: m
    rows:
      - {id: a, model: M, quantization: Q4_0, decode_tok_per_s: 1}
      - {id: b, model: M, quantization: Q4_0, decode_tok_per_s: 1}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("id: b", "id: a", "reference_runs.yml has the id 'a' twice"),
        ("id: b, model: M", "id: b, model: N", "reference_runs.yml, b: 'model' is N, none of M"),
        ("id: b,", "id: b, chip: z,", "reference_runs.yml, b: the chip 'z' is not in chips.yml"),
        ("id: b,", "id: b, flagged: [odd],", "reference_runs.yml, b: 'flagged' is ['odd'], none of decode_impossible"),
        ("id: b,", "id: b, speed: 3,", "reference_runs.yml, b: the key 'speed' is not known"),
        ("    machine: m\n", "", "reference_runs.yml, a: the key 'machine' is missing"),
        ("qwen2.5-7b", "qwen9", "reference_runs.yml, the file, models, M: the model 'qwen9' is not in models.yml"),
        ("s: 1}", "s: fast}", "reference_runs.yml, a: 'decode_tok_per_s' is 'fast', not a number above 0"),
    ],
)
def test_a_mistake_among_the_published_names_its_row(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """The row's own id stands in the message."""
    assert old in PUBLISHED
    assert expected in complaint(tmp_path, "reference_runs.yml", PUBLISHED.replace(old, new))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A folder without chips.yml is no catalogue."""
    with pytest.raises(FactsError, match=r"Cannot read .*chips\.yml: No such file"):
        load_facts(tmp_path)


def test_only_the_published_speeds_are_read_late(tmp_path: Path) -> None:
    """A broken file of them does not stop a command that needs none."""
    folder = copytree(FACTS, tmp_path / "facts")
    (folder / "reference_runs.yml").write_text("groups: [", encoding="utf-8")
    assert load_facts(folder).model("qwen2.5-7b").model.name == "Qwen2.5 7B"
