"""What requests leave out is put in as the protos state it; updates change what they may."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct
from mneme.v1 import common_pb2, event_service_pb2
from mneme.v1 import learn_service_pb2 as learn
from mneme.v1 import recall_service_pb2 as recall
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.schema_options import default_of, fill_defaults, named_fields
from mneme_server.edge.grpc.validation import validate
from mneme_server.features.recall.messages import recall_query
from mneme_server.features.recall.ranking import RankingWeights
from unit.edge.grpc.edge import all_methods


def _fields() -> list[FieldDescriptor]:
    """Every field that a request can hold and that has a default."""
    found: dict[str, FieldDescriptor] = {}
    waiting: list[Descriptor] = [method.input_type for method in all_methods()]
    seen: set[str] = set()
    while waiting:
        message = waiting.pop()
        if message.full_name in seen:
            continue
        seen.add(message.full_name)
        for field in message.fields:
            if default_of(field) is not None:
                found[field.full_name] = field
            if field.message_type is not None:
                waiting.append(field.message_type)
    return [found[name] for name in sorted(found)]


def _wrong_with(message: Message) -> str:
    try:
        validate(message)
    except InvalidArgument as error:
        return error.message
    return ""


@pytest.mark.parametrize("field", _fields(), ids=lambda field: field.full_name)
def test_a_default_is_of_its_fields_type_and_keeps_its_rules(field: FieldDescriptor) -> None:
    message = GetMessageClass(field.containing_type)()
    before = _wrong_with(message)
    setattr(message, field.name, default_of(field))
    assert _wrong_with(message) == before


@pytest.mark.parametrize(
    "field",
    [
        pytest.param(field, id=method.name)
        for method in all_methods()
        if (field := method.input_type.fields_by_name.get("page_size"))
    ],
)
def test_every_page_says_how_long_it_is_by_default(field: FieldDescriptor) -> None:
    assert default_of(field)


def test_what_is_left_out_is_put_in_and_what_is_given_stays() -> None:
    request = recall.RecallRequest(query="q", mode="RECALL_MODE_DENSE")
    fill_defaults(request)
    assert (request.limit, request.mode) == (10, recall.RECALL_MODE_DENSE)
    assert not request.HasField("weights")
    request = recall.RecallRequest(query="q", limit=3)
    fill_defaults(request)
    assert (request.limit, request.mode) == (3, recall.RECALL_MODE_HYBRID)


def test_zero_stays_zero_where_unset_can_be_told_from_it() -> None:
    request = recall.RecallRequest(weights=recall.RankingWeights(recency=0.0))
    fill_defaults(request)
    assert (request.weights.recency, request.weights.importance) == (0.0, 0.1)


def test_messages_inside_of_lists_are_filled_too() -> None:
    request = learn.ImportLessonsRequest(
        lessons=[learn.Lesson(category="a"), learn.Lesson(importance="IMPORTANCE_HIGH")]
    )
    fill_defaults(request)
    assert [lesson.category for lesson in request.lessons] == ["a", "general"]
    assert [lesson.importance for lesson in request.lessons] == [
        common_pb2.IMPORTANCE_NORMAL,
        common_pb2.IMPORTANCE_HIGH,
    ]


def test_free_json_and_filters_are_left_alone() -> None:
    struct = Struct()
    struct.update({"limit": 0, "inner": {"category": ""}})
    event = event_service_pb2.NewEvent(session_id="s", payload=struct)
    before = event.SerializeToString()
    fill_defaults(event)
    assert event.SerializeToString() == before
    listed = learn.ListLessonsRequest(filter=learn.LessonFilter(project="p"))
    fill_defaults(listed)
    assert listed.filter == learn.LessonFilter(project="p")


def test_the_weights_that_the_api_states_are_those_that_rank() -> None:
    request = recall.RecallRequest(query="q", weights=recall.RankingWeights())
    fill_defaults(request)
    assert request.weights.HasField("repeated")
    assert recall_query(request, {}).weights == RankingWeights()


def test_a_mask_may_name_what_the_api_lets_it_change() -> None:
    request = learn.UpdateLessonRequest()
    request.update_mask.paths.extend(["title", "tags"])
    assert list(named_fields(request)) == ["title", "tags"]


@pytest.mark.parametrize(
    ("paths", "reason", "said"),
    [
        ([], Reason.MISSING_REQUIRED_FIELD, "update_mask names no field to change"),
        (
            ["title", "id"],
            Reason.INVALID_PARAMETER,
            "names 'id'; it can only name title, content, cat",
        ),
        (
            ["context.topic"],
            Reason.INVALID_PARAMETER,
            "names 'context.topic'; it can only name title",
        ),
    ],
)
def test_a_mask_that_names_nothing_or_something_else_is_refused(
    paths: list[str], reason: Reason, said: str
) -> None:
    request = learn.UpdateLessonRequest()
    request.update_mask.paths.extend(paths)
    with pytest.raises(InvalidArgument, match=said) as refused:
        named_fields(request)
    assert (refused.value.reason, refused.value.field) == (reason, "update_mask")
