"""The unit constants, once: a decimal GB and a binary GiB differ by 7 %, so neither is ever written out."""

from typing import Final

KB: Final = 10**3
MB: Final = 10**6
GB: Final = 10**9
KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30

GFLOP: Final = 10**9
TFLOP: Final = 10**12

MS_PER_S: Final = 1_000
NS_PER_MS: Final = 1_000_000
