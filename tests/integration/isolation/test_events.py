"""Tenants do not see each other's events, nor their sessions and agents."""

from __future__ import annotations

from collections.abc import Iterator

from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import grade_pb2 as grade_pb
from support.api import Api
from support.isolation import OTHER, Checks, World, answered_as_absent, not_found
from support.making import event, list_events, record, session_of, stream, verify

isolates = Checks()


@isolates("mneme.v1.EventService/StartSession")
def _(world: World) -> None:
    # The other tenant has started this session with other content; here the id is free.
    request = events_pb.StartSessionRequest(session_id=OTHER, agent_id="agent", project="project")
    started = world.ours.events.StartSession(request).session
    assert (started.agent_id, started.user_id, list(started.tags)) == ("agent", "", [])
    assert started.event_count == 0


@isolates("mneme.v1.EventService/EndSession")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.EventService/EndSession",
        lambda asked: events_pb.EndSessionRequest(session_id=asked),
    )
    assert not_found(answer)
    world.ours.events.EndSession(events_pb.EndSessionRequest(session_id="session"))
    status = session_of(world.theirs, "session").status
    assert status == events_pb.SESSION_STATUS_ACTIVE


@isolates("mneme.v1.EventService/GradeSession")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.EventService/GradeSession",
        lambda asked: events_pb.GradeSessionRequest(session_id=asked, outcome="OUTCOME_SUCCESS"),
    )
    assert not_found(answer)
    before = session_of(world.theirs, "session")
    _grade(world.ours, 0.25)
    assert session_of(world.ours, "session").reward == 0.25
    assert session_of(world.theirs, "session") == before


@isolates("mneme.v1.EventService/RecordGrades")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.EventService/RecordGrades",
        lambda asked: grade_pb.RecordGradesRequest(
            grades=[grade_pb.NewGrade(session_id=asked, reward=1)]
        ),
    )
    assert not_found(answer)
    given = grade_pb.NewGrade(id=OTHER, session_id="session", reward=1)  # Here the id is free.
    answered = world.ours.events.RecordGrades(grade_pb.RecordGradesRequest(grades=[given]))
    assert answered.grades[0].reward == 1


@isolates("mneme.v1.EventService/ListGrades")
def _(world: World) -> None:
    _grade(world.ours, 1)
    mine = world.ours.events.ListGrades(grade_pb.ListGradesRequest()).grades
    assert {one.session_id for one in mine} == {"session"}
    for field in ("session_id", "grader"):
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.EventService/ListGrades",
            lambda asked, field=field: grade_pb.ListGradesRequest(**{field: asked}),
        )
        assert answer == [""], field


def _grade(api: Api, reward: float) -> None:
    api.events.GradeSession(events_pb.GradeSessionRequest(session_id="session", reward=reward))


@isolates("mneme.v1.EventService/RecordEvents")
def _(world: World) -> None:
    (receipt,) = record(world.ours, event("other words", OTHER, id=OTHER, at=9))
    assert (receipt.duplicate, receipt.sequence) == (False, 1)
    (mine,) = list_events(world.ours, session_id=OTHER)
    assert mine.prev_hash == ""
    record(world.ours, event("one more", "session", id="event-4", at=9))
    assert session_of(world.ours, "session").event_count == 4


@isolates("mneme.v1.EventService/StreamEvents")
def _(world: World) -> None:
    answer = stream(world.ours, [event("other words", OTHER, id=OTHER, at=9)])
    assert (answer.recorded_count, answer.duplicate_count) == (1, 0)
    assert session_of(world.ours, OTHER).event_count == 1


@isolates("mneme.v1.EventService/GetSession")
def _(world: World) -> None:
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.EventService/GetSession",
        lambda asked: events_pb.GetSessionRequest(session_id=asked),
    )
    assert not_found(answer)
    ours, alone = session_of(world.ours, "session"), session_of(world.alone, "session")
    for session in (ours, alone):  # Hashes are salted, and cover when an event was recorded.
        assert session.head_hash
        session.ClearField("head_hash")
    assert ours == alone


