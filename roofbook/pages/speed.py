"""A subject's speed page: every run, medians with intervals, the traps, and how much of the machine is reached."""

from typing import Any, Final

from roofbook.analysis.ceilings import DECODE_LIMIT, MEASURED_LIMIT, PREFILL_LIMIT, Reached, share_of
from roofbook.analysis.context import printed_excess
from roofbook.analysis.intervals import REQUESTS_FOR_P99
from roofbook.analysis.latency import Point
from roofbook.analysis.quantities.quantity import Quantity, of_range, of_summary, turned
from roofbook.analysis.standing import CHUNK_TOKENS
from roofbook.analysis.traps import readings, traps
from roofbook.charts.cache import Drawn, FigureCache
from roofbook.charts.roofline import roofline_figure
from roofbook.charts.traps import traps_figure
from roofbook.pages import speed_levels, speed_reach, speed_tables
from roofbook.pages.concepts.grid import percent
from roofbook.pages.doubts import by_kind
from roofbook.pages.prefill_context import as_printed
from roofbook.pages.row_table import SHOWN_ROWS, in_order, row_table
from roofbook.pages.sentence import Sentence
from roofbook.pages.study import Study
from roofbook.pages.subjects import SubjectView
from roofbook.pages.values import told
from roofbook.units import MS_PER_S
from roofbook.words import Words, mark

_ROW_COLUMNS: Final = (
    "experiment", "prompt_tokens", "requests", "output_tokens", "server_load_ms", "server_prefill_ms", "ttft_ms",
    "e2e_ms", "decode_tok_per_s", "status",
)  # fmt: skip

_BOTH: Final = {
    ("at_the_limit", "at_the_limit"): mark(
        "It writes %(rate)s and reads %(reading)s: %(decode)s and %(prefill)s of %(roof)s, so both are near the limit."
    ),
    ("falls", "at_the_limit"): mark(
        "It writes %(rate)s and reads %(reading)s: %(decode)s (falling with context) and %(prefill)s of %(roof)s, "
        "so reading is near the limit, and writing with a short prompt."
    ),
    ("falls", "room_to_tune"): mark(
        "It writes %(rate)s and reads %(reading)s: %(decode)s (falling with context) and %(prefill)s of %(roof)s, "
        "so writing is near the limit with a short prompt, and reading has room to tune."
    ),
    ("at_the_limit", "room_to_tune"): mark(
        "It writes %(rate)s and reads %(reading)s: %(decode)s and %(prefill)s of %(roof)s, "
        "so writing is near the limit and reading has room to tune."
    ),
    ("room_to_tune", "at_the_limit"): mark(
        "It writes %(rate)s and reads %(reading)s: %(decode)s and %(prefill)s of %(roof)s, "
        "so reading is near the limit and writing has room to tune."
    ),
    ("room_to_tune", "room_to_tune"): mark(
        "It writes %(rate)s and reads %(reading)s: %(decode)s and %(prefill)s of %(roof)s, so both have room to tune."
    ),
}


def context(view: SubjectView, words: Words, figures: FigureCache) -> dict[str, Any]:
    """Return what the template ``speed.md.j2`` shows."""
    study = Study(view)
    measured = in_order(row for row in study.rows if row.get("phase") in ("measured", None))
    fell = traps(view.subject.rows, view.found)
    of_rows = [finding for finding in view.found if finding.order_index is not None]
    return {
        "title": words.say("Speed: %(subject)s", subject=view.title(words)),
        "answer": headline(study, words),
        "caveats": _caveats(study, words),
        "drawn": _figures(study, words, figures),
        "verdicts": speed_reach.verdicts(study, words),
        "points": speed_tables.medians(study, words),
        "as_printed": as_printed(printed_excess(measured), words),
        "levels": speed_levels.levels(study, words),
        "tails": speed_tables.tails(study, words),
        "traps": speed_tables.fallen(fell, words),
        "ceilings": speed_reach.shares_by_point(study, words),
        "inputs": speed_reach.inputs(study, words),
        "row_table": row_table(measured[:SHOWN_ROWS], of_rows, words, _ROW_COLUMNS),
        "rows_hidden": max(0, len(measured) - SHOWN_ROWS),
        "doubts": by_kind([finding for finding in of_rows if finding.doubtful], words),
        "notes": by_kind([finding for finding in of_rows if not finding.doubtful], words),
        "medians_only": bool(study.points) and all(point.ttft.interval is None for point in study.points),
        "fastest": speed_reach.fastest(study, words),
        "cores_used": study.cores_used,
        "peak_by_others": peak_by_others(study),
        "requests_for_p99": REQUESTS_FOR_P99,
        "chunk_tokens": CHUNK_TOKENS,
        "limits": [percent(limit, words) for limit in (MEASURED_LIMIT, DECODE_LIMIT, PREFILL_LIMIT)],
    }


def headline(study: Study, words: Words) -> Sentence:
    """Return how fast it writes and reads, and how much of the machine that is."""
    decode, prefill = study.writing_reached, study.reading_reached
    rates: dict[str, str] = {}
    if study.writing is not None:
        rates["rate"] = told(of_summary("tok_per_s", study.writing.decode), words)
    if study.reading is not None:
        rates["reading"] = told(reading_rate(study.reading), words)
    if decode is not None and prefill is not None:
        message = _BOTH.get(("falls" if study.writing_falls else decode.verdict, prefill.verdict))
        if message is not None:
            shares = {"decode": writing_share(study, words), "prefill": share(prefill, words)}
            return Sentence(message, {**rates, **shares}, {"roof": _roof(study, decode, prefill, words)})
    if study.cores_used is not None and len(rates) == 2:
        threads, cores = (words.number(count) for count in study.cores_used)
        return Sentence(
            mark(
                "It writes %(rate)s and reads %(reading)s on %(threads)s of the machine's %(cores)s cores; how near "
                "the limit of so few that is was not measured."
            ),
            rates,
            {"threads": threads, "cores": cores},
        )
    match "rate" in rates, "reading" in rates:
        case True, True:
            message = mark("It writes %(rate)s and reads %(reading)s; how near the limit that is cannot be judged.")
        case True, False:
            message = mark("It writes %(rate)s; how fast it reads a prompt is not known.")
        case False, True:
            message = mark("It reads %(reading)s; how fast it writes is not known.")
        case _:
            message = mark("Neither how fast it reads nor how fast it writes could be measured.")
    return Sentence(message, rates)


