"""States and actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mneme.v1 import learning_pb2 as pb

from mneme_server.common.canonical import Json
from mneme_server.edge.grpc.conversions import json_of, struct_of_object


def value_of(message: pb.State | pb.Action, field: str) -> Json:
    """Return a state or an action as JSON; None if it is empty.

    Raises:
        InvalidArgument: its object is too large, or holds what JSON cannot write.
    """
    match message.WhichOneof("value"):
        case "numbers":
            return list(message.numbers.values)
        case "number":
            return message.number
        case "label":
            return message.label
        case "json":
            return json_of(message, "json", field)
        case _:
            return None


def given(holder: object, name: str, field: str = "") -> Json:
    """Return the state or action in a message's field; None if there is none."""
    message = getattr(holder, name)
    return value_of(message, f"{field}{name}") if holder.HasField(name) else None  # type: ignore[attr-defined]


def state(value: Json) -> pb.State:
    """Return the message of a state."""
    if isinstance(value, str):
        return pb.State(label=value)
    if isinstance(value, int | float):
        return pb.State(number=int(value))
    if isinstance(value, Mapping):
        return pb.State(json=struct_of_object(value))
    assert isinstance(value, Sequence)
    return pb.State(numbers=pb.Numbers(values=value))  # type: ignore[arg-type]


def action(value: Json) -> pb.Action:
    """Return the message of an action."""
    if isinstance(value, str):
        return pb.Action(label=value)
    if isinstance(value, int | float):
        return pb.Action(number=int(value))
    if isinstance(value, Mapping):
        return pb.Action(json=struct_of_object(value))
    assert isinstance(value, Sequence)
    return pb.Action(numbers=pb.Numbers(values=value))  # type: ignore[arg-type]
