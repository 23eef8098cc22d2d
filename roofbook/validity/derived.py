"""What follows from one row's columns, with its nulls: the figures that rules and tables share."""

import math
from typing import Any

import pandas as pd

from roofbook.record import Row
from roofbook.units import MS_PER_S


def records(rows: pd.DataFrame) -> list[Row]:
    """Return the rows as plain values; null, and what is no number, is None.

    A row without an ``order_index`` gets its position.
    """
    names = [str(name) for name in rows.columns]
    columns = [[_known(value) for value in rows[name].tolist()] for name in names]
    plain: list[Row] = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    for position, row in enumerate(plain):
        if row.get("order_index") is None:
            row["order_index"] = position
    return plain


def _known(value: Any) -> Any:
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def is_judged(row: Row) -> bool:
    """True for a row that stands for something: measured, or an anchor; false for warm-ups, calibration and primes."""
    return row.get("phase") in ("measured", "anchor", None)


def is_ok(row: Row) -> bool:
    """True for a request that finished as it should."""
    return row.get("status") == "ok"


def tpot_ms(row: Row) -> float | None:
    """Return the time per output token, ms, by the client's clock: None under two tokens or without both times.

    A time that runs backwards is no time; a stream that came all at once has none either (see ``span_per_token_ms``).
    """
    per_token = span_per_token_ms(row)
    return per_token if per_token is not None and per_token > 0 else None


def span_per_token_ms(row: Row) -> float | None:
    """Return (last token - first token) / (tokens - 1) as it is, zero or negative included."""
    first, last, tokens = row.get("ttft_ms"), row.get("last_token_ms"), row.get("output_tokens")
    if first is None or last is None or tokens is None or tokens < 2:
        return None
    return (last - first) / (tokens - 1)


def decode_tok_per_s(row: Row) -> float | None:
    """Return the decode rate: the client's if it has one, else the server's, else the printed one.

    Servers time from the first token but count it, so theirs is inflated by n / (n - 1); that is taken back where n is
    known.
    """
    per_token = tpot_ms(row)
    if per_token is not None:
        return MS_PER_S / per_token
    tokens, decode_ms = row.get("output_tokens"), row.get("server_decode_ms")
    printed = row.get("server_decode_tok_per_s")
    if tokens is not None and tokens < 2:
        return None
    if tokens is not None and decode_ms:
        return MS_PER_S * (tokens - 1) / decode_ms
    if printed is None or printed <= 0:
        return None
    return printed * (tokens - 1) / tokens if tokens is not None else printed


def beyond_service_ms(row: Row) -> float | None:
    """Return what TTFT has beyond the server's load and prefill: waiting for a slot, and everything between."""
    ttft, prefill = row.get("ttft_ms"), row.get("server_prefill_ms")
    if ttft is None or prefill is None:
        return None
    return ttft - prefill - (row.get("server_load_ms") or 0.0)


def computed_tokens(row: Row) -> int | None:
    """Return the prompt tokens that the server had to compute: those not in a cache, at least one."""
    prompt, cached = row.get("prompt_tokens"), row.get("cached_tokens")
    if prompt is None:
        return None
    return max(1, prompt - (cached or 0))
