"""What a subject's speed page says of the machine: how much of its roofs is reached, and what that rests on."""

import math
from typing import Final

from markupsafe import Markup

from roofbook.analysis.ceilings import PointCeilings, Reached
from roofbook.analysis.latency import Point
from roofbook.analysis.quantities.quantity import of_range
from roofbook.analysis.reference import LONG_PROMPT_TOKENS
from roofbook.errors import EstimateError
from roofbook.pages.concepts.grid import Grid, grid, percent, span
from roofbook.pages.escape import text
from roofbook.pages.row_table import noted
from roofbook.pages.sentence import Sentence
from roofbook.pages.study import Study
from roofbook.pages.values import told
from roofbook.theory.roofline import step_bytes
from roofbook.theory.shapes import Range
from roofbook.theory.work import prefill_work
from roofbook.units import GB, TFLOP
from roofbook.words import Words, mark

_VERDICTS: Final = {
    "at_the_limit": mark("near the limit"),
    "falls": mark("near the limit with a short prompt only"),
    "room_to_tune": mark("room to tune"),
    "above_the_ceiling": mark("above the ceiling: the measurement or the catalogue is wrong"),
    "unknown": mark("cannot be judged"),
}


def verdicts(study: Study, words: Words) -> Grid | None:
    """Return both phases, side by side, against both denominators; None where neither is known."""
    phases = [
        (words.say("Decode"), point, reached, GB, "GB/s", 3)
        for point, reached in [(study.writing, study.writing_reached)]
        if point is not None and reached is not None
    ] + [
        (words.say("Prefill"), point, reached, TFLOP, "TFLOPS", 2)
        for point, reached in [(study.reading, study.reading_reached)]
        if point is not None and reached is not None
    ]
    if not phases:
        return None
    columns = [
        _against(study, point, reached, unit, label, digits, words) for _, point, reached, unit, label, digits in phases
    ]
    lines = [
        words.say("Prompt tokens"),
        words.say("n (requests)"),
        words.say("Reached"),
        words.say("Roof as measured"),
        words.say("Share of it"),
        words.say("Roof as stated"),
        words.say("Share of it"),
        words.say("Could be faster by"),
        words.say("Share over all trusted points"),
        words.say("Verdict"),
    ]
    heads = [("", False), *((name, True) for name, *_ in phases)]
    return grid(heads, [(line, *(column[place] for column in columns)) for place, line in enumerate(lines)])


def _against(
    study: Study, point: Point, reached: Reached, unit: float, label: str, digits: int, words: Words
) -> tuple[str | None, ...]:
    def part(value: Range | None) -> str | None:
        return None if value is None else told(of_range("share", value), words)

    figure = point.decode if unit == GB else point.prefill
    return (
        words.number(point.prompt_tokens),
        None if figure.n is None else words.number(figure.n),
        _rate(reached.used, unit, label, words, digits),
        _rate(reached.measured, unit, label, words),
        part(reached.measured_share),
        _rate(reached.datasheet, unit, label, words),
        part(reached.datasheet_share),
        part(reached.headroom),
        part(study.writing_span if unit == GB else study.reading_span),
        words.say(_VERDICTS["falls" if unit == GB and study.writing_falls else reached.verdict]),
    )


def fastest(study: Study, words: Words) -> Sentence | None:
    """Return whose run of the same chip read faster than the benchmark computes; None where none did."""
    found = study.view.equipment.fastest
    if study.seen_faster is None or found is None:
        return None
    return Sentence(
        mark(
            "Another run of this chip (%(model)s %(quantization)s, %(tokens)s tokens) reached %(rate)s while it read, "
            "%(more)s more than this one: the measured roof of arithmetic is drawn from the benchmark up to there."
        ),
        {},
        {
            "model": found.model,
            "quantization": found.quantization or words.say("unknown"),
            "tokens": words.number(found.prompt_tokens),
            "rate": words.say("%(value)s TFLOPS", value=words.significant(found.flops_per_s / TFLOP)),
            "more": percent(study.seen_faster, words),
        },
    )


def shares_by_point(study: Study, words: Words) -> Grid | None:
    """Return every point's bytes and operations a second with their shares."""
    heads = [
        (words.say("Experiment"), False),
        (words.say("Prompt tokens"), True),
        ("GB/s", True),
        (words.say("of measured"), True),
        (words.say("of the stated peak"), True),
        ("TFLOPS", True),
        (words.say("of measured"), True),
        (words.say("of the stated peak"), True),
    ]
    rows = [
        (
            one.point.experiment or words.say("unknown"),
            None if one.point.prompt_tokens is None else words.number(one.point.prompt_tokens),
            *_shares(one.decode, GB, 3, words),
            *_prefill_shares(one, words),
        )
        for one in study.held
        if one.decode is not None or one.prefill is not None
    ]
    return grid(heads, rows) if rows else None


