"""Names in requests get one of Unicode's forms, what is said in them keeps its own."""

from __future__ import annotations

import unicodedata

from mneme.v1 import event_service_pb2, learning_import_pb2, memory_service_pb2
from mneme_server.edge.grpc import validation
from mneme_server.edge.grpc.validation import compose_names

JOSE = "José"
NFD = unicodedata.normalize("NFD", JOSE)


def test_ids_and_tags_are_composed_wherever_they_are_and_texts_are_not() -> None:
    request = event_service_pb2.RecordEventsRequest()
    event = request.events.add(id=NFD, session_id=NFD, name=NFD, text=NFD, error=NFD)
    event.payload.update({NFD: NFD})
    compose_names(request)
    assert (event.id, event.session_id, event.name) == (JOSE, JOSE, JOSE)
    assert (event.text, event.error, dict(event.payload)) == (NFD, NFD, {NFD: NFD})


def test_filters_are_composed_but_not_where_they_lead_into_what_was_given() -> None:
    request = memory_service_pb2.ListMemoriesRequest()
    request.filter.user_id = NFD
    request.filter.any_tags.extend(["plain", NFD])
    request.filter.where.add(key=NFD, text=NFD)
    compose_names(request)
    assert (request.filter.user_id, list(request.filter.any_tags)) == (JOSE, ["plain", JOSE])
    assert (request.filter.where[0].key, request.filter.where[0].text) == (NFD, NFD)
    assert not request.filter.HasField("agent_id")


def test_the_fields_that_lead_into_texts_are_there() -> None:
    files = (learning_import_pb2, memory_service_pb2)
    messages = [one for file in files for one in file.DESCRIPTOR.message_types_by_name.values()]
    fields = {field.full_name for message in messages for field in message.fields}
    assert fields >= validation._LEADING_INTO_TEXTS
