"""A figure to take away: as SVG, PNG, Vega-Lite and CSV, and as a citation."""

import json
import re
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"
PAPER = {"default": "#ffffff", "slate": "#12181d"}


def mac_page(site: Path) -> str:
    return next(path.relative_to(site).as_posix() for path in site.glob("mac-mini*/prefill.html"))


def taken(reader: Any, kind: str, scheme: str | None = None) -> tuple[str, bytes]:
    """Press the figure's button and return the file's name and content."""
    chosen = f'[data-take="{kind}"]' + (f'[data-scheme="{scheme}"]' if scheme else "")
    with reader.page.expect_download() as download:
        reader.page.locator(f"#fig-prefill .rb-takes {chosen}").first.click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


@pytest.mark.parametrize(("folder", "unit"), [("", "프리필 시간 (초)"), ("en/", "Prefill time (s)")])
@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_a_picture_stands_alone(site: Path, address: str, read: Any, folder: str, unit: str, scheme: str) -> None:
    """SVG in one palette's colours whatever the page is read in: message, legend, axes, seven marks, source."""
    with read(address, color_scheme="dark") as reader:
        reader.open(address + folder + mac_page(site))
        reader.page.click(".rb-take summary")
        name, content = taken(reader, "svg", scheme)
        message = reader.page.locator("#fig-prefill .rb-figure__message").inner_text()
        keys = reader.page.locator("#fig-prefill .rb-legend li").all_inner_texts()
    tree = ElementTree.fromstring(content)
    texts = [element.text or "" for element in tree.iter(f"{SVG}text")]
    marks = [
        path for group in tree.iter(f"{SVG}g") if "mark-symbol" in (group.get("class") or "") for path in group
    ]  # fmt: skip

    assert name.endswith("-dark.svg" if scheme == "slate" else "-prefill.svg")
    assert b"var(" not in content
    assert tree[0].get("fill") == PAPER[scheme]
    assert message in " ".join(texts)
    assert {key.strip() for key in keys} <= set(texts)
    assert unit in texts
    assert f"{address}{folder}" in " ".join(texts)
    assert len(marks) == 7


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_a_png_has_its_background_and_two_pixels_a_point(site: Path, address: str, read: Any, scheme: str) -> None:
    """(700 + 2 x 26) x 2 = 1,504 pixels wide; its corner is the palette's paper, not transparent."""
    with read(address) as reader:
        reader.open(address + mac_page(site))
        reader.page.click(".rb-take summary")
        _, content = taken(reader, "png", scheme)
        corner = reader.page.evaluate(
            """async bytes => {
                const image = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
                const canvas = new OffscreenCanvas(image.width, image.height);
                const drawing = canvas.getContext("2d");
                drawing.drawImage(image, 0, 0);
                return [...drawing.getImageData(1, 1, 1, 1).data];
            }""",
            list(content),
        )
    width, _height = struct.unpack(">II", content[16:24])

    assert width == 1504
    assert corner == [*bytes.fromhex(PAPER[scheme][1:]), 255]


def test_the_spec_draws_elsewhere(site: Path, address: str, read: Any) -> None:
    """Vega-Lite with real colours and its data inside."""
    with read(address) as reader:
        reader.open(address + mac_page(site))
        reader.page.click(".rb-take summary")
        name, content = taken(reader, "spec")
    spec = json.loads(content)

    assert name.endswith(".vl.json")
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert b"var(" not in content
    assert sum(len(rows) for rows in spec["datasets"].values()) > 7


def test_a_citation_names_figure_site_and_address(site: Path, address: str, read: Any) -> None:
    """Copied as one line; the button says that it was."""
    with read(address, permissions=["clipboard-read", "clipboard-write"]) as reader:
        reader.open(f"{address}en/{mac_page(site)}")
        reader.page.click(".rb-take summary")
        reader.page.click('[data-take="cite"]')
        reader.page.wait_for_selector("text=Copied")
        copied = reader.page.evaluate("navigator.clipboard.readText()")

    assert re.fullmatch(
        rf"“Prefill .*\.” LLM serving, measured\. {re.escape(address)}en/{re.escape(mac_page(site))}#fig-prefill",
        copied,
    )


def test_without_scripts_no_button_is_dead(site: Path, address: str, read: Any) -> None:
    """The table can be taken, the figure cited; what needs a script is not offered."""
    with read(address, javascript=False) as reader:
        reader.open(address + mac_page(site))
        reader.page.click(".rb-take summary")

        assert reader.page.locator(".rb-takes a[download]").first.is_visible()
        assert reader.page.locator(".rb-cite__address").first.get_attribute("href") == "#fig-prefill"
        assert reader.page.locator(".rb-takes button >> visible=true").count() == 0
