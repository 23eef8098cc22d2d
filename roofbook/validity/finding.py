"""A doubt as a value: its kind, whom it concerns, its numbers, and which figures it spoils. Words come elsewhere."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from roofbook.record import Row

Measure = Literal["prefill", "ttft", "tpot", "e2e"]
"""What a row is measured for: server's prefill time, time to first token, time per output token, end to end."""

MEASURES: Final[tuple[Measure, ...]] = ("prefill", "ttft", "tpot", "e2e")

Value = float | int | str | None

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    # of a row
    "cold_load": ("load_ms", "warm_ms"),
    "reload": ("load_ms", "warm_ms"),
    "cached_prefix": ("cached_tokens", "expected_tokens", "prompt_tokens"),
    "cached_prefix_implied": ("prefill_ms", "median_ms", "rows"),
    "above_compute_peak": ("flops_per_s", "peak_flops_per_s", "prompt_tokens", "prefill_ms"),
    "above_bandwidth": ("bytes_per_s", "peak_bytes_per_s", "tok_per_s", "ceiling_tok_per_s"),
    "near_bandwidth": ("bytes_per_s", "peak_bytes_per_s", "tok_per_s", "ceiling_tok_per_s"),
    "slow_decode": ("bytes_per_s", "peak_bytes_per_s", "tok_per_s", "ceiling_tok_per_s"),
    "above_measured_compute": ("flops_per_s", "measured_flops_per_s", "n", "prompt_tokens", "prefill_ms"),
    "above_measured_bandwidth": ("bytes_per_s", "measured_bytes_per_s", "n", "tok_per_s"),
    "truncated": ("prompt_tokens", "wanted_tokens", "context_limit_tokens"),
    "long_prompt": ("prompt_tokens", "wanted_tokens"),
    "prompt_not_counted": ("uncounted", "rows"),
    "cached_beyond_prompt": ("cached_tokens", "prompt_tokens"),
    "implausible_prefill": ("tokens", "prefill_ms", "tok_per_s", "ttft_ms"),
    "short_output": ("output_tokens", "wanted_tokens"),
    "long_output": ("output_tokens", "wanted_tokens", "chunks"),
    "more_pieces": ("chunks", "output_tokens"),
    "empty_output": ("wanted_tokens",),
    "no_answer": ("output_tokens", "thinking_tokens"),
    "buffered": ("chunks", "span_ms", "e2e_ms"),
    "coalesced": ("chunks", "span_ms", "e2e_ms"),
    "held_start": ("held", "chunks", "late_ms", "ttft_ms", "share"),
    "lumped_start": ("tokens", "output_tokens", "chunks", "share"),
    "unseen_tokens": ("decode_ms", "span_ms"),
    "first_apart": ("ttft_ms", "gap_ms", "usual_ms"),
    "clock_error": ("earlier", "earlier_ms", "later", "later_ms"),
    "queued": ("waited_ms", "ttft_ms"),
    "client_saturated": ("loop_lag_ms", "cpu_share"),
    "slept": ("wall_ms", "monotonic_ms"),
    "swapping": ("swap_in_bytes",),
    "throttled": ("reason",),
    "partial_gpu": ("gpu_fraction",),
    "mixed_conditions": ("field", "value", "usual"),
    "outlier": ("figure", "value", "usual", "rows"),
    "estimated_counts": ("estimated", "rows"),
    "noted": ("note",),
    # of a point
    "other_model": ("model", "answered"),
    "unreliable": ("failed", "requests"),
    "few_warmups": ("warmups", "concurrency"),
    "too_few": ("statistic", "n", "needed", "missing", "minutes"),
    # of a run
    "drifted": ("figure", "share", "first", "last", "anchors"),
}
"""Every kind of finding, with the names of its values: what the catalogue of each language must have a sentence for."""


@dataclass(frozen=True)
class Finding:
    """One doubt about a row (*order_index*), a point, or a whole run (both None)."""

    kind: str
    run_id: str | None
    experiment: str | None = None
    point: str | None = None
    order_index: int | None = None
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
    spoils: frozenset[Measure] = frozenset()
    """The measures this row must not stand for; empty where the finding is only told."""

    @property
    def of_run(self) -> bool:
        """True for a doubt about a run as a whole."""
        return self.experiment is None and self.point is None and self.order_index is None

    @property
    def doubtful(self) -> bool:
        """True where something is spoilt, False where it is only told."""
        return bool(self.spoils)


def of_row(kind: str, row: Row, spoils: Iterable[Measure] = (), /, **values: Value) -> Finding:
    """Return a finding about one row."""
    return Finding(
        kind,
        row.get("run_id"),
        experiment=row.get("experiment"),
        point=row.get("point"),
        order_index=row.get("order_index"),
        values=values,
        spoils=frozenset(spoils),
    )


def of_point(kind: str, rows: list[Row], /, **values: Value) -> Finding:
    """Return a finding about the rows of one point as a whole."""
    first = rows[0]
    return Finding(kind, first.get("run_id"), first.get("experiment"), first.get("point"), values=values)
