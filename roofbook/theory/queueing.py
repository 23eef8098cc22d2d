"""Requests in a line: Little's law, the rate a server can take, the wait under load. Times in seconds."""

import math


def in_flight(rate_per_s: float, residence_s: float) -> float:
    """Return how many requests are inside on average: Little (1961), N = rate x time inside, of any system at rest."""
    return rate_per_s * residence_s


def residence_s(in_flight: float, rate_per_s: float) -> float:
    """Return how long each of *in_flight* requests is inside where *rate_per_s* leave: Little's law turned."""
    return in_flight / rate_per_s


def service_s(prefill_s: float, output_tokens: int, step_s: float, batch: float = 1.0) -> float:
    """Return the machine time of one request: its prefill alone, its decode steps shared with *batch* others."""
    return prefill_s + output_tokens * step_s / batch


def rate_allowed_per_s(prefill_s: float, output_tokens: int = 0, decode_tokens_per_s: float = math.inf) -> float:
    """Return the most requests a second: prefills one by one, decode at the rate of all sequences together."""
    return 1 / (prefill_s + output_tokens / decode_tokens_per_s)


def wait_s(rate_per_s: float, service_s: float, service_sd_s: float = 0.0) -> float:
    """Return the mean wait before service of Poisson arrivals at one server; infinite from full load on.

    Pollaczek and Khinchine (M/G/1): rate x E[S^2] / 2(1 - load); with equal services (M/D/1) load x S / 2(1 - load).
    """
    load = rate_per_s * service_s
    if load >= 1:
        return math.inf
    return rate_per_s * (service_s**2 + service_sd_s**2) / (2 * (1 - load))
