"""Clients that are late, machines that sleep, heat up and are waited for, with look-alikes: B17, B25, B37, B43."""

from collections.abc import Callable
from pathlib import Path

import pytest

from collect.plan import read_plan
from collect.schedule import schedule
from roofbook.charts.cache import FigureCache
from roofbook.facts import load_facts
from roofbook.pages import prefill
from roofbook.pages.subjects import subject_views
from roofbook.record import Row, RunFacts, read_run, write_run
from roofbook.validity import MEASURES, Finding
from roofbook.words import load_words

ROOT = Path(__file__).parents[2]

Judge = Callable[..., list[Finding]]
MakeRow = Callable[..., Row]


@pytest.mark.parametrize(
    ("change", "spoilt"),
    [
        # The garbage collector took 150 ms of a stream of 504: a third of what is measured.
        ({"loop_lag_ms": 150.0, "last_token_ms": 2584.0, "e2e_ms": 2585.0}, {"ttft", "tpot"}),
        # The client tokenizes between two reads: 97 % of its core.
        ({"client_cpu_share": 0.97}, {"ttft", "tpot"}),
        # 130 ms late: 5.2 % of the 2.52 s of tokens, and 6.3 % of TTFT.
        ({"loop_lag_ms": 131.0}, {"ttft", "tpot"}),
        ({"loop_lag_ms": 90.0}, set()),  # harmless: 4.3 % of TTFT
        (
            {"loop_lag_ms": 9.0, "ttft_ms": 12.0, "last_token_ms": 40.0, "e2e_ms": 41.0, "server_prefill_ms": None},
            set(),
        ),
        ({"client_cpu_share": 0.6}, set()),  # harmless: a fast stream's parsing
        ({"loop_lag_ms": None, "client_cpu_share": None}, set()),  # harmless: an import
    ],
)
def test_b17_a_client_that_is_late(row: MakeRow, judge: Judge, change: Row, spoilt: set[str]) -> None:
    """Its lag is held against the figure that it moves; a full core moves all of them."""
    found = judge([row(**change)], "client_saturated")
    assert {measure for finding in found for measure in finding.spoils} == spoilt


def anchors(row: MakeRow, rates: list[float], **more: object) -> list[Row]:
    """Return anchors of 33 tokens at *rates*, with equal prefills."""
    return [row(i, phase="anchor", experiment=None, kind=None, point="a", output_tokens=33, output_tokens_wanted=33,
                last_token_ms=2080 + 32_000 / rate, e2e_ms=2080 + 32_000 / rate, **more)
            for i, rate in enumerate(rates)]  # fmt: skip


@pytest.mark.parametrize(
    ("rates", "share"),
    [
        ([30, 30, 29, 28, 27, 26, 26, 25, 25], -0.146),  # means of 29.67 and 25.33: a machine that heats up
        ([18, 18.1, 21, 21.1], 0.172),  # one that recovers: something else had run at the start; 21.1 / 18
        ([30, 29.8, 30.1, 29.7, 30.2, 29.9], None),  # harmless: within a per cent
        ([30, 26, 30, 26, 30, 26, 30], None),  # harmless: every second one disturbed, and no trend
        ([30], None),  # harmless: one anchor has no other
    ],
)
def test_b25_an_anchor_that_moves(row: MakeRow, judge: Judge, rates: list[float], share: float | None) -> None:
    """The last third of its repeats against the first, above 5 % and above its own scatter."""
    found = judge(anchors(row, rates), "drifted")
    assert [finding.values["share"] for finding in found] == (
        [] if share is None else [pytest.approx(share, abs=0.001)]
    )


def test_b25_the_anchors_of_two_models_are_no_drift(row: MakeRow, judge: Judge) -> None:
    """Harmless: a plan of two models, or two contexts, has an anchor with each; the second is slower, and steady."""
    for other in ({"model": "large"}, {"request_options": '{"num_ctx": 32768}'}, {"point": "another"}):
        rows = anchors(row, [30, 30.1, 29.9]) + [one | other for one in anchors(row, [9, 9.05, 8.95])]
        assert judge([one | {"order_index": i} for i, one in enumerate(rows)], "drifted") == []


