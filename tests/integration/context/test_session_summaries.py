"""Summaries of sessions, made by a real server: when a session ends, falls idle, or gets late
events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api
from support.contexts import end, eventually, get_context, sleep, summaries, summarised
from support.making import LLM_CALL, TOOL_CALL, TOOL_ERROR, event, recall, record, struct
from support.server import LocalServer, local_server


def _work(api: Api, session: str = "s") -> None:
    record(
        api,
        event("please migrate the customer database", session, at=0),
        event("", session, TOOL_CALL, name="run_migration", at=1),
        event("", session, TOOL_ERROR, name="run_migration", error="table is locked", at=2),
        event("", session, LLM_CALL, model="gpt-4o", cost_usd=0.5, at=3),
    )


def test_given_a_session_ends_with_status_completed_then_a_summary_record_is_created(
    api: Api,
) -> None:
    _work(api)
    assert summaries(api) == {}
    end(api, "s")
    text = summarised(api, "s")["s"]
    for said in ("run_migration", "table is locked", "gpt-4o", "0.5000 USD", "customer database"):
        assert said in text


def test_a_session_that_ends_with_an_event_gets_a_summary(api: Api) -> None:
    ended = "session_ended"
    record(api, event("the bank was called", "s"), event("", "s", ended))
    assert "the bank was called" in summarised(api, "s")["s"]


def test_a_session_that_failed_is_a_failure(api: Api) -> None:
    _work(api)
    end(api, "s", status=events_pb.SESSION_STATUS_ERROR)
    summarised(api, "s")
    (result,) = recall(api, "database", scopes=["session"]).results
    assert result.metadata["outcome"] == "FAILURE"


def test_recall_in_scope_session_tells_outcome_topics_tools_and_errors(api: Api) -> None:
    started = events_pb.StartSessionRequest(
        session_id="s", agent_id="a", user_id="u", project="p", tags=["night"]
    )
    api.events.StartSession(started)
    _work(api)
    end(api, "s")
    summarised(api, "s")
    answer = recall(
        api, "migrating a database", scopes=["session"],
        agent_id="a", user_id="u", project="p", tags=["night"],
    )  # fmt: skip
    (result,) = answer.results
    assert (result.source_id, result.session_id, result.agent_id) == ("s", "s", "a")
    assert result.similarity > 0.3
    metadata = result.metadata
    assert metadata["outcome"] == "SUCCESS"
    assert {"night", "run_migration"} <= set(metadata["topics"])
    assert metadata["tools"]["run_migration"] == 1
    assert "table is locked" in metadata["error_summary"]
    assert not recall(api, "database", scopes=["session"], project="other").results


def test_late_events_rebuild_the_summary_and_leave_one_only(api: Api) -> None:
    _work(api)
    end(api, "s")
    summarised(api, "s")
    record(api, event("", "s", TOOL_ERROR, name="rollback", error="nothing to roll back"))
    eventually(lambda: summaries(api).get("s", ""), lambda text: "nothing to roll back" in text)
    found = recall(api, "run_migration", scopes=["session"]).results
    assert [result.source_id for result in found] == ["s"]
    assert found[0].HasField("similarity"), "the summary that replaced it is embedded"


def test_a_start_that_comes_after_the_end_gives_the_summary_its_project(api: Api) -> None:
    _work(api)
    end(api, "s")
    summarised(api, "s")
    api.events.StartSession(events_pb.StartSessionRequest(session_id="s", project="late"))
    eventually(lambda: summaries(api, project="late", only_own=True), lambda seen: "s" in seen)


def test_a_start_after_the_end_may_say_how_it_ended_and_whose_it_was(api: Api) -> None:
    _work(api)
    end(api, "s")
    summarised(api, "s")
    api.events.StartSession(
        events_pb.StartSessionRequest(
            session_id="s", agent_id="bot", agent_name="Bot", metadata=struct(reward=0)
        )
    )
    said = eventually(
        lambda: summaries(api, agent_id="bot", only_own=True), lambda seen: "s" in seen
    )["s"]
    assert said.rpartition("\n")[2].startswith("Agent Bot, ")
    assert said.endswith("ended in failure.")


def test_ending_a_session_again_changes_nothing(api: Api) -> None:
    _work(api)
    end(api, "s")
    before = summarised(api, "s")
    end(api, "s")
    assert summaries(api) == before


def test_a_session_without_events_that_ends_has_a_summary(api: Api) -> None:
    api.events.StartSession(events_pb.StartSessionRequest(session_id="empty", agent_id="Ann"))
    end(api, "empty")
    assert "0 events" in summarised(api, "empty")["empty"]


def test_an_active_session_has_no_summary_and_is_found_by_its_events(api: Api) -> None:
    _work(api)
    record(api, event("the customer database is moved", "s"), wait=True)
    (found,) = get_context(api, "database migrations").sessions
    assert (found.session_id, found.summary) == ("s", "")
    assert not found.HasField("ended_at")
    assert found.key_events


def test_a_handover_stays_in_a_summary_that_is_rebuilt(api: Api) -> None:
    _work(api)
    sleep(api, "s", "Moved the customers to the new schema")
    record(api, event("", "s", TOOL_ERROR, name="report", error="disk quota exceeded"))
    text = eventually(lambda: summaries(api).get("s", ""), lambda text: "disk quota" in text)
    assert text.startswith("Progress: Moved the customers to the new schema")


def test_many_sessions_that_end_at_once_all_get_their_summaries(api: Api) -> None:
    names = [f"s{n}" for n in range(60)]
    for name in names:
        record(api, event(f"job {name} was done", name))
        end(api, name)
    assert summarised(api, *names).keys() == set(names)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server for which a second without an event is idle."""
    folder: Path = tmp_path_factory.mktemp("impatient") / "data"
    with local_server(folder, session_idle_seconds=1.0) as server:
        yield server


def test_a_session_that_falls_idle_is_summarised_as_it_is(impatient: LocalServer) -> None:
    api = impatient.keys.tenant()
    _work(api)
    text = summarised(api, "s")["s"]
    assert "still open" in text
    record(api, event("and one more thing: the invoices", "s"))
    eventually(lambda: summaries(api).get("s", ""), lambda text: "invoices" in text)
    end(api, "s")
    eventually(lambda: summaries(api).get("s", ""), lambda text: "ended in success" in text)
