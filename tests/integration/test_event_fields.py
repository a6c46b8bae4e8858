"""No field of an event is lost on its way, whichever fields events have."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from mneme.v1 import event_service_pb2 as pb
from support.api import Api, grpc, refused
from support.making import list_events, record, verify

FIELDS = {field.name: field for field in pb.NewEvent.DESCRIPTOR.fields}


def value(field: FieldDescriptor, number: int) -> Any:
    """A value that no other field has, and another one for another number."""
    if field.message_type is not None:
        return {
            "google.protobuf.Timestamp": {"seconds": 1_700_000_000 + number},
            "google.protobuf.Duration": {"seconds": 60 + number},
            "google.protobuf.Struct": {f"of {field.name}": number},
        }[field.message_type.full_name]
    if field.enum_type is not None:
        return field.enum_type.values[1 + number].number
    return {
        FieldDescriptor.CPPTYPE_STRING: f"{field.name}-{number}",
        FieldDescriptor.CPPTYPE_BOOL: number % 2 == 1,
        FieldDescriptor.CPPTYPE_DOUBLE: field.number + number / 4,
        FieldDescriptor.CPPTYPE_INT64: 1_000 * field.number + number,
    }[field.cpp_type]


def full() -> pb.NewEvent:
    """An event of which every field has a value of its own."""
    return pb.NewEvent(**{name: value(field, 1) for name, field in FIELDS.items()})


def test_every_field_comes_back_as_it_was_given(api: Api) -> None:
    given = full()
    record(api, given)
    (found,) = list_events(api)
    assert {name: getattr(found, name) for name in FIELDS} == {
        name: getattr(given, name) for name in FIELDS
    }
    assert verify(api).valid


@pytest.mark.parametrize("name", sorted(FIELDS.keys() - {"id"}))
def test_an_event_that_comes_again_with_another_value_in_a_field_is_refused(
    name: str, api: Api
) -> None:
    record(api, full())
    (again,) = record(api, full())
    assert again.duplicate
    changed = pb.NewEvent(
        **{known: value(field, 1 + (known == name)) for known, field in FIELDS.items()}
    )
    with refused() as failure:
        record(api, changed)
    assert failure.code == grpc.StatusCode.ALREADY_EXISTS
    assert f"content ({name});" in failure.message
