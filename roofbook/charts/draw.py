"""Vega-Lite to a static SVG that takes its colours from the page, and the library that makes it live."""

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final
from xml.etree import ElementTree

import vl_convert

from roofbook.charts.style import CONFIG, HEIGHT_PX, WIDTHS_PX
from roofbook.errors import PageError

# The bundle's thousands of one-letter names stay inside a function; only this one is the page's.
_BUNDLE: Final = "window.roofbookVega = {embed: vegaEmbed};"

# Parsing the 20 MB CJK face costs more than the drawing; widths of labels made of digits do not need it.
_MEASURE_WITH: Final = "sans-serif"

_FIT: Final = {"type": "fit", "contains": "padding"}

_SVG: Final = "http://www.w3.org/2000/svg"
_ID: Final = re.compile(r'(?<=\bid=")[^"]+(?=")')
_LONG_NUMBER: Final = re.compile(r"-?\d+\.\d{3,}")
# Inside a figure that has one role and one label itself, those of the marks are noise; the font is the page's.
_DROPPED: Final = ("role", "pointer-events", "font-family", "version", "stroke-miterlimit")


def static_svgs(spec: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return one static SVG for each of WIDTHS_PX, by its width's name; *name* is the figure's, and starts every id.

    Raises PageError where the renderer refuses the chart.
    """
    return {
        width: _trimmed(_renamed(drawn_at(spec, px, HEIGHT_PX), f"{name}-{width}")) for width, px in WIDTHS_PX.items()
    }


def live_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chart as the browser draws it: as wide as its place."""
    return {**spec, "width": "container", "height": HEIGHT_PX, "autosize": _FIT, "config": CONFIG}


def vega_bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script of the site's own."""
    return f"(()=>{{{vl_convert.javascript_bundle(_BUNDLE)}}})();\n"


def library_versions() -> str:
    """Return the versions that a drawing depends on."""
    return f"vl-convert {version('vl-convert-python')}, altair {version('altair')}"


def drawn_at(spec: Mapping[str, Any], width_px: float, height_px: float) -> str:
    """Return the chart as the SVG that the renderer makes of it at that size; raises PageError where it refuses."""
    config = {**CONFIG, "font": _MEASURE_WITH}
    sized = {**spec, "width": width_px, "height": height_px, "autosize": _FIT, "config": config}
    try:
        return vl_convert.vegalite_to_svg(sized)
    except ValueError as problem:
        raise PageError("A chart cannot be drawn: %(problem)s", problem=str(problem).split("\n")[0]) from problem


def _renamed(svg: str, name: str) -> str:
    """Return the SVG with ids of its own: Vega counts them through the whole process, so they tell of other figures."""
    for number, old in enumerate(dict.fromkeys(_ID.findall(svg)), 1):
        new = f"{name}-{number}"
        svg = svg.replace(f'id="{old}"', f'id="{new}"').replace(f"url(#{old})", f"url(#{new})")
    return svg


def _trimmed(svg: str) -> str:
    """Return the SVG without what says nothing on a page: roles, empty backgrounds, the twelfth decimal."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for child in list(element):
            if child.tag == f"{{{_SVG}}}path" and child.get("class") in ("background", "foreground"):
                element.remove(child)
        for name, value in list(element.attrib.items()):
            if name in _DROPPED or name.startswith("aria-") or (name, value) == ("opacity", "1"):
                del element.attrib[name]
            elif name != "class":
                element.set(name, _LONG_NUMBER.sub(_rounded, value))
    root.set("aria-hidden", "true")
    root.set("focusable", "false")
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