def test_b25_the_order_that_was_sent_is_not_the_order_that_was_written() -> None:
    """Lengths written upwards are shuffled over all their repeats: no length's repeats stand together."""
    plan = read_plan(
        "plan: x\nrun: {repeats: 5, anchor: null}\n"
        "experiments:\n  - {kind: prefill_curve, prompt_tokens: [100, 200, 300, 400]}\n",
        "p.yml",
    )
    (block,) = schedule(plan, 11)
    sent = [unit.cell.prompt_tokens for unit in block.units]
    assert sent != sorted(sent)
    assert sorted(sent) == [100] * 5 + [200] * 5 + [300] * 5 + [400] * 5


def test_b25_the_curve_carries_the_warning(row: MakeRow, tmp_path: Path) -> None:
    """A run whose anchor moved says so on the page of its prefill curve, though no single row is to blame."""
    machine: Row = {"machine": "mac-mini-m4-32gb", "server": "ollama", "model": "qwen2.5:7b", "api": "ollama"}
    curve = [
        row(10 + i, kind="prefill_curve", point=f"p{tokens}", prompt_tokens=tokens, prompt_tokens_wanted=tokens,
            server_prefill_ms=4.5 * tokens, ttft_ms=4.5 * tokens + 80, last_token_ms=4.5 * tokens + 2700,
            e2e_ms=4.5 * tokens + 2701)
        for i, tokens in enumerate([200, 400, 800, 1600])
    ]  # fmt: skip
    rows = [one | machine for one in [*anchors(row, [21.3, 20.4, 19.0]), *curve]]
    run = read_run(write_run(tmp_path, rows, RunFacts("r")))
    (view,) = subject_views([run], load_facts(ROOT / "data" / "facts"))
    assert [finding.values["share"] for finding in view.found if finding.kind == "drifted"] == [
        pytest.approx(-0.108, abs=0.0005)
    ]
    notes = prefill.context(view, load_words(ROOT / "templates" / "locale", "en"), FigureCache(None))["notes"]
    assert any("21.3" in sentence and "19.0" in sentence for _, sentence, _ in notes)


@pytest.mark.parametrize(
    ("wall_ms", "e2e_ms", "slept"),
    [
        (5_670_000.0, 30_000.0, True),  # 94 minutes of idle sleep inside a request of 30 s
        (4601.0 + 7_200.0, 4601.0, True),  # a nap of seven seconds
        (2601.0, 4601.0, False),  # harmless: the clock was set back by two seconds (B37)
        (4601.0 + 900.0, 4601.0, False),  # harmless: set forward by nine tenths
        (4601.0, 4601.0, False),  # harmless: both agree
        (None, 4601.0, False),  # harmless: an import
    ],
)
def test_b37_b43_the_two_clocks_apart(
    row: MakeRow, judge: Judge, wall_ms: float | None, e2e_ms: float, slept: bool
) -> None:
    """The wall clock far ahead of the monotonic one is a sleep, and spoils all; small jumps are the network's time."""
    found = judge([row(wall_elapsed_ms=wall_ms, e2e_ms=max(e2e_ms, 4601.0))], "slept")
    assert [finding.spoils for finding in found] == [frozenset(MEASURES)] * slept


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        # On mains, then on the battery; a pause of 2 s in some cells.
        ([{"power_source": "ac"}] * 3 + [{"power_source": "battery"}], ["power_source"]),
        ([{"pause_before_ms": 0.0}] * 3 + [{"pause_before_ms": 2000.0}], ["pause_before_ms"]),
        ([{"power_source": "ac"}] * 4, []),  # harmless
        (
            [{"power_source": None}] * 2 + [{"power_source": "battery"}] * 2,
            [],
        ),  # harmless: unknown differs from nothing
    ],
)
def test_b43_power_and_pause_are_conditions(
    row: MakeRow, judge: Judge, conditions: list[Row], names: list[str]
) -> None:
    """Cells that ran under different ones are told, so that nobody compares them unawares."""
    rows = [row(i, point=f"p{i}", **one) for i, one in enumerate(conditions)]
    assert [finding.values["field"] for finding in judge(rows, "mixed_conditions")] == names


def test_b43_throttling_is_told_by_its_reason(row: MakeRow, judge: Judge) -> None:
    """A hot machine spoils; one at its rated power, and one that is merely warm, do not."""
    held = [{"thermal_level": "serious"}, {"throttle_reason": "hw_slowdown, gpu_idle"}]
    harmless = [{"thermal_level": "fair"}, {"throttle_reason": "sw_power_cap, applications_clocks_setting"}]
    for change in held:
        assert len(judge([row(host_is_server=True, **change)], "throttled")) == 1
    for change in harmless:
        assert judge([row(host_is_server=True, **change)], "throttled") == []
