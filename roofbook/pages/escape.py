"""Text from rows, servers and files, made safe wherever it is put: Markdown, HTML, addresses, file names."""

import hashlib
import html
import json
import re
import unicodedata
from typing import Any, Final

from markupsafe import Markup

# Whatever opens something in HTML or in any Markdown dialect that we know of.
_MEANS_SOMETHING: Final = re.compile(r"[&<>\"'\\`*_{}\[\]|~^#$]")
# At the start of a line a sign may open a list, a heading's underline, a definition.
_OPENS_A_LINE: Final = re.compile(r"^(\d*(?=[.)](?:\s|$))|(?=[-+=:]))([-+=:.)])")
_SPACE: Final = re.compile(r"\s+")

MAX_SLUG: Final = 60


def text(value: object) -> Markup:
    """Return *value* as it reads, with every sign that Markdown or HTML would take for its own as an entity."""
    if isinstance(value, Markup):
        return value
    plain = _SPACE.sub(" ", visible(str(value))).strip()
    safe = _MEANS_SOMETHING.sub(lambda sign: f"&#{ord(sign[0])};", plain)
    return Markup(_OPENS_A_LINE.sub(lambda start: f"{start[1]}&#{ord(start[2])};", safe))


def visible(value: str) -> str:
    """Return *value* without characters that are not seen: control, and those that reverse the reading direction."""
    return "".join(" " if unicodedata.category(sign) in ("Cc", "Zl", "Zp") else sign for sign in value
                   if unicodedata.category(sign) not in ("Cf", "Cs", "Co", "Cn"))  # fmt: skip


def plain_title(value: str) -> str:
    """Return *value* for places that take HTML but no Markdown: a page's title, the navigation."""
    return html.escape(_SPACE.sub(" ", visible(value)).strip())


def slug(value: str) -> str:
    """Return *value* as a part of an address or a file name: lower-case letters, digits and single hyphens.

    A value that has none, or whose end is cut off, gets some digits of its digest, so that two never meet.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")
    if readable and len(readable) <= MAX_SLUG:
        return readable
    return f"{readable[: MAX_SLUG - 9].strip('-')}-{digest(value)}".strip("-")


def digest(value: str) -> str:
    """Return eight hexadecimal digits that tell *value* from others."""
    return hashlib.sha256(value.encode()).hexdigest()[:8]


def json_in_html(value: Any) -> Markup:
    """Return *value* as JSON that may stand as the text of an element, whatever it holds."""
    return Markup(html.escape(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)))