@isolates("mneme.v1.EventService/ListSessions")
def _(world: World) -> None:
    mine = world.ours.events.ListSessions(events_pb.ListSessionsRequest())
    assert ([session.id for session in mine.sessions], mine.total_size) == (["session"], 1)
    for field in ("agent_id", "user_id", "project", "tags"):
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.EventService/ListSessions",
            lambda asked, field=field: events_pb.ListSessionsRequest(
                **{field: [asked] if field == "tags" else asked}
            ),
        )
        assert answer == [""], field


@isolates("mneme.v1.EventService/ListEvents")
def _(world: World) -> None:
    assert [found.id for found in list_events(world.ours)] == ["event-1", "event-2", "event-3"]
    assert len(list_events(world.ours, session_id="session")) == 3
    for field in ("session_id", "agent_id", "name"):
        answer = answered_as_absent(
            world.ours,
            "mneme.v1.EventService/ListEvents",
            lambda asked, field=field: events_pb.ListEventsRequest(**{field: asked}),
        )
        assert answer == [""], field


@isolates("mneme.v1.EventService/ListAgents")
def _(world: World) -> None:
    (mine,) = world.ours.events.ListAgents(events_pb.ListAgentsRequest()).agents
    assert (mine.id, mine.session_count, mine.event_count, mine.tool_call_count) == (
        "agent", 1, 3, 1,
    )  # fmt: skip


@isolates("mneme.v1.EventService/WatchEvents")
def _(world: World) -> None:
    for watched in (None, "session", OTHER):
        request = events_pb.WatchEventsRequest(after_cursor="0", session_id=watched)
        following = world.ours.events.WatchEvents(request)
        next(following)
        # The marker is recorded after whatever the other tenant records meanwhile.
        marker = f"marker-{watched}"
        record(world.ours, event("the end", watched or "session", id=marker))
        seen = list(_until(marker, following))
        following.cancel()
        assert not [found for found in seen if found.agent_id == OTHER]
        assert len(seen) == (1 if watched == OTHER else len(list_events(
            world.ours, session_id=watched)))  # fmt: skip
    absent = answered_as_absent(
        world.alone,
        "mneme.v1.EventService/WatchEvents",
        lambda asked: events_pb.WatchEventsRequest(agent_id=asked),
    )
    assert absent == ['cursor: "3"\n']  # Cursors do not tell how much others record.


def _until(
    marker: str, following: Iterator[events_pb.WatchEventsResponse]
) -> Iterator[events_pb.Event]:
    for answer in following:
        yield answer.event
        if answer.event.id == marker:
            return


@isolates("mneme.v1.EventService/VerifyEvents")
def _(world: World) -> None:
    assert verify(world.ours) == verify(world.alone)
    assert verify(world.ours).events_checked == 3
    assert verify(world.ours, "session").head_hash == session_of(world.ours, "session").head_hash
    answer = answered_as_absent(
        world.ours,
        "mneme.v1.EventService/VerifyEvents",
        lambda asked: events_pb.VerifyEventsRequest(session_id=asked),
    )
    assert not_found(answer)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)


def test_a_page_token_of_another_tenant_reaches_nothing_of_it(world: World) -> None:
    request = events_pb.ListEventsRequest(page_size=1)
    request.page_token = world.theirs.events.ListEvents(request).next_page_token
    request.page_size = 100
    found = world.ours.events.ListEvents(request).events
    assert {item.id for item in found} <= {"event-2", "event-3"}


def test_a_watcher_sees_nothing_of_what_another_tenant_records_meanwhile(world: World) -> None:
    following = world.ours.events.WatchEvents(events_pb.WatchEventsRequest())
    next(following)
    for number in range(3):
        record(world.theirs, event("theirs", "session", id=f"theirs-{number}"))
        record(world.ours, event("ours", "session", id=f"ours-{number}"))
    seen = [found.id for found in _until("ours-2", following)]
    following.cancel()
    assert seen == ["ours-0", "ours-1", "ours-2"]
