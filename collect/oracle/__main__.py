"""`python -m collect.oracle`: the oracle as a process of its own, for measuring the client without sharing its core.

Prints its address on one line and serves until its input ends. GET /oracle/heard tells what it heard, with the
monotonic stamps (one clock for all processes of a machine) at which each piece left.
"""

import argparse
import sys

from collect.oracle import Model, Oracle, Request, Script, Speed, answer, llamacpp, ollama, openai

_APIS = {"llamacpp": llamacpp, "ollama": ollama, "openai": openai}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m collect.oracle")
    parser.add_argument("--api", choices=_APIS, default="llamacpp")
    parser.add_argument("--fixed-ms", type=float, default=100.0)
    parser.add_argument("--linear-ms", type=float, default=0.0)
    parser.add_argument("--square-ms", type=float, default=0.0)
    parser.add_argument("--step-ms", type=float, default=10.0)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--context", type=int, default=8192)
    flags = parser.parse_args()
    speed = Speed(flags.fixed_ms, flags.linear_ms, flags.square_ms, flags.step_ms)
    played = _APIS[flags.api](Model(speed, context_tokens=flags.context, slots=flags.slots))

    def handle(request: Request) -> Script:
        return _heard(oracle) if request.path == "/oracle/heard" else played(request)

    oracle = Oracle(handle)
    with oracle:
        print(oracle.url, flush=True)
        sys.stdin.read()


def _heard(oracle: Oracle) -> Script:
    return answer([
        {"path": one.request.path, "received_s": one.request.received_s, "sent_s": one.sent_s, "outcome": one.outcome}
        for one in list(oracle.heard)
    ])  # fmt: skip


if __name__ == "__main__":
    main()
