"""Looking at the server that is about to be measured: what it is, what it runs, and how it was started."""

from collections.abc import Mapping, Sequence
from typing import Any

from collect.server.facts import Api, ListedModel, ServerFacts

__all__ = ["Api", "ListedModel", "ServerFacts", "find", "identify", "inspect"]


def find(ports: Sequence[int] = ()) -> list[ServerFacts]:
    """Return the LLM servers that answer on loopback at the usual ports, each asked what it is; order of the ports."""
    raise NotImplementedError


def identify(url: str, *, key: str | None = None) -> ServerFacts:
    """Ask the server at *url* what it is and what models it has (api, server, version, models).

    Raises ServerError where nothing answers, or what answers is no LLM server.
    """
    raise NotImplementedError


def inspect(
    url: str,
    *,
    api: Api | None = None,
    model: str | None = None,
    key: str | None = None,
    stated: Mapping[str, Any] | None = None,
) -> ServerFacts:
    """Return all that is known of the server at *url* and of *model* (default: the loaded one, else the smallest).

    Raises ServerError as `identify` does, and where it does not speak *api*; ModelError where it does not have *model*,
    naming those it has.
    """
    raise NotImplementedError
