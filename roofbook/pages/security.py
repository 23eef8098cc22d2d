"""A page's own promise to the browser: nothing comes from elsewhere, and no script runs but those it names."""

import base64
import hashlib
import re
from typing import Final

_INLINE_SCRIPT: Final = re.compile(r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.DOTALL)
_NO_SCRIPT_TYPE: Final = re.compile(r'type="application/(?:ld\+)?json"')


def with_policy(page: str) -> str:
    """Return the HTML *page* with a Content-Security-Policy of the hashes of its inline scripts.

    Without ``unsafe-eval``; styles may stand inline, as the theme and the charts write them.
    """
    hashes = sorted({f"'sha256-{_digest(code)}'" for code in _inline_scripts(page)})
    policy = "; ".join([
        "default-src 'self'",
        " ".join(["script-src 'self'", *hashes]),
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
    ])  # fmt: skip
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">{head}', 1)


def _inline_scripts(page: str) -> list[str]:
    return [
        script["code"]
        for script in _INLINE_SCRIPT.finditer(page)
        if " src=" not in script["attributes"] and not _NO_SCRIPT_TYPE.search(script["attributes"])
    ]


def _digest(code: str) -> str:
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
