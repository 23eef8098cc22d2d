"""How every chart looks: colours are CSS variables of the page, so light, dark and print need no second drawing."""

from typing import Any, Final

HEIGHT_PX: Final = 340
"""Of the whole chart, axis titles included: the same static and live, so that nothing on the page moves."""

WIDTHS_PX: Final = {"wide": 700, "narrow": 343}
"""Static widths: a text column and a phone. The live chart takes the width that it is given."""

SUBJECT_COLOURS: Final = 8
"""The site's style sheet defines --chart-1 to --chart-8."""

INK: Final = "var(--chart-ink)"
MUTED: Final = "var(--chart-muted)"
GRID: Final = "var(--chart-grid)"
PAPER: Final = "var(--chart-paper)"

# Real names: Vega measures text on a canvas, which cannot resolve a CSS variable.
_FONTS: Final = '"Pretendard", "Noto Sans KR", "Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic", sans-serif'

CONFIG: Final[dict[str, Any]] = {
    "aria": False,
    "background": None,
    "font": _FONTS,
    "view": {"stroke": None},
    "padding": {"left": 6, "right": 10, "top": 8, "bottom": 2},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "gridColor": GRID,
        "domainColor": GRID,
        "tickColor": GRID,
        "labelPadding": 6,
        "labelLimit": 400,
    },
    "axisX": {"grid": False, "labelFlush": False, "labelSeparation": 8},
    # The unit of y stands above the axis, where it reads without turning one's head.
    "axisY": {
        "domain": False,
        "ticks": False,
        "titleAngle": 0,
        "titleAlign": "left",
        "titleBaseline": "bottom",
        "titleX": 0,
        "titleY": -10,
    },
}


def subject_colour(index: int) -> str:
    """Return the colour of the subject with that number (from 0): the same on every page of the site."""
    return f"var(--chart-{index % SUBJECT_COLOURS + 1})"
