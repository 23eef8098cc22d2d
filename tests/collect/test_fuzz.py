"""Cut, mutated and absurd input everywhere: only our own errors come out, and never an ok row that is not one."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collect import server
from collect.apis import APIS, Ask
from collect.client import lookup
from collect.exchange import Closing, Exchange
from collect.oracle import Model, Request, Speed, llamacpp, ollama, openai
from collect.plan import read_plan
from collect.plan.load import PlanFaults
from collect.rows import Life, Sent, row_of
from collect.schedule import Cell, schedule
from collect.server import process
from roofbook.errors import RecordError, ServerError
from roofbook.facts import load_facts
from roofbook.record import SCHEMA, RunFacts, read_run, to_table, write_run
from roofbook.validity import findings, known_of, records

ROOT = Path(__file__).parents[2]
FACTS = load_facts(ROOT / "data" / "facts")

ABSURD: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1, 2**31, 2**53, 2**63, -(2**63), 10**30, 10**400]),
    st.sampled_from([0.5, -0.0, 1e308, float("inf"), float("-inf"), float("nan"), 1e-320]),
    st.sampled_from(
        ["", " ", "\ud800", "a\x00b", "\u202ex", "x" * 5000, "1e3", "안녕", "{}", "null", "/home/kim/m.gguf"]
    ),
    st.sampled_from([[], {}, [[]], [None], {"a": None}, [{}], {"": {}}, [["x"] * 50]]),
    st.recursive(st.text(max_size=3), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner)),
)
"""What no honest server sends, and what a plan or a row never holds."""


def places(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every node of *tree* below its root."""
    if isinstance(tree, dict):
        for key in tree:
            yield (*way, key)
            yield from places(tree[key], (*way, key))
    if isinstance(tree, list):
        for at in range(len(tree)):
            yield (*way, at)
            yield from places(tree[at], (*way, at))


@st.composite
def mutated(draw: st.DrawFn, tree: Any, values: st.SearchStrategy[Any] = ABSURD) -> Any:
    """Draw *tree* with one to three of its nodes replaced or taken out."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, 3))):
        ways = list(places(tree))
        if not ways:
            return draw(values)
        *way, last = draw(st.sampled_from(ways))
        holder = tree
        for step in way:
            holder = holder[step]
        if draw(st.integers(0, 3)) == 0:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(draw(values))
    return tree


CHANGES = st.lists(
    st.tuples(st.sampled_from("xcti"), st.floats(0, 1), st.integers(0, 8), st.binary(max_size=6)),
    min_size=1,
    max_size=4,
)
"""Of bytes: what to do (replace, cut, double, invert), where as a share of the length, how many, and with what."""


def changed(data: bytes, changes: list[tuple[str, float, int, bytes]]) -> bytes:
    """Return *data* after *changes*."""
    for what, share, count, new in changes:
        at = round(share * len(data))
        match what:
            case "x":
                data = data[:at] + new + data[at + count :]
            case "c":
                data = data[:at]
            case "t":
                data = data[:at] + data[max(0, at - 5 * count) :]
            case _:
                data = data[:at] + bytes(byte ^ 1 << count % 8 for byte in data[at : at + 1]) + data[at + 1 :]
    return data


# Streams


def asked(path: str, **body: Any) -> Request:
    sent = {"prompt": "one two three", "model": None, "stream": True, **body}
    return Request(0, "POST", path, {}, json.dumps(sent).encode(), 0.0, 1)


def stream_of(api: str) -> list[tuple[float, bytes]]:
    """An honest answer of four tokens, as the oracle plays it."""
    model = Model(Speed(), thinking_tokens=1)
    script = {
        "llamacpp": lambda: llamacpp(model)(asked("/completion", n_predict=4)),
        "ollama": lambda: ollama(model, name="m")(asked("/api/generate", model="m", options={"num_predict": 4})),
        "openai": lambda: openai(model, name="m")(
            asked("/v1/chat/completions", model="m", max_tokens=4, messages=[{"content": "hi"}],
                  stream_options={"include_usage": True})
        ),
    }[api]()  # fmt: skip
    return [(piece.at_ms, piece.data) for piece in script.pieces]


CELL = Cell(
    "e",
    "baseline",
    "p3-o4",
    3,
    4,
    1,
    1,
    read_plan("plan: p\nexperiments: [{kind: baseline, prompt_tokens: 64}]", "p").run,
)
LIFE = Life("r", "p", 0, None, 1, 0, 100.0)


def kept(api: str, pieces: list[tuple[float, bytes]], closing: Closing = "complete", status: int = 200) -> Any:
    """Read the answer, make its row, and put it into a table, as the collector does; return the row."""
    exchange = Exchange(
        closing, tuple(pieces), status, "", None, datetime(2026, 11, 30, tzinfo=UTC), 5, 1.0, 9.0, 0.1, 0.1
    )
    row = row_of(LIFE, Sent(CELL, "measured", 1, 0, 0), {}, exchange, APIS[api].read(exchange), {})
    json.dumps(row, default=str).encode("ascii")
    (back,) = to_table([row], RunFacts("r")).to_pylist()
    findings([row])
    if row["status"] == "ok":
        assert row["ttft_ms"] is not None or row["output_tokens"] in (0, 1)  # a model may end at once
        assert row["cached_tokens"] is None or row["cached_tokens"] <= (row["prompt_tokens"] or row["cached_tokens"])
        assert row["output_tokens"] is None or row["output_tokens"] >= 0
        assert closing in ("complete", "read_error") or (closing == "timeout" and row["e2e_ms"] is None)
        assert status == 200
    return back


END_EVENT = {
    "llamacpp": lambda event: b'"stop": true' in event,
    "ollama": lambda event: b'"done": true' in event,
    "openai": lambda event: b'"finish_reason": "length"' in event or b"[DONE]" in event,
}


@pytest.mark.parametrize("api", ["llamacpp", "ollama", "openai"])
def test_a_stream_cut_anywhere_is_ok_only_from_its_last_event_on(api: str) -> None:
    """Every length of every API's stream: ok exactly where the event that ends the answer has come as a whole."""
    pieces = stream_of(api)
    body = b"".join(data for _, data in pieces)
    ends_at, first_end = 0, None
    for _, data in pieces:
        ends_at += len(data)
        if first_end is None and END_EVENT[api](data):
            # JSON lines are whole without their newline, events of a stream only with the empty line after them.
            first_end = ends_at - 1 if api == "ollama" else ends_at
    assert first_end is not None
    statuses = {length: kept(api, [(1.0, body[:length])])["status"] for length in range(len(body) + 1)}
    ok = {length for length, status in statuses.items() if status == "ok"}
    assert min(ok) == first_end
    assert len(body) in ok
    for closing in ("interrupted", "connect_error"):
        assert kept(api, [(1.0, body)], closing)["status"] == closing


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["llamacpp", "ollama", "openai", "sse"]), CHANGES,
    st.sampled_from(["complete", "complete", "timeout", "read_error", "interrupted", "connect_error"]),
    st.sampled_from([200, 200, 200, 201, 204, 400, 500, 599]),
)  # fmt: skip
def test_a_stream_changed_anywhere_becomes_a_row(api: str, changes: Any, closing: Closing, status: int) -> None:
    """Bytes lost, doubled and replaced, whatever the status and the closing: a row that can be stored."""
    pieces = stream_of("openai" if api == "sse" else api)
    kept(api, [(1.0, changed(b"".join(piece for _, piece in pieces), changes))], closing, status)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(["llamacpp", "ollama", "openai"]), st.data())
