"""The catalogue of data/facts: chips, machines, models, runtimes and published speeds, each figure with its source."""

from roofbook.facts.catalogue import Facts, Match, load_facts
from roofbook.facts.chips import ChipFact
from roofbook.facts.entries import Provenance
from roofbook.facts.machines import MachineFact
from roofbook.facts.models import FileFact, ModelFact
from roofbook.facts.published import PublishedRun
from roofbook.facts.runtimes import RuntimeFact

__all__ = [
    "ChipFact",
    "Facts",
    "FileFact",
    "MachineFact",
    "Match",
    "ModelFact",
    "Provenance",
    "PublishedRun",
    "RuntimeFact",
    "load_facts",
]
