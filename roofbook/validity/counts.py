"""Do the counts agree with the request, with each other, and with the model that was asked?"""

from collections.abc import Iterator
from typing import Final

from roofbook.record import Row
from roofbook.validity.derived import is_judged, is_ok
from roofbook.validity.finding import Finding, Measure, of_point, of_row

LONG_SHARE: Final = 1.1
"""Of the wanted output, as for a short one; a server that counts the end of the answer has one token more."""

LONG_TOKENS: Final = 4
"""And so many more: the tags around a thought or a tool call are a few."""

LONG_PROMPT_SHARE: Final = 1.5
"""Of the wanted prompt. Calibrated prompts meet theirs within a few per cent."""

LONG_PROMPT_TOKENS: Final = 256
"""And so many more: around a short prompt the chat template alone may be half of it (77 tokens in published rows)."""

PIECES_SHARE: Final = 1.1
"""Of the counted output. A piece with text is a token or more; some servers leave the tags of a thought, or the last
piece, out of their count."""

PIECES_MORE: Final = 2
"""And so many more, for the tags around a thought in a short answer."""


def long_output(rows: list[Row]) -> Iterator[Finding]:
    """Find answers that went on beyond what was asked for; where too few pieces came for them, the count is wrong.

    Thought before the answer may go beyond it: some servers limit the answer alone.
    """
    for row in rows:
        counted, wanted, chunks = row.get("output_tokens"), row.get("output_tokens_wanted"), row.get("chunks")
        if not is_ok(row) or not counted or not wanted:
            continue
        tokens = counted - (row.get("thinking_tokens") or 0)
        if tokens > max(LONG_SHARE * wanted, wanted + LONG_TOKENS):
            unseen = row.get("chunk_times_ms") is not None and chunks is not None and chunks <= LONG_SHARE * wanted
            spoils: tuple[Measure, ...] = ("tpot", "e2e") if unseen else ("e2e",)
            yield of_row("long_output", row, spoils, output_tokens=tokens, wanted_tokens=wanted, chunks=chunks)


def impossible(rows: list[Row]) -> Iterator[Finding]:
    """Find counts that contradict each other: more cached than there were, more pieces with text than tokens."""
    for row in rows:
        if not is_ok(row):
            continue
        cached, prompt = row.get("cached_tokens"), row.get("prompt_tokens")
        if cached is not None and prompt is not None and cached > prompt:
            yield of_row("cached_beyond_prompt", row, ("prefill", "ttft"), cached_tokens=cached, prompt_tokens=prompt)
        tokens, chunks = row.get("output_tokens"), row.get("chunks")
        if not tokens or chunks is None or row.get("output_token_source") == "estimate":
            continue
        if chunks > max(PIECES_SHARE * tokens, tokens + PIECES_MORE):
            yield of_row("more_pieces", row, ("tpot",), chunks=chunks, output_tokens=tokens)


def noted(rows: list[Row]) -> Iterator[Finding]:
    """Find finished rows with a note of what was left out of them: a count that cannot be, an end that never came."""
    for row in rows:
        if is_ok(row) and row.get("error"):
            yield of_row("noted", row, note=row["error"])


def long_prompt(rows: list[Row]) -> Iterator[Finding]:
    """Find prompts of which the server counts far more tokens than were sent."""
    for row in rows:
        prompt, wanted = row.get("prompt_tokens"), row.get("prompt_tokens_wanted")
        if not is_ok(row) or prompt is None or wanted is None or row.get("prompt_token_source") == "estimate":
            continue
        if prompt > max(LONG_PROMPT_SHARE * wanted, wanted + LONG_PROMPT_TOKENS):
            yield of_row("long_prompt", row, ("prefill", "ttft", "e2e"), prompt_tokens=prompt, wanted_tokens=wanted)


def uncounted(rows: list[Row]) -> Iterator[Finding]:
    """Find prompts whose length the server did not tell: none of a point's were (told), or this one was not.

    *rows* are one run's, warm-ups and calibration included. A server that counts others and not this one read nothing
    of it: Ollama leaves the count out where the whole prompt was cached.
    """
    counts = {row.get("model") for row in rows if is_ok(row) and row.get("prompt_tokens") is not None}
    points: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if is_judged(row) and is_ok(row) and row.get("prompt_tokens_wanted") is not None:
            points.setdefault(tuple(row.get(name) for name in ("model", "experiment", "point")), []).append(row)
    for point in points.values():
        missing = [row for row in point if row.get("prompt_tokens") is None]
        if missing and missing[0].get("model") in counts:
            for row in missing:
                yield of_row(
                    "prompt_not_counted", row, ("prefill", "ttft", "e2e"), uncounted=len(missing), rows=len(point)
                )
        elif missing:
            yield of_point("prompt_not_counted", point, uncounted=len(missing), rows=len(point))


def other_model(rows: list[Row]) -> Iterator[Finding]:
    """Find a point whose answers name another model than was asked for; told, for a server may know it by two names."""
    for row in rows:
        asked, answered = row.get("model"), row.get("answered_model")
        if is_ok(row) and asked and answered and not _alike(asked, answered):
            yield of_point("other_model", rows, model=asked, answered=answered)
            return


def _alike(asked: str, answered: str) -> bool:
    """Whether two names may be one model's: either begins with the other, paths, endings and tags left out."""
    one, other = _plain(asked), _plain(answered)
    return one.startswith(other) or other.startswith(one)


def _plain(name: str) -> str:
    base = name.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
    return base.removesuffix(":latest").removesuffix(".gguf").replace("_", "-").replace(":", "-")
