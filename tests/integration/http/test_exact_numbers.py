"""Whole numbers beyond 2^53, which free JSON cannot hold, are refused and never rounded."""

from __future__ import annotations

from typing import Any

import pytest
from mneme.errors import ArgumentError
from mneme.messages import RecordEventsRequest
from mneme.plain import from_dict
from support.http import Http

WRITTEN = {
    "beyond 2^53": ('{"id":9007199254740993}', "metadata.id"),
    "below -2^53": ('{"id":-9007199254740993}', "metadata.id"),
    "beyond 64 bits": ('{"id":123456789012345678901234567890}', "metadata.id"),
    "in a list in an object": ('{"a":{"b":[1,123456789012345678]}}', "metadata.a.b[1]"),
}
KEPT = '{"id":9007199254740992,"big":1e300,"text":"123456789012345678901234567890"}'


@pytest.mark.parametrize("path", ["/api/memories", "/mneme.v1.MemoryService/InsertMemory"])
@pytest.mark.parametrize("what", WRITTEN)
def test_a_number_that_would_be_rounded_is_refused_with_its_field(
    http: Http, path: str, what: str
) -> None:
    metadata, field = WRITTEN[what]
    answer = post(http, path, f'{{"text":"one","metadata":{metadata}}}')
    assert answer.status_code == 400
    assert f"{field}: " in answer.text
    assert "send it as text" in answer.text


@pytest.mark.parametrize("path", ["/api/memories", "/mneme.v1.MemoryService/InsertMemory"])
def test_what_a_double_holds_is_taken(http: Http, path: str) -> None:
    answer = post(http, path, f'{{"text":"one","metadata":{KEPT}}}')
    assert answer.status_code == 200, answer.text


def test_a_field_of_numbers_refuses_what_it_would_round_as_well(http: Http) -> None:
    event = '{"sessionId":"s","eventType":"custom","costUsd":9007199254740993}'
    answer = post(http, "/mneme.v1.EventService/RecordEvents", f'{{"events":[{event}]}}')
    assert answer.status_code == 400
    assert "events[0].costUsd: 9007199254740993 does not fit" in answer.text


def test_what_reads_json_for_a_call_names_the_field_too() -> None:
    events = [{"session_id": "s"}, {"payload": {"arguments": {"id": 2**53 + 1}}}]
    with pytest.raises(
        ArgumentError, match=r"events\[1\]\.payload\.arguments\.id: 9007199254740993"
    ):
        from_dict({"events": events}, RecordEventsRequest())


def post(http: Http, path: str, body: str) -> Any:
    return http.client.post(path, content=body, headers={"content-type": "application/json"})
