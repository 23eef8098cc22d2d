"""Fewer points and shorter names, so that a chart can still be read; what is lost is counted or stands elsewhere."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from roofbook.charts.figure import MAX_ROWS

POINTS: Final = 900
"""So many points stay below MAX_ROWS even where each has a whisker of its own and lines are drawn beside them."""

LABEL_SIGNS: Final = 24
"""A name on an axis may be as long as this: on a phone it then takes half of the width."""

_CUT: Final = "…"

One = TypeVar("One")


def thinned(points: Sequence[One], most: int = MAX_ROWS) -> tuple[list[One], int]:
    """Return at most *most* of *points*, evenly spread from the first to the last, and how many were left out."""
    if len(points) <= most:
        return list(points), 0
    if most < 2:
        return list(points[:most]), len(points) - most
    steps = (len(points) - 1) / (most - 1)
    return [points[round(step * steps)] for step in range(most)], len(points) - most


def thinned_but(points: Sequence[One], rare: Callable[[One], bool], most: int = POINTS) -> tuple[list[One], int]:
    """Return at most *most* of *points*, and how many were left out; what is *rare* stays, last.

    It takes up to half of the places: what a figure is looked at for must not be lost by chance.
    """
    if len(points) <= most:
        return list(points), 0
    few, _ = thinned([point for point in points if rare(point)], most // 2)
    rest, _ = thinned([point for point in points if not rare(point)], most - len(few))
    return [*rest, *few], len(points) - len(rest) - len(few)


def short_names(names: Sequence[str], signs: int = LABEL_SIGNS) -> dict[str, str]:
    """Return a label of at most about *signs* signs for each of *names*, no two of different names alike.

    A long name keeps its beginning and its end; where that is not enough to tell two apart, the labels grow.
    """
    known = list(dict.fromkeys(names))
    longest = max((len(name) for name in known), default=0)
    for length in range(signs, longest):
        labels = {name: _shortened(name, length) for name in known}
        if len(set(labels.values())) == len(known):
            return labels
    return {name: name for name in known}


def _shortened(name: str, signs: int) -> str:
    if len(name) <= signs:
        return name
    end = (signs - 1) // 2
    return f"{name[: signs - 1 - end]}{_CUT}{name[len(name) - end :]}"
