"""How long the rest of a run will take, from the requests that are behind it."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from collect.schedule import Cell, Unit
from roofbook.record import Row


@dataclass
class Pace:
    """Times of the requests so far: of the same cell where there are any, else from rates of prefill and decode."""

    _of_cell: dict[tuple[int, int, int], list[float]] = field(default_factory=dict[tuple[int, int, int], list[float]])
    _prefill: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    _decode: list[float] = field(default_factory=list[float])

    def note(self, row: Row, cell: Cell) -> None:
        """Learn from one finished request."""
        if row.get("status") != "ok" or row.get("e2e_ms") is None or row.get("ttft_ms") is None:
            return
        e2e_ms, ttft_ms = float(row["e2e_ms"]), float(row["ttft_ms"])
        if row.get("phase") != "calibration":
            self._of_cell.setdefault(_size(cell), []).append(e2e_ms)
        if prompt_tokens := row.get("prompt_tokens"):
            self._prefill.append((prompt_tokens, ttft_ms / prompt_tokens))
        if output_tokens := row.get("output_tokens"):
            self._decode.append((e2e_ms - ttft_ms) / output_tokens)

    def request_ms(self, cell: Cell) -> float | None:
        """Return about how long one request of *cell* takes; None before anything is known."""
        if seen := self._of_cell.get(_size(cell)):
            return statistics.fmean(seen)
        if not self._prefill or not self._decode:
            return None
        _, per_token = min(self._prefill, key=lambda seen: abs(seen[0] - cell.prompt_tokens))
        return per_token * cell.prompt_tokens + statistics.median(self._decode) * cell.output_tokens

    def left_s(self, units: Iterable[Unit]) -> float | None:
        """Return about how long *units* will take, their pauses included."""
        total_ms = 0.0
        for unit in units:
            each_ms = self.request_ms(unit.cell)
            if each_ms is None:
                return None
            turns = -(-len(unit.repeats) // unit.cell.concurrency)
            total_ms += turns * (each_ms + unit.cell.run.pause_s * 1e3)
        return total_ms / 1e3


def _size(cell: Cell) -> tuple[int, int, int]:
    return cell.prompt_tokens, cell.output_tokens, cell.concurrency
