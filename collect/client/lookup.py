"""Looking at a server: one small JSON or text answer, quickly, and never an exception for what a network can do."""

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import httpx

from collect.fields import parsed

TIMEOUT_S: Final = 3.0
TIMEOUT: Final = "timeout"
REFUSED: Final = "nothing answers"
# The longest honest answer is a server's list of models or its metrics; an endless one is no answer.
MAX_BYTES: Final = 8 * 2**20


@dataclass(frozen=True)
class Answer:
    """What came back: *status* and *text*, or neither and the *reason*."""

    status: int | None
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """By lower-case name."""
    reason: str | None = None

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    def json(self) -> Any:
        """The body as JSON; None where the answer is not good or not JSON."""
        return parsed(self.text) if self.ok else None


def get(url: str, path: str, *, timeout_s: float = TIMEOUT_S, headers: Mapping[str, str] | None = None) -> Answer:
    """GET *path* below *url*."""
    return _ask("GET", url, path, None, timeout_s, headers)


def post(
    url: str, path: str, body: Any, *, timeout_s: float = TIMEOUT_S, headers: Mapping[str, str] | None = None
) -> Answer:
    """POST *body* as JSON to *path* below *url*."""
    return _ask("POST", url, path, body, timeout_s, headers)


def _ask(method: str, url: str, path: str, body: Any, timeout_s: float, headers: Mapping[str, str] | None) -> Answer:
    # No proxy of the environment: it would answer for a server that is not there (and know what we ask).
    deadline = time.monotonic() + timeout_s
    received = bytearray()
    try:
        with (
            httpx.Client(trust_env=False, timeout=timeout_s, follow_redirects=False, verify=_tls()) as client,
            client.stream(method, url.rstrip("/") + path, json=body, headers=headers) as response,
        ):
            for piece in response.iter_bytes():
                received += piece
                if len(received) > MAX_BYTES:
                    return Answer(None, reason="the answer does not end")
                if time.monotonic() > deadline:
                    return Answer(None, reason=TIMEOUT)
            return Answer(response.status_code, received.decode("utf-8", "replace"), dict(response.headers))
    except httpx.TimeoutException:
        return Answer(None, reason=TIMEOUT)
    except httpx.ConnectError:
        return Answer(None, reason=REFUSED)
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeError, ValueError) as problem:
        return Answer(None, reason=type(problem).__name__)


@cache
def _tls() -> ssl.SSLContext:
    """The certificates, read once: that takes longer than most answers."""
    return httpx.create_ssl_context(trust_env=False)
