"""Whose user a session or an event is, where only its metadata says so."""

from __future__ import annotations

from typing import Any

import pytest
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api
from support.making import event, ids_of, recall, record, session_of, struct


def start(api: Api, **fields: Any) -> events_pb.Session:
    return api.events.StartSession(events_pb.StartSessionRequest(**fields)).session


@pytest.mark.parametrize("key", ["userId", "user_id"])
def test_the_user_that_metadata_names_is_the_sessions(key: str, api: Api) -> None:
    start(api, session_id="s", metadata=struct(**{key: "ann"}))
    assert session_of(api, "s").user_id == "ann"
    record(api, event("the invoice is late", "s"))
    assert ids_of(recall(api, "invoice", user_id="ann"))
    assert not ids_of(recall(api, "invoice", user_id="bob"))
    # Again, as it was sent: nothing changes.
    start(api, session_id="s", metadata=struct(**{key: "ann"}))


def test_the_user_that_an_event_names_is_its_own_and_that_of_a_session_without_one(
    api: Api,
) -> None:
    start(api, session_id="s")
    record(api, event("the invoice is late", "s", id="before"))
    record(api, event("it was paid", "s", id="names", metadata={"userId": "ann"}))
    record(api, event("the invoice is void", "s", id="other", metadata={"user_id": "bob"}))
    assert session_of(api, "s").user_id == "ann"
    assert set(ids_of(recall(api, "the invoice", user_id="ann"))) == {"before", "names"}
    assert ids_of(recall(api, "the invoice", user_id="bob")) == ["other"]
    start(api, session_id="s")  # Again, as it was sent.
    assert session_of(api, "s").user_id == "ann"


@pytest.mark.parametrize("value", ["", "x" * 201, "a\nb", None, True, {"id": "ann"}])
def test_metadata_that_names_no_possible_user_names_none(value: Any, api: Api) -> None:
    start(api, session_id="s", metadata=struct(userId=value))
    record(api, event("hello", "s", metadata={"userId": value}))
    assert session_of(api, "s").user_id == ""


def test_a_number_is_a_user_too(api: Api) -> None:
    start(api, session_id="s", metadata=struct(userId=42))
    assert session_of(api, "s").user_id == "42"
