"""Look before a long run: server, model, fit, time, and what will spoil the numbers. Nothing is measured or kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from collect import host
from collect.doubts import in_words
from collect.fit import Fit, fit, machine_of, model_of
from collect.forecast import Forecast, at_least, forecast, probe
from collect.hardware import FILE_ENDING, engine_log, hardware, read_host
from collect.host.facts import HostFacts
from collect.plan import Plan, load_plan
from collect.plan.resolve import resolve
from collect.reach import Reached, reach
from collect.run import EXIT_MEASURED, EXIT_WITH_FAILURES
from collect.schedule import Block, schedule
from collect.spoilers import FAR_MS, look, round_trip_ms, spoilers
from collect.tell import Tell
from roofbook.errors import EstimateError
from roofbook.facts import Facts, load_facts
from roofbook.places import Places
from roofbook.theory.shapes import Range
from roofbook.units import GIB
from roofbook.validity.server import partial_gpu
from roofbook.words import Words

_PROBE_TIMEOUT_S: Final = 120.0


def examine(plan_path: Path, places: Places, tell: Tell) -> int:
    """Say what a run of the plan would meet; return 0 where all of it can be measured, 4 where something cannot.

    What merely spoils numbers is said and does not change the code. Raises what reading the plan and reaching its
    server raise.
    """
    plan = load_plan(plan_path)
    tell.doubts(plan)
    with reach(plan, engine_log=engine_log(places)) as reached:
        tell.reached(reached)
        tell.ignored_options(plan, reached.api_name)
        seed = plan.run.seed or 0
        resolved = resolve(plan, seed=seed, api=reached.api.name)
        blocks = schedule(resolved, seed)
        tell.schedule(plan, blocks)
        facts, here = load_facts(places.facts), host.this_host()
        whose = here if reached.facts.host_is_server else None
        if plan.machine.endswith(FILE_ENDING):
            whose = read_host(plan_path, plan).facts
        impossible = _misfits(reached, blocks, tell)
        impossible += _memory(resolved, reached, whose, facts, tell)
        impossible += _time(resolved, reached, blocks, whose, facts, tell)
        tell.hardware(hardware(plan, plan_path, facts, reached), here=reached.facts.host_is_server)
        _surroundings(reached, here, tell)
        _settings(plan, reached, tell)
    if not impossible:
        tell.line(tell.words.say("Nothing stands in the way"))
    return EXIT_WITH_FAILURES if impossible else EXIT_MEASURED


def _misfits(reached: Reached, blocks: Sequence[Block], tell: Tell) -> int:
    """Say which cells the server's context cannot take, and return how many."""
    misfits = 0
    for block in blocks:
        facts = reached.look(block.model)
        limit = reached.context_limit(facts, block.options)
        for cell in block.cells:
            if limit is not None and cell.tokens > limit:
                tell.refused(cell, limit, facts.parallel_slots)
                misfits += 1
    return misfits


def _memory(plan: Plan, reached: Reached, whose: HostFacts | None, facts: Facts, tell: Tell) -> int:
    model, machine = model_of(reached, facts), machine_of(plan, whose, facts)
    if model is None or machine is None:
        tell.line(tell.words.say("Memory: cannot be told, because the model's shape or the machine is not known"))
        return 0
    try:
        found = fit(plan, reached, model, machine, whose, facts)
    except EstimateError as problem:
        tell.problem(problem)
        return 0
    tell.line(_fit_in_words(found, tell.words))
    return found.fits is False


def _fit_in_words(found: Fit, words: Words) -> str:
    values = {
        "needed": _gib(found.needed_bytes, words),
        "weights": _gib(found.weights_bytes, words),
        "cache": _gib(found.cache_bytes, words),
        "limit": _gib(found.limit.limit_bytes, words),
    }
    match found.fits:
        case True:
            return words.say(
                "Memory: fits. %(needed)s GiB are needed (weights %(weights)s, KV cache %(cache)s, the rest for the "
                "system), %(limit)s are there",
                **values,
            )
        case False:
            return words.say(
                "Memory: does not fit. %(needed)s GiB are needed (weights %(weights)s, KV cache %(cache)s, the rest "
                "for the system), %(limit)s are there. Choose a smaller model, quantization or context",
                **values,
            )
        case _:
            return words.say(
                "Memory: may just fit or not. %(needed)s GiB are needed (weights %(weights)s, KV cache %(cache)s, the "
                "rest for the system), %(limit)s are there",
                **values,
            )


