"""A figure as the picture that a shared link shows: 1200 x 630 pixels, with its message above it."""

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from typing import Final

import vl_convert

from roofbook.charts.draw import drawn_at
from roofbook.charts.figure import Figure

WIDTH_PX: Final = 1200
HEIGHT_PX: Final = 630
"""The size that every network shows without cutting."""

_PAD_PX: Final = 56
_SCALE: Final = 1.6
"""The chart is drawn smaller and enlarged, so that its labels can be read in a preview."""
_CHART_HEIGHT_PX: Final = 240
_TITLES: Final = ((40, 2), (32, 3))
"""How large a title is, and in how many lines: a long one is smaller."""

_FONTS: Final = "'Pretendard', 'Noto Sans KR', 'Noto Sans CJK KR', 'Apple SD Gothic Neo', 'Malgun Gothic', sans-serif"
_FONT_OF_ITS_OWN: Final = re.compile(r' font-family="[^"]*"')
_VARIABLE: Final = re.compile(r"var\((--[\w-]+)\)")
_WIDE_LETTER_EM: Final = 0.96
_LETTER_EM: Final = 0.54
"""Rough widths of a Hangul and a Latin letter: enough to know where a line is full."""


def poster(figure: Figure, site_name: str, colours: Mapping[str, str]) -> bytes:
    """Return *figure* as PNG in the *colours* of the site's style sheet.

    Raises PageError where the renderer refuses the chart.
    """
    inner_px = (WIDTH_PX - 2 * _PAD_PX) / _SCALE
    chart = _FONT_OF_ITS_OWN.sub("", drawn_at(figure.spec, inner_px, _CHART_HEIGHT_PX))
    top = HEIGHT_PX - _PAD_PX / 2 - _CHART_HEIGHT_PX * _SCALE
    size_px, lines = _title(figure.title)
    title = "".join(
        _text(line, _PAD_PX + 36 + number * size_px * 1.2, size_px, "--chart-ink", "bold")
        for number, line in enumerate(lines, 1)
    )
    return vl_convert.svg_to_png(
        _painted(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH_PX}" height="{HEIGHT_PX}" font-family="{_FONTS}">'
            f'<rect width="100%" height="100%" fill="var(--chart-paper)"/>'
            f"{_text(site_name, _PAD_PX + 16, 24, '--chart-muted')}{title}"
            f'<g transform="translate({_PAD_PX} {top}) scale({_SCALE})">{chart}</g></svg>',
            colours,
        ),
        scale=1,
        ppi=72,
    )


@cache
def can_write_korean() -> bool:
    """Return whether this machine has a face with Hangul: without one, two different letters look alike."""
    first, second = (
        vl_convert.svg_to_png(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" font-family="{_FONTS}">'
            f'<text y="30" font-size="30">{letter}</text></svg>'
        )
        for letter in "가힣"
    )
    return first != second


def _text(text: str, y: float, size_px: int, colour: str, weight: str = "normal") -> str:
    style = f'font-size="{size_px}" font-weight="{weight}" fill="var({colour})"'
    return f'<text x="{_PAD_PX}" y="{y:g}" {style}>{escape(text)}</text>'


def _title(title: str) -> tuple[int, list[str]]:
    """Return the size of *title* and its lines, the last one cut where it is too long for any size."""
    for size_px, most in _TITLES:
        lines = _lines(title, (WIDTH_PX - 2 * _PAD_PX) / size_px)
        if len(lines) <= most:
            return size_px, lines
    size_px, most = _TITLES[-1]
    return size_px, [*_lines(title, (WIDTH_PX - 2 * _PAD_PX) / size_px)[: most - 1], "…"]


def _lines(title: str, width_em: float) -> list[str]:
    lines: list[str] = []
    for word in title.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and _width_em(longer) <= width_em:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _width_em(text: str) -> float:
    return sum(_WIDE_LETTER_EM if ord(letter) > 0x1100 else _LETTER_EM for letter in text)


def _painted(svg: str, colours: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda name: colours[name[1]], svg)
