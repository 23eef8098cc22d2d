"""A figure as a picture of its own: the static SVG with real colours, for a README, a blog or slides."""

import re
from collections.abc import Mapping
from typing import Final

from roofbook.pages.site import Page

FONT: Final = "system-ui, -apple-system, 'Apple SD Gothic Neo', 'Noto Sans KR', 'Noto Sans CJK KR', sans-serif"

_WIDE: Final = re.compile(r'id="(?P<anchor>fig-[\w-]+)".*?rb-static--wide">(?P<svg><svg.*?</svg>)', re.DOTALL)
_VARIABLE: Final = re.compile(r"var\((--[\w-]+)\)")
_DECLARED: Final = re.compile(r"(--[\w-]+):\s*([^;}]+)")


def pictures(page: Page, colours: Mapping[str, str]) -> dict[str, str]:
    """Return the figures of *page* as SVG files, by anchor, in the colours of one palette on its paper."""
    found = (_WIDE.search(html) for html in page.figures.values())
    return {match["anchor"]: standalone(match["svg"], colours) for match in found if match}


def standalone(svg: str, colours: Mapping[str, str]) -> str:
    """Return the SVG with every variable replaced by its colour, a background, and a font."""
    start, rest = svg.split(">", 1)
    paper = f'<rect width="100%" height="100%" fill="{colours["--chart-paper"]}"/>'
    plain = start.replace(' aria-hidden="true"', "").replace(' focusable="false"', "")
    return _VARIABLE.sub(lambda name: colours[name[1]], f'{plain} font-family="{FONT}">{paper}{rest}\n')


def palette(css: str, scheme: str) -> dict[str, str]:
    """Return the colours that a style sheet declares for *scheme* (default, slate), each as a real colour."""
    declared: dict[str, str] = {}
    for block in re.finditer(r'\[data-md-color-scheme(?:="(\w+)")?\]\s*\{([^}]*)\}', css):
        if block[1] in (None, scheme):
            declared |= {name: value.strip() for name, value in _DECLARED.findall(block[2])}
    return {name: _resolved(value, declared) for name, value in declared.items()}


def _resolved(value: str, declared: Mapping[str, str]) -> str:
    named = _VARIABLE.fullmatch(value)
    return _resolved(declared[named[1]], declared) if named and named[1] in declared else value
