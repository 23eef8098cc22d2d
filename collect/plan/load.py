"""A plan file to a Plan: every fault of the file is found, and all are reported together."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

from collect.plan.keys import Keys
from collect.plan.lines import Scalar, Section, read_lines
from collect.plan.values import (
    APIS,
    ARRIVALS,
    CONNECTIONS,
    KINDS,
    KINDS_NOT_BUILT,
    ORDERS,
    Anchor,
    Api,
    Connection,
    Experiment,
    Kind,
    Option,
    Order,
    Plan,
    RunSettings,
    ServerWanted,
    Slo,
)
from roofbook.errors import PlanError

# A nonce, and a word or two after it; fewer cannot be told from one another.
FEWEST_PROMPT_TOKENS: Final = 16
MOST_TOKENS: Final = 10_000_000
MOST_CONCURRENCY: Final = 4_096
MOST_REQUESTS: Final = 100_000

_MOST_BYTES: Final = 1_000_000  # a plan is read by people
_STATED: Final = (
    "server", "server_version", "model_digest", "quantization", "weights_bytes", "kv_cache_type", "flash_attention",
    "context_limit_tokens", "parallel_slots", "gpu_fraction", "note",
)  # fmt: skip
_STATED_NUMBERS: Final = ("weights_bytes", "context_limit_tokens", "parallel_slots")
_RUN_KEYS: Final = ("order", "seed", "warmups", "repeats", "pause_s", "timeout_s", "connection", "anchor")


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
    run = _run(keys.section("run"), RunSettings())
    slo = _slo(keys.section("slo"))
    experiments: list[Experiment] = []
    for inner in keys.sections("experiments"):
        one = _experiment(inner, run, server, faults, taken=[other.name for other in experiments])
        if one is not None:
            experiments.append(one)
    keys.finish()
    return Plan(name or "", machine, server, run, slo, tuple(experiments), tuple(warnings))


def _server(keys: Keys, faults: list[PlanError], warnings: list[PlanError]) -> ServerWanted:
    inner = keys.section("server")
    if inner is None:
        return ServerWanted()
    api = cast("Api", inner.choice("api", APIS, "auto"))
    url = inner.text("url")
    if url is not None and not _is_url(url):
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
    server = ServerWanted(api, url, inner.text("model"), key_env, _options(inner.options("options")), _stated(inner))
    if server.api == "openai" and "num_ctx" in server.options:
        warnings.append(
            PlanError(
                "%(file)s, line %(line)d: the OpenAI API has no num_ctx: the server may cut prompts that do not fit "
                "its own limit. Use api: ollama to set it",
                **inner.at("options"),
            )
        )
    inner.finish()
    return server


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


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    del port
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None and not parts.query


def _run(keys: Keys | None, base: RunSettings, *, own: bool = True) -> RunSettings:
    """Return *base* with what *keys* says; *own* is false where the section has other keys beside those of run."""
    if keys is None:
        return base
    settings = RunSettings(
        order=cast("Order", keys.choice("order", ORDERS, base.order)),
        seed=base.seed if (seed := keys.integer_or_none("seed", most=2**53)) is None else seed,
        warmups=keys.integer("warmups", base.warmups, most=1_000),
        repeats=keys.integer("repeats", base.repeats, least=1, most=MOST_REQUESTS),
        pause_s=keys.number("pause_s", base.pause_s, most=86_400),
        timeout_s=keys.number("timeout_s", base.timeout_s, least=0.1, most=86_400),
        connection=cast("Connection", keys.choice("connection", CONNECTIONS, base.connection)),
        anchor=_anchor(keys, base.anchor),
    )
    if own:
        keys.finish()
    return settings


def _anchor(keys: Keys, base: Anchor | None) -> Anchor | None:
    """Return the anchor: *base* where it is left out, none where it is written as null."""
    inner = keys.section("anchor")
    if inner is None:
        return None if keys.has("anchor") else base
    start = base or Anchor()
    anchor = Anchor(
        inner.integer("prompt_tokens", start.prompt_tokens, least=FEWEST_PROMPT_TOKENS, most=MOST_TOKENS),
        inner.integer("output_tokens", start.output_tokens, least=1, most=MOST_TOKENS),
        inner.integer("every", start.every, least=1, most=MOST_REQUESTS),
    )
    inner.finish()
    return anchor


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


def _options(values: dict[str, Scalar]) -> dict[str, Option]:
    return {key: value for key, value in values.items() if value is not None}


def _experiment(
    keys: Keys, run: RunSettings, server: ServerWanted, faults: list[PlanError], *, taken: list[str]
) -> Experiment | None:
    kind = keys.choice("kind", KINDS, "")
    if not kind:
        if not keys.has("kind"):
            faults.append(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s' is missing; it is one of: %(kinds)s",
                    **keys.at("kind", kinds=", ".join(KINDS)),
                )
            )
        return None
    if kind in KINDS_NOT_BUILT:
        faults.append(
            PlanError(
                "%(file)s, line %(line)d: '%(key)s: %(kind)s' cannot be measured yet: this version does not have it; "
                "take the experiment out",
                **keys.at("kind", kind=kind),
            )
        )
    name = keys.file_name("name") or _numbered(kind, taken)
    if name in taken:
        faults.append(
            PlanError(
                "%(file)s, line %(line)d: '%(key)s: %(name)s' is the name of an experiment above: choose another",
                **keys.at("name", name=name),
            )
        )
    one = Experiment(
        name=name,
        kind=cast("Kind", kind),
        prompt_tokens=keys.integers("prompt_tokens", least=FEWEST_PROMPT_TOKENS, most=MOST_TOKENS),
        output_tokens=keys.integer("output_tokens", 32, least=1, most=MOST_TOKENS),
        run=_run(keys, run, own=False),
        model=keys.text("model", server.model),
        options={**server.options, **_options(keys.options("options"))},
    )
    one = _with_own_keys(one, keys)
    _complain_about_missing(one, keys, faults)
    keys.finish()
    return one if one.prompt_tokens else None


def _with_own_keys(one: Experiment, keys: Keys) -> Experiment:
    """Return *one* with the keys that only its kind has."""
    match one.kind:
        case "prefix_cache":
            return replace(one, shared_share=keys.numbers("shared_share", most=1))
        case "concurrency":
            return replace(
                one,
                concurrency=keys.integers("concurrency", least=1, most=MOST_CONCURRENCY) or (1,),
                requests=keys.integer("requests", 40, least=1, most=MOST_REQUESTS),
            )
        case "request_rate":
            return replace(
                one,
                rate_per_s=keys.numbers("rate_per_s", least=0.001, most=100_000),
                arrival=keys.choice("arrival", ARRIVALS, "poisson"),
                duration_s=keys.number("duration_s", 60.0, least=1),
                max_in_flight=keys.integer("max_in_flight", 64, least=1, most=MOST_CONCURRENCY),
            )
        case "soak":
            return replace(one, duration_s=keys.number("duration_s", 1_200.0, least=1))
        case "baseline" | "prefill_curve" | "cold_load":
            return one


_NEEDED: Final = {
    "prefix_cache": ("prompt_tokens", "shared_share"),
    "concurrency": ("prompt_tokens", "concurrency"),
    "request_rate": ("prompt_tokens", "rate_per_s"),
}


def _complain_about_missing(one: Experiment, keys: Keys, faults: list[PlanError]) -> None:
    for key in _NEEDED.get(one.kind, ("prompt_tokens",)):
        if not keys.has(key):
            faults.append(
                PlanError(
                    "%(file)s, line %(line)d: '%(key)s' is missing: %(kind)s needs it", **keys.at(key, kind=one.kind)
                )
            )
    if one.kind not in ("baseline", "prefill_curve", "cold_load") and len(one.prompt_tokens) > 1:
        faults.append(
            PlanError(
                "%(file)s, line %(line)d: '%(key)s' must be one number for %(kind)s: write an experiment for each",
                **keys.at("prompt_tokens", kind=one.kind),
            )
        )


def _numbered(kind: str, taken: list[str]) -> str:
    """Return the kind as a name, numbered from the second on."""
    number = 1
    while (name := kind if number == 1 else f"{kind}-{number}") in taken:
        number += 1
    return name
