from __future__ import annotations

from collections.abc import Iterator

import pytest
from unit.cli.memory import Memory
from unit.client.scripted import ScriptedServer


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A scripted server that the command line finds by itself."""
    server = ScriptedServer().start()
    monkeypatch.setenv("MNEME_ADDRESS", server.address)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("COLUMNS", raising=False)
    yield server
    server.stop()


@pytest.fixture
def memory(served: ScriptedServer) -> Memory:
    return Memory(served)
