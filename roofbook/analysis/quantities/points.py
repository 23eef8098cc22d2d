"""The numbers of a subject's points: its latencies, and how much of the machine each reaches."""

from collections.abc import Mapping, Sequence

from roofbook.analysis.ceilings import Reached, ceilings
from roofbook.analysis.latency import Point
from roofbook.analysis.quantities.quantity import Quantities, Quantity, Unit, of_range, of_summary, turned
from roofbook.analysis.subjects import Subject
from roofbook.theory.roofline import decode_ceiling
from roofbook.theory.shapes import Machine, Model
from roofbook.units import MS_PER_S
from roofbook.validity import records


def point_quantities(
    subject: Subject, points: Sequence[Point], machine: Machine | None, model: Model | None
) -> Quantities:
    """Return the numbers of *points* as POINT.NUMBER, and as EXPERIMENT.POINT.NUMBER.

    Two points of one name have only the longer names: neither is meant by the shorter one.
    """
    named: dict[str, list[dict[str, Quantity]]] = {}
    loads = _loads(subject)
    for point in points:
        told = _latencies(point, loads)
        if machine is not None and model is not None:
            told |= _against(subject, point, machine, model)
        named.setdefault(str(point.point), []).append(told)
        named.setdefault(f"{point.experiment}.{point.point}", []).append(told)
    return Quantities(
        {f"{name}.{key}": one for name, meant in named.items() if len(meant) == 1 for key, one in meant[0].items()}
    )


def _latencies(point: Point, loads: Mapping[tuple[str, int], float]) -> dict[str, Quantity]:
    prefill, decode, tpot = (
        of_summary("ms", point.prefill),
        of_summary("tok_per_s", point.decode),
        of_summary("ms", point.tpot),
    )
    tokens = point.prompt_tokens
    return {
        "prompt_tokens": Quantity("tokens", tokens),
        "ttft_ms": of_summary("ms", point.ttft),
        "prefill_ms": prefill,
        "decode_tok_per_s": decode,
        "tpot_ms": tpot if tpot.known else turned("ms", decode, MS_PER_S),
        "e2e_ms": of_summary("ms", point.e2e),
        "beyond_prefill_ms": of_summary("ms", point.waited),
        "load_ms": _load(point, loads),
        "requests": Quantity("count", float(point.requests)),
        "requests_to_p99": Quantity("count", float(point.ttft.p99_missing)),
        "reading_tok_per_s": turned("tok_per_s", prefill, MS_PER_S * tokens) if tokens else Quantity("tok_per_s"),
    }


def _loads(subject: Subject) -> dict[tuple[str, int], float]:
    """Return how long the server says the model was loaded within each request, where it says so."""
    return {
        (str(row.get("run_id")), row["order_index"]): row["server_load_ms"]
        for row in records(subject.rows[["run_id", "order_index", "server_load_ms"]])
        if row["server_load_ms"] is not None
    }


def _load(point: Point, loads: Mapping[tuple[str, int], float]) -> Quantity:
    """Return the longest load within the point's requests."""
    keys = [(run_id, index) for run_id in point.run_ids for index in point.rows]
    found = [loads[key] for key in keys if key in loads]
    return Quantity("ms", max(found, default=None), n=len(found))


def _against(subject: Subject, point: Point, machine: Machine, model: Model) -> dict[str, Quantity]:
    """Return the shares of the datasheet's limits, and of what was measured on such a machine without a model."""
    quantization, kv_type = subject.quantization, subject.kv_cache_type
    found = next(iter(ceilings([point], model, machine, quantization, kv_type)), None)
    if found is None:
        return {}
    context = round(point.prompt_tokens or 0)
    bound = decode_ceiling(model, machine, quantization, context_tokens=context, kv_type=kv_type)
    return {
        "decode_ceiling_tok_per_s": of_range("tok_per_s", bound.datasheet),
        "decode_measured_ceiling_tok_per_s": of_range("tok_per_s", bound.measured),
        **_reached("decode", "bytes_per_s", found.decode),
        **_reached("prefill", "flops_per_s", found.prefill),
    }


def _reached(name: str, unit: Unit, side: Reached | None) -> dict[str, Quantity]:
    return {
        f"{name}_{unit}": of_range(unit, side and side.used),
        f"{name}_datasheet_share": of_range("share", side and side.datasheet_share),
        f"{name}_measured_share": of_range("share", side and side.measured_share),
    }
