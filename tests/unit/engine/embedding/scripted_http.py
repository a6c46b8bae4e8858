"""A real HTTP server on a free port that answers by a script: one answer per request, the last one
repeated.
"""

import json
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass
class Answer:
    status: int = 200
    body: Any = None  # JSON, or bytes sent as they are
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    drop: bool = False  # close the connection without an answer


@dataclass
class Received:
    path: str
    authorization: str | None
    body: dict[str, Any]


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that gave up and closed its connection is part of the script."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ScriptedServer:
    def __init__(self) -> None:
        self.answers: list[Any] = []  # Answer, or a function from the request to one
        self.received: list[Received] = []
        self._http = _QuietServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> "ScriptedServer":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                request = Received(
                    self.path,
                    self.headers.get("Authorization"),
                    json.loads(self.rfile.read(length)),
                )
                server.received.append(request)
                answer = server.answers[min(len(server.received), len(server.answers)) - 1]
                if callable(answer):
                    answer = answer(request)
                time.sleep(answer.delay_s)
                if answer.drop:
                    self.close_connection = True
                    return
                body = answer.body
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        return Handler
