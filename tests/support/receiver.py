"""A receiver of webhooks, on loopback, that keeps what it got."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Got:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def said(self) -> Any:
        return json.loads(self.body)

    def is_signed_with(self, secret: str) -> bool:
        """Whether one of its signatures is right, as Standard Webhooks says."""
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        right = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{right}" in self.headers["webhook-signature"].split(" ")


class Receiver:
    """What was received, and how it is answered: with these statuses, the last one for good."""

    def __init__(self, port: int, statuses: Sequence[int], location: str) -> None:
        self.got: list[Got] = []
        receiver = self
        left = list(statuses)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append(Got(self.path, headers, body))
                self.send_response(left.pop(0) if len(left) > 1 else left[0])
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def receiving(
    port: int = 0, statuses: Sequence[int] = (204,), location: str = ""
) -> Iterator[Receiver]:
    """Receive webhooks for the block."""
    receiver = Receiver(port, statuses, location)
    try:
        yield receiver
    finally:
        receiver.stop()