def peak_by_others(study: Study) -> bool:
    """Return whether the chip's arithmetic peak is one that its maker does not state and nobody checked."""
    chip = study.view.equipment.chip
    return chip is not None and chip.chip.vendor == "apple" and "fp32_tflops" in chip.provenance.unverified


def reading_rate(point: Point) -> Quantity:
    """Return the prompt tokens a second of *point*'s prefill."""
    return turned("tok_per_s", of_summary("ms", point.prefill), MS_PER_S * (point.prompt_tokens or 0.0))


def share(reached: Reached, words: Words) -> str:
    """Return the share that the verdict rests on, as it is written."""
    found = share_of(reached, reached.basis or "datasheet")
    return told(of_range("share", found), words)


def writing_share(study: Study, words: Words) -> str:
    """Return the share of its roof that writing reaches: from the lowest to the highest where it falls."""
    reached = study.writing_reached
    if study.writing_falls:
        return told(of_range("share", study.writing_span), words)
    return "" if reached is None else share(reached, words)


def _roof(study: Study, decode: Reached, prefill: Reached, words: Words) -> str:
    match decode.basis, prefill.basis:
        case "measured", "measured" if study.seen_faster is not None:
            return words.say("what such machines were measured to do")
        case "measured", "measured":
            return words.say("what such a machine was measured to do without a language model")
        case "datasheet", "datasheet":
            return words.say("what is stated of the machine")
        case _:
            return words.say("the nearest known limit")


def _caveats(study: Study, words: Words) -> list[str]:
    """Return what the answer must not be read without, at most two."""
    told_of: list[str] = []
    for reached, sentence in (
        (
            study.reading_reached,
            mark("Held against the stated peak, reading reaches %(share)s: up to %(more)s more is not ruled out."),
        ),
        (
            study.writing_reached,
            mark("Held against the data sheet, writing reaches %(share)s: up to %(more)s more is not ruled out."),
        ),
    ):
        if reached is not None and reached.basis == "measured" and reached.datasheet_share and reached.headroom:
            if reached is study.reading_reached and study.seen_faster is not None:
                told_of.append(
                    words.say(
                        "Other runs of this chip read up to %(seen)s faster; the stated peak leaves up to %(more)s.",
                        seen=percent(study.seen_faster, words),
                        more=percent(reached.headroom.high, words),
                    )
                )
                break
            told_of.append(
                words.say(
                    sentence,
                    share=told(of_range("share", reached.datasheet_share), words),
                    more=percent(reached.headroom.high, words),
                )
            )
            break
    fewest = min((point.ttft.rows for point in study.ends if point is not None), default=0)
    if 0 < fewest < REQUESTS_FOR_P99:
        told_of.append(
            words.say_n(
                "%(n)d request carries no spread: one number is all there is.",
                "%(n)d requests carry a median, not how slow the slowest are (P99 takes %(needed)s).",
                fewest,
                needed=words.number(REQUESTS_FOR_P99),
            )
        )
    return told_of[:2]


def _figures(study: Study, words: Words, figures: FigureCache) -> list[Drawn]:
    drawn: list[Drawn] = []
    view = study.view
    if study.roofs is not None and study.roofs.known and study.spots:
        drawn.append(
            figures.draw(
                roofline_figure,
                words,
                title=_roofline_title(study, words),
                roofs=study.roofs,
                spots=study.spots,
                colour=view.colour,
            )
        )
    peak = study.roofs and study.roofs.datasheet.flops_per_s
    read = readings(view.subject.rows, view.found, view.equipment.model)
    doubted = [one for one in read if one.doubted]
    if peak and doubted:
        above = sum(one.flops_per_s > peak.high for one in doubted)
        title = words.say_n(
            "%(n)d row does not tell how fast a prompt is read",
            "%(n)d rows do not tell how fast a prompt is read",
            len(doubted),
        )
        if above:
            title = words.say_n(
                "%(n)d row would need more arithmetic than the chip has: the prompt was not read, it was remembered",
                "%(n)d rows would need more arithmetic than the chip has: the prompts were not read, but remembered",
                above,
            )
        drawn.append(figures.draw(traps_figure, words, title=title, readings=read, peak=peak, colour=view.colour))
    return drawn


def _roofline_title(study: Study, words: Words) -> str:
    decode, prefill = study.writing_reached, study.reading_reached
    if decode is None or prefill is None or "unknown" in (decode.verdict, prefill.verdict):
        return words.say("Decode and prefill against what the machine can do")
    shares = {"decode": writing_share(study, words), "prefill": share(prefill, words)}
    match decode.basis, prefill.basis:
        case "measured", "measured":
            return words.say("Decode reaches %(decode)s of its measured roof, prefill %(prefill)s", **shares)
        case "datasheet", "datasheet":
            return words.say("Decode reaches %(decode)s of the stated roof, prefill %(prefill)s", **shares)
        case _:
            return words.say("Decode reaches %(decode)s of the nearest known roof, prefill %(prefill)s", **shares)
