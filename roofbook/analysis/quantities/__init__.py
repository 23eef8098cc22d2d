"""Every number of a subject, a machine or a model by name, so that prose can quote it and never types it."""

from roofbook.analysis.quantities.catalogue import machine_quantities, model_quantities
from roofbook.analysis.quantities.quantity import Quantities, Quantity, Unit, change, ratio
from roofbook.analysis.quantities.subject import Known, subject_quantities

__all__ = [
    "Known", "Quantities", "Quantity", "Unit", "change", "machine_quantities", "model_quantities", "ratio",
    "subject_quantities",
]  # fmt: skip
