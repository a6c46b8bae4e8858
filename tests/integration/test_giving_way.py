"""Work in the background gives way to calls, and gets done all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.contexts import end, eventually, summarised
from support.making import event, recall, record
from support.server import LocalServer


@pytest.fixture(autouse=True)
def calls_without_a_pause(server: LocalServer) -> Iterator[None]:
    with server.application.runtime.foreground.active():
        yield


def test_calls_without_a_pause_do_not_keep_texts_from_being_embedded(server: LocalServer) -> None:
    api = server.keys.tenant()
    record(api, *(event(f"attempt {n} failed", id=f"e{n}") for n in range(100)))
    eventually(lambda: recall(api, "attempt").pending_count, lambda pending: not pending)


def test_who_waits_for_the_index_is_served_beside_calls_without_a_pause(
    server: LocalServer,
) -> None:
    api = server.keys.tenant()
    record(api, *(event(f"attempt {n}", id=f"e{n}") for n in range(300)), wait=True)
    assert not recall(api, "attempt").pending_count


def test_calls_without_a_pause_do_not_keep_sessions_from_being_summarised(
    server: LocalServer,
) -> None:
    api = server.keys.tenant()
    record(api, event("the build is green again", "s"))
    end(api, "s")
    assert "green" in summarised(api, "s")["s"]
