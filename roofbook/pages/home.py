"""The front page: what was asked, what was decided, five numbers, what is next, the posts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from roofbook.analysis.latency import Point, latency_points
from roofbook.analysis.quantities import Quantity
from roofbook.analysis.regression import LEVEL
from roofbook.pages.escape import plain_title
from roofbook.pages.library import Library
from roofbook.pages.posts import Post
from roofbook.pages.press import Press
from roofbook.pages.quotes import PageQuotes
from roofbook.pages.settings import Settings
from roofbook.pages.site import Page
from roofbook.pages.subjects import SubjectView
from roofbook.pages.values import footing, told
from roofbook.words import Words

TARGET_MS: Final = 2_000
"""The wait for which the front page says how long a prompt may be: two seconds are felt, and still borne."""

POSTS_SHOWN: Final = 5


@dataclass(frozen=True)
class Tile:
    """One number of the front page: what it is, what it stands on, and the page that has its rows."""

    value: str
    what: str
    footing: str
    uri: str
    short_of_95: bool
    """The values are too few for an interval of the usual level."""


def front_page(
    press: Press,
    settings: Settings,
    lang: str,
    library: Library,
    cards: Sequence[Mapping[str, Any]],
    posts: Sequence[Post],
) -> Page:
    """Return the front page; *cards* are the subjects, newest first and self-tests last."""
    words, site_name = library.words, settings.language(lang).site_name
    real = [card for card in cards if not card["view"].subject.is_self_test]
    quotes = PageQuotes(library, "index.md")
    context = {
        "site_name": site_name,
        "cards": real or cards,
        "measured": bool(real),
        "tiles": tiles(real[0]["view"], real[0]["topics"], library) if real else [],
        "newest": real[0] if real else None,
        "told_by_owner": f"{lang}/_home.md",
        "posts": posts[:POSTS_SHOWN],
        "folders": {language.code: "" if language == settings.main else language.code
                    for language in settings.languages},
        "language_names": {language.code: language.name for language in settings.languages},
    }  # fmt: skip
    page = press.prose("index.md", "pages/home.md.j2", quotes, context).page
    head = f"---\ntitle: {json.dumps(plain_title(site_name), ensure_ascii=False)}\nhide: [toc]\n---\n\n"
    return replace(page, title=plain_title(site_name), label=words.say("Home"), markdown=head + page.markdown)


def tiles(view: SubjectView, topics: Mapping[str, str], library: Library) -> list[Tile]:
    """Return up to five numbers of a subject: two waits, the writing speed, the share of the chip, a prompt's room."""
    words, numbers = library.words, library.source(view.slug).quantities
    if numbers is None:
        return []

    def number(name: str) -> Quantity:
        return numbers.find(name) or Quantity("count")

    shown: list[tuple[Quantity, str, Quantity, str]] = []
    short, long = _ends(latency_points(view.subject.rows, view.found))
    for point in dict.fromkeys(name for name in (short, long) if name is not None):
        tokens = told(number(f"{point}.prompt_tokens"), words, unit=False)
        wait = number(f"{point}.ttft_ms")
        shown.append(
            (
                wait,
                words.say("until the first token, after a prompt of %(tokens)s tokens", tokens=tokens),
                wait,
                "speed",
            )
        )
    if short is not None:
        rate, share = number(f"{short}.decode_tok_per_s"), number(f"{short}.decode_datasheet_share")
        shown.append((rate, _writing(share, words), rate, "speed"))
    if long is not None:
        share, prefill = number(f"{long}.prefill_datasheet_share"), number(f"{long}.prefill_ms")
        # Its range is the dispute about the chip's peak; what was measured behind it is so many requests.
        counted = replace(share, n=prefill.n, counted=prefill.counted)
        what = words.say("of the arithmetic peak stated for the chip is reached while it reads a prompt")
        shown.append((share, what, counted, "speed"))
    budget = number(f"prefill.budget_tokens.{TARGET_MS}")
    what = words.say(
        "of prompt fit if the first token is to come within %(seconds)s s",
        seconds=words.number(TARGET_MS / 1000),
    )
    shown.append((budget, what, budget, "prefill"))
    fallback = next(iter(topics.values()))
    return [
        Tile(
            told(value, words),
            what,
            footing(stands_on, words),
            topics.get(topic, fallback),
            stands_on.level is not None and stands_on.level < LEVEL,
        )
        for value, what, stands_on, topic in shown
        if value.known
    ]


def _writing(share: Quantity, words: Words) -> str:
    if not share.known:
        return words.say("while it writes the answer")
    return words.say(
        "while it writes the answer: %(share)s of the bandwidth in the data sheet", share=told(share, words)
    )


def _ends(points: Sequence[Point]) -> tuple[str | None, str | None]:
    """Return the names of the points with the shortest and the longest prompt; those measured as a baseline first."""
    known = [
        point
        for point in points
        if point.ttft.median is not None
        and point.prompt_tokens
        and (point.concurrency or 1) == 1
        and not point.rate_per_s
    ]
    known = [point for point in known if point.kind == "baseline"] or known
    if not known:
        return None, None
    ordered = sorted(known, key=lambda point: point.prompt_tokens or 0)
    return _name(ordered[0]), _name(ordered[-1])


def _name(point: Point) -> str:
    """Return how the point's numbers are quoted."""
    return f"{point.experiment}.{point.point}"
