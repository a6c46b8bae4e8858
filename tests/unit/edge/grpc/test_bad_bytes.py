"""Bytes that are no request: the answer names what is wrong and where."""

from __future__ import annotations

import tracemalloc

import grpc
import pytest
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct, Value
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme.v1 import event_service_pb2 as pb
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.wire import MAX_DEPTH, find_fault, parse
from unit.edge.grpc.edge import Client, Edge

RECORD = "EventService/RecordEvents"
MARK = b"MARKMARK"
REQUEST_TYPE = pb.DESCRIPTOR.message_types_by_name["RecordEventsRequest"]


def _events(*texts: str) -> bytes:
    events = [pb.NewEvent(session_id="s", event_type="message", text=t) for t in texts]
    return pb.RecordEventsRequest(events=events).SerializeToString()


def _deep(levels: int) -> bytes:
    """Return a request whose payload is a struct within a struct, this many times."""
    struct = b""
    for _ in range(levels):
        # Struct{fields: {"": Value{struct_value: Struct}}}, from the inside out.
        for tag in (5, 2, 1):
            struct = _nested(tag, struct)
    payload = _nested(pb.NewEvent.DESCRIPTOR.fields_by_name["payload"].number, struct)
    return _nested(1, payload)


def _nested(number: int, raw: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize(
    ("raw", "field", "reason", "message"),
    [
        (
            _events("fine", MARK.decode()).replace(MARK, b"\xff\xfe......"),
            "events[1].text",
            "INVALID_TYPE",
            "not UTF-8",
        ),
        (_events("cut off")[:-3], "events[0]", "INVALID_TYPE", "ends before it is complete"),
        (b"\x0a", "events[0]", "INVALID_TYPE", "ends before it is complete"),
        (b"\x00\x00", "", "INVALID_TYPE", "field number 0"),
        (b"\x0f", "events[0]", "INVALID_TYPE", "wire type 7"),
        (b"\xff" * 20, "", "INVALID_TYPE", "64 bits"),
        (_deep(60), "events[0].payload", "OUT_OF_RANGE", "levels deep"),
    ],
)
def test_bytes_that_do_not_parse_are_refused_by_field(
    client: Client, raw: bytes, field: str, reason: str, message: str
) -> None:
    refusal = client.refusal(RECORD, raw)
    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal.reason == reason
    assert message in refusal.message
    if field:
        assert refusal.fields[0].startswith(field)
    else:
        assert refusal.fields == []


def test_invalid_utf8_within_a_struct_is_found_too(client: Client) -> None:
    payload = Struct()
    payload.update({"outer": {"inner": MARK.decode()}})
    request = pb.RecordEventsRequest(events=[pb.NewEvent(session_id="s", payload=payload)])
    raw = request.SerializeToString().replace(MARK, b"\xc3\x28......")
    (field,) = client.refusal(RECORD, raw).fields
    assert field == "events[0].payload"


def test_a_bad_message_in_a_stream_is_refused_with_its_place(edge: Edge, client: Client) -> None:
    good = pb.StreamEventsRequest(event=pb.NewEvent(session_id="s", event_type="message", text="x"))
    bad = good.SerializeToString().replace(b"s", b"\xff", 1)
    refusal = client.refusal("EventService/StreamEvents", iter([good, good, bad]))
    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal.reason == "INVALID_TYPE"
    assert refusal.info.metadata["message_index"] == "2"
    assert refusal.fields == ["event.session_id"]


def test_a_caller_without_a_key_learns_nothing_about_the_bytes(edge: Edge) -> None:
    refusal = edge.client().refusal(RECORD, b"\xff\xff")
    assert refusal.code is grpc.StatusCode.UNAUTHENTICATED


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_whatever_the_parser_refuses_is_explained(raw: bytes) -> None:
    try:
        pb.RecordEventsRequest.FromString(raw)
    except DecodeError:
        with pytest.raises(InvalidArgument) as refused:
            parse(pb.RecordEventsRequest.FromString, REQUEST_TYPE, raw)
        assert refused.value.reason in (Reason.INVALID_TYPE, Reason.OUT_OF_RANGE)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.text(max_size=20), min_size=1, max_size=5),
    st.data(),
)
def test_the_field_with_broken_text_is_the_one_named(texts: list[str], data: st.DataObject) -> None:
    broken = data.draw(st.integers(0, len(texts) - 1))
    marked = [f"{text}{MARK.decode()}" if i == broken else text for i, text in enumerate(texts)]
    raw = _events(*marked).replace(MARK, b"\xed\xa0\x80.....")
    fault = find_fault(REQUEST_TYPE, raw)
    assert fault.path == f"events[{broken}].text"
    assert fault.reason is Reason.INVALID_TYPE


def test_the_search_gives_up_on_a_message_of_millions_of_fields() -> None:
    fault = find_fault(REQUEST_TYPE, b"\x10\x01" * 1_000_000 + b"\x0a")
    assert fault.problem == "its encoding is broken"


def test_depth_is_refused_where_the_parser_refuses_it() -> None:
    shallow, deep = _deep(5), _deep(MAX_DEPTH)
    pb.RecordEventsRequest.FromString(shallow)
    with pytest.raises(DecodeError):
        pb.RecordEventsRequest.FromString(deep)


def test_looking_for_the_fault_copies_nothing_however_deep_it_lies() -> None:
    size = 1_000_000
    raw = b"x" * size + b"\xff"  # No UTF-8, as a string of a value in a list in a value, and so on.
    raw = _nested(3, raw)
    for _ in range(MAX_DEPTH // 2 - 5):
        raw = _nested(6, _nested(1, raw))
    tracemalloc.start()
    try:
        fault = find_fault(Value.DESCRIPTOR, raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "UTF-8" in fault.problem
    assert peak < 3 * size