def _gib(value: Range, words: Words) -> str:
    low, high = words.significant(value.low / GIB), words.significant(value.high / GIB)
    return low if low == high else f"{low} - {high}"


def _time(
    plan: Plan, reached: Reached, blocks: Sequence[Block], whose: HostFacts | None, facts: Facts, tell: Tell
) -> int:  # fmt: skip
    say = tell.words.say
    tell.line(say("Sending two short requests to see how fast it is"))
    pace, rows = probe(reached, blocks[0].options, timeout_s=_PROBE_TIMEOUT_S)
    failed = [row for row in rows if row["status"] != "ok"]
    if failed:
        tell.line(
            say("A short request failed: %(status)s %(error)s",
                status=failed[-1]["status"], error=failed[-1].get("error", "")).rstrip()
        )  # fmt: skip
    found = None if failed else forecast(pace, blocks)
    model, machine = model_of(reached, facts), machine_of(plan, whose, facts)
    if found is None and model is not None and machine is not None:
        found = at_least(model, machine, blocks)
    if found is not None:
        tell.line(_time_in_words(found, tell))
        _time_outs(found, plan, tell)
    if not failed:
        _placement(reached, tell.words, tell)
    return bool(failed)


def _placement(reached: Reached, words: Words, tell: Tell) -> None:
    """Say where a part of the model, which the short requests have loaded, is not on the GPU."""
    for found in partial_gpu([{**reached.look().columns(), "api": reached.api_name}]):
        tell.line("! " + in_words(found, words))


def _time_in_words(found: Forecast, tell: Tell) -> str:
    total, longest = tell.duration(found.total_s), tell.duration(found.longest_request_s)
    if found.basis == "probe":
        return tell.words.say(
            "Time: about %(total)s, the longest request %(longest)s, by the rate of a short request; long prompts take "
            "longer than that",
            total=total, longest=longest,
        )  # fmt: skip
    return tell.words.say(
        "Time: at least %(total)s, the longest request %(longest)s, by theory alone", total=total, longest=longest
    )


def _time_outs(found: Forecast, plan: Plan, tell: Tell) -> None:
    shortest = min([plan.run.timeout_s, *(one.run.timeout_s for one in plan.experiments)])
    if found.longest_request_s > shortest:
        tell.line(
            tell.words.say(
                "The longest request may take longer than run.timeout_s (%(seconds)s s): raise it",
                seconds=tell.words.number(shortest),
            )
        )


def _surroundings(reached: Reached, here: HostFacts, tell: Tell) -> None:
    """Say what will spoil the numbers: of this machine where it is the server's, of the way there where it is not."""
    say, words = tell.words.say, tell.words
    if not reached.facts.host_is_server:
        trip = round_trip_ms(reached.target.url)
        if trip is not None:
            tell.line(
                say("The server is another machine, one round trip of %(ms)s ms away; each TTFT has it inside",
                    ms=words.significant(trip))
            )  # fmt: skip
            if trip > FAR_MS:
                tell.line("! " + say("That is far: measure on the server's machine, or on the same switch"))
    for text in spoilers(look(here), words):
        tell.line("! " + text)


def _settings(plan: Plan, reached: Reached, tell: Tell) -> None:
    """Say what to set: slots for the concurrency, and what only the user can know."""
    say, facts = tell.words.say, reached.facts
    slots = facts.parallel_slots
    if slots is not None and plan.most_concurrency > slots:
        tell.line(
            "! " + say(
                "The plan sends %(concurrency)d requests at once, and the slots of the server are %(slots)d: "
                "the others wait. Start it with more (llama-server -np, OLLAMA_NUM_PARALLEL, --max-num-seqs)",
                concurrency=plan.most_concurrency, slots=slots,
            )
        )  # fmt: skip
    columns = facts.columns()
    unknown = [name for name in ("quantization", "kv_cache_type", "flash_attention") if columns[name] is None]
    if unknown:
        tell.line(
            say("The server does not tell %(names)s: if you know, write it under server.stated",
                names=", ".join(unknown))
        )  # fmt: skip
