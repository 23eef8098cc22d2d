"""Servers that load, queue, fail, share and split, with what only looks so: B05, B08, B10, B12, B16, B30, B38, B42."""

from collections.abc import Callable
from typing import Any

import pytest

from collect import server
from collect.oracle import Placement, answer, ollama, routes
from collect.oracle.server import Handler, Oracle
from collect.plan import read_plan
from collect.schedule import alternates
from collect.server import ServerFacts
from collect.server.flags import read_flags
from roofbook.record import Row
from roofbook.validity import Finding

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]


def of(found: list[Finding]) -> list[tuple[str, int | None]]:
    return [(finding.kind, finding.order_index) for finding in found]


@pytest.mark.parametrize(
    ("loads_ms", "found"),
    [
        # Another client took the memory: the model came back twice in mid-run.
        ([40, 38, 2890, 41, 2760, 39], [("reload", 2), ("reload", 4)]),
        # A small model on a fast disk loads in 300 ms, where warm is 6.
        ([300, 6, 6, 5, 6], [("cold_load", 0)]),
        # Harmless: 99 ms of scheduling once among 2 ms: under every published warm one.
        ([2, 2, 99, 2, 2], []),
        # Harmless: a busy host whose warm loads wander from 60 to 240 ms.
        ([60, 240, 110, 90, 180, 70], []),
        # Harmless: one row of a server that is always warm.
        ([12], []),
    ],
)
def test_b05_loads_among_warm_ones(
    row: MakeRow, judge: Judge, loads_ms: list[float], found: list[tuple[str, int]]
) -> None:
    """A load stands out from its run's own warm ones, and is never `not 0`."""
    rows = [row(i, server_load_ms=float(ms), ttft_ms=2080.0 + ms, last_token_ms=9000.0, e2e_ms=9001.0)
            for i, ms in enumerate(loads_ms)]  # fmt: skip
    assert of(judge(rows, "cold_load", "reload")) == found


def test_b05_loads_made_on_purpose_are_not_the_usual_ones(row: MakeRow, judge: Judge) -> None:
    """Twenty cold loads of 900 ms in a run of its own kind: a reload of 900 ms elsewhere stands out all the same."""
    rows = [row(i, kind="cold_load", point="c", server_load_ms=900.0, ttft_ms=2980.0) for i in range(20)]
    rows += [row(20 + i, server_load_ms=ms, ttft_ms=2080.0 + ms) for i, ms in enumerate([30.0, 900.0, 31.0])]
    assert of(judge(rows, "cold_load", "reload")) == [("reload", 21)]


@pytest.mark.parametrize(
    ("experiments", "known_to_alternate"),
    [
        (["options: {num_ctx: 2048}", "options: {num_ctx: 4096}", "options: {num_ctx: 2048}"], True),  # and back again
        (["model: a", "model: b", "model: c", "model: a"], True),
        (["model: a", "model: a", "model: b", "model: b"], False),  # harmless: one change
        (["model: a, repeats: 3", "model: a, repeats: 9"], False),  # harmless: repeats load nothing
    ],
)  # fmt: skip
def test_b05_a_plan_that_returns_to_what_it_left(experiments: list[str], known_to_alternate: bool) -> None:
    """Changing model or options loads; a plan that goes back and forth is regrouped, and that is said."""
    lines = "".join(f"  - {{kind: baseline, prompt_tokens: 64, {one}}}\n" for one in experiments)
    plan = read_plan(f"plan: x\nrun: {{order: as_written}}\nexperiments:\n{lines}", "p.yml")
    assert alternates(plan) is known_to_alternate


@pytest.mark.parametrize(
    ("statuses", "failed"),
    [
        (["ok"] * 4 + ["http_500"], 1),  # a fifth
        (["timeout"] * 3, 3),  # all of them
        (["ok"] * 2 + ["in_stream_error"], 1),
        (["ok"] * 19 + ["http_503"], 0),  # harmless: one of twenty
        (["ok"] * 5 + ["refused"] * 5, 0),  # harmless: five never sent, since they could not have fitted
        (["ok"] * 5 + ["interrupted"], 0),  # harmless: we stopped it ourselves
    ],
)
def test_b08_a_point_that_fails_too_often(row: MakeRow, judge: Judge, statuses: list[str], failed: int) -> None:
    """Above a tenth of the requests that were sent; what was never sent has not failed."""
    found = judge([row(i, status=status) for i, status in enumerate(statuses)], "unreliable")
    assert [finding.values["failed"] for finding in found] == ([failed] if failed else [])


