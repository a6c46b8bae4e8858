"""The API over HTTP, on the server that all tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import structlog
from mneme_server.edge.grpc.logging import configure_logging
from support.api import Api
from support.http import Http
from support.server import LocalServer, local_server

Connect = Callable[[Api | None], Http]


@pytest.fixture
def over_http(server: LocalServer) -> Iterator[Connect]:
    """Connects over HTTP with the key of a tenant that calls over gRPC, or without a key."""
    opened: list[Http] = []

    def connect(api: Api | None) -> Http:
        opened.append(Http(server.http_address, None if api is None else api.secret))
        return opened[-1]

    yield connect
    for http in opened:
        http.close()


@pytest.fixture
def http(api: Api, over_http: Connect) -> Http:
    """The API over HTTP with the key of a tenant that only this test uses."""
    return over_http(api)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server without other tests' tenants, as the examples are for one, with a log of its own."""
    folder = tmp_path_factory.mktemp("examples")
    before = structlog.get_config()
    with (folder / "log").open("w", buffering=1) as log:
        configure_logging("info", "console", log)
        with local_server(folder / "data", http_listen="127.0.0.1:0") as running:
            yield running
        structlog.configure(**before)
