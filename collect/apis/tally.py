"""What a stream has said so far, whatever API it speaks; at its end, the answer in the contract's columns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from collect.apis.events import as_dict, as_object
from collect.exchange import Exchange
from collect.scrub import of_this_process, scrub
from roofbook.record import Row

_LONGEST_ERROR: Final = 500
_MOST: Final = 10**12  # a duration above this is a broken answer
_MOST_TOKENS: Final = 10**8  # and a count above this: ten times the longest context that anybody offers
_MOST_KEYS: Final = 8
_NO_TEXTS: Final = ("id", "object", "created", "created_at", "model", "system_fingerprint", "usage", "timings")
_LONGEST_BODY: Final = 100_000
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
    model: str | None = None
    keys: dict[str, None] = field(default_factory=dict[str, None])
    """Under which keys the events said something, in the order of their coming."""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    """What is odd about a good answer, by its kind."""
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

    def saw(self, said: Mapping[str, Any], *inner: Mapping[str, Any]) -> None:
        """Note what an event says beside its text: the model that answers, and the keys of it and of its *inner*."""
        if self.model is None and isinstance(said.get("model"), str):
            self.model = said["model"]
        if not self.times_ms:  # who recognised a text need not tell where it may have been
            for one in inner or (said,):
                self.keys |= dict.fromkeys(key for key, value in one.items() if value and key not in _NO_TEXTS)

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
        self.fail(f"unreadable event: {_short(data, 80)}")

    def usage(
        self, *, prompt: object = None, cached: object = None, output: object = None, thinking: object = None
    ) -> None:
        """Note the server's counts; the last with a positive count holds, and what is no count is unknown."""
        prompt_tokens, output_tokens = self._count(prompt), self._count(output)
        if not prompt_tokens and not output_tokens:
            return
        self.prompt_tokens, self.output_tokens = prompt_tokens or None, output_tokens
        cached_tokens, self.thinking_tokens = self._count(cached), self._count(thinking)
        if cached_tokens is not None and cached_tokens > (prompt_tokens or cached_tokens):
            self.notes["cached"] = f"{cached_tokens} cached tokens in a prompt of {prompt_tokens} cannot be: left out"
            cached_tokens = None
        self.cached_tokens = cached_tokens

    def _count(self, value: object) -> int | None:
        found = as_count(value)
        if found is None and isinstance(value, int) and not isinstance(value, bool):
            self.notes["count"] = f"a count of {_short(str(value), 30)} tokens cannot be: left out"
        return found

    def answer(self, exchange: Exchange) -> Answer:
        """Return the answer that *exchange* held."""
        status, error = self._outcome(exchange)
        ended: Row = {"answered_model": self._model(), "status": status, "error": error}
        return Answer(status, {**self._counted(), **self._timed(exchange, status), **ended}, "".join(self.said))

    def _outcome(self, exchange: Exchange) -> tuple[str, str | None]:
        if exchange.http_status is not None and exchange.http_status != 200:
            return f"http_{exchange.http_status}", _refusal(exchange) or None
        complete = self.done or self.finish_reason is not None
        answered = exchange.closing in ("complete", "read_error") or (complete and exchange.closing == "timeout")
        if self.error is not None and answered:
            return "in_stream_error", self.error
        if complete and answered:
            return self._completed(exchange)
        if exchange.closing == "complete":
            return _incomplete(exchange, chunks=len(self.times_ms))
        return exchange.closing, None if exchange.error is None else _short(exchange.error)

    def _completed(self, exchange: Exchange) -> tuple[str, str | None]:
        """Return the outcome of an answer that came to its end, with what is odd about it."""
        # A model may end at once; its end mark is a token to some servers.
        if not self.times_ms and self.output_tokens not in (0, 1):
            keys = ", ".join([*self.keys][:_MOST_KEYS]) or "none"
            return "incomplete", _short(f"no text was recognised; the events had the keys: {keys}")
        late = ["the answer was complete, but the connection was not closed"] if exchange.closing == "timeout" else []
        return "ok", "; ".join([*late, *self.notes.values()]) or None

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

    def _timed(self, exchange: Exchange, status: str) -> Row:
        return {
            "first_byte_ms": exchange.pieces[0][0] if exchange.pieces else None,
            "ttft_ms": self.times_ms[0] if self.times_ms else None,
            "first_answer_ms": self.first_answer_ms,
            "last_token_ms": self.times_ms[-1] if self.times_ms else None,
            # Where a complete answer's connection stays open, its end never came.
            "e2e_ms": None if status == "ok" and exchange.closing == "timeout" else exchange.e2e_ms,
            "chunk_times_ms": self.times_ms,
            "finish_reason": self.finish_reason,
            **self.server,
        }

    def _model(self) -> str | None:
        return None if self.model is None else of_this_process().model_name(self.model) or None

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
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None


def as_number(value: object, *, divide_by: float = 1) -> float | None:
    """Return *value* / *divide_by* where it is a finite number of at least zero, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST * divide_by:
        return None
    return float(value) / divide_by if math.isfinite(value) else None


def _refusal(exchange: Exchange) -> str:
    """Return what a server said that did not take the request: an error in its JSON, its text, or where to go."""
    text = _text(exchange)
    said = as_object(text)
    told = _said(said.get("error", said)) if said is not None else _short(text)
    if exchange.location is None:
        return told
    return _short(f"the server sends to {exchange.location} instead: write that address in the plan. {told}")


def _incomplete(exchange: Exchange, *, chunks: int) -> tuple[str, str]:
    """Return the outcome of a stream that came to no end."""
    if exchange.content_encoding.lower() not in ("", "identity"):
        encoding = _short(exchange.content_encoding, 20)
        return "incomplete", f"the server compressed its stream ({encoding}), unasked: turn that off"
    if chunks:
        return "incomplete", "the stream ended before the answer did"
    if not exchange.pieces:
        return "incomplete", "the answer was empty"
    text = _text(exchange)
    said = as_object(text)
    if said is not None and said.get("error"):
        return "in_stream_error", _said(said["error"])
    return "incomplete", f"no stream: {_short(text, 80)}"


def _text(exchange: Exchange) -> str:
    return exchange.body[:_LONGEST_BODY].decode("utf-8", "replace")


def _said(problem: object) -> str:
    """Return the sentence inside an error as servers wrap it: {"message": ...}, {"error": ...} or text."""
    while wrapped := as_dict(problem):
        inner = next((wrapped[key] for key in ("message", "error", "detail") if wrapped.get(key)), None)
        if inner is None:
            break
        problem = inner
    return _short(str(problem))


def _short(text: str, most: int = _LONGEST_ERROR) -> str:
    """Return *text* as one scrubbed line of at most *most* characters; scrubbed first, for half a key is one still."""
    one_line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return scrub(one_line)[:most]
