"""What a reader's browser fetches, and how soon a figure is live."""

import functools
import gzip
import http.server
import shutil
import statistics
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.bench.folder import build, report
from tests.bench.goal import Goal

TITLE = "what a page weighs, how soon its figure is live on a cold load, how far things move meanwhile"
LARGEST = 3
LOADS = 5
WATCH = """
window.shifted = 0;
new PerformanceObserver(list => list.getEntries().forEach(one => { if (!one.hadRecentInput) shifted += one.value; }))
    .observe({type: "layout-shift", buffered: true});
new MutationObserver(() => {
    if (!window.liveAt && document.querySelector(".rb-figure--live")) window.liveAt = performance.now();
}).observe(document, {subtree: true, attributes: true, childList: true});
"""


def lines() -> Iterator[str | Goal]:
    """Build the shipped site, weigh its pages, and open the one with a subject's figure as a new reader does."""
    with report() as folder:
        build(folder)
        site = folder / "site"
        yield from weights(site)
        yield from loads(site)


def weights(site: Path) -> Iterator[str | Goal]:
    packed = {page.relative_to(site).as_posix(): packed_kb(page) for page in site.rglob("*.html")}
    heaviest = sorted(packed, key=lambda page: -packed[page])[:LARGEST]
    yield f"median of {len(packed)} pages {statistics.median(packed.values()):.0f} kB; largest: " + ", ".join(
        f"{page} {packed[page]:.0f} kB" for page in heaviest
    )
    yield Goal("heaviest page, compressed", packed[heaviest[0]], 120, "kB")
    yield f"once for the whole site: chart library {packed_kb(site / 'assets' / 'vega.js'):.0f} kB"


def packed_kb(path: Path) -> float:
    return len(gzip.compress(path.read_bytes(), 6)) / 1000


def loads(site: Path) -> Iterator[str | Goal]:
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
    )
    page = next(iter(sorted(path.relative_to(site).as_posix() for path in site.glob("*/prefill.html"))), None)
    if not found or page is None:
        yield "no Chromium installed, or no subject: no page opened"
        return
    with served(site) as root, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        for name, width in (("desk", 1280), ("phone", 375)):
            opened = [opened_once(browser, root + page, width) for _ in range(LOADS)]
            live_ms, shift = statistics.median(one[0] for one in opened), max(one[1] for one in opened)
            yield Goal(f"first live figure, {name}", live_ms, 1000, "ms")
            yield Goal(f"layout shift, {name}", shift, 0.01)
        browser.close()


def opened_once(browser: Browser, address: str, width: int) -> tuple[float, float]:
    """Open the page with empty caches; return when its figure was live, ms, and how far things had moved."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    try:
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(address)
        page.wait_for_function("window.liveAt")
        page.wait_for_timeout(300)
        return float(page.evaluate("liveAt")), float(page.evaluate("shifted"))
    finally:
        context.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Generator[str]:
    """Serve *folder* on loopback and return its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
