"""This machine: what it is, what its processor reaches, and what it does while requests run; nothing personal."""

from collect.host.awake import KeepAwake
from collect.host.ceilings import measure as measure_ceilings
from collect.host.facts import Gpu, HostFacts, this_host
from collect.host.sampler import Reading, Sampler

__all__ = ["Gpu", "HostFacts", "KeepAwake", "Reading", "Sampler", "measure_ceilings", "this_host"]
