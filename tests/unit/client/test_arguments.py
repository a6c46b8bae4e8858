"""What callers may pass, and what they are told when it does not fit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st
from mneme import to_dict
from mneme._core.convert import fill
from mneme._core.json_values import MAX_EXACT_INTEGER
from mneme._core.rpc import Rpc
from mneme._generated import event as event_methods
from mneme._generated import learn as learn_methods
from mneme.messages import (
    CreateApiKeyRequest,
    KeyScope,
    NewEvent,
    RankingWeights,
    RecallRequest,
    UpdateLessonRequest,
)


def filled(message: Any, **fields: Any) -> Any:
    fill(message, fields)
    return message


@pytest.mark.parametrize(
    "said", ["read", "READ", "KEY_SCOPE_READ", "key-scope-read", KeyScope.KEY_SCOPE_READ, 1]
)
def test_an_enum_is_a_name_in_any_case_a_member_or_a_number(said: Any) -> None:
    assert list(filled(CreateApiKeyRequest(), scopes=[said]).scopes) == [1]


def test_an_unknown_enum_name_is_answered_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match=r"scopes\[1\]: 'reads' is none of read, write, learn"):
        filled(CreateApiKeyRequest(), scopes=["read", "reads"])


@pytest.mark.parametrize("said", ["event", "EVENT", " Event "])
def test_a_kind_of_memory_is_a_name_in_any_case(said: str) -> None:
    assert list(filled(RecallRequest(), scopes=[said]).scopes) == ["event"]


def test_a_kind_of_memory_that_only_the_server_knows_is_left_to_it() -> None:
    assert list(filled(RecallRequest(), scopes=["shared-notes"]).scopes) == ["shared_notes"]
    with pytest.raises(TypeError, match=r"scopes\[0\]: expected text, got int"):
        filled(RecallRequest(), scopes=[1])


def test_a_time_keeps_its_moment_whatever_its_zone() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    time = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=zone)
    stamp = filled(NewEvent(), timestamp=time).timestamp
    assert stamp.ToDatetime(UTC) == time


def test_a_time_without_a_zone_is_refused_with_what_to_write() -> None:
    with pytest.raises(ValueError, match=r"timestamp: 2026-03-01T12:00:00 has no time zone"):
        filled(NewEvent(), timestamp=datetime(2026, 3, 1, 12))


@pytest.mark.parametrize(("first", "hours"), [(datetime.min, 14), (datetime.max, -5)])
def test_a_time_of_a_year_that_no_timestamp_holds_is_refused(first: datetime, hours: int) -> None:
    time = first.replace(tzinfo=timezone(timedelta(hours=hours)))
    with pytest.raises(ValueError, match=r"timestamp: .* is outside the years 1 to 9999 in UTC"):
        filled(NewEvent(), timestamp=time)


def test_a_duration_is_a_timedelta() -> None:
    duration = filled(NewEvent(), duration=timedelta(milliseconds=1500)).duration
    assert (duration.seconds, duration.nanos) == (1, 500_000_000)


def test_none_leaves_a_field_unset_and_a_zero_sets_it() -> None:
    request = filled(RecallRequest(), limit=None, weights={"recency": 0, "session": None})
    assert request.limit == 0
    assert request.weights.HasField("recency")
    assert not request.weights.HasField("session")


def test_a_nested_message_is_a_mapping_or_the_message_itself() -> None:
    weights = RankingWeights(recency=0.5)
    assert filled(RecallRequest(), weights=weights).weights == weights
    assert filled(RecallRequest(), weights={"recency": 0.5}).weights == weights


def test_an_empty_nested_message_is_still_given() -> None:
    assert filled(RecallRequest(), weights={}).HasField("weights")


def test_a_field_mask_is_a_list_of_names() -> None:
    assert list(filled(UpdateLessonRequest(), update_mask=["title"]).update_mask.paths) == ["title"]


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"query": 5}, TypeError, "query: expected text, got int"),
        ({"limit": "5"}, TypeError, "limit: expected a number, got str"),
        ({"limit": True}, TypeError, "limit: expected a number, got bool"),
        ({"limit": 1.5}, TypeError, "limit: "),
        ({"limit": 2**40}, ValueError, "limit: "),
        ({"explain": 1}, TypeError, "explain: expected True or False, got int"),
        ({"tags": "ci"}, TypeError, "tags: expected several values in a list, got str"),
        ({"tags": ["ci", 3]}, TypeError, r"tags\[1\]: expected text, got int"),
        ({"start_time": "2026-01-01"}, TypeError, "start_time: expected a datetime, got str"),
        ({"weights": 3}, TypeError, "weights: expected RankingWeights or a mapping, got int"),
        ({"weights": {"speed": 1}}, TypeError, "weights.speed: RankingWeights has no such field"),
        ({"mode": 1.5}, TypeError, "mode: expected a name or a number of RecallMode, got float"),
        ({"query": "\ud800"}, ValueError, "query: text with half a surrogate pair"),
    ],
)
def test_a_value_that_does_not_fit_is_named_by_its_path(
    fields: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        filled(RecallRequest(), **fields)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"a": {"b": [1, MAX_EXACT_INTEGER + 1]}}, r"payload\.a\.b\[1\]: .* send it as text"),
        ({"a": float("nan")}, r"payload\.a: nan is not a JSON number"),
        ({"a": {1: 2}}, r"payload\.a: JSON has only text as keys, got int"),
        ({"a": datetime(2026, 1, 1)}, r"payload\.a: datetime is not JSON"),
    ],
)
def test_free_json_that_would_be_changed_is_refused(payload: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        filled(NewEvent(), payload=payload)


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_EXACT_INTEGER, MAX_EXACT_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), _json, max_size=5))
def test_free_json_comes_back_as_it_went_in(value: dict[str, Any]) -> None:
    event = filled(NewEvent(), payload=value)
    received = NewEvent.FromString(event.SerializeToString())
    assert to_dict(received.payload) == value


@given(st.lists(st.sampled_from(list(KeyScope.values())[1:]), max_size=5))
def test_enum_lists_keep_their_order(numbers: list[int]) -> None:
    names = [KeyScope.Name(number) for number in numbers]
    assert list(filled(CreateApiKeyRequest(), scopes=names).scopes) == numbers


def _rpc(method: str) -> Rpc[Any, Any]:
    rpcs = (*event_methods.RPCS, *learn_methods.RPCS)
    return next(rpc for rpc in rpcs if rpc.method == method)


def test_ids_that_a_caller_leaves_open_are_made_by_the_client() -> None:
    events = [{"session_id": "s"}, NewEvent(session_id="s"), {"session_id": "s", "id": "mine"}]
    request = _rpc("RecordEvents").build({"events": events})
    first, second, third = (event.id for event in request.events)
    assert len({first, second}) == 2
    assert len(first) == len(second) == 26
    assert third == "mine"
    assert _rpc("CreateLesson").build({"title": "t"}).lesson_id
    assert _rpc("StartSession").build({}).session_id


def test_the_caller_s_own_messages_are_left_alone() -> None:
    mine = NewEvent(session_id="s")
    _rpc("RecordEvents").build({"events": [mine]})
    assert mine == NewEvent(session_id="s")


def test_made_ids_sort_by_the_time_at_which_they_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    from mneme._core import ulid

    made = []
    for milliseconds in (0, 1, 31, 32, 1_700_000_000_000):
        monkeypatch.setattr(ulid.time, "time_ns", lambda ms=milliseconds: ms * 1_000_000)
        made.append(ulid.new_ulid())
    assert made == sorted(made)
    assert all(len(name) == 26 for name in made)


def test_a_struct_message_is_taken_as_it_is() -> None:
    struct = Struct()
    struct.update({"a": 1})
    assert filled(NewEvent(), payload=struct).payload == struct
