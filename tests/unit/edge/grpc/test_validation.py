"""The rules of the protos: all violations, with paths and reasons."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from mneme.v1 import admin_service_pb2 as admin
from mneme.v1 import event_service_pb2 as events
from mneme_server.common.errors import Reason
from mneme_server.edge.grpc import validation
from mneme_server.edge.grpc.errors import InvalidRequest
from mneme_server.edge.grpc.validation import validate
from unit.edge.grpc.edge import Client, Edge, all_methods


@pytest.mark.parametrize(
    ("path", "request_", "expected"),
    [
        (
            "AdminService/CreateTenant",
            admin.CreateTenantRequest(),
            [("tenant_id", "MISSING_REQUIRED_FIELD")],
        ),
        (
            "AdminService/CreateTenant",
            admin.CreateTenantRequest(tenant_id="Not One", display_name="x" * 201),
            [("tenant_id", "INVALID_PARAMETER"), ("display_name", "OUT_OF_RANGE")],
        ),
        (
            "AdminService/CreateApiKey",
            admin.CreateApiKeyRequest(tenant_id="a", name="n", scopes=[1, 0, 99], rate_limit=-1),  # type: ignore[list-item]
            [
                ("scopes[1]", "INVALID_PARAMETER"),
                ("scopes[2]", "INVALID_PARAMETER"),
                ("rate_limit", "OUT_OF_RANGE"),
            ],
        ),
        (
            "AdminService/ListTenants",
            admin.ListTenantsRequest(page_size=-5),
            [("page_size", "OUT_OF_RANGE")],
        ),
        (
            "EventService/RecordEvents",
            events.RecordEventsRequest(),
            [("events", "MISSING_REQUIRED_FIELD")],
        ),
        (
            "EventService/RecordEvents",
            events.RecordEventsRequest(
                events=[
                    events.NewEvent(session_id="s", event_type="message"),
                    events.NewEvent(id="a\0b"),
                ]
            ),
            [
                ("events[1].id", "INVALID_PARAMETER"),
                ("events[1].session_id", "MISSING_REQUIRED_FIELD"),
                ("events[1].event_type", "MISSING_REQUIRED_FIELD"),
            ],
        ),
        (
            "EventService/StreamEvents",
            events.StreamEventsRequest(),
            [("event", "MISSING_REQUIRED_FIELD")],
        ),
    ],
)
def test_every_violation_is_reported_with_path_and_reason(
    client: Client, path: str, request_: Message, expected: list[tuple[str, str]]
) -> None:
    refusal = client.refusal(path, request_)
    found = [(v.field, v.reason) for v in refusal.bad_request.field_violations]
    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal.reason == found[0][1]
    assert sorted(found) == sorted(expected)
    assert all(v.description for v in refusal.bad_request.field_violations)


def test_what_a_text_must_look_like_is_said_in_words(client: Client) -> None:
    given = events.NewEvent(
        id="a\nb", session_id="s", event_type="two words", text="a\0b", name="\x7f"
    )
    refusal = client.refusal(
        "EventService/RecordEvents", events.RecordEventsRequest(events=[given])
    )
    assert {v.field: v.description for v in refusal.bad_request.field_violations} == {
        "events[0].id": "must be on one line, without control characters",
        "events[0].name": "must be on one line, without control characters",
        "events[0].text": "must hold no NUL character (U+0000)",
        "events[0].event_type": "must be of the form `^[A-Za-z][A-Za-z0-9_.:/-]*$`",
    }


def test_the_servicer_never_sees_a_request_that_breaks_a_rule(edge: Edge, client: Client) -> None:
    seen: list[Any] = []
    edge.on("EventService/RecordEvents", lambda request, context: seen.append(request))
    client.refusal("EventService/RecordEvents", events.RecordEventsRequest())
    assert seen == []


def test_a_message_within_another_is_named_by_its_prefix() -> None:
    with pytest.raises(InvalidRequest) as refused:
        validate(admin.CreateTenantRequest(tenant_id="!"), prefix="outer[2]")
    assert refused.value.field == "outer[2].tenant_id"
    assert refused.value.reason is Reason.INVALID_PARAMETER


@pytest.mark.parametrize("method", all_methods(), ids=lambda m: m.full_name)
def test_the_rules_of_every_request_compile(method: Any) -> None:
    with suppress(InvalidRequest):
        validate(GetMessageClass(method.input_type)())


def test_of_a_list_that_is_too_long_no_item_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    rules = SimpleNamespace(collect_violations=looked.append)
    monkeypatch.setattr(validation, "rules", lambda: rules)
    with pytest.raises(InvalidRequest) as refused:
        validate(events.RecordEventsRequest.FromString(b"\x0a\x00" * 100_000))
    assert not looked
    (violation,) = refused.value.violations
    assert (violation.field, violation.reason) == ("events", Reason.OUT_OF_RANGE)
    assert violation.message == "must contain no more than 1000 item(s)"