def _prefill_shares(one: PointCeilings, words: Words) -> tuple[str | None, str | None, str | None]:
    """Return the same of reading; a short prompt's is an upper bound where it passes what was measured without one."""
    rate, measured, datasheet = _shares(one.prefill, TFLOP, 2, words)
    above = one.prefill is not None and one.prefill.measured_share is not None and one.prefill.measured_share.high > 1
    if measured is not None and above and (one.point.prompt_tokens or 0) < LONG_PROMPT_TOKENS:
        measured = noted(measured, words.say("at most: a shared template may not have been read"))
    return rate, measured, datasheet


def _shares(
    reached: Reached | None, unit: float, digits: int, words: Words
) -> tuple[str | None, str | None, str | None]:
    if reached is None:
        return None, None, None
    shares = (reached.measured_share, reached.datasheet_share)
    measured, datasheet = (None if one is None else told(of_range("share", one), words) for one in shares)
    return span(reached.used * (1 / unit), words, digits), measured, datasheet


def inputs(study: Study, words: Words) -> Grid | None:
    """Return what the shares were computed from, each with its source; None where nothing is known."""
    heads = [(words.say("Input"), False), (words.say("Value"), True), (words.say("Source"), False)]
    rows = [row for row in (*_work_of_the_model(study, words), *_rates_of_the_machine(study, words)) if row[1]]
    return grid(heads, rows) if rows else None


def _work_of_the_model(study: Study, words: Words) -> list[tuple[str, str | None, str]]:
    """Return the bytes of the decode step and the operations of the prefill that the verdicts speak of."""
    model, subject = study.view.equipment.model, study.view.subject
    rows: list[tuple[str, str | None, str]] = []
    if model is None:
        return rows
    try:
        if study.writing is not None and study.writing.prompt_tokens is not None:
            tokens = round(study.writing.prompt_tokens)
            read = step_bytes(model, subject.quantization, context_tokens=tokens, kv_type=subject.kv_cache_type)
            what = words.say(
                "Bytes that a decode step reads (%(tokens)s tokens of context)", tokens=words.number(tokens)
            )
            rows.append(
                (what, _rate(read, GB, "GB", words), words.say("the weights but the input embedding, and the KV cache"))
            )
        if study.reading is not None and study.reading.prompt_tokens is not None:
            tokens = round(study.reading.prompt_tokens)
            flops = prefill_work(model, tokens).total
            what = words.say("Operations of a prefill of %(tokens)s tokens", tokens=words.number(tokens))
            rows.append(
                (
                    what,
                    _rate(flops, TFLOP, "TFLOP", words),
                    words.say("2 × multiplied weights × tokens, causal attention, the output matrix once"),
                )
            )
    except EstimateError:
        return rows
    return rows


def _rates_of_the_machine(study: Study, words: Words) -> list[tuple[str, str | None, str]]:
    machine, chip = study.view.equipment.machine, study.view.equipment.chip
    if study.roofs is None:
        return []
    sheet, bench = study.roofs.datasheet, study.roofs.measured
    measured_by = "" if machine is None or machine.ceilings is None else _in_english(machine.ceilings.source)
    arithmetic_measured_by = measured_by
    if machine is not None and machine.ceilings is not None and study.seen_faster is not None:
        fastest_by = study.view.equipment.fastest
        arithmetic_measured_by = _in_english(f"{machine.ceilings.source}; {fastest_by.source if fastest_by else ''}")
    bandwidth_by = arithmetic_by = ""
    if chip is not None:
        usual = "fp16_tflops" if chip.chip.peaks.fp16 is not None else "fp32_tflops"
        bandwidth_by, arithmetic_by = (_in_english(chip.provenance.of(key)) for key in ("bandwidth_gb_s", usual))
    return [
        (
            words.say("Bandwidth, data sheet"),
            _rate(sheet.bandwidth_bytes_per_s, GB, "GB/s", words),
            bandwidth_by,
        ),
        (words.say("Bandwidth, measured"), _rate(bench.bandwidth_bytes_per_s, GB, "GB/s", words), measured_by),
        (words.say("Arithmetic, as stated"), _rate(sheet.flops_per_s, TFLOP, "TFLOPS", words), arithmetic_by),
        (words.say("Arithmetic, measured"), _rate(bench.flops_per_s, TFLOP, "TFLOPS", words), arithmetic_measured_by),
    ]


def _rate(value: Range | None, unit: float, label: str, words: Words, digits: int = 3) -> str | None:
    if value is None or math.isinf(value.high):
        return None
    return f"{span(value * (1 / unit), words, digits)} {label}"


def _in_english(source: str) -> Markup:
    """Return a source in the catalogue's own words, which are English."""
    return Markup('<span lang="en">') + text(source) + Markup("</span>")
