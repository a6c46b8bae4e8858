"""The dashboard in Chromium, on a real server with something of every kind in it.

The browser is the system's. Where there is none the tests are skipped; `make chromium` installs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import mneme_server.edge.http
import pytest
from browser.showing import chromium, launch_options, new_context, signed_in
from browser.stories import fill, import_samples, wait_until_indexed
from browser.watching import Watched
from mneme import MnemeClient
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from support.server import ADMIN_KEY, LocalServer, local_server

BUILT = Path(mneme_server.edge.http.__file__).parent / "dashboard" / "index.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file of tests. No longer: while it runs, asyncio cannot."""
    if (program := chromium()) is None:
        pytest.skip("Chromium is missing: `make chromium` installs it")
    if not BUILT.exists():
        pytest.skip("the dashboard is not built: `make dashboard`")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(**launch_options(program))
        yield running
        running.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server with the sample sessions, and something of every kind."""
    folder = tmp_path_factory.mktemp("dashboard")
    with (
        local_server(folder / "data", http_listen="127.0.0.1:0") as running,
        MnemeClient(running.address, api_key=ADMIN_KEY) as client,
    ):
        import_samples(running.address, ADMIN_KEY, folder)
        fill(client)
        wait_until_indexed(client)
        yield running


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens a page of a server, signed in; what goes wrong on it fails the test."""
    contexts: list[BrowserContext] = []
    watched: list[Watched] = []

    def open_one(
        server: LocalServer,
        address: str = "/",
        *,
        size: str = "desktop",
        key: str = ADMIN_KEY,
        theme: str = "light",
    ) -> Page:
        context = new_context(browser, size, theme)
        contexts.append(context)
        page = context.new_page()
        watched.append(Watched(page))
        page.goto(signed_in(server, address, key))
        return page

    yield open_one
    for context in contexts:
        context.close()
    if not request.node.get_closest_marker("meets_errors"):
        assert [problem for one in watched for problem in one.problems] == []
