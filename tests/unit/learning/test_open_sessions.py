"""Of a session there is one in memory, whoever parks, drops and opens it at the same time."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from mneme_server.learning import open_sessions
from mneme_server.learning.open_sessions import OpenSessions

PATIENCE_S = 60.0


class Live:
    """A session in memory that has nothing to save."""

    def __init__(self, session_id: str) -> None:
        self.id = session_id
        self.telling = threading.Lock()
        self.users = 0

    def save(self, _tenant: Any) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def tenant(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(open_sessions, "opened", lambda _tenant, of, _named: Live(of))
    return SimpleNamespace(tenant_id="acme")


def test_who_parks_a_session_leaves_the_one_that_was_opened_in_its_place(tenant: Any) -> None:
    sessions = OpenSessions(lambda _name: None, most=1)
    with sessions.use(tenant, "a") as first:
        pass

    def use_another() -> None:
        with sessions.use(tenant, "b"):
            pass

    first.telling.acquire()  # As while something is forgotten.
    parking = threading.Thread(target=use_another)
    parking.start()
    until = time.monotonic() + PATIENCE_S
    while not first.users:  # It is about to be parked.
        assert time.monotonic() < until
        time.sleep(0.01)
    sessions.drop("acme", first)
    with sessions.use(tenant, "a") as second:
        first.telling.release()
        parking.join(PATIENCE_S)
        assert second is not first
        assert sessions.find("acme", "a") is second
