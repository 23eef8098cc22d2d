"""One finished request as a row of the contract: what was wanted, under which conditions, and what came of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collect.apis import Answer
from collect.exchange import Exchange
from collect.schedule import Cell, Phase
from collect.scrub import of_this_process
from roofbook.record import Row
from roofbook.units import NS_PER_MS


@dataclass(frozen=True)
class Life:
    """What all rows of one process have in common."""

    run_id: str
    plan: str
    segment: int
    machine: str | None
    seed: int
    started_ns: int
    """The monotonic clock when the segment began."""
    selftest_ttft_ms: float | None


@dataclass(frozen=True)
class Sent:
    """One request as it was planned and sent."""

    cell: Cell
    phase: Phase
    repeat: int
    order_index: int
    worker: int
    nonce: str | None = None
    template_tokens: int | None = None
    options: Mapping[str, Any] | None = None
    """What was sent along, the prompt left out."""


def row_of(life: Life, sent: Sent, server: Row, exchange: Exchange, answer: Answer, sample: Row) -> Row:
    """Return the row of a request that was sent; *server* and *sample* are columns already."""
    return {
        **planned(life, sent, server),
        **answer.columns,
        "started_at": exchange.started_at,
        "connection": "reused" if exchange.connect_ms is None and exchange.sent_at_ns is not None else "new",
        "proxy": "none",
        "sent_at_ms": None if exchange.sent_at_ns is None else (exchange.sent_at_ns - life.started_ns) / NS_PER_MS,
        "connect_ms": exchange.connect_ms,
        "attempts": 1,
        "loop_lag_ms": exchange.loop_lag_ms,
        "client_cpu_share": exchange.client_cpu_share,
        "wall_elapsed_ms": exchange.wall_elapsed_ms,
        **sample,
    }


def refused_row(life: Life, sent: Sent, server: Row, reason: str) -> Row:
    """Return the row of a request that was never sent because it could not have fitted."""
    return {**planned(life, sent, server), "status": "refused", "error": reason, "attempts": 0}


def planned(life: Life, sent: Sent, server: Row) -> Row:
    """Return what is known of a request before it is sent."""
    cell = sent.cell
    calibrates = sent.phase == "calibration"
    return {
        **server,
        "run_id": life.run_id,
        "segment": life.segment,
        "plan": life.plan,
        "experiment": cell.experiment,
        "kind": cell.kind,
        "point": cell.point,
        "phase": sent.phase,
        "order_index": sent.order_index,
        "repeat": sent.repeat,
        "worker": sent.worker,
        "machine": life.machine,
        "request_options": None if sent.options is None else _as_json(sent.options),
        "concurrency": cell.concurrency,
        "shared_prefix_tokens": 0,
        "template_tokens": sent.template_tokens,
        "nonce": sent.nonce,
        "seed": life.seed if cell.run.seed is None else cell.run.seed,
        "pause_before_ms": cell.run.pause_s * 1e3,
        "prompt_tokens_wanted": None if calibrates else cell.prompt_tokens,
        "output_tokens_wanted": cell.output_tokens,
        "selftest_ttft_ms": life.selftest_ttft_ms,
    }


def _as_json(options: Mapping[str, Any]) -> str:
    clean = of_this_process()
    kept = dict(options)
    if isinstance(kept.get("model"), str):  # some servers want the path of a file: its folders are nobody's business
        kept["model"] = clean.model_name(kept["model"])
    return json.dumps(clean.json(kept), ensure_ascii=False, sort_keys=True)
