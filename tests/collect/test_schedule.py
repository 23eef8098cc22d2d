"""The order of a run follows from its plan and seed: grouped, shuffled inside, with anchors."""

from collections import Counter

from collect.plan import Plan, read_plan
from collect.schedule import Block, Unit, alternates, schedule


def plan(experiments: str, run: str = "{anchor: null, repeats: 2}") -> Plan:
    return read_plan(f"plan: x\nrun: {run}\nexperiments:\n{experiments}", "p.yml")


def points(block: Block) -> list[str]:
    return [f"{unit.cell.point}#{unit.repeats[0]}" for unit in block.units]


TWO_CELLS = "  - {kind: prefill_curve, prompt_tokens: [128, 512], output_tokens: 8}\n"


def test_as_written_goes_cell_by_cell_and_interleaved_repeat_by_repeat() -> None:
    """The two orders that are not left to chance."""
    written = plan(TWO_CELLS, "{anchor: null, repeats: 2, order: as_written}")
    assert points(schedule(written, 1)[0]) == ["p128-o8#1", "p128-o8#2", "p512-o8#1", "p512-o8#2"]
    interleaved = plan(TWO_CELLS, "{anchor: null, repeats: 2, order: interleaved}")
    assert points(schedule(interleaved, 1)[0]) == ["p128-o8#1", "p512-o8#1", "p128-o8#2", "p512-o8#2"]


def test_shuffled_is_the_same_for_a_seed_and_another_for_another() -> None:
    """A recorded seed gives the order again; each request is there exactly once."""
    twenty = plan(TWO_CELLS, "{anchor: null, repeats: 10}")
    first, again, other = (points(schedule(twenty, seed)[0]) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert Counter(first) == Counter(other) == Counter(f"p{n}-o8#{k}" for n in (128, 512) for k in range(1, 11))


def test_a_seed_in_the_plan_wins_over_the_drawn_one() -> None:
    """A plan with a seed has one order, whatever was drawn."""
    fixed = plan(TWO_CELLS, "{anchor: null, repeats: 10, seed: 5}")
    assert points(schedule(fixed, 1)[0]) == points(schedule(fixed, 2)[0])


def test_b05_models_and_options_do_not_alternate() -> None:
    """B05: models A, B, A, B are measured as A, A, B, B: each is loaded once; the plan is known to alternate."""
    four = plan(
        "".join(f"  - {{kind: baseline, prompt_tokens: {64 + n}, model: {'ab'[n % 2]}}}\n" for n in range(4)),
        "{anchor: null, order: as_written, repeats: 1}",
    )
    blocks = schedule(four, 1)
    assert [(block.model, points(block)) for block in blocks] == [
        ("a", ["p64-o32#1", "p66-o32#1"]),
        ("b", ["p65-o32#1", "p67-o32#1"]),
    ]
    assert alternates(four)
    assert not alternates(plan(TWO_CELLS + TWO_CELLS))


def test_b05_a_cold_load_comes_after_what_must_be_warm() -> None:
    """Loading on purpose is measured last of its model, in a block that nothing warms."""
    both = plan("  - {kind: cold_load, prompt_tokens: 64}\n  - {kind: baseline, prompt_tokens: 64}\n")
    assert [(block.cold, block.units[0].cell.kind) for block in schedule(both, 1)] == [
        (False, "baseline"), (True, "cold_load"),
    ]  # fmt: skip


def test_b25_anchors_stand_at_the_start_along_the_way_and_at_the_end() -> None:
    """B25: with an anchor every two requests, five requests have it before, after 2, after 4 and after the last."""
    five = plan("  - {kind: baseline, prompt_tokens: 128}\n", "{repeats: 5, anchor: {every: 2}}")
    (block,) = schedule(five, 1)
    assert "".join("a" if unit.phase == "anchor" else "m" for unit in block.units) == "ammammama"
    anchors = [unit for unit in block.units if unit.phase == "anchor"]
    assert [unit.repeats for unit in anchors] == [(1,), (2,), (3,), (4,)]
    assert {(unit.cell.experiment, unit.cell.kind, unit.cell.point) for unit in anchors} == {(None, None, "p512-o32")}


def test_a_level_of_concurrency_is_one_unit_of_all_its_requests() -> None:
    """Nothing else runs while a level is measured."""
    levels = plan("  - {kind: concurrency, concurrency: [1, 4], requests: 6, prompt_tokens: 64, output_tokens: 8}\n")
    units = sorted(schedule(levels, 1)[0].units, key=lambda unit: unit.cell.concurrency)
    assert [(unit.cell.point, unit.repeats) for unit in units] == [
        ("p64-o8", (1, 2, 3, 4, 5, 6)), ("p64-o8-c4", (1, 2, 3, 4, 5, 6)),
    ]  # fmt: skip


def test_what_is_done_is_left_out_and_nothing_else() -> None:
    """Taking a run up skips what is finished, inside a level of concurrency too."""
    (block,) = schedule(plan("  - {kind: concurrency, concurrency: 2, requests: 4, prompt_tokens: 64}\n"), 1)
    done = frozenset({("measured", "concurrency", "p64-o32-c2", 1), ("measured", "concurrency", "p64-o32-c2", 3)})
    assert [unit.repeats for unit in block.without(done).units] == [(2, 4)]
    everything = frozenset(key for unit in block.units for key in unit.keys)
    assert block.without(everything).units == ()


def test_every_request_of_a_schedule_has_its_own_key() -> None:
    """Two experiments that measure the same point, and all anchors, can be told apart."""
    blocks = schedule(plan(TWO_CELLS + TWO_CELLS, "{repeats: 5, anchor: {every: 3}}"), 1)
    keys = [key for block in blocks for unit in block.units for key in unit.keys]
    assert len(keys) == len(set(keys)) == 20 + 8  # anchors: the first, after 3, 6, ... 18, and the last

    def measured(unit: Unit) -> bool:
        return unit.phase == "measured"

    assert sum(measured(unit) for block in blocks for unit in block.units) == 20
