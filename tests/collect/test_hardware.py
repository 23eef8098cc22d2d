"""Whose hardware a run was measured on: this machine, a named one, or one that described itself in a file."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collect import hardware as module
from collect import host, server
from collect.__main__ import main
from collect.host import Gpu, HostFacts
from collect.oracle import Handler, Model, Oracle, Piece, Script, Speed, always, ollama, sse
from collect.plan import read_plan
from roofbook.facts import load_facts
from roofbook.record import Run, read_runs
from roofbook.theory.shapes import Ceilings, Spread
from roofbook.units import GIB

ROOT = Path(__file__).parents[2]
HERE = HostFacts("AMD EPYC", 2, 24 * GIB, "Debian", "12")
BOX = HostFacts("Intel Xeon", 16, 64 * GIB, "Ubuntu", "24.04", gpus=(Gpu("NVIDIA GeForce RTX 4090", 24564 * 2**20),))
CATALOGUE = load_facts(ROOT / "data" / "facts")
RATE = Spread(1e9, 1e9, 1e9, 1)
FRONT = always(Script((*(Piece(float(n), f"data: w{n}\n\n".encode()) for n in range(3)), Piece(3, sse("[DONE]")))))

is_here = server.is_here

Measure = Callable[..., tuple[int, str, list[Run]]]


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Measure:
    """Measure a server on this machine (Ollama), or one elsewhere (a front), with a plan's machine."""
    (tmp_path / "mkdocs.yml").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "facts").symlink_to(ROOT / "data" / "facts")
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    (tmp_path / "plans").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module.host, "this_host", lambda **_: HERE)
    monkeypatch.setattr(server, "is_here", lambda _: False)  # a front is asked for nothing else: only its address tells
    monkeypatch.setattr(host, "measure_ceilings", lambda: Ceilings(RATE, RATE, "cpu", "here"))

    seen: set[str] = set()

    def new_runs() -> list[Run]:
        found = [run for run in read_runs(tmp_path / "data" / "measured") if run.run_id not in seen]
        seen.update(run.run_id for run in found)
        return found

    def call(machine: str, *, handler: Handler = FRONT, api: str = "sse") -> tuple[int, str, list[Run]]:
        with Oracle(handler) as oracle:
            (tmp_path / "plans" / "p.yml").write_text(
                f"plan: p\nmachine: {machine}\nserver: {{api: {api}, url: '{oracle.url}/'}}\n"
                "run: {repeats: 1, anchor: null}\n"
                "experiments: [{kind: baseline, prompt_tokens: 64, output_tokens: 4}]\n"
            )
            code = main(["plans/p.yml"])
        return code, capsys.readouterr().out, new_runs()

    return call


def test_a_server_elsewhere_stays_unknown_until_it_described_itself(measure: Measure, tmp_path: Path) -> None:
    """Without a word of it: null, and what to do. With what `facts` printed there: its id, its host, its ceilings."""
    code, said, (run,) = measure("this")
    assert code == 0
    assert "python -m collect facts > server.json" in said
    assert run.rows["machine"].isna().all()
    assert run.facts.host["machine"] == "amd-epyc-2c-24gb"  # the client's, and the rows say that it is not the server

    read = {"median": 5e10, "low": 4e10, "high": 6e10, "n": 9}
    broken = {"median": 1e12, "low": float("nan"), "high": 2e12, "n": 9}
    ceilings = {"bandwidth_bytes_per_s": read, "flops_per_s": broken, "measured_on": "cpu", "source": "numpy"}
    described = {**BOX.as_json(), "machine": "whatever it was called", "ceilings": ceilings}
    (tmp_path / "plans" / "server.json").write_text(json.dumps(described))
    code, said, (run,) = measure("server.json")
    assert code == 0
    assert "nobody told which" not in said
    assert set(run.rows["machine"]) == {"nvidia-rtx-4090"}  # the catalogue's card with that memory
    assert (run.facts.host["machine"], run.facts.host["chip"]) == ("nvidia-rtx-4090", "Intel Xeon")
    assert run.facts.host["ceilings"] == {**ceilings, "flops_per_s": None}


