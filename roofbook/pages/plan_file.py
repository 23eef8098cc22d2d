"""The plan of a run as a file that measures it again: what was decided while it ran is written out."""

from collections.abc import Mapping
from typing import Any, Final, cast

import yaml

_OF_A_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    "prefix_cache": ("shared_share",),
    "concurrency": ("concurrency", "requests"),
    "request_rate": ("rate_per_s", "arrival", "duration_s", "max_in_flight"),
    "soak": ("duration_s",),
}
"""The keys that only experiments of that kind take."""


def plan_text(plan: Mapping[str, Any]) -> str | None:
    """Return the resolved *plan* of a run (``RunFacts.plan``) as YAML; None where there is none."""
    experiments = [found for one in _list(plan.get("experiments")) if (found := _mapping(one))]
    if not experiments or not plan.get("plan"):
        return None
    run = _mapping(plan.get("run"))
    server = {key: value for key, value in _mapping(plan.get("server")).items() if value not in (None, {}, [])}
    written: dict[str, Any] = {"plan": plan["plan"], "machine": plan.get("machine") or "this", "server": server}
    written["run"] = run
    if plan.get("slo"):
        written["slo"] = plan["slo"]
    written["experiments"] = [_experiment(one, run, server) for one in experiments]
    return yaml.safe_dump(written, sort_keys=False, allow_unicode=True)  # pyright: ignore[reportUnknownMemberType] - the stubs leave its stream open


def _experiment(one: Mapping[str, Any], run: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """Return one experiment with what differs from the plan's own settings."""
    kind = str(one.get("kind"))
    written = {key: one[key] for key in ("name", "kind", "prompt_tokens", "output_tokens") if key in one}
    written |= {key: value for key, value in _mapping(one.get("run")).items() if run.get(key) != value}
    if one.get("model") and one.get("model") != server.get("model"):
        written["model"] = one["model"]
    options = _mapping(one.get("options"))
    if options and options != _mapping(server.get("options")):
        written["options"] = options
    return written | {key: one[key] for key in _OF_A_KIND.get(kind, ()) if one.get(key) is not None}


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
