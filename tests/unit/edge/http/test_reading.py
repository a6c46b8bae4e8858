"""Parameters and objects, as REST writes them, become messages."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.http.reading import Reader, read_object
from mneme_server.edge.http.rest_mapping import FLAT, RPCS
from mneme_server.edge.http.writing import writer_of
from support.descriptors import services

RECALL = RPCS["mneme.v1.RecallService.Recall"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


def recall(values: dict[str, Any], *, texts: bool = True) -> recall_pb.RecallRequest:
    request = recall_pb.RecallRequest()
    Reader(request.DESCRIPTOR, RECALL).read(values, request, texts=texts)
    return request


def test_a_query_is_read_by_its_fields_types() -> None:
    read = recall(
        {
            "query": ["a"], "scope": ["events", "lessons"], "minScore": ["0.5"], "limit": ["3"],
            "from": ["2026-01-01T00:00:00Z"], "explain": ["TRUE"], "mode": ["dense"],
            "minSeverity": ["error"], "weights": ['{"recency": 2}'],
        }
    )  # fmt: skip
    assert list(read.scopes) == ["event", "lesson"]
    assert (read.min_score, read.limit, read.explain) == (0.5, 3, True)
    assert read.start_time.ToJsonString() == "2026-01-01T00:00:00Z"
    assert read.mode == recall_pb.RECALL_MODE_DENSE
    assert read.weights.recency == 2


def test_all_scopes_are_none_at_all() -> None:
    assert list(recall({"scope": ["all"]}).scopes) == []
    assert list(recall({"scope": "all"}, texts=False).scopes) == []


def test_null_leaves_a_field_unset() -> None:
    read = recall({"query": "a", "minConfidence": None, "tags": None}, texts=False)
    assert read == recall_pb.RecallRequest(query="a")


def test_whole_numbers_may_be_texts_where_64_bits_are_more_than_a_double_holds() -> None:
    episode = episode_pb.CreateEpisodeRequest()
    read_object(episode, {"task": "t", "tokensUsed": "9007199254740993", "latencyMs": 5.0})
    assert (episode.tokens_used, episode.latency_ms) == (9007199254740993, 5)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (2**31, Reason.OUT_OF_RANGE), ("1e3", Reason.INVALID_TYPE), (True, Reason.INVALID_TYPE),
        (1.5, Reason.INVALID_TYPE), ("9" * 5000, Reason.INVALID_TYPE), ("-", Reason.INVALID_TYPE),
        ([], Reason.INVALID_TYPE), ("²", Reason.INVALID_TYPE), ("--5", Reason.INVALID_TYPE),
    ],
)  # fmt: skip
def test_what_is_no_whole_number_is_refused(value: Any, reason: Reason) -> None:
    with pytest.raises(InvalidArgument) as refused:
        recall({"limit": value}, texts=False)
    assert (refused.value.reason, refused.value.field) == (reason, "limit")


def test_a_field_in_a_list_of_objects_is_named_by_its_place() -> None:
    sleep = context_pb.SleepRequest()
    with pytest.raises(InvalidArgument, match=r"openTodos\[1\]\.text") as refused:
        read_object(sleep, {"openTodos": [{}, {"text": 5}]})
    assert refused.value.field == "openTodos[1].text"


CREATE = Reader(learn_pb.CreateLessonRequest.DESCRIPTOR)
LIST = Reader(learn_pb.ListLessonsRequest.DESCRIPTOR)


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(sorted(CREATE.names)), JSON, max_size=3))
def test_whatever_json_comes_is_read_or_refused(values: dict[str, Any]) -> None:
    request = learn_pb.CreateLessonRequest()
    with suppress(InvalidArgument):
        CREATE.read(values, request, texts=False)
    request.SerializeToString()


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(sorted(LIST.names)) | st.text(max_size=5),
        st.lists(st.text(max_size=5), min_size=1, max_size=3),
        max_size=3,
    )
)
def test_whatever_query_comes_is_read_or_refused(values: dict[str, Any]) -> None:
    request = learn_pb.ListLessonsRequest()
    with suppress(InvalidArgument):
        LIST.read(values, request, texts=True)
    request.SerializeToString()


def every_message() -> list[Any]:
    """Every message that an answer may hold."""
    found: dict[str, Any] = {}

    def add(message: Any) -> None:
        if message.full_name.startswith("mneme.") and message.full_name not in found:
            found[message.full_name] = message
            for field in message.fields:
                if field.message_type is not None:
                    add(field.message_type)

    for service in services():
        for method in service.methods:
            add(method.output_type)
    return list(found.values())


def test_nothing_of_what_was_found_hides_a_field_of_what_found_it() -> None:
    messages = {message.full_name: message for message in every_message()}
    for name, inner in FLAT.items():
        outer = {one.name for one in messages[name].fields} - {inner}
        held = messages[name].fields_by_name[inner].message_type
        assert not outer & {one.name for one in held.fields}, name


def test_every_message_of_an_answer_is_written_with_all_its_fields() -> None:
    for message in every_message():
        if message.GetOptions().map_entry:
            continue
        empty: Message = GetMessageClass(message)()
        written = writer_of(message)(empty)
        assert isinstance(written, dict)
        if message.full_name not in FLAT:
            assert written or not message.fields
