"""The dashboard in Chromium, on a real server with something of every kind in it.

The browser is the system's. Where there is none the tests are skipped; `make chromium` installs it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import mneme_server.http
import pytest
from browser.stories import fill, import_samples, wait_until_indexed
from browser.watching import Watched
from mneme import MnemeClient
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from support.server import ADMIN_KEY, LocalServer, local_server

BUILT = Path(mneme_server.http.__file__).parent / "dashboard" / "index.html"
PATIENCE_MS = 60_000
"""A machine that does much else is waited for; a page that is done is not."""
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}


def chromium() -> str | None:
    """Return where the system's Chromium is."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def launch_options(program: str) -> dict[str, Any]:
    """Return how the browser is started. Root, as in containers, has no sandbox; and their shared
    memory is small."""
    flags = ["--disable-dev-shm-usage"] + (["--no-sandbox"] if os.geteuid() == 0 else [])
    return {"executable_path": program, "args": flags}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file of tests. No longer: while it runs, asyncio cannot."""
    if (program := chromium()) is None:
        pytest.skip("Chromium is missing: `make chromium` installs it")
    if not BUILT.exists():
        pytest.skip("the dashboard is not built: `make dashboard`")
    expect.set_options(timeout=PATIENCE_MS)
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
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
            locale="en-US",
            timezone_id="UTC",
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        watched.append(Watched(page))
        fragment = f"#key={quote(key, safe='')}" if key else ""
        page.goto(f"{server.http_address}{address}{fragment}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    if not request.node.get_closest_marker("meets_errors"):
        assert [problem for one in watched for problem in one.problems] == []
