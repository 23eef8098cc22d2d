"""What the catalogue of facts knows about the machines and models that rows name."""

import pandas as pd

from roofbook.errors import UsageError
from roofbook.facts import Facts
from roofbook.theory.shapes import Machine, Model
from roofbook.validity import Known


def known_of(rows: pd.DataFrame, facts: Facts) -> Known:
    """Return the machines and models of *rows* that the catalogue has, by the rows' own names."""
    return Known(models=_models(rows, facts), machines=_machines(rows, facts))


def _machines(rows: pd.DataFrame, facts: Facts) -> dict[str | None, Machine]:
    found: dict[str | None, Machine] = {}
    for name in rows["machine"].dropna().unique():
        try:
            found[str(name)] = facts.machine(str(name)).machine
        except UsageError:
            continue  # nobody described that machine: nothing is held against it
    return found


def _models(rows: pd.DataFrame, facts: Facts) -> dict[tuple[str | None, str | None], Model]:
    found: dict[tuple[str | None, str | None], Model] = {}
    for row in (
        rows[["model", "model_digest", "quantization"]].dropna(subset=["model"]).drop_duplicates().to_dict("records")
    ):
        name, digest, quantization = (None if pd.isna(value) else str(value) for value in row.values())
        match = facts.find(names=[str(name)], digests=[digest] if digest else [])
        if match is not None:
            found[name, quantization] = match.model.quantized(quantization) if quantization else match.model.shape
    return found
