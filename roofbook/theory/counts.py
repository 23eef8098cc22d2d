"""How many of a thing fit, found by trying."""

import math
from collections.abc import Callable
from typing import Final

ENDLESS: Final = 2**20
"""Where so many fit, there is no end to them: more requests or tokens than any server has."""


def most(fits: Callable[[int], bool]) -> float:
    """Return the largest count that *fits*, infinite where a million do (a model without caches)."""
    fitting, too_many = 0, 1
    while fits(too_many):
        if too_many >= ENDLESS:
            return math.inf
        fitting, too_many = too_many, 2 * too_many
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        fitting, too_many = (middle, too_many) if fits(middle) else (fitting, middle)
    return fitting
