"""A server's address as a person writes it: whether it is one."""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

_HOST_NAME: Final = re.compile(r"\w[\w.-]{0,252}")


def is_address(url: str) -> bool:
    """Whether *url* is http(s)://HOST[:PORT][/PATH]: no user, password, key, space or control character in it."""
    if any(not character.isprintable() or character.isspace() for character in url):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if ":" in host:
            ipaddress.ip_address(host)
        elif not _HOST_NAME.fullmatch(host):
            return False
        return parts.scheme in ("http", "https") and parts.port != 0 and parts.username is None and not parts.query
    except ValueError:
        return False
