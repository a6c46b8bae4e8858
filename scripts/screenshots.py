"""Writes `docs/dashboard/`: the dashboard's pages as Chromium shows them, on the sample sessions.

    make screenshots

The server and what it holds are those of the browser tests.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser.showing import (  # noqa: E402
    arrive,
    chromium,
    launch_options,
    new_context,
    signed_in,
)
from browser.stories import fill, import_samples, wait_until_indexed  # noqa: E402
from mneme import MnemeClient  # noqa: E402
from mneme_server.edge.grpc.logging import configure_logging  # noqa: E402
from support.server import ADMIN_KEY, LocalServer, local_server  # noqa: E402

FOLDER = ROOT / "docs" / "dashboard"


@dataclass(frozen=True, slots=True)
class Picture:
    """A page, and how it is shown."""

    name: str
    address: str
    size: str = "desktop"
    theme: str = "light"


PICTURES = (
    Picture("overview", "/"),
    Picture("sessions", "/sessions"),
    Picture("session", "/sessions/inv-07-migration-lock"),
    Picture("search", "/search?q=the+buyer+was+charged+twice"),
    Picture("lessons", "/lessons"),
    Picture("insights", "/insights?type=tool_sequences"),
    Picture("context", "/context?topic=database+migrations"),
    Picture("overview-dark", "/", theme="dark"),
    Picture("session-phone", "/sessions/inv-07-migration-lock", size="phone", theme="dark"),
)


def main() -> int:
    """Take the pictures; return the exit code."""
    console = Console()
    program = chromium()
    if program is None:
        console.print("Chromium is missing: `make chromium` installs it", style="red")
        return 1
    FOLDER.mkdir(exist_ok=True)
    configure_logging("error", "console", sys.stderr)
    with (
        tempfile.TemporaryDirectory() as folder,
        local_server(Path(folder) / "data", http_listen="127.0.0.1:0") as server,
        sync_playwright() as playwright,
    ):
        with MnemeClient(server.address, api_key=ADMIN_KEY) as client:
            import_samples(server.address, ADMIN_KEY, Path(folder))
            fill(client)
            wait_until_indexed(client)
        browser = playwright.chromium.launch(**launch_options(program))
        for picture in PICTURES:
            take(browser, server, picture)
            console.print(f"{(FOLDER / picture.name).relative_to(ROOT)}.png")
        browser.close()
    return 0


def take(browser: Browser, server: LocalServer, picture: Picture) -> None:
    """Write one picture, once its page has come and loads no more."""
    context = new_context(browser, picture.size, picture.theme)
    page = context.new_page()
    page.goto(signed_in(server, picture.address, ADMIN_KEY))
    arrive(page)
    page.screenshot(path=FOLDER / f"{picture.name}.png")
    context.close()


if __name__ == "__main__":
    sys.exit(main())
