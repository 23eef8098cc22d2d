"""OpenAI's chat completions, streamed, as most servers speak them; with the fields that some add."""

from collections.abc import Iterator
from typing import Any, Final

from collect.apis.api import Api, Ask, Request
from collect.apis.events import as_dict, as_dicts
from collect.apis.llamacpp import read_timings
from collect.apis.streamed import streamed_objects
from collect.apis.tally import Answer, Tally
from collect.exchange import Exchange

_THINKING: Final = ("reasoning_content", "reasoning", "thinking")


def _request(ask: Ask) -> Request:
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": ask.prompt}],
        "stream": True,
        "max_tokens": ask.output_tokens,
        **{key: value for key, value in ask.options.items() if key != "num_ctx"},
    }
    if ask.model:
        body["model"] = ask.model  # null is refused by mlx_lm, where leaving it out is no fault
    if ask.include_usage:
        body["stream_options"] = {"include_usage": True}
    if ask.ignore_eos:
        body["ignore_eos"] = True
    return Request("/v1/chat/completions", body)


def _read(exchange: Exchange) -> Answer:
    tally = Tally()
    for at_ms, said in streamed_objects(exchange, tally):
        choices = as_dicts(said.get("choices"))
        for choice in choices:
            _feed_choice(tally, at_ms, choice)
        tally.saw(said, *(as_dict(choice.get("delta")) for choice in choices))
        if usage := as_dict(said.get("usage")):
            tally.usage(
                prompt=usage.get("prompt_tokens"),
                cached=as_dict(usage.get("prompt_tokens_details")).get("cached_tokens"),
                output=usage.get("completion_tokens"),
                thinking=as_dict(usage.get("completion_tokens_details")).get("reasoning_tokens"),
            )
        if timings := as_dict(said.get("timings")):
            read_timings(tally, timings)
    return tally.answer(exchange)


def _feed_choice(tally: Tally, at_ms: float, choice: dict[str, Any]) -> None:
    delta = as_dict(choice.get("delta"))
    # The same thought may stand under two names; one chunk is counted once.
    thought = next((delta[key] for key in _THINKING if isinstance(delta.get(key), str) and delta[key]), None)
    tally.token(at_ms, thought, thinking=True)
    tally.token(at_ms, "".join(_answer_texts(choice, delta)))
    if choice.get("finish_reason") == "error":
        tally.fail("finish_reason: error")
    tally.finish(choice.get("finish_reason"))


def _answer_texts(choice: dict[str, Any], delta: dict[str, Any]) -> Iterator[str]:
    """Yield every text of one chunk that was generated and is not thought: content, a refusal, a tool's arguments."""
    content: object = delta.get("content", choice.get("text"))
    parts: list[object] = [content, delta.get("refusal")]
    parts += [part.get("text") for part in as_dicts(content)]
    calls = [*(call.get("function") for call in as_dicts(delta.get("tool_calls"))), delta.get("function_call")]
    for call in calls:
        parts += [as_dict(call).get("name"), as_dict(call).get("arguments")]
    for part in parts:
        if isinstance(part, str):
            yield part


OPENAI = Api("openai", raw_prompt=False, fixes_output=False, request=_request, read=_read)
