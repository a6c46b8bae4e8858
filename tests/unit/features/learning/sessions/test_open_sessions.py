"""Of a session there is one in memory, whoever parks, drops and opens it at the same time."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from mneme_server.common.errors import DataLoss
from mneme_server.common.stored import damaged
from mneme_server.features.learning.sessions import open_sessions
from mneme_server.features.learning.sessions.open_sessions import OpenSessions

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


def test_a_session_whose_steps_are_erased_as_it_is_read_is_read_again(
    tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps that it counts are read in other transactions than the session itself."""
    sessions, reads = OpenSessions(lambda _: None, 9), list[str]()
    reading, erased = threading.Event(), threading.Event()

    def read(_tenant: Any, session_id: str, _named: Any) -> Live:
        reads.append(session_id)
        if len(reads) == 1:
            reading.set()
            assert erased.wait(PATIENCE_S)
            raise damaged("learning session", session_id, "recorded steps are missing")
        return Live(session_id)

    monkeypatch.setattr(open_sessions, "opened", read)
    used: list[str] = []

    def use() -> None:
        with sessions.use(tenant, "a") as live:
            used.append(live.id)

    using = threading.Thread(target=use)
    with sessions.held("acme") as tell:
        using.start()
        assert reading.wait(PATIENCE_S)
        erased.set()
        using.join(0.3)
        assert len(reads) == 1
        tell()
    using.join(PATIENCE_S)
    assert (used, reads) == (["a"], ["a", "a"])


def test_a_session_that_is_damaged_is_not_read_for_ever(
    tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_tenant: Any, session_id: str, _named: Any) -> Live:
        raise damaged("learning session", session_id, "recorded steps are missing")

    monkeypatch.setattr(open_sessions, "opened", read)
    with pytest.raises(DataLoss), OpenSessions(lambda _: None, 9).use(tenant, "a"):
        pass


def test_a_session_that_cannot_be_saved_is_parked_once_it_can_be(
    tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may be full for a while."""
    sessions = OpenSessions(lambda _: None, most=1)
    with sessions.use(tenant, "a") as first:
        pass

    def full(_tenant: Any) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(first, "save", full)
        for _ in range(2):
            with pytest.raises(OSError, match="no space"), sessions.use(tenant, "b"):
                pass
        assert [live.users for live in sessions.all_of("acme")] == [0, 0]
    with sessions.use(tenant, "b"):
        pass
    assert [live.id for live in sessions.all_of("acme")] == ["b"]
