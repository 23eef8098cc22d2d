"""Asking one server: every path once, with the same key, and quietly."""

from typing import Any

from collect.client import lookup
from collect.client.lookup import Answer


class Asker:
    """Asks the server at *url* and remembers its answers, so that several who look at it ask once."""

    def __init__(self, url: str, key: str | None = None, *, timeout_s: float = lookup.TIMEOUT_S) -> None:
        self.url = url
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._timeout_s = timeout_s
        self._answers: dict[tuple[str, str], Answer] = {}

    def get(self, path: str) -> Answer:
        """GET *path*; the same answer on every call."""
        known = self._answers.get(("GET", path))
        if known is None and self._answers and not self.statuses:
            return next(iter(self._answers.values()))  # it did not answer before: it is not asked again
        if known is None:
            known = lookup.get(self.url, path, timeout_s=self._timeout_s, headers=self._headers)
            self._answers["GET", path] = known
        return known

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        """POST *body* to *path*."""
        return lookup.post(self.url, path, body, timeout_s=self._timeout_s, headers=self._headers)

    @property
    def reasons(self) -> list[str]:
        """Why paths that were asked gave no answer at all."""
        return [answer.reason for answer in self._answers.values() if answer.reason is not None]

    @property
    def statuses(self) -> list[int]:
        """The HTTP statuses of all answers."""
        return [answer.status for answer in self._answers.values() if answer.status is not None]