def test_facts_come_back_from_their_json() -> None:
    """All of it, and nothing where it is no description of a machine."""
    assert HostFacts.from_json(json.loads(json.dumps(BOX.as_json()))) == BOX
    mac = HostFacts("Apple M4", 10, 32 * GIB, "macOS", "15.5", (Gpu("Apple M4", cores=10),), "Mac mini", None,
                    25 * GIB, 0, False)  # fmt: skip
    assert HostFacts.from_json(json.loads(json.dumps(mac.as_json()))) == mac
    for nothing in ({}, [], None, "text", {"os": "Ubuntu"}, {"chip": "M4"}, {"os": 7, "chip": []}):
        assert HostFacts.from_json(nothing) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "Cannot read server.json: No such file or directory"),
        ("{", "server.json is not JSON"),
        ("[1]", "server.json does not say what a machine is"),
        ('{"plan": "another file"}', "server.json does not say what a machine is"),
    ],
)
def test_a_file_that_describes_no_machine_is_named(
    text: str | None, said: str, measure: Measure, tmp_path: Path
) -> None:
    """Exit code 2 before anything is measured."""
    if text is not None:
        (tmp_path / "plans" / "server.json").write_text(text)
    code, out, runs = measure("server.json")
    assert (code, runs) == (2, [])
    assert said in out


def test_nothing_personal_comes_along(measure: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody wrote into the file, and what stands in a name, passes the scrubber; unknown fields stay out."""
    monkeypatch.setenv("HARDWARE_API_KEY", "sk-planted-0123456789")
    described = {**BOX.as_json(), "chip": "Xeon of /home/planted_user/x", "serial": "C02PLANTED", "governor":
                 "sk-planted-0123456789"}  # fmt: skip
    (tmp_path / "plans" / "server.json").write_text(json.dumps(described))
    _, _, (run,) = measure("server.json")
    kept = json.dumps(run.facts.host)
    assert "Xeon" in kept
    assert not [one for one in ("planted_user", "C02PLANTED", "sk-planted") if one in kept]


def test_a_plan_of_another_machine_is_noticed(measure: Measure) -> None:
    """The ready plan of a Mac mini on this machine: said once, with both names; its own name and `this` are silent."""
    here = ollama(Model(Speed(2, 0.01, step_ms=0.5)))
    code, said, (run,) = measure("mac-mini-m4-32gb", handler=here, api="ollama")
    assert code == 0
    assert said.count("! The plan names the machine mac-mini-m4-32gb, but this one is amd-epyc-2c-24gb") == 1
    assert set(run.rows["machine"]) == {"mac-mini-m4-32gb"}  # the author's word stands
    for silent in ("this", "amd-epyc-2c-24gb"):
        assert "The plan names" not in measure(silent, handler=here, api="ollama")[1]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
CARDS = st.lists(st.dictionaries(st.sampled_from(["name", "memory_bytes", "cores", "driver"]), SCALARS) | SCALARS)
NAMES = [field.name for field in fields(HostFacts)]


@example({"os": "Linux", "chip": "한글"})
@given(
    st.dictionaries(st.sampled_from([*NAMES, "machine", "ceilings"]), SCALARS | CARDS | st.just("macOS"), max_size=12)
    | SCALARS
    | CARDS
)
def test_whatever_a_file_says_gives_a_machine_or_none(value: object) -> None:
    """Any JSON at all: a machine with an id that a row can carry and facts that can be written again, or none."""
    found = HostFacts.from_json(value)
    if found is not None:
        assert found.machine_id(CATALOGUE)
        json.dumps(found.as_json(), allow_nan=False)
        assert HostFacts.from_json(found.as_json()) is not None


def test_a_front_on_this_machine_is_no_other_machine(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    """api: sse on loopback: nobody is asked which machine it is, and the host columns are the server's."""
    monkeypatch.setattr(server, "is_here", is_here)
    code, said, (run,) = measure("this")
    assert code == 0
    assert "another machine" not in said
    assert "Model: (unknown)" in said
    assert set(run.rows["machine"]) == {"amd-epyc-2c-24gb"}
    assert run.rows["host_is_server"].all()
    assert not is_here("http://192.0.2.7:9/chat")


@pytest.mark.parametrize("machine", ["nope", "mac-mini-m5-16tb"])
def test_a_machine_that_no_catalogue_knows_is_said(machine: str) -> None:
    """A slip in its name is seen before anything is sent; it can be measured all the same."""
    plan = read_plan(f"plan: p\nmachine: {machine}\nexperiments: [{{kind: baseline, prompt_tokens: 64}}]\n", "p")
    said = module.check_machine(plan, Path("p.yml"), CATALOGUE)
    assert said is not None
    assert f"The machine '{machine}' is not in the catalogue" in str(said)
    for known in ("this", "mac-mini-m4-32gb", "nvidia-rtx-4090"):
        assert module.check_machine(replace(plan, machine=known), Path("p.yml"), CATALOGUE) is None
