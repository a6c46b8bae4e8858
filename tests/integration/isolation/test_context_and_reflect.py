"""Tenants get no context of each other, and nothing of it is reflected on."""

from __future__ import annotations

from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import reflect_service_pb2 as reflect_pb
from support.contexts import get_context, sleep, wake_up
from support.isolation import ABSENT, OTHER, TOPIC, Checks, World, answered_as_absent

isolates = Checks()

_CONTEXT = "mneme.v1.ContextService"


@isolates(f"{_CONTEXT}/GetContext")
def _(world: World) -> None:
    for api in (world.ours, world.alone):
        answer = get_context(api, TOPIC)
        assert [found.session_id for found in answer.sessions] == ["session"]
        assert [found.lesson.id for found in answer.lessons] == ["lesson"]
        assert answer.total_sessions == 1
        assert not answer.reflections
    for field in ("user_id", "agent_id", "project"):
        for asked in (OTHER, ABSENT):
            answer = get_context(world.ours, TOPIC, **{field: asked})
            # Lessons are for whichever user asks; nobody else's are among them.
            assert {found.lesson.id for found in answer.lessons} <= {"lesson"}
            assert (list(answer.sessions), answer.total_sessions) == ([], 0)


@isolates(f"{_CONTEXT}/GetProfile")
def _(world: World) -> None:
    theirs = world.theirs.context.GetProfile(context_pb.GetProfileRequest(user_id=OTHER))
    assert [item.memory_id for item in theirs.items] == [OTHER]
    answered_as_absent(
        world.ours,
        f"{_CONTEXT}/GetProfile",
        lambda asked: context_pb.GetProfileRequest(user_id=asked),
    )


@isolates(f"{_CONTEXT}/Sleep")
def _(world: World) -> None:
    # The other tenant has handed this session over, for another project; here the id is free.
    handover = sleep(world.ours, OTHER, "Mine", project="mine")
    assert (handover.project, list(handover.files)) == ("mine", [])
    assert wake_up(world.theirs).last_handover.project == OTHER


@isolates(f"{_CONTEXT}/WakeUp")
def _(world: World) -> None:
    assert (
        wake_up(world.ours)
        == wake_up(world.alone)
        == context_pb.WakeUpResponse(text=wake_up(world.alone).text)
    )
    for field in ("project", "agent_id"):
        answered_as_absent(
            world.ours,
            f"{_CONTEXT}/WakeUp",
            lambda asked, field=field: context_pb.WakeUpRequest(**{field: asked}),
        )
    sleep(world.ours, "mine", "The payment was refused by the bank")
    woken = wake_up(world.ours, min_similarity=0.0)
    assert (list(woken.related), woken.sessions_considered) == ([], 1)


@isolates(f"{_CONTEXT}/SearchSessions")
def _(world: World) -> None:
    sleep(world.ours, "mine", "The payment was refused by the bank")
    request = context_pb.SearchSessionsRequest(query=TOPIC)
    answer = world.ours.context.SearchSessions(request)
    assert ([r.session.id for r in answer.results], answer.searched_count) == (["mine"], 1)
    for field in ("user_id", "agent_id", "project"):
        found = answered_as_absent(
            world.ours,
            f"{_CONTEXT}/SearchSessions",
            lambda asked, field=field: context_pb.SearchSessionsRequest(
                query=TOPIC, **{field: asked}
            ),
        )
        assert found == [""], field


@isolates(f"{_CONTEXT}/GetTimeline")
def _(world: World) -> None:
    sleep(world.ours, "mine", "The payment was refused by the bank")
    answer = world.ours.context.GetTimeline(context_pb.GetTimelineRequest())
    assert {entry.session.id for entry in answer.entries} == {"session", "mine"}
    assert not any(entry.related for entry in answer.entries)
    for field in ("agent_id", "project"):
        found = answered_as_absent(
            world.ours,
            f"{_CONTEXT}/GetTimeline",
            lambda asked, field=field: context_pb.GetTimelineRequest(**{field: asked}),
        )
        assert found == [""], field


@isolates("mneme.v1.ReflectService/Reflect")
def _(world: World) -> None:
    for analysis in range(1, 6):
        request = reflect_pb.ReflectRequest(analysis=analysis)  # type: ignore[arg-type]
        mine, lonely = (api.reflect.Reflect(request) for api in (world.ours, world.alone))
        assert mine == lonely
        assert (mine.metadata.sessions_analyzed, mine.metadata.events_analyzed) == (1, 3)
        assert OTHER not in str(mine)
        for field in ("agent_id", "user_id", "project", "tags"):
            answer = answered_as_absent(
                world.ours,
                "mneme.v1.ReflectService/Reflect",
                lambda asked, field=field, analysis=analysis: reflect_pb.ReflectRequest(
                    analysis=analysis, **{field: [asked] if field == "tags" else asked}
                ),
            )
            assert "sessions_analyzed" not in answer[0], field


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