@pytest.mark.parametrize(
    ("placement", "api", "fraction", "told"),
    [
        (Placement(10_000, 9_000), "ollama", 0.9, True),  # one layer in ten
        (Placement(10_000, 0), "ollama", 0.0, True),  # Ollama on a machine whose GPU it did not find
        (Placement(10_000, 10_000), "ollama", 1.0, False),  # harmless
        (Placement(21_474_836_480, 21_474_000_000), "ollama", 0.99996, False),  # harmless: sizes rounded by the server
        (Placement(10_000, None), "ollama", None, False),  # harmless: not told is not zero
        (Placement(10_000, 0), "embedded", 0.0, False),  # harmless: the embedded engine on a machine without a GPU
    ],
)
def test_b10_how_much_lies_on_the_gpu(
    row: MakeRow, judge: Judge, placement: Placement, api: str, fraction: float | None, told: bool
) -> None:
    """As the server says it, and told where a part is missing that could have been there."""
    with Oracle(ollama(placement=placement)) as oracle:
        found = server.inspect(oracle.url).gpu_fraction
    assert found == (None if fraction is None else pytest.approx(fraction, abs=1e-5))
    assert of(judge([row(gpu_fraction=found, api=api)], "partial_gpu")) == [("partial_gpu", 0)] * told


@pytest.mark.parametrize(
    ("requests", "waited"),
    [
        # Three at once on one slot, 320 ms of work each: waits of 0, 900 and 1,800 ms.
        ([(320.0, 280.0, None), (1220.0, 280.0, None), (2120.0, 280.0, None)], [1, 2]),
        # vLLM's own word: 400 ms in its queue, no prefill time.
        ([(2080.0, None, 0.1), (2480.0, None, 600.0)], [1]),
        # Half a second in each row: no network, no tokenizer; somebody else holds the slot.
        ([(2600.0, 2000.0, None), (2590.0, 2000.0, None)], [0, 1]),
        # Harmless: every row has 380 ms between prefill and first token: a server far away.
        ([(2380.0, 2000.0, None), (2390.0, 2000.0, None), (2370.0, 2000.0, None)], []),
        # Harmless: a queue of 40 ms, a step of the scheduler, though it is half of this fast TTFT.
        ([(80.0, 30.0, 40.0)], []),
        # Harmless: 1.5 s of tokenizing 100,000 tokens, 4 % of a TTFT of 40 s.
        ([(2080.0, 2000.0, None), (40_000.0, 38_500.0, None)], []),
    ],
)
def test_b12_waiting_for_a_slot(
    row: MakeRow, judge: Judge, requests: list[tuple[float, float | None, float | None]], waited: list[int]
) -> None:
    """What TTFT has beyond load and prefill and beyond what every row has is waiting, where it is a good part of it."""
    end: Row = {"last_token_ms": 50_000.0, "e2e_ms": 50_001.0}
    rows = [row(i, ttft_ms=ttft, server_prefill_ms=prefill, server_queue_ms=queue, **end)
            for i, (ttft, prefill, queue) in enumerate(requests)]  # fmt: skip
    assert [finding.order_index for finding in judge(rows, "queued")] == waited


@pytest.mark.parametrize(("fractions", "odd"), [([0.98, 0.98, 0.95], [2]), ([0.98004, 0.98004, 0.98007], [])])
def test_b10_a_share_that_moved(row: MakeRow, judge: Judge, fractions: list[float], odd: list[int]) -> None:
    """A layer that left the GPU makes other rows; sizes that were rounded another time do not."""
    rows = [row(i, gpu_fraction=fraction) for i, fraction in enumerate(fractions)]
    assert [finding.order_index for finding in judge(rows, "mixed_conditions")] == odd


def level(row: MakeRow, warmups: list[Row], at_once: int) -> list[Row]:
    """Return rows of warm-ups (each changed by its own), then of a level of *at_once*."""
    warm = [row(i, **({"phase": "warmup", "concurrency": at_once} | one)) for i, one in enumerate(warmups)]
    load = [row(len(warm) + i, kind="concurrency", concurrency=at_once) for i in range(2 * at_once)]
    return warm + load


