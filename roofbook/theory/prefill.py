"""The law of prefill: t = c + a (T - P) + b (T^2 - P^2), its inverse, and what a and b are by arithmetic."""

import math
from dataclasses import dataclass

from roofbook.errors import EstimateError
from roofbook.theory.shapes import Model
from roofbook.theory.weights import head_params, matmul_params
from roofbook.theory.work import pair_flops
from roofbook.units import MS_PER_S


@dataclass(frozen=True)
class Law:
    """Milliseconds of a prefill: *a_ms* a new token, *b_ms* a token squared (attention), *c_ms* once."""

    a_ms: float
    b_ms: float = 0.0
    c_ms: float = 0.0

    def time_ms(self, prompt_tokens: float, cached_tokens: float = 0.0) -> float:
        """Return the time for a prompt whose first *cached_tokens* are in the cache already."""
        new = prompt_tokens - cached_tokens
        return self.c_ms + self.a_ms * new + self.b_ms * (prompt_tokens**2 - cached_tokens**2)

    def prompt_budget_tokens(self, target_ms: float, cached_tokens: float = 0.0) -> float | None:
        """Return the longest prompt that takes *target_ms*: the law's inverse, infinite where a and b are 0.

        None where not even the cached part fits in the time. Only for a law that grows with the prompt (a, b >= 0).
        """
        left_ms = target_ms - self.c_ms
        if left_ms < 0:
            return None
        paid_ms = left_ms + self.a_ms * cached_tokens + self.b_ms * cached_tokens**2
        if self.b_ms == 0:
            return math.inf if self.a_ms == 0 else paid_ms / self.a_ms
        # The usual (-a + sqrt(a^2 + 4 b t)) / 2b loses its digits where b is small.
        return 2 * paid_ms / (self.a_ms + math.sqrt(self.a_ms**2 + 4 * self.b_ms * paid_ms))


def theoretical_law(model: Model, flops_per_s: float) -> Law:
    """Return the law of *model* on a machine that does *flops_per_s* throughout: causal attention, no overhead.

    a is 2 x the multiplied weights / C, b is 2 x heads x head dimension x global layers / C, c the output matrix once.
    Layers of window w add to a what a token costs beyond it: with them the law holds for prompts longer than w.
    Raises EstimateError where dimensions are missing.
    """
    params, table = matmul_params(model), head_params(model)
    window = model.window_tokens if model.count("local") else 0
    if not params.known or table is None or window is None:
        raise EstimateError(
            "Cannot estimate the prefill of %(model)s: hidden, vocab, tied or window_tokens is missing", model=model.id
        )
    per_ms = MS_PER_S / flops_per_s
    local = pair_flops(model, "local") * window
    return Law(
        a_ms=(2 * params.low + local) * per_ms,
        b_ms=pair_flops(model, "global") / 2 * per_ms,
        c_ms=(2 * table - local * window / 2) * per_ms,
    )
