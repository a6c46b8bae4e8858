from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mneme_server.edge.http.options import HttpOptions
from mneme_server.edge.http.serving import HttpServer
from support.http import Http
from unit.edge.grpc.edge import Edge


class Served:
    """A server with services whose answers a test chooses, over HTTP."""

    def __init__(self, folder: Path, **options: Any) -> None:
        auth_required = options.pop("auth_required", True)
        self.edge = Edge(folder, auth_required=auth_required, **options.pop("grpc", {})).start()
        assert self.edge.server is not None
        self.grpc = self.edge.server
        values: dict[str, Any] = {
            "listen": "127.0.0.1:0",
            "by_default": False,
            "max_message_bytes": self.edge.options.max_message_bytes,
            "auth_required": auth_required,
        }
        self.server = HttpServer(
            HttpOptions(**(values | options)),
            self.grpc.entrance,
            lambda: self.grpc.health.is_serving,
        )
        self.address = self.server.bind()
        self.server.start()
        self._opened: list[Http] = []

    def http(self, secret: str | None = None) -> Http:
        """Connect with a key, or without one."""
        self._opened.append(Http(self.address, secret))
        return self._opened[-1]

    def close(self) -> None:
        for http in self._opened:
            http.close()
        self.edge.close()
        self.server.stop()


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers with options of a test's choice."""
    servers: list[Served] = []

    def start(**options: Any) -> Served:
        folder = tmp_path / f"server{len(servers)}"
        folder.mkdir()
        servers.append(Served(folder, **options))
        return servers[-1]

    yield start
    for one in servers:
        one.close()
