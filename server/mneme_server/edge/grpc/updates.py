"""Updates: what a request changes of a thing, of the fields that its mask names."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.records import MessageReader, named_only
from mneme_server.edge.grpc.schema_options import named_fields
from mneme_server.edge.grpc.validation import validate


def changes_of(
    request: Message, part: str, read: MessageReader[Any, Any], **valid: Any
) -> dict[str, Any]:
    """Return the new values of the fields that the mask names, by the names of the record.

    Args:
        request: has an `update_mask`, and in the field `part` the thing with its id and etag.
        part: the name of that field.
        read: makes the thing's record of its message.
        valid: values that pass for fields of the thing that must not be empty, and are not named.

    Raises:
        InvalidArgument: the thing has no id, the mask names no field or one that cannot be changed,
            or a value is wrong.
    """
    thing = getattr(request, part)
    if not thing.id:
        raise InvalidArgument(
            f"{part}.id is required", reason=Reason.MISSING_REQUIRED_FIELD, field=f"{part}.id"
        )
    named = named_fields(request)
    given = named_only(thing, [*named, "id", "etag"], **valid)
    validate(given, prefix=part)
    return read.changes(given, named, part)
