"""How a page of the dashboard is opened, and waited for: by tests and by the script that takes
pictures."""

from __future__ import annotations

import os
import shutil
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, BrowserContext, Page, expect
from support.server import LocalServer

PATIENCE_MS = 60_000
"""A machine that does much else is waited for; a page that is done is not."""
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}
PLANTED = "img[src=x], main script, svg[onload], [onerror], a[href^='javascript:']"


def chromium() -> str | None:
    """Return where the system's Chromium is."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def launch_options(program: str) -> dict[str, Any]:
    """Return how the browser is started. Root, as in containers, has no sandbox; and their shared
    memory is small."""
    flags = ["--disable-dev-shm-usage"] + (["--no-sandbox"] if os.geteuid() == 0 else [])
    return {"executable_path": program, "args": flags}


def new_context(browser: Browser, size: str = "desktop", theme: str = "light") -> BrowserContext:
    """Return a context in which pages look the same wherever they are shown."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        locale="en-US",
        timezone_id="UTC",
    )
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    return context


def signed_in(server: LocalServer, address: str, key: str) -> str:
    """Return the URL that opens a page with a key; without one, where it is empty."""
    fragment = f"#key={quote(key, safe='')}" if key else ""
    return f"{server.http_address}{address}{fragment}"


def arrive(page: Page) -> None:
    """Wait until a page shows what it is for, and loads no more."""
    expect(page.locator("main h1")).to_be_visible()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def check_untouched(page: Page) -> None:
    """Check that nothing that is stored became more than text."""
    assert page.evaluate("window.broken") is None
    expect(page.locator(PLANTED)).to_have_count(0)
