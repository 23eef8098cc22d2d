"""What this machine's processor reaches, measured: bytes read and float32 products a second, in a few seconds.

A machine that no catalogue knows still gets denominators by this. They are the processor's: a GPU has others.
"""

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import psutil

from roofbook.theory.shapes import Ceilings, Spread
from roofbook.units import MIB

# Far above any processor's caches (the largest have a gigabyte in all, most 8 to 100 MiB), and a small part of memory.
_READ_BYTES: Final = 512 * MIB
_READ_SHARE: Final = 1 / 8
# 17 GFLOP a product: long enough for the libraries' threads, short enough to repeat.
_SIDE: Final = 2048
_REPEATS: Final = 9
_BUDGET_S: Final = 6.0
_LEAST_REPEATS: Final = 3

SOURCE: Final = "measured here with numpy on all cores: the maximum of a large array, a float32 matrix product"


def measure(*, side: int = _SIDE, read_bytes: int = _READ_BYTES, repeats: int = _REPEATS) -> Ceilings:
    """Measure memory-read bandwidth and float32 matrix rate of this processor, alternately and *repeats* times.

    Fewer, but at least three, where the machine is slow. The two take turns, so that a neighbour disturbs both alike.
    """
    cores = os.cpu_count() or 1
    available = int(psutil.virtual_memory().available * _READ_SHARE)
    values = np.ones(max(min(read_bytes, available), MIB) // 4, np.float32)
    parts = np.array_split(values, cores)
    # Numbers of everyday size: a processor may be faster on zeros.
    matrix = np.random.default_rng(0).standard_normal((side, side), np.float32)
    product = np.empty_like(matrix)
    read_s: list[float] = []
    product_s: list[float] = []
    with ThreadPoolExecutor(cores) as pool:

        def read() -> None:
            list(pool.map(np.max, parts))  # numpy lets go of the interpreter while it reads

        def multiply() -> None:
            np.matmul(matrix, matrix, out=product)

        read()
        multiply()  # the libraries start their threads
        started = time.perf_counter()
        while len(read_s) < repeats:
            read_s.append(_seconds(read))
            product_s.append(_seconds(multiply))
            if time.perf_counter() - started > _BUDGET_S and len(read_s) >= _LEAST_REPEATS:
                break
    return Ceilings(
        bandwidth_bytes_per_s=_rates(values.nbytes, read_s),
        flops_per_s=_rates(2 * side**3, product_s),
        measured_on="cpu",
        source=SOURCE,
    )


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _rates(amount: float, seconds: list[float]) -> Spread:
    rates = [amount / one for one in seconds]
    return Spread(statistics.median(rates), min(rates), max(rates), len(rates))
