"""The client measured on a server of known times, before it measures one of unknown times."""

import statistics
from typing import Final

from collect.apis import APIS, Ask
from collect.client import LoopWatch, Sender, Target
from collect.oracle import Model, Oracle, Speed, llamacpp

TRUE_TTFT_MS: Final = 100.0
"""When the server of known times sends its first token, in ms after it has read the request."""

_REQUESTS: Final = 3
_TIMEOUT_S: Final = 10.0


async def selftest_ttft_ms() -> float | None:
    """Return the median time to first token that the client sees where the truth is TRUE_TTFT_MS; None if it fails."""
    api = APIS["llamacpp"]
    request = api.request(Ask("one two three", output_tokens=2))
    watch = LoopWatch()
    watch.start()
    speed = Speed(fixed_ms=TRUE_TTFT_MS, linear_ms=0, step_ms=1)
    with Oracle(llamacpp(Model(speed, caches=False))) as oracle:
        async with Sender(Target(oracle.url), watch) as sender:
            exchanges = [await sender.send(request.path, request.body, timeout_s=_TIMEOUT_S) for _ in range(_REQUESTS)]
    watch.stop()
    times = [time_ms for exchange in exchanges if (time_ms := api.read(exchange).columns["ttft_ms"]) is not None]
    return statistics.median(times) if times else None