def test_events_with_absurd_values_become_a_row(api: str, data: st.DataObject) -> None:
    """Every value of every event may be of another type, negative, endless or missing."""
    pieces = stream_of(api)
    at = data.draw(st.integers(0, len(pieces) - 1))
    found = re.search(rb"\{.*\}", pieces[at][1])
    if found is None:
        return
    event = data.draw(mutated(json.loads(found.group())))
    pieces[at] = (pieces[at][0], pieces[at][1].replace(found.group(), json.dumps(event).encode()))
    kept(api, pieces)


# Plans

PLANS = sorted((ROOT / "plans").glob("*.yml"))


def check_plan(text: str) -> None:
    """A plan, whose schedule can be made, or faults that name the file and a line."""
    plan, faults = None, list[str]()
    try:
        plan = read_plan(text, "p.yml")
    except PlanFaults as problem:
        faults = [str(fault) for fault in problem.faults]
    assert [fault for fault in faults if not re.match(r"p\.yml, line [1-9]\d*: ", fault)] == []
    if plan is None:
        assert faults
        return
    json.dumps(plan.as_dict(), allow_nan=False)
    if sum(one.run.repeats * len(one.prompt_tokens) for one in plan.experiments) < 2000:
        schedule(plan, 1)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLANS), CHANGES)
def test_a_plan_changed_anywhere_is_a_plan_or_its_faults(path: Path, changes: Any) -> None:
    """Bytes of real plans lost, doubled and replaced."""
    check_plan(changed(path.read_bytes(), changes).decode("utf-8", "replace"))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLANS), st.data())
def test_a_plan_with_absurd_values_is_a_plan_or_its_faults(path: Path, data: st.DataObject) -> None:
    """Any key of real plans replaced or taken out."""
    tree = data.draw(mutated(yaml.safe_load(path.read_text())))
    check_plan(yaml.safe_dump(tree, allow_unicode=True))


