"""What a stream has said so far, whatever API it speaks; at its end, the answer in the contract's columns."""

import math
from dataclasses import dataclass, field
from typing import Any, Final

from collect.apis.events import as_dict, as_object
from collect.exchange import Exchange
from collect.scrub import scrub
from roofbook.record import Row

_LONGEST_ERROR: Final = 500
_MOST: Final = 10**12  # a count or a duration above this is a broken answer
_THINK, _THOUGHT = "<think>", "</think>"


@dataclass(frozen=True)
class Answer:
    """One answer: its *columns* of the contract, and the *text* that was generated (thinking left out)."""

    status: str
    columns: Row
    text: str = ""


@dataclass
class Tally:
    """The running account of one stream; an API's reader feeds it, ``answer`` closes it."""

    times_ms: list[float] = field(default_factory=list[float])
    thinking_chunks: int = 0
    first_answer_ms: float | None = None
    said: list[str] = field(default_factory=list[str])
    finish_reason: str | None = None
    done: bool = False
    error: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    server: Row = field(default_factory=dict[str, Any])
    _inside_think: bool | None = None

    def token(self, at_ms: float, text: object, *, thinking: bool = False) -> None:
        """Note a chunk of generated text of any channel; what is no text, or empty, is no chunk."""
        if not isinstance(text, str) or not text:
            return
        self.times_ms.append(at_ms)
        if thinking:
            self.thinking_chunks += 1
            return
        answer = self._without_think(text)
        if answer is None:
            self.thinking_chunks += 1
        elif answer:
            self.said.append(answer)
            if self.first_answer_ms is None:
                self.first_answer_ms = at_ms

    def fail(self, problem: object) -> None:
        """Note an error that the stream itself reports; the first one counts."""
        if self.error is None:
            self.error = _said(problem)

    def finish(self, reason: object) -> None:
        """Note why generation ended; null says nothing."""
        if isinstance(reason, str) and reason:
            self.finish_reason = _short(reason)

    def unreadable(self, data: str) -> None:
        """Note an event that is not what the API sends."""
        self.fail(f"unreadable event: {data[:80]}")

    def usage(
        self, *, prompt: object = None, cached: object = None, output: object = None, thinking: object = None
    ) -> None:
        """Note the server's counts; the last with a positive count holds, and what is no count is unknown."""
        prompt_tokens, output_tokens = as_count(prompt), as_count(output)
        if not prompt_tokens and not output_tokens:
            return
        self.prompt_tokens, self.output_tokens = prompt_tokens or None, output_tokens
        self.cached_tokens, self.thinking_tokens = as_count(cached), as_count(thinking)

    def answer(self, exchange: Exchange) -> Answer:
        """Return the answer that *exchange* held."""
        status, error = self._outcome(exchange)
        return Answer(
            status, {**self._counted(), **self._timed(exchange), "status": status, "error": error}, "".join(self.said)
        )

    def _outcome(self, exchange: Exchange) -> tuple[str, str | None]:
        if exchange.http_status is not None and exchange.http_status != 200:
            said = as_object(exchange.body[:100_000].decode("utf-8", "replace"))
            body = (
                said.get("error", said)
                if said is not None
                else exchange.body[:_LONGEST_ERROR].decode("utf-8", "replace")
            )
            return f"http_{exchange.http_status}", _said(body) or None
        complete = self.done or self.finish_reason is not None
        if self.error is not None and exchange.closing in ("complete", "read_error"):
            return "in_stream_error", self.error
        if exchange.closing == "complete" or (exchange.closing == "read_error" and complete):
            return ("ok", None) if complete else ("incomplete", _why_incomplete(exchange, chunks=len(self.times_ms)))
        return exchange.closing, None if exchange.error is None else _short(exchange.error)

    def _counted(self) -> Row:
        chunks = len(self.times_ms)
        counted = self.output_tokens is not None and (self.output_tokens > 0 or chunks == 0)
        output_tokens = self.output_tokens if counted else chunks or None
        thinking = self.thinking_tokens
        if thinking is None and self.thinking_chunks and counted and output_tokens == chunks:
            thinking = self.thinking_chunks  # every chunk is one token, so they can be told apart
        return {
            "prompt_tokens": self.prompt_tokens,
            "prompt_token_source": None if self.prompt_tokens is None else "server",
            "cached_tokens": self.cached_tokens,
            "output_tokens": output_tokens,
            "output_token_source": None if output_tokens is None else "server" if counted else "estimate",
            "thinking_tokens": thinking,
            "chunks": chunks,
        }

    def _timed(self, exchange: Exchange) -> Row:
        return {
            "first_byte_ms": exchange.pieces[0][0] if exchange.pieces else None,
            "ttft_ms": self.times_ms[0] if self.times_ms else None,
            "first_answer_ms": self.first_answer_ms,
            "last_token_ms": self.times_ms[-1] if self.times_ms else None,
            "e2e_ms": exchange.e2e_ms,
            "chunk_times_ms": self.times_ms,
            "finish_reason": self.finish_reason,
            **self.server,
        }

    def _without_think(self, text: str) -> str | None:
        """Return the answer's part of *text*, None where all of it is thought: some models think in the open."""
        if self._inside_think is None and text.strip():
            self._inside_think = text.lstrip().startswith(_THINK)
        if not self._inside_think:
            return text
        thought, ended, answer = text.partition(_THOUGHT)
        del thought
        if not ended:
            return None
        self._inside_think = False
        return answer.lstrip() or None


def as_count(value: object) -> int | None:
    """Return *value* where it is a count, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST else None


def as_number(value: object, *, divide_by: float = 1) -> float | None:
    """Return *value* / *divide_by* where it is a finite number of at least zero, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST * divide_by:
        return None
    return float(value) / divide_by if math.isfinite(value) else None


def _why_incomplete(exchange: Exchange, *, chunks: int) -> str:
    if chunks:
        return "the stream ended before the answer did"
    if not exchange.pieces:
        return "the answer was empty"
    return f"no stream: {_short(exchange.body[:80].decode('utf-8', 'replace'))}"


def _said(problem: object) -> str:
    """Return the sentence inside an error as servers wrap it: {"message": ...}, {"error": ...} or text."""
    wrapped = as_dict(problem)
    for key in ("message", "error", "detail"):
        if wrapped.get(key):
            return _said(wrapped[key])
    return _short(str(problem))


def _short(text: str) -> str:
    one_line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return scrub(one_line)[:_LONGEST_ERROR]
