"""Numbers that a field cannot hold as they were written are refused: never rounded, never cut."""

from __future__ import annotations

from typing import Any

import pytest
from mneme.errors import ArgumentError
from mneme.messages import ListMemoriesRequest, RecordEventsRequest
from mneme.plain import from_dict
from support.http import Http

WRITTEN = {
    "beyond 2^53": ('{"id":9007199254740993}', "metadata.id"),
    "below -2^53": ('{"id":-9007199254740993}', "metadata.id"),
    "beyond 64 bits": ('{"id":123456789012345678901234567890}', "metadata.id"),
    "in a list in an object": ('{"a":{"b":[1,123456789012345678]}}', "metadata.a.b[1]"),
}
KEPT = '{"id":9007199254740992,"big":1e300,"text":"123456789012345678901234567890"}'


@pytest.mark.parametrize("path", ["/api/memories", "/mneme.v1.MemoryService/CreateMemory"])
@pytest.mark.parametrize("what", WRITTEN)
def test_a_number_that_would_be_rounded_is_refused_with_its_field(
    http: Http, path: str, what: str
) -> None:
    metadata, field = WRITTEN[what]
    answer = post(http, path, f'{{"text":"one","metadata":{metadata}}}')
    assert answer.status_code == 400
    assert f"{field}: " in answer.text
    assert "send it as text" in answer.text


@pytest.mark.parametrize("path", ["/api/memories", "/mneme.v1.MemoryService/CreateMemory"])
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


NUMBERS_OF_NO_VALUE = (
    "9007199254740993", "4294967297", "2147483648", "-4294967295", "18446744073709551617",
    '"4294967297"', '"-4294967295"', "4294967297.0", "1e300", "1.5", "true", '" 1_0 "',
)  # fmt: skip
"""None is a value of an enum: protobuf takes most of them for 1, by their lowest 32 bits."""


@pytest.mark.parametrize("path", ["/api/memories", "/mneme.v1.MemoryService/CreateMemory"])
@pytest.mark.parametrize("number", NUMBERS_OF_NO_VALUE)
def test_a_number_that_no_enum_has_is_refused_with_its_field(
    http: Http, path: str, number: str
) -> None:
    answer = post(http, path, f'{{"text":"one","importance":{number}}}')
    assert answer.status_code == 400, answer.text
    assert "importance: " in answer.text
    assert '"importance"' in answer.text  # As the error's field, too.


def test_such_a_number_is_refused_wherever_an_enum_is(http: Http) -> None:
    where = '{"key":"k","comparison":4294967297,"text":"x"}'
    body = f'{{"filter":{{"where":[{{"key":"k"}},{where}]}}}}'
    answer = post(http, "/mneme.v1.MemoryService/ListMemories", body)
    assert answer.status_code == 400
    assert "filter.where[1].comparison: 4294967297" in answer.text
    for given in ("[1,4294967297]", '["CACHE_KIND_EMBEDDINGS","4294967297"]'):
        answer = post(http, "/mneme.v1.MemoryService/ClearCache", f'{{"caches":{given}}}')
        assert answer.status_code == 400
        assert "caches[1]: 4294967297" in answer.text


@pytest.mark.parametrize("given", ["3", "3.0", '"3"', '"IMPORTANCE_HIGH"'])
def test_an_enums_own_number_is_taken(http: Http, given: str) -> None:
    body = f'{{"text":"one","importance":{given}}}'
    answer = post(http, "/mneme.v1.MemoryService/CreateMemory", body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["memory"]["importance"] == "IMPORTANCE_HIGH"


def test_what_reads_json_for_a_call_takes_no_number_that_no_enum_has() -> None:
    where = [{"key": "k", "comparison": 2**32 + 1}]
    with pytest.raises(ArgumentError, match=r"filter\.where\[0\]\.comparison: 4294967297"):
        from_dict({"filter": {"where": where}}, ListMemoriesRequest())


def post(http: Http, path: str, body: str) -> Any:
    return http.client.post(path, content=body, headers={"content-type": "application/json"})
