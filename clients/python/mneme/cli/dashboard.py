"""`mneme open`."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Annotated
from urllib.parse import quote, urlsplit

import typer

from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError

_WAIT_S = 30.0
"""How long a browser may take to start."""
_ANYWHERE = ("0.0.0.0", "::")


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("open")(open_dashboard)


def open_dashboard(
    cli: Cli,
    page: Annotated[
        str, typer.Argument(help="The page, e.g. lessons or sessions/s-42; default the first.")
    ] = "",
    *,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where the server's HTTP is reached, e.g. by a proxy."),
    ] = None,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the address, with the key in it; open nothing.")
    ] = False,
) -> None:
    """Open the dashboard in your browser, signed in with your key.

    The key travels in the address's fragment, which browsers send to nobody; the page keeps it
    until its tab is closed.
    """
    if cli.settings.local is not None:
        raise InputError("the server of --local FOLDER has no dashboard: it serves no HTTP")
    key = cli.settings.api_key
    key = os.environ.get("MNEME_API_KEY", "") if key is None else key
    base = (url or _address_of(cli)).rstrip("/")
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{base!r} is no address of a web page")
    if key and parts.scheme == "http" and not _may_show(cli, parts.hostname):
        raise InputError(
            f"{base} would take the key unencrypted to another machine; --insecure allows that"
        )
    shown = f"{base}/{page.lstrip('/')}"
    signed_in = f"{shown}#key={quote(key, safe='')}" if key else shown
    if print_only:
        cli.out.line(signed_in)
    elif _open(signed_in, signed_in=bool(key)):
        cli.out.remark(f"opened {shown}")
    elif sys.stdout.isatty():
        cli.out.remark("There is no browser here. Open this where there is one:")
        cli.out.line(signed_in)
    else:
        raise InputError(f"there is no browser here to open {shown}; --print prints the address")


def _may_show(cli: Cli, host: str) -> bool:
    from mneme._core.connection import is_this_machine

    return bool(cli.settings.insecure) or is_this_machine(host)


def _address_of(cli: Cli) -> str:
    """Ask the server where it serves HTTP; return that as it is reached from here."""
    from mneme._core.connection import host_of, is_this_machine

    with cli.connect() as client:
        served = client.get_stats().server.http_address
        called = host_of(client.address)
    if not served:
        raise InputError(
            f"the server at {called} serves no HTTP: set MNEME_HTTP_LISTEN where it runs"
        )
    parts = urlsplit(served)
    host = parts.hostname or ""
    if host in _ANYWHERE:
        name = f"[{called}]" if ":" in called else called
        return f"{parts.scheme}://{name}:{parts.port}"
    if is_this_machine(host) and not is_this_machine(called):
        raise InputError(
            f"the server at {called} serves HTTP on {served} to its own machine alone;"
            " --url says where else it is reached"
        )
    return served


def _open(url: str, *, signed_in: bool) -> bool:
    """Open an address in a browser; tell whether there is one."""
    if sys.platform.startswith("linux") and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        return False  # What is left are browsers for terminals, which cannot show it.
    return _open_by_way(url) if signed_in else webbrowser.open(url)


def _open_by_way(url: str) -> bool:
    """Open an address that everybody on the machine would see among the browser's arguments.

    The browser is sent to an address that leads to it, once.
    """
    server = _Way(("127.0.0.1", 0), _Forward)
    server.leads_to = url
    threading.Thread(target=server.handle_until_used, daemon=True).start()
    if not webbrowser.open(f"http://127.0.0.1:{server.server_port}{server.path}"):
        return False
    return server.used.wait(_WAIT_S)


class _Way(HTTPServer):
    leads_to = ""
    timeout = 1.0

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.path = f"/{secrets.token_urlsafe()}"
        self.used = threading.Event()

    def handle_until_used(self) -> None:
        with self:
            while not self.used.is_set():
                self.handle_request()


class _Forward(BaseHTTPRequestHandler):
    server: _Way

    def do_GET(self) -> None:
        if self.path != self.server.path or self.server.used.is_set():
            self.send_error(404)
            return
        self.send_response(302)
        self.send_header("location", self.server.leads_to)
        self.send_header("cache-control", "no-store")
        self.send_header("referrer-policy", "no-referrer")
        self.send_header("content-length", "0")
        self.end_headers()
        self.server.used.set()

    def log_message(self, *_: object) -> None:
        """Say nothing: the address is a secret."""