@pytest.mark.parametrize(
    ("warmups", "at_once", "told"),
    [
        ([{}] * 2, 4, 2),  # the case: two for four
        ([], 2, 0),  # none at all
        ([{}] * 3 + [{"status": "http_503"}], 4, 3),  # one of four was refused
        ([{"concurrency": 1}] * 4, 4, 0),  # four, one after the other: they all met the same slot
        ([{"model": "other"}] * 4, 4, 0),  # of another model
        ([{}] * 4, 4, None),  # harmless: as many
        ([{"point": "longer", "concurrency": 8}] * 8, 4, None),  # harmless: another level warmed up more slots before
        ([], 1, None),  # harmless: one at a time; a cold start shows in its load
    ],
)
def test_b30_as_many_warm_ups_as_requests_at_once(
    row: MakeRow, judge: Judge, warmups: list[Row], at_once: int, told: int | None
) -> None:
    """Told of the point, with both numbers; warm-ups themselves are in no figure."""
    found = judge(level(row, warmups, at_once), "few_warmups")
    expected = [] if told is None else [{"warmups": told, "concurrency": at_once}]
    assert [dict(finding.values) for finding in found] == expected
    assert not any(finding.doubtful for finding in found)


def test_b30_a_run_taken_up_again_warms_up_again(row: MakeRow, judge: Judge) -> None:
    """The server was started anew in between: warm-ups of the first life warmed nothing of the second."""
    first, second = ([one | {"segment": n} for one in level(row, [{}] * 4, 4)] for n in (0, 1))

    def numbered(rows: list[Row]) -> list[Row]:
        return [one | {"order_index": i} for i, one in enumerate(rows)]

    assert judge(numbered(first + second), "few_warmups") == []
    assert len(judge(numbered(first + second[4:]), "few_warmups")) == 1


def test_b30_an_import_says_nothing_of_warm_ups(row: MakeRow, judge: Judge) -> None:
    """Harmless: whoever published the figures warmed up, or did not; nobody wrote it down."""
    rows = [one | {"imported_from": "table.csv"} for one in level(row, [], 8)]
    assert judge(rows, "few_warmups") == []


def looked_at(handler: Handler) -> ServerFacts:
    with Oracle(handler) as oracle:
        return server.inspect(oracle.url)


def llama_server(**props: Any) -> Handler:
    return routes({"/props": answer(props), "/v1/models": answer({"data": [{"id": "m", "owned_by": "llamacpp"}]})})


@pytest.mark.parametrize(
    ("props", "context", "slots"),
    [
        # Two slots of 16,384; a unified cache of 4 slots that each may fill; nothing to divide.
        ({"total_slots": 2, "default_generation_settings": {"n_ctx": 16384}}, 16384, 2),
        ({"total_slots": 4, "default_generation_settings": {"n_ctx": 131072}}, 131072, 4),
        ({"total_slots": 1, "default_generation_settings": {"n_ctx": 2048}}, 2048, 1),  # harmless: one slot
        ({"default_generation_settings": {"n_ctx": 0}}, None, None),  # harmless: nothing is told, nothing is refused
    ],
)
def test_b38_what_one_slot_holds(props: dict[str, Any], context: int | None, slots: int | None) -> None:
    """As /props says it, per slot; what it does not say is unknown, and no limit of 0."""
    facts = looked_at(llama_server(**props))
    assert (facts.context_limit_tokens, facts.parallel_slots) == (context, slots)


@pytest.mark.parametrize(
    ("line", "environment", "kv_type", "flash"),
    [
        (["llama-server", "-ctk", "q4_0", "-ctv", "q4_0", "-fa", "on"], {}, "q4_0", "on"),
        (["llama-server", "--cache-type-k=q8_0", "-fa", "off"], {"A": "b"}, "q8_0/f16", "off"),
        # The user set it for Ollama's own process; what its runner was given is what counts.
        (["llama-server", "--cache-type-k", "q8_0", "--cache-type-v", "q8_0"], {"OLLAMA_KV_CACHE_TYPE": "f16"}, "q8_0",
         "auto"),
        (["llama-server", "-m", "q8_0.gguf"], {"PATH": "/"}, "f16", "auto"),  # harmless: a file's name is no flag
        (["python", "-m", "http.server", "-ctk", "q4_0"], {}, None, None),  # harmless: not a llama server
    ],
)  # fmt: skip
def test_b42_what_the_process_was_started_with(
    line: list[str], environment: dict[str, str], kv_type: str | None, flash: str | None
) -> None:
    """Effective, where it can be seen; unknown, and not a default, where it cannot."""
    flags = read_flags(line, environment or None)
    assert (flags.kv_cache_type, flags.flash_attention) == (kv_type, flash)
