"""What the findings of rows say on a page, in words."""

from collections.abc import Iterable

from roofbook.validity import Finding
from roofbook.words import Words, doubts


def name_of(finding: Finding, words: Words) -> str:
    """Return the short name of the doubt."""
    return doubts.name_of(finding.kind, words)


def sentence(finding: Finding, words: Words) -> str:
    """Return the doubt as a sentence with its numbers."""
    return doubts.sentence(finding.kind, finding.values, words)


def by_kind(found: Iterable[Finding], words: Words) -> list[tuple[str, str, int]]:
    """Return each kind of doubt once: its name, the sentence of its first case, and how many rows have it."""
    kinds: dict[str, list[Finding]] = {}
    for finding in found:
        kinds.setdefault(finding.kind, []).append(finding)
    return [
        (name_of(cases[0], words), sentence(cases[0], words), len({(case.run_id, case.order_index) for case in cases}))
        for cases in kinds.values()
    ]
