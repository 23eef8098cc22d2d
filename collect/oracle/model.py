"""The model that the oracle imitates: how it counts tokens, how long it takes, what it keeps in its cache.

Its times follow the law that the report fits, so a whole measurement can be held against what was put in.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

Tokens = tuple[str, ...]

# Words of up to six letters, digits or syllables are one token, longer ones several; each other sign is one.
_TOKEN: Final = re.compile(r"\w{1,6}|[^\w\s]")


def tokenize(text: str) -> Tokens:
    """Return *text* as tokens by a simple rule of words."""
    return tuple(_TOKEN.findall(text))


@dataclass(frozen=True)
class Speed:
    """How long it takes: prefill = fixed + linear (T - P) + square (T^2 - P^2) ms, then one step a token."""

    fixed_ms: float = 5.0
    linear_ms: float = 0.02
    square_ms: float = 0.0
    step_ms: float = 2.0
    load_ms: float = 0.0
    """Of the first request, when the model is not loaded yet."""

    def prefill_ms(self, tokens: int, cached: int) -> float:
        return self.fixed_ms + self.linear_ms * (tokens - cached) + self.square_ms * (tokens**2 - cached**2)


@dataclass(frozen=True)
class Turn:
    """One request as the model worked on it: counts, and times in ms after the request was read."""

    prompt_tokens: int
    cached_tokens: int
    output: tuple[str, ...]
    queue_ms: float
    load_ms: float
    prefill_ms: float
    times_ms: tuple[float, ...]
    """When each token of *output* is ready."""
    stopped: bool
    """Whether it ended by itself, and not at the limit."""

    @property
    def decode_ms(self) -> float:
        return self.times_ms[-1] - self.times_ms[0] if self.times_ms else 0.0

    @property
    def end_ms(self) -> float:
        return self.times_ms[-1] if self.times_ms else self.queue_ms + self.load_ms + self.prefill_ms


@dataclass
class Model:
    """A model on *slots* slots of *context_tokens* each; it ends by itself after *stops_after* tokens."""

    speed: Speed = field(default_factory=Speed)
    context_tokens: int = 8192
    slots: int = 1
    stops_after: int | None = None
    thinking_tokens: int = 0
    caches: bool = True
    loaded: bool = True
    _free_at_s: list[float] = field(default_factory=list[float], repr=False)
    _kept: list[Tokens] = field(default_factory=list[Tokens], repr=False)

    def take(
        self, prompt: Tokens, limit: int, now_s: float, *, use_cache: bool = True, ignore_eos: bool = False
    ) -> Turn:
        """Work on *prompt* for up to *limit* tokens from *now_s* on, on the slot that is free first."""
        if not self._free_at_s:
            self._free_at_s = [float("-inf")] * self.slots
            self._kept = [()] * self.slots
        slot = min(range(self.slots), key=self._free_at_s.__getitem__)
        queue_ms = max(0.0, (self._free_at_s[slot] - now_s) * 1000)
        load_ms = 0.0 if self.loaded else self.speed.load_ms
        self.loaded = True
        cached = 0
        if self.caches and use_cache:
            # At least one token is always evaluated: its logits are the answer's first.
            cached = max(0, min(_common(prompt, self._kept[slot]), len(prompt) - 1))
        prefill_ms = self.speed.prefill_ms(len(prompt), cached)
        count, stopped = limit, False
        if self.stops_after is not None and not ignore_eos and self.stops_after < limit:
            count, stopped = self.stops_after, True
        first_ms = queue_ms + load_ms + prefill_ms
        times_ms = tuple(first_ms + self.speed.step_ms * step for step in range(count))
        self._kept[slot] = prompt
        self._free_at_s[slot] = now_s + (times_ms[-1] if times_ms else first_ms) / 1000
        return Turn(
            len(prompt), cached, tuple(f" w{n}" for n in range(count)), queue_ms, load_ms, prefill_ms, times_ms, stopped
        )


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the common front."""
    for at, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return at
    return min(len(first), len(second))
