"""The experiments of a plan, and the settings of run that each of them may override."""

from dataclasses import replace
from typing import Final, cast

from collect.plan.keys import Keys
from collect.plan.lines import Scalar
from collect.plan.values import (
    ARRIVALS,
    CONNECTIONS,
    KINDS,
    KINDS_NOT_BUILT,
    ORDERS,
    Anchor,
    Connection,
    Experiment,
    Kind,
    Option,
    Order,
    RunSettings,
    ServerWanted,
)
from roofbook.errors import PlanError

# A nonce, and a word or two after it; fewer cannot be told from one another.
FEWEST_PROMPT_TOKENS: Final = 16
MOST_TOKENS: Final = 10_000_000
MOST_CONCURRENCY: Final = 4_096
MOST_REQUESTS: Final = 100_000


def run_settings(keys: Keys | None, base: RunSettings, *, own: bool = True) -> RunSettings:
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


def given_options(values: dict[str, Scalar]) -> dict[str, Option]:
    """Return the options that have a value; null leaves one out."""
    return {key: value for key, value in values.items() if value is not None}


def experiment(
    keys: Keys, run: RunSettings, server: ServerWanted, faults: list[PlanError], *, taken: list[str]
) -> Experiment | None:
    """Return one experiment; None where it is not even clear what it measures. Names in *taken* are used above."""
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
        run=run_settings(keys, run, own=False),
        model=keys.text("model", server.model),
        options={**server.options, **given_options(keys.options("options"))},
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
