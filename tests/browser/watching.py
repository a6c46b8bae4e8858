"""What goes wrong on a page without anybody seeing it."""

from __future__ import annotations

from playwright.sync_api import ConsoleMessage, Dialog, Error, Page, Request, Response

_CALLED_OFF = "net::ERR_ABORTED"


class Watched:
    """Collects a page's errors: of scripts, of its policy, of files; and dialogs that it opens."""

    def __init__(self, page: Page) -> None:
        self.problems: list[str] = []
        self._own = ""
        page.on("console", self._said)
        page.on("pageerror", self._broke)
        page.on("dialog", self._asked)
        page.on("request", self._requested)
        page.on("response", self._answered)
        page.on("requestfailed", self._failed)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text}")

    def _broke(self, error: Error) -> None:
        self.problems.append(f"script: {error.message}")

    def _asked(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Request) -> None:
        if request.is_navigation_request() and not self._own:
            self._own = "/".join(request.url.split("/")[:3])
        elif not request.url.startswith((f"{self._own}/", "data:", "blob:")):
            self.problems.append(f"asked elsewhere: {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.problems.append(f"{response.status}: {response.url}")

    def _failed(self, request: Request) -> None:
        if request.failure != _CALLED_OFF:
            self.problems.append(f"{request.failure}: {request.url}")
