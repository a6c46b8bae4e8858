"""Sleep without content: what the session recorded is handed over, and nothing hides it."""

from __future__ import annotations

import pytest
from mneme.v1 import context_service_pb2 as pb
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api, grpc, refused
from support.contexts import end, sleep, summaries, summarised, wake_up
from support.making import CUSTOM, TOOL_CALL, TOOL_ERROR, event, record, session_of

TOOL_RESPONSE = "tool_response"


def _start(api: Api, session: str, project: str = "shop", **fields: str) -> None:
    request = events_pb.StartSessionRequest(session_id=session, project=project, **fields)
    api.events.StartSession(request)


def _work(api: Api, session: str = "work", project: str = "shop") -> None:
    _start(api, session, project)
    todos = [
        {"content": "sign the tokens", "status": "completed"},
        {"content": "add refresh tokens", "status": "pending"},
    ]
    record(
        api,
        event("Sign the tokens of the shop", session, id=f"{session}-1", payload={"role": "user"}),
        event("", session, TOOL_CALL, id=f"{session}-2", name="edit_file",
              payload={"arguments": {"file_path": "src/auth/jwt.py"}}),
        event("", session, TOOL_CALL, id=f"{session}-3", name="TodoWrite",
              payload={"arguments": {"todos": todos}}),
        event("", session, TOOL_ERROR, id=f"{session}-4", name="pytest", error="1 failed"),
        event("Sign with RS256 because keys can rotate.", session, CUSTOM, id=f"{session}-5",
              name="decision"),
        event("The tokens are signed with RS256.", session, id=f"{session}-6",
              payload={"role": "assistant"}),
    )  # fmt: skip


def _sleep(api: Api, **fields: str) -> pb.SleepResponse:
    return api.context.Sleep(pb.SleepRequest(**fields))


@pytest.mark.parametrize("target", [{"session_id": "work"}, {"project": "shop"}])
def test_what_was_done_decided_and_left_open_is_collected_with_the_events_that_tell_it(
    target: dict[str, str], api: Api
) -> None:
    _work(api)
    answer = _sleep(api, **target)
    handover = answer.handover
    assert answer.stored
    assert handover.session_id == "work"
    assert list(handover.progress) == ["The tokens are signed with RS256."]
    assert list(handover.completed_todos) == ["sign the tokens"]
    assert [todo.content for todo in handover.open_todos] == ["add refresh tokens"]
    assert [(d.decision, d.rationale) for d in handover.decisions] == [
        ("Sign with RS256", "because keys can rotate.")
    ]
    assert list(handover.files) == ["src/auth/jwt.py"]
    assert list(handover.unresolved_errors) == ["pytest: 1 failed"]
    sources = {pb.HandoverList.Name(one.kind): list(one.event_ids) for one in handover.collected}
    assert sources == {
        "HANDOVER_LIST_PROGRESS": ["work-6"],
        "HANDOVER_LIST_COMPLETED_TODOS": ["work-3"],
        "HANDOVER_LIST_OPEN_TODOS": ["work-3"],
        "HANDOVER_LIST_DECISIONS": ["work-5"],
        "HANDOVER_LIST_FILES": ["work-2"],
        "HANDOVER_LIST_UNRESOLVED_ERRORS": ["work-4"],
    }
    woken = wake_up(api, project="shop")
    assert woken.last_handover == handover
    lines = woken.text.splitlines()
    assert lines[0] == "Last session on shop, just now: Sign the tokens of the shop."
    assert lines[1].startswith("Nobody wrote this handover")
    assert lines[2] == "What came of it: The tokens are signed with RS256; sign the tokens."
    assert "Decided: Sign with RS256, because keys can rotate." in woken.text
    assert "add refresh tokens" in woken.text


def test_what_the_caller_tells_is_joined_with_what_was_collected(api: Api) -> None:
    _work(api)
    handover = sleep(api, "work", "Signed the tokens", todos=(("Tell the mobile team", 1),))
    assert list(handover.progress) == ["Signed the tokens"]
    assert [t.content for t in handover.open_todos] == [
        "Tell the mobile team",
        "add refresh tokens",
    ]
    assert "Nobody wrote" not in wake_up(api).text


def test_a_session_that_tells_nothing_stores_no_handover_and_hides_none(api: Api) -> None:
    kept = sleep(api, "real", "Painted the fence", project="shop", todos=(("Buy brushes", 1),))
    _start(api, "idle")
    answer = _sleep(api, session_id="idle")
    assert not answer.stored
    assert not answer.handover.HasField("created_at")
    assert session_of(api, "idle").status == events_pb.SESSION_STATUS_COMPLETED
    woken = wake_up(api, project="shop")
    assert woken.last_handover == kept
    assert "Buy brushes" in woken.text


def test_sleeping_again_without_content_keeps_what_was_given(api: Api) -> None:
    _work(api)
    first = sleep(api, "work", "Signed the tokens")
    assert _sleep(api, session_id="work").handover == first
    assert _sleep(api, project="shop").handover == first


def test_a_session_by_id_is_found_by_its_messages_as_after_its_end(api: Api) -> None:
    for name in ("slept", "ended"):
        record(
            api,
            event("My suitcase was lost in Oslo", name, payload={"role": "user"}),
            event("It will be sent to your hotel.", name, payload={"role": "assistant"}),
        )
    _sleep(api, session_id="slept")
    end(api, "ended")
    summarised(api, "slept", "ended")
    request = pb.SearchSessionsRequest(query="lost luggage")
    found = {one.session.id: one.similarity for one in api.context.SearchSessions(request).results}
    assert "My suitcase was lost in Oslo" in summaries(api)["slept"]
    assert found["slept"] > 0.8 * found["ended"] > 0.3


def test_sleeping_by_project_takes_the_session_that_was_active_last(api: Api) -> None:
    _work(api, "early")
    _work(api, "late")
    _work(api, "elsewhere", project="other")
    assert _sleep(api, project="shop").handover.session_id == "late"


def test_content_for_a_project_whose_session_is_handed_over_already_opens_another(
    api: Api,
) -> None:
    first = sleep(api, "", "Painted the fence", project="garden")
    assert first.session_id
    assert sleep(api, "", "Painted the fence", project="garden") == first, "a retry"
    second = sleep(api, "", "Mowed the lawn", project="garden")
    assert second.session_id != first.session_id
    assert wake_up(api, project="garden").last_handover == second


def test_without_anything_to_go_by_it_is_refused(api: Api) -> None:
    for fields, code, reason in (
        ({}, grpc.StatusCode.INVALID_ARGUMENT, "MISSING_REQUIRED_FIELD"),
        ({"project": "new"}, grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND"),
        ({"session_id": "new"}, grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND"),
    ):
        with refused() as failure:
            _sleep(api, **fields)
        assert (failure.code, failure.reason) == (code, reason)


def test_an_empty_session_does_not_hide_the_last_one_in_which_something_happened(api: Api) -> None:
    record(api, event("the bridge is painted", "s"))
    end(api, "s")
    summarised(api, "s")
    api.events.StartSession(events_pb.StartSessionRequest(session_id="empty"))
    end(api, "empty")
    summarised(api, "empty")
    assert "the bridge is painted" in wake_up(api).text
