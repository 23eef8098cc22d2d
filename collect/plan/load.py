"""A plan file to a Plan: every fault of the file is found, and all are reported together."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

from collect.address import is_address
from collect.plan.experiments import experiment, given_options, run_settings
from collect.plan.keys import Keys
from collect.plan.lines import Section, read_lines
from collect.plan.values import (
    APIS,
    Api,
    Experiment,
    Option,
    Plan,
    RunSettings,
    ServerWanted,
    Slo,
)
from roofbook.errors import PlanError

_MOST_BYTES: Final = 1_000_000  # a plan is read by people
_STATED: Final = (
    "server", "server_version", "model_digest", "quantization", "weights_bytes", "kv_cache_type", "flash_attention",
    "context_limit_tokens", "parallel_slots", "gpu_fraction", "note",
)  # fmt: skip
_STATED_NUMBERS: Final = ("weights_bytes", "context_limit_tokens", "parallel_slots")


class PlanFaults(PlanError):
    """All faults of one plan file, in the order of its lines."""

    def __init__(self, faults: Iterable[PlanError]) -> None:
        self.faults = tuple(faults)
        super().__init__("%(faults)s", faults="\n".join(str(fault) for fault in self.faults))


def load_plan(path: Path) -> Plan:
    """Read, check and resolve the plan at *path*.

    Raises PlanFaults with everything that is wrong with it, PlanError where there is no such file.
    """
    return read_plan(_text_of(path), path.name)


def read_plan(text: str, file: str) -> Plan:
    """Return the plan that *text* describes; *file* is the name that complaints give.

    Raises PlanFaults with everything that is wrong with it.
    """
    faults: list[PlanError] = []
    root = read_lines(text, file, faults.append)
    plan = None
    if isinstance(root, Section):
        plan = _plan(Keys(root, file=file, place="", complain=faults.append), faults)
    elif not faults:
        faults.append(
            PlanError(
                "%(file)s, line %(line)d: a plan is a section of keys, and begins with 'plan: NAME'", file=file, line=1
            )
        )
    if faults or plan is None:
        raise PlanFaults(sorted(faults, key=_line_of))
    return plan


def _line_of(fault: PlanError) -> int:
    return cast("int", fault.values["line"])


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise PlanError("%(path)s is too large for a plan: is it another file?", path=path)
        return path.read_text("utf-8")
    except FileNotFoundError as problem:
        folder = path.parent if path.parent.name else Path("plans")
        there = ", ".join(sorted(str(other) for other in folder.glob("*.yml")))
        if not there:
            raise PlanError("There is no plan %(path)s; ready ones lie in plans/", path=path) from problem
        raise PlanError("There is no plan %(path)s; there are: %(there)s", path=path, there=there) from problem
    except UnicodeDecodeError as problem:
        raise PlanError("%(path)s is not UTF-8 text: is it another file?", path=path) from problem
    except OSError as problem:
        raise PlanError("%(path)s cannot be read: %(problem)s", path=path, problem=problem.strerror) from problem


def _plan(keys: Keys, faults: list[PlanError]) -> Plan:
    warnings: list[PlanError] = []
    name = keys.file_name("plan")
    if name is None and not any(fault.values.get("key") == "plan" for fault in faults):
        faults.append(
            PlanError("%(file)s, line %(line)d: '%(key)s' is missing: give the plan a name", **keys.at("plan"))
        )
    machine = keys.file_name("machine", "this") or "this"
    server = _server(keys, faults, warnings)
    run = run_settings(keys.section("run"), RunSettings())
    slo = _slo(keys.section("slo"))
    experiments: list[Experiment] = []
    for inner in keys.sections("experiments"):
        one = experiment(inner, run, server, faults, taken=[other.name for other in experiments])
        if one is not None:
            experiments.append(one)
    if any("num_ctx" in one.options for one in experiments) and not warnings:
        warnings += _without_num_ctx(server.api, keys.at("experiments"))
    keys.finish()
    return Plan(name or "", machine, server, run, slo, tuple(experiments), tuple(warnings))


def _server(keys: Keys, faults: list[PlanError], warnings: list[PlanError]) -> ServerWanted:
    inner = keys.section("server")
    if inner is None:
        return ServerWanted()
    api = cast("Api", inner.choice("api", APIS, "auto"))
    url = inner.text("url")
    if url is not None and not is_address(url):
        faults.append(
            PlanError(
                "%(file)s, line %(line)d: '%(key)s' must be an address such as http://127.0.0.1:11434, without user, "
                "password or key in it",
                **inner.at("url"),
            )
        )
    if url is not None and api == "embedded":
        faults.append(
            PlanError(
                "%(file)s, line %(line)d: '%(key)s' has no meaning with api: embedded, which starts its own server",
                **inner.at("url"),
            )
        )
    if url is None and api == "sse":
        faults.append(
            PlanError(
                "%(file)s, line %(line)d: '%(key)s' is missing: api: sse needs the whole address to send to",
                **inner.at("url"),
            )
        )
    key_env = inner.text("api_key_env")
    if key_env is not None and not os.environ.get(key_env):
        faults.append(
            PlanError(
                "%(file)s, line %(line)d: '%(key)s' names an environment variable that is not set: export it first",
                **inner.at("api_key_env"),
            )
        )
    server = ServerWanted(
        api, url, inner.text("model"), key_env, given_options(inner.options("options")), _stated(inner)
    )
    if "num_ctx" in server.options:
        warnings += _without_num_ctx(server.api, inner.at("options"))
    inner.finish()
    return server


def _without_num_ctx(api: Api, at: dict[str, Any]) -> list[PlanError]:
    """Return what to say of a context that is asked for where it is not sent."""
    if api == "openai":
        return [
            PlanError(
                "%(file)s, line %(line)d: the OpenAI API has no num_ctx: the server may cut prompts that do not fit "
                "its own limit. Use api: ollama to set it",
                **at,
            )
        ]
    if api in ("llamacpp", "embedded"):
        return [
            PlanError(
                "%(file)s, line %(line)d: num_ctx is not sent: llama.cpp takes its context when it starts (--ctx-size)",
                **at,
            )
        ]
    return []


def _stated(server: Keys) -> dict[str, Option]:
    inner = server.section("stated")
    if inner is None:
        return {}
    stated: dict[str, Option] = {}
    for key in _STATED:
        if not inner.has(key):
            continue
        if key in _STATED_NUMBERS:
            stated[key] = inner.integer_or_none(key, least=1, most=10**15)
        elif key == "gpu_fraction":
            stated[key] = inner.number_or_none(key, most=1)
        else:
            stated[key] = inner.text(key)
    inner.know(_STATED)
    inner.finish()
    return {key: value for key, value in stated.items() if value is not None}


def _slo(keys: Keys | None) -> Slo | None:
    if keys is None:
        return None
    slo = Slo(
        keys.number_or_none("ttft_ms", least=0.001),
        keys.number_or_none("tpot_ms", least=0.001),
        keys.number("share", 0.95, most=1),
    )
    keys.finish()
    return slo
