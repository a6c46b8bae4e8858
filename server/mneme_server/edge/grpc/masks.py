"""Which fields an update names, held against those that its schema lets it change."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message
from mneme.v1 import options_pb2

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.extensions import extension


def named_fields(request: Message) -> Sequence[str]:
    """Return the fields that the `update_mask` of a request names, each of which may be changed.

    Raises:
        InvalidArgument: the mask is empty or names something that cannot be changed.
    """
    mask = request.DESCRIPTOR.fields_by_name["update_mask"]
    changeable: Sequence[str] = extension(mask, options_pb2.changeable).paths
    paths: Sequence[str] = getattr(request, "update_mask").paths  # noqa: B009
    if not paths:
        raise InvalidArgument(
            "update_mask names no field to change",
            reason=Reason.MISSING_REQUIRED_FIELD,
            field="update_mask",
        )
    for path in paths:
        if path not in changeable:
            raise InvalidArgument(
                f"update_mask names {path!r}; it can only name {', '.join(changeable)}",
                field="update_mask",
            )
    return paths
