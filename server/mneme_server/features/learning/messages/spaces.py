"""Spaces, states and actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mneme.v1 import learning_pb2 as pb

from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.conversions import json_of, struct_of_object
from mneme_server.features.learning.spaces import (
    Box,
    Dict,
    Discrete,
    MultiDiscrete,
    OpenLabels,
    OpenObject,
    Space,
)


def space(message: pb.Space | pb.NamedSpace, field: str, default: Space | None = None) -> Space:
    """Return a space.

    Args:
        message: the message.
        field: its path in the request.
        default: what an empty one is.

    Raises:
        InvalidArgument: it is empty, or a key of a dict is there twice.
    """
    found = default
    match message.WhichOneof("space"):
        case "discrete":
            labels = tuple(message.discrete.labels)
            found = Discrete(message.discrete.n or len(labels), labels)
        case "multi_discrete":
            found = MultiDiscrete(tuple(message.multi_discrete.sizes))
        case "box":
            found = Box(tuple(message.box.low), tuple(message.box.high))
        case "open_labels":
            found = OpenLabels()
        case "open_object":
            found = OpenObject()
        case "dict":
            assert isinstance(message, pb.Space)
            found = _dict(message.dict, f"{field}.dict")
    if found is None:
        raise InvalidArgument(
            f"{field}: a kind of space is required",
            reason=Reason.MISSING_REQUIRED_FIELD,
            field=field,
        )
    return found


def _dict(message: pb.DictSpace, field: str) -> Dict:
    spaces: dict[str, Space] = {}
    for place, named in enumerate(message.spaces):
        path = f"{field}.spaces[{place}]"
        if named.key in spaces:
            raise InvalidArgument(f"{path}.key: {named.key!r} is there twice", field=f"{path}.key")
        spaces[named.key] = space(named, path)
    return Dict(spaces)


def space_message(given: Space) -> pb.Space:
    """Return the message of a space."""
    return pb.Space(**_kind(given))


def _kind(given: Space) -> Mapping[str, Any]:
    match given:
        case Discrete():
            return {"discrete": pb.DiscreteSpace(n=given.size, labels=given.labels)}
        case MultiDiscrete():
            return {"multi_discrete": pb.MultiDiscreteSpace(sizes=given.sizes)}
        case Box():
            return {"box": pb.BoxSpace(low=given.low, high=given.high)}
        case OpenLabels():
            return {"open_labels": pb.OpenLabelsSpace()}
        case OpenObject():
            return {"open_object": pb.OpenObjectSpace()}
        case Dict():
            inner = [pb.NamedSpace(key=key, **_kind(one)) for key, one in given.spaces.items()]
            return {"dict": pb.DictSpace(spaces=inner)}


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
