"""A batch of events is recorded as a whole or not at all; its errors are named by their places."""

from __future__ import annotations

from mneme.v1 import event_service_pb2 as events_pb
from support.api import grpc, reads_well, refused
from support.making import event, record
from support.world import World

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def test_a_batch_of_no_events_and_one_of_too_many_are_refused(world: World) -> None:
    for number, reason in ((0, "MISSING_REQUIRED_FIELD"), (1_001, "OUT_OF_RANGE")):
        with refused() as failure:
            record(world.api, *[event("words", "batch")] * number)
        assert (failure.code, failure.reason) == (INVALID, reason)
        assert failure.field == "events"
        reads_well(failure)


def test_the_place_of_a_bad_event_in_its_batch_is_named_and_nothing_is_recorded(
    world: World,
) -> None:
    with refused() as failure:
        record(world.api, event("good", "half"), event("good", "half"), event("bad", ""))
    assert failure.field == "events[2].session_id"
    assert failure.reason == "MISSING_REQUIRED_FIELD"
    with refused() as failure:
        world.api.events.GetSession(events_pb.GetSessionRequest(session_id="half"))
    assert failure.reason == "SESSION_NOT_FOUND"


def test_all_bad_fields_of_a_request_are_named_at_once(world: World) -> None:
    with refused() as failure:
        record(world.api, event("", "", "", cost_usd=-1), event("fine", "x" * 201))
    assert failure.fields.keys() == {
        "events[0].session_id", "events[0].event_type", "events[0].cost_usd",
        "events[1].session_id",
    }  # fmt: skip


def test_one_id_twice_in_a_batch_is_one_event_or_a_conflict(world: World) -> None:
    same = [event("the same", "twice", id="twice-1", at=1)] * 2
    first, second = record(world.api, *same)
    assert (first.duplicate, second.duplicate) == (False, True)
    assert (first.sequence, first.hash) == (second.sequence, second.hash)
    with refused() as failure:
        record(
            world.api,
            event("one", "twice", id="twice-2", at=1),
            event("other", "twice", id="twice-2", at=1),
        )
    assert (failure.code, failure.reason) == (grpc.StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS")
    assert failure.field == "events[1].id"
    reads_well(failure)
