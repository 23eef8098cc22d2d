"""What to measure: a plan file to a Plan, or every fault of the file with its line and key."""

from collect.plan.load import PlanFaults, load_plan, read_plan
from collect.plan.values import Anchor, Experiment, Option, Plan, RunSettings, ServerWanted, Slo

__all__ = [
    "Anchor",
    "Experiment",
    "Option",
    "Plan",
    "PlanFaults",
    "RunSettings",
    "ServerWanted",
    "Slo",
    "load_plan",
    "read_plan",
]
