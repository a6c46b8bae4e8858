"""Requests that are wrong are refused with a code, a reason and the field that is at fault.

A new RPC needs an example in `scripts/api_examples.json`, and is tested from then on.
"""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from support.api import METHODS, grpc, reads_well, refused
from support.bad_fields import cases, is_required, nested, nested_lists, unread
from support.descriptors import Leaf, leaves, rules_of
from support.examples import full_name
from support.making import event, record, struct
from support.valid_requests import OTHERWISE, valid
from support.world import World

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def test_what_is_sent_otherwise_is_of_an_rpc_and_has_a_reason() -> None:
    assert {full_name(name) for name in OTHERWISE} <= METHODS.keys()
    assert all(why for why, _ in OTHERWISE.values())


every_rpc = pytest.mark.parametrize("rpc", sorted(METHODS))


@every_rpc
def test_the_valid_request_is_answered(rpc: str, world: World) -> None:
    world.api.call(rpc, valid(rpc, world))


@every_rpc
def test_fields_that_the_server_does_not_know_are_ignored(rpc: str, world: World) -> None:
    from_a_newer_client = bytes([0xFA, 0xFF, 0x7F, 3]) + b"new"  # Field 262,143, bytes.
    world.api.call(rpc, valid(rpc, world).SerializeToString() + from_a_newer_client)


@every_rpc
@pytest.mark.parametrize("raw", [b"\xff\xff\xff\xff", b"\x0a\xff\x01abc", b"\x0b"])
def test_bytes_that_are_no_message_are_refused(rpc: str, raw: bytes, world: World) -> None:
    with refused() as failure:
        world.api.call(rpc, raw)
    assert (failure.code, failure.reason) == (INVALID, "INVALID_TYPE")
    reads_well(failure)


@every_rpc
def test_an_empty_request_is_answered_or_names_what_is_missing(rpc: str, world: World) -> None:
    required = {
        leaf.steps[0].name
        for leaf in leaves(METHODS[rpc].input_type)
        if len(leaf.steps) == 1 and is_required(leaf)
    }
    required |= {f.name for f in METHODS[rpc].input_type.fields if _must_be_set(f)}
    if "update_mask" in METHODS[rpc].input_type.fields_by_name:
        required |= {f"{f.name}.id" for f in METHODS[rpc].input_type.fields}
    required |= {"rule.condition"} if rpc.endswith("/TryAlertRule") else set()
    required |= {"task"} if rpc.endswith("/CreateEpisode") else set()  # Or a session's record.
    required |= {"memory_ids"} if rpc.endswith("/DeleteMemories") else set()  # Or a filter.
    required |= {"session_id"} if rpc.endswith("/Sleep") else set()  # Or a project.
    required |= {"user_id"} if rpc.endswith("Forget") else set()  # Or another way to name it.
    # Or a prediction, or a stream's.
    alone = rpc.endswith(("/Feedback", "/Act", "/RecordTrajectories"))
    required |= {"session_id"} if alone else set()
    required |= {"analysis"} if rpc.endswith("/Reflect") else set()  # Or parameters.
    if not required:
        world.api.call(rpc, b"")
        return
    with refused() as failure:
        world.api.call(rpc, b"")
    assert failure.code == INVALID
    assert failure.reason == "MISSING_REQUIRED_FIELD"
    assert failure.fields.keys() <= required
    reads_well(failure)


def _must_be_set(field: Any) -> bool:
    rules = rules_of(field)
    return rules is not None and (rules.required or rules.repeated.min_items > 0)


_FIELDS = [
    pytest.param(rpc, leaf, id=f"{rpc.rpartition('.')[2]}-{leaf.path}")
    for rpc in sorted(METHODS)
    for leaf in leaves(METHODS[rpc].input_type)
    if leaf.kind != "bool" and leaf.field.name not in ("start_time", "end_time")
]


@pytest.mark.parametrize(("rpc", "leaf"), _FIELDS)
def test_what_a_field_may_not_hold_is_refused(rpc: str, leaf: Leaf, world: World) -> None:
    if why := unread(rpc, leaf):
        pytest.skip(why)
    tried = 0
    for case in cases(rpc, leaf, world):
        with refused() as failure:
            world.api.call(rpc, case.request)
        told = (case.name, failure.message)
        assert failure.code == INVALID, told
        assert failure.reason in case.reasons, told
        assert set(failure.fields) & set(case.fields), (*told, failure.fields)
        reads_well(failure)
        tried += 1
    assert tried, "every field can be given something wrong"


_RANGES = sorted(rpc for rpc, m in METHODS.items() if "start_time" in m.input_type.fields_by_name)