# Files of rows


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run file."""
    rows = [
        kept("openai", stream_of("openai")) | {"order_index": n, "model": f"m{n}", "chunk_times_ms": [1.0, 2.0]}
        for n in range(6)
    ]
    return write_run(tmp_path_factory.mktemp("run"), rows, RunFacts("r", plan={"plan": "p"}))


def check_file(path: Path) -> None:
    """A run, whose rows can be judged, or our own error that names the file."""
    said = path.name
    try:
        findings(records(read_run(path).rows))
    except RecordError as problem:
        said = str(problem)
    assert path.name in said


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES)
def test_a_run_file_changed_anywhere_is_a_run_or_our_error(run_file: Path, tmp_path: Path, changes: Any) -> None:
    """Bytes lost, doubled and replaced."""
    path = tmp_path / "r.parquet"
    path.write_bytes(changed(run_file.read_bytes(), changes))
    check_file(path)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(SCHEMA.names), st.sampled_from(range(8)))
def test_a_column_of_another_type_is_a_run_or_our_error(run_file: Path, tmp_path: Path, name: str, kind: int) -> None:
    """A column of texts, lists, bytes that are no text, of times beyond all times, or one that is there twice."""
    path = tmp_path / "r.parquet"
    table = pq.read_table(run_file)
    at, count = table.schema.get_field_index(name), table.num_rows
    columns: list[pa.Array] = [
        pa.array(["x"] * count), pa.array([[None]] * count), pa.array([b"\xff\xfe"] * count),
        pa.array([2**63 - 1] * count), pa.array([float("nan")] * count), pa.array([None] * count, pa.null()),
        pa.array([2**62] * count, pa.timestamp("us")), pa.array([{"a": 1}] * count),
    ]  # fmt: skip
    other = columns[kind]
    pq.write_table(table.set_column(at, name, other), path)
    check_file(path)
    pq.write_table(table.append_column(name, other), path)
    check_file(path)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["1", "0", "-1", "", "x", "1.0", "9" * 30]),
    st.one_of(st.sampled_from(["", "{", "[]", "null", "3", '"x"', "[" * 5000]), ABSURD.map(json.dumps),
              mutated({"run_id": "r", "plan": {"plan": "p"}, "host": {}, "server": {}, "origin": {}}).map(json.dumps)),
)  # fmt: skip
def test_metadata_that_is_none_is_a_run_or_our_error(run_file: Path, tmp_path: Path, version: str, run: str) -> None:
    """The version and the facts of the run may be anything."""
    path = tmp_path / "r.parquet"
    pq.write_table(pq.read_table(run_file).replace_schema_metadata({"schema_version": version, "run": run}), path)
    check_file(path)
    if path.exists():
        try:
            facts = read_run(path).facts
        except RecordError:
            return
        assert isinstance(facts.run_id, str)
        assert all(isinstance(part, dict) for part in (facts.plan, facts.host, facts.server, facts.origin))


# What servers tell of themselves

HANDLERS: dict[str, Callable[[], Any]] = {
    "llamacpp": lambda: llamacpp(), "ollama": lambda: ollama(), "openai": lambda: openai(),
}  # fmt: skip


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(HANDLERS)), st.integers(0, 4), st.data())
def test_a_server_that_tells_absurd_things_is_known_or_refused(name: str, changes: int, data: st.DataObject) -> None:
    """Any value of any answer replaced or missing: facts that can be stored and published, or our own error."""
    handler = HANDLERS[name]()
    told: dict[str, lookup.Answer] = {}

    def ask(method: str, url: str, path: str, body: Any, *rest: Any) -> lookup.Answer:
        del url, rest
        if path not in told:
            sent = b"" if body is None else json.dumps(body, default=str).encode()
            script = handler(Request(0, method, path, {}, sent, 0.0, 1))
            text = b"".join(piece.data for piece in script.pieces).decode()
            if script.status == 200 and text.startswith("{") and len(told) < changes:
                text = json.dumps(data.draw(mutated(json.loads(text))))
            told[path] = lookup.Answer(script.status, text)
        return told[path]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "_ask", ask)
        patch.setattr(process, "of_port", lambda *_, **__: None)
        facts, said = None, ""
        try:
            facts = server.inspect("http://127.0.0.1:9")
        except ServerError as problem:
            said = str(problem)
    if facts is None:
        assert "http://127.0.0.1:9" in said
        return
    columns = facts.columns()
    asked_for = json.loads(json.dumps(APIS[facts.api].request(Ask("x", 1, facts.model)).body).encode("ascii"))
    assert asked_for.get("model") == facts.model
    json.dumps(facts.as_json(), allow_nan=False).encode()
    (row,) = to_table([columns], RunFacts("r", server=facts.as_json())).to_pylist()
    assert "kim" not in json.dumps(row, default=str)
    measured = kept("openai", stream_of("openai")) | {name: row[name] for name in columns}
    findings([measured], known_of([measured], FACTS, [RunFacts("r", server=facts.as_json())]))
    for name in ("context_limit_tokens", "parallel_slots", "weights_bytes"):
        assert row[name] is None or row[name] > 0
    assert row["gpu_fraction"] is None or 0 <= row["gpu_fraction"] <= 1
