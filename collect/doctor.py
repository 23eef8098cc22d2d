"""Look before a long run: does the server answer, does it have the model, does every cell fit, how much is sent."""

from pathlib import Path

from collect.plan import load_plan
from collect.plan.resolve import resolve
from collect.reach import reach
from collect.run import engine_log
from collect.schedule import schedule
from collect.tell import Tell
from roofbook.places import Places


def examine(plan_path: Path, places: Places, tell: Tell) -> int:
    """Say what a run of the plan would meet, without measuring; return the exit code.

    Raises what reading the plan and reaching its server raise.
    """
    plan = load_plan(plan_path)
    tell.doubts(plan)
    with reach(plan, engine_log=engine_log(places)) as reached:
        tell.reached(reached)
        blocks = schedule(resolve(plan, seed=plan.run.seed or 0, api=reached.api.name), plan.run.seed or 0)
        tell.schedule(plan, blocks)
        misfits = 0
        for block in blocks:
            facts = reached.look(block.model)
            limit = reached.context_limit(facts, block.options)
            for cell in block.cells:
                if limit is not None and cell.tokens > limit:
                    tell.refused(cell, limit, facts.parallel_slots)
                    misfits += 1
    if not misfits:
        tell.line(tell.words.say("Nothing stands in the way"))
    return 4 if misfits else 0
