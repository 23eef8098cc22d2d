"""The plan as it is measured: what was left open is decided, so that the run can be repeated and taken up again."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from collect.plan.values import Experiment, Option, Plan

# Room for a prompt that turns out longer than wanted before its length is corrected, and for the model's own marks.
_SPARE_SHARE: Final = 0.03
_SPARE_TOKENS: Final = 64
_CONTEXT_STEP: Final = 1024


def context_for(plan: Plan) -> int:
    """Return the context in tokens that every request of *plan* fits into."""
    needed = plan.longest_tokens * (1 + _SPARE_SHARE) + _SPARE_TOKENS
    return -(-int(needed) // _CONTEXT_STEP) * _CONTEXT_STEP


def resolve(plan: Plan, *, seed: int, api: str) -> Plan:
    """Return *plan* with its seed drawn, and for Ollama with a num_ctx wherever the plan leaves it out.

    It is the same num_ctx everywhere: Ollama loads the model again when it changes, and cuts prompts in silence when it
    is left to its default.
    """
    run = plan.run if plan.run.seed is not None else replace(plan.run, seed=seed)
    fill: Mapping[str, Option] = {"num_ctx": context_for(plan)} if api == "ollama" else {}
    return replace(
        plan,
        run=run,
        server=replace(plan.server, options={**fill, **plan.server.options}),
        experiments=tuple(_resolved(one, seed, fill) for one in plan.experiments),
    )


def _resolved(one: Experiment, seed: int, fill: Mapping[str, Option]) -> Experiment:
    run = one.run if one.run.seed is not None else replace(one.run, seed=seed)
    return replace(one, run=run, options={**fill, **one.options})
