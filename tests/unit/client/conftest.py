from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from unit.client.scripted import EitherClient, ScriptedServer


@pytest.fixture
def served() -> Iterator[ScriptedServer]:
    server = ScriptedServer().start()
    yield server
    server.stop()


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest, served: ScriptedServer) -> Callable[..., EitherClient]:
    """Makes a client of each kind for the scripted server."""

    def make(address: str | None = None, **options: Any) -> EitherClient:
        return EitherClient(request.param, address or served.address, **options)

    return make


@pytest.fixture
def client(connect: Callable[..., EitherClient]) -> EitherClient:
    return connect()
