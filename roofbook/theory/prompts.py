"""The longest prompt that a machine could read in a given time: the floor of the prefill time, turned round."""

from collections.abc import Callable
from typing import Final

from roofbook.theory.counts import most
from roofbook.theory.roofline import Bound, prefill_floor_ms
from roofbook.theory.shapes import Machine, Model, Range

PERCENT: Final = 100


def longest_prompt(
    model: Model,
    machine: Machine,
    target_ms: float,
    quantization: str | None = None,
    *,
    cached_percent: int = 0,
    chunk_tokens: int | None = None,
) -> Bound:
    """Return the most prompt tokens whose prefill can take *target_ms*, infinite where a million can.

    *cached_percent* of the tokens, rounded down, are in the cache already. The upper end is what no server can pass.
    A side is None where the machine's arithmetic rate is not known. Raises EstimateError as ``prefill_floor_ms`` does.
    """

    def floor(tokens: int) -> Bound:
        return prefill_floor_ms(
            model, machine, tokens, quantization,
            cached_tokens=tokens * cached_percent // PERCENT, chunk_tokens=chunk_tokens,
        )  # fmt: skip

    def by_datasheet(tokens: int) -> Range | None:
        return floor(tokens).datasheet

    def by_measured(tokens: int) -> Range | None:
        return floor(tokens).measured

    def tokens(side: Callable[[int], Range | None]) -> Range | None:
        if side(1) is None:
            return None
        return Range(
            most(lambda count: (found := side(count)) is not None and found.high <= target_ms),
            most(lambda count: (found := side(count)) is not None and found.low <= target_ms),
        )

    return Bound(tokens(by_datasheet), tokens(by_measured))