@pytest.mark.parametrize("rpc", _RANGES)
def test_a_range_that_ends_before_it_starts_is_refused(rpc: str, world: World) -> None:
    request: Any = valid(rpc, world)
    request.start_time.FromSeconds(2_000)
    request.end_time.FromSeconds(1_999)
    with refused() as failure:
        world.api.call(rpc, request)
    assert (failure.code, failure.reason) == (INVALID, "INVALID_FILTER")
    assert failure.field == "end_time"
    reads_well(failure)


@pytest.mark.parametrize("rpc", _RANGES)
@pytest.mark.parametrize("field", ["start_time", "end_time"])
@pytest.mark.parametrize(
    "time",
    [
        Timestamp(seconds=2**63 - 1),
        Timestamp(seconds=-(2**63)),
        Timestamp(seconds=1, nanos=2_000_000_000),
        Timestamp(seconds=1, nanos=-1),
    ],
)
def test_a_filter_takes_any_time_as_that_of_the_earliest_or_latest_memory(
    rpc: str, field: str, time: Timestamp, world: World
) -> None:
    request: Any = valid(rpc, world)
    everything = world.api.call(rpc, request)[0]
    getattr(request, field).CopyFrom(time)
    filtered = world.api.call(rpc, request)[0]
    lets_all_through = (time.seconds > 0) == (field == "end_time") and abs(time.seconds) > 1
    lets_all_through |= abs(time.seconds) == 1 and field == "start_time"
    assert _items(filtered) == (_items(everything) if lets_all_through else 0)


def _items(answer: Any) -> int:
    """Return how many of what was asked for came: what the answer's first list holds."""
    first = next(field for field in answer.DESCRIPTOR.fields if field.is_repeated)
    return len(getattr(answer, first.name))


@pytest.mark.parametrize(
    "path", ["id", "access_count", "created_at", "archived_at", "nonsense", "lesson.title", "", "*"]
)
def test_an_update_mask_that_names_what_cannot_be_changed_is_refused(
    path: str, world: World
) -> None:
    request = learn_pb.UpdateLessonRequest(
        lesson=learn_pb.Lesson(id="fixtures", title="new"),
        update_mask=FieldMask(paths=["title", path]),
    )
    with refused() as failure:
        world.api.learn.UpdateLesson(request)
    assert (failure.code, failure.reason) == (INVALID, "INVALID_PARAMETER")
    assert failure.field == "update_mask"
    reads_well(failure)


def test_an_update_without_a_mask_is_refused(world: World) -> None:
    for mask in (None, FieldMask()):
        with refused() as failure:
            world.api.learn.UpdateLesson(
                learn_pb.UpdateLessonRequest(
                    lesson=learn_pb.Lesson(id="fixtures", title="new"), update_mask=mask
                )
            )
        assert (failure.code, failure.reason) == (INVALID, "MISSING_REQUIRED_FIELD")
        assert failure.field == "update_mask"


def test_json_of_32_levels_and_of_nearly_its_size_is_kept_as_it_is(world: World) -> None:
    payloads = [nested(32), nested_lists(31), struct(text="x" * (2**20 - 100))]
    made = {"session_id": "large", "event_type": "custom"}
    record(world.api, *(events_pb.NewEvent(**made, payload=payload) for payload in payloads))
    answer = world.api.events.ListEvents(events_pb.ListEventsRequest(session_id="large"))
    assert [found.payload for found in answer.events] == payloads


def test_a_message_larger_than_the_server_takes_is_refused(world: World) -> None:
    with refused() as failure:
        world.api.call("mneme.v1.EventService/GetSession", b"\0" * (17 * 2**20))
    assert failure.code == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_numbers_in_a_payload_that_no_counter_can_hold_stay_in_the_payload(world: World) -> None:
    payload = struct(
        input_tokens=1e300, output_tokens=-5, cost_usd=1e300, duration_ms=1e300, name="tool"
    )
    record(world.api, event("words", "huge", payload=payload))
    (kept,) = world.api.events.ListEvents(events_pb.ListEventsRequest(session_id="huge")).events
    assert kept.payload == payload
    assert (kept.input_tokens, kept.output_tokens, kept.cost_usd) == (0, 0, 0)
    assert not kept.HasField("duration")


@pytest.mark.parametrize("path", ["/mneme.v1.EventService/Nonsense", "/no.Such/Service"])
def test_a_call_that_does_not_exist_is_unimplemented(path: str, world: World) -> None:
    call = world.api.channel.unary_unary(path)
    with pytest.raises(grpc.RpcError) as error:
        call(b"", timeout=10)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED  # type: ignore[attr-defined]
