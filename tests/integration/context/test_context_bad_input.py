"""What the context service refuses, and how."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import auth_pb2
from mneme.v1 import context_service_pb2 as pb
from support.api import Api, grpc, refused
from support.contexts import sleep, wake_up
from support.server import LocalServer

_SERVICE = "mneme.v1.ContextService"
_LONG = "x" * 2_001

_BAD: list[tuple[str, Message, str]] = [
    ("GetContext", pb.GetContextRequest(), "topic"),
    ("GetContext", pb.GetContextRequest(topic="x" * 8_193), "topic"),
    ("GetContext", pb.GetContextRequest(topic="a\0b"), "topic"),
    ("GetContext", pb.GetContextRequest(topic="a", limit=51), "limit"),
    ("GetContext", pb.GetContextRequest(topic="a", limit=-1), "limit"),
    ("GetContext", pb.GetContextRequest(topic="a", project="x" * 201), "project"),
    ("GetContext", pb.GetContextRequest(topic="a", user_id="a\nb"), "user_id"),
    ("Sleep", pb.SleepRequest(), "session_id"),
    ("Sleep", pb.SleepRequest(session_id="s", progress=[""]), "progress[0]"),
    ("Sleep", pb.SleepRequest(session_id="s", progress=["ok", _LONG]), "progress[1]"),
    ("Sleep", pb.SleepRequest(session_id="s", progress=["a"] * 101), "progress"),
    ("Sleep", pb.SleepRequest(session_id="s", open_todos=[pb.Todo()]), "open_todos[0].content"),
    (
        "Sleep",
        pb.SleepRequest(session_id="s", open_todos=[pb.Todo(content="a", priority=6)]),
        "open_todos[0].priority",
    ),
    (
        "Sleep",
        pb.SleepRequest(session_id="s", decisions=[pb.Decision(rationale="a")]),
        "decisions[0].decision",
    ),
    (
        "Sleep",
        pb.SleepRequest(session_id="s", locked_contexts=[pb.LockedContext(version="1")]),
        "locked_contexts[0].label",
    ),
    ("Sleep", pb.SleepRequest(session_id="s", files=["a"] * 501), "files"),
    ("WakeUp", pb.WakeUpRequest(limit=51), "limit"),
    ("WakeUp", pb.WakeUpRequest(min_similarity=1.5), "min_similarity"),
    ("WakeUp", pb.WakeUpRequest(min_similarity=float("nan")), "min_similarity"),
    ("SearchSessions", pb.SearchSessionsRequest(), "query"),
    ("SearchSessions", pb.SearchSessionsRequest(query="a", limit=101), "limit"),
    ("SearchSessions", pb.SearchSessionsRequest(query="a", min_score=2), "min_score"),
    ("GetTimeline", pb.GetTimelineRequest(links=21), "links"),
    ("GetTimeline", pb.GetTimelineRequest(page_size=201), "page_size"),
    ("GetTimeline", pb.GetTimelineRequest(page_token="nonsense"), "page_token"),
]


@pytest.mark.parametrize(("method", "request_", "field"), _BAD)
def test_a_bad_field_is_refused_by_its_name(
    api: Api, method: str, request_: Message, field: str
) -> None:
    with refused() as failure:
        api.call(f"{_SERVICE}/{method}", request_)
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert failure.field == field
    assert failure.domain == "mneme.v1"


@pytest.mark.parametrize(
    ("method", "request_class", "required"),
    [
        ("GetContext", pb.GetContextRequest, {"topic": "a"}),
        ("SearchSessions", pb.SearchSessionsRequest, {"query": "a"}),
        ("GetTimeline", pb.GetTimelineRequest, {}),
    ],
)
def test_a_range_that_ends_before_it_starts_is_refused(
    api: Api, method: str, request_class: Any, required: dict[str, str]
) -> None:
    bounds = {"start_time": Timestamp(seconds=2), "end_time": Timestamp(seconds=1)}
    with refused() as failure:
        api.call(f"{_SERVICE}/{method}", request_class(**required, **bounds))
    assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FILTER")
    assert failure.field == "end_time"


def test_a_page_token_of_other_filters_is_refused(api: Api) -> None:
    for n in range(3):
        sleep(api, f"s{n}", "Something", project="p")
    first = api.context.GetTimeline(pb.GetTimelineRequest(project="p", page_size=1))
    assert first.next_page_token
    for other in ({"project": ""}, {"project": "p", "links": 5}):
        with refused() as failure:
            request = pb.GetTimelineRequest(page_token=first.next_page_token, **other)
            api.context.GetTimeline(request)
        assert failure.reason == "INVALID_FILTER"


def test_a_refused_handover_leaves_nothing_behind(api: Api) -> None:
    with refused():
        sleep(api, "s", "Fine", _LONG)
    assert not wake_up(api).HasField("last_handover")
    assert not api.context.GetTimeline(pb.GetTimelineRequest()).entries


def test_a_key_that_may_only_read_cannot_hand_over(server: LocalServer) -> None:
    api = server.keys.tenant()
    reader = server.keys.key(api.tenant_id, auth_pb2.KEY_SCOPE_READ)
    with refused() as failure:
        sleep(reader, "s", "Something")
    assert failure.code == grpc.StatusCode.PERMISSION_DENIED
    assert wake_up(reader).text


@pytest.mark.parametrize("text", ["🦉 наука", "a'; DROP TABLE handovers; --", "\u202e" + "x" * 50])
def test_any_text_is_kept_as_it_is(api: Api, text: str) -> None:
    handover = sleep(api, "s", text, files=[text], decisions=((text, text),))
    assert wake_up(api).last_handover == handover
    assert list(handover.progress) == [text]
    assert api.context.GetContext(pb.GetContextRequest(topic=text)).total_sessions == 1
