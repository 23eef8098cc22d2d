"""A real browser with the network off: only the site itself may be asked for, and every complaint is kept."""

import functools
import http.server
import shutil
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PHONE = {"width": 375, "height": 800}
DESK = {"width": 1280, "height": 900}


@dataclass
class Reader:
    """A page as somebody reads it, and everything that went wrong meanwhile."""

    page: Page
    foreign: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])

    def open(self, address: str) -> None:
        self.page.goto(address)

    def wait_live(self) -> None:
        """Bring the figure near and wait until it is live."""
        self.page.locator(".rb-figure").first.scroll_into_view_if_needed()
        self.page.wait_for_selector(".rb-figure--live")

    def marks(self, within: str) -> int:
        return self.page.locator(f"{within} .mark-symbol path").count()

    def width(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth"))


Read = Callable[..., AbstractContextManager[Reader]]


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Start Chromium; it ends with the module, as an event loop of its own runs with it in the tests' thread."""
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        pytest.skip("no Chromium installed")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def read(browser: Browser) -> Read:
    """Open a reader below *root*; at its end nothing was asked for elsewhere, and nothing complained about."""

    @contextmanager
    def reading(root: str, *, javascript: bool = True, viewport: Any = None, **options: Any) -> Generator[Reader]:
        context = browser.new_context(viewport=viewport or DESK, java_script_enabled=javascript, **options)
        reader = Reader(context.new_page())
        reader.page.set_default_timeout(15_000)

        def allow(route: Route) -> None:
            if route.request.url.startswith((root, "data:")):
                route.continue_()
            else:
                reader.foreign.append(route.request.url)
                route.abort()

        context.route("**/*", allow)
        reader.page.on("pageerror", lambda problem: reader.complaints.append(str(problem)))
        reader.page.on(
            "console",
            lambda said: reader.complaints.append(said.text) if said.type in ("error", "warning") else None,
        )
        reader.page.on("dialog", lambda dialog: reader.complaints.append(f"dialog: {dialog.message}"))
        try:
            yield reader
        finally:
            context.close()
        assert (reader.foreign, reader.complaints) == ([], [])

    return reading


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def serve() -> Generator[Callable[[Path], str]]:
    """Serve a folder on loopback and return its address."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def served(folder: Path) -> str:
        handler = functools.partial(_Quiet, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/"

    yield served
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def address(site: Path, serve: Callable[[Path], str]) -> str:
    return serve(site)
