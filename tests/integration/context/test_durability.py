"""A server that is killed between an event and its summary loses neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from mneme.v1 import auth_pb2
from support.api import Api
from support.contexts import end, eventually, get_context, sleep, summaries, summarised, wake_up
from support.making import event, record
from support.server import ServerProcess, server_process

pytestmark = pytest.mark.slow

_SCOPES = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE)


def _again(server: ServerProcess, api: Api) -> Api:
    return server.keys.api(api.secret, api.tenant_id)


def test_summaries_of_sessions_that_ended_just_before_a_kill_are_made_afterwards(
    tmp_path: Path,
) -> None:
    names = [f"s{n}" for n in range(40)]
    with server_process(tmp_path / "data") as server:
        api = server.keys.tenant()
        for name in names:
            record(api, event(f"what {name} was about: the harbour", name))
        for name in names:
            end(api, name)
        server.kill()
    with server_process(tmp_path / "data") as server:
        api = _again(server, api)
        seen = summarised(api, *names)
        assert seen.keys() == set(names)
        assert all("the harbour" in text for text in seen.values())


def test_an_idle_session_is_summarised_by_the_server_that_comes_after_the_kill(
    tmp_path: Path,
) -> None:
    with server_process(tmp_path / "data", session_idle_seconds=2) as server:
        api = server.keys.tenant()
        record(api, event("the lighthouse keeper asked for oil", "idle"))
        server.kill()
    with server_process(tmp_path / "data", session_idle_seconds=2) as server:
        api = _again(server, api)
        assert "lighthouse" in summarised(api, "idle")["idle"]


def test_late_events_that_were_acknowledged_before_a_kill_are_in_the_summary_afterwards(
    tmp_path: Path,
) -> None:
    with server_process(tmp_path / "data") as server:
        api = server.keys.tenant()
        record(api, event("the ship left the harbour", "s"))
        end(api, "s")
        summarised(api, "s")
        record(api, event("the ship was caught in a storm", "s"))
        server.kill()
    with server_process(tmp_path / "data") as server:
        api = _again(server, api)
        eventually(lambda: summaries(api).get("s", ""), lambda text: "storm" in text)


def test_a_handover_survives_a_kill_and_is_found_by_the_next_server(tmp_path: Path) -> None:
    with server_process(tmp_path / "data") as server:
        api = server.keys.tenant()
        sleep(api, "a", "Rigged the sails of the schooner", project="sea", todos=(("Tar it", 1),))
        handover = sleep(api, "b", "Repaired the schooner's rigging", project="sea")
        server.kill()
    with server_process(tmp_path / "data") as server:
        api = _again(server, api)
        woken = wake_up(api, project="sea")
        assert woken.last_handover == handover
        assert [related.session_id for related in woken.related] == ["a"]
        assert {s.session_id for s in get_context(api, "the schooner").sessions} == {"a", "b"}
