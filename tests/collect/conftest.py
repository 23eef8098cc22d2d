"""A server in the midst of whose work a test can strike."""

import itertools
from collections.abc import Callable

import pytest

from collect.oracle import Handler, Model, Request, Script, Speed, llamacpp

Holding = Callable[..., Handler]


@pytest.fixture
def holding() -> Holding:
    """Return llama.cpp that does not answer the plan's requests of the given *numbers* (from 1, warm-ups included).

    The plan's are those that ask for six tokens. So the run is in their midst, however late a busy machine lets the
    test look.
    """

    def held(*numbers: int) -> Handler:
        prompt = llamacpp(Model(Speed(fixed_ms=2, linear_ms=0.01, step_ms=0.5)))
        stuck = llamacpp(Model(Speed(fixed_ms=120_000)))
        count = itertools.count(1)

        def handle(request: Request) -> Script:
            planned = request.json.get("n_predict") == 6
            return (stuck if planned and next(count) in numbers else prompt)(request)

        return handle

    return held
