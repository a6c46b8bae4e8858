"""What a caller may send is worked off in time proportional to its size.

Each list, text and object of each request is made 32 times as long. Were the work on it quadratic,
it would take a thousand times as long. 96 times is allowed, and the best of several tries counts,
in processor time of this thread, so that a busy machine does not fail the test.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from mneme_server.common import errors
from mneme_server.common.identity import ALL_SCOPES, Caller
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.validation import check_rules
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.model import NewEvent
from mneme_server.features.events.normalize import normalize
from unit.edge.grpc.test_servicers import METHODS, UNARY, example, failing

TIMES = 32
ALLOWED = 96
ITEMS, LEAVES, CHARACTERS, SHAPED = 31, 600, 500, 600
TRIES = 6
UNNOTICED_S = 0.001
"""So little is noise, whatever it is a multiple of."""
DEPTH = 3

Path = tuple[FieldDescriptor, ...]


def growing(descriptor: Descriptor, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of the lists, texts and objects of a message."""
    for field in descriptor.fields:
        here = (*path, field)
        inner = field.message_type
        if field.is_repeated or field.type == FieldDescriptor.TYPE_STRING or is_object(field):
            yield here
        if inner is not None and inner.full_name.startswith("mneme.") and len(here) < DEPTH:
            yield from growing(inner, here)


def is_object(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.full_name.endswith(".Struct")


def grow(message: Any, path: Path, times: int) -> None:
    """Make what the path leads to as many times as long as it is to begin with."""
    field, *rest = path
    if rest:
        held = getattr(message, field.name)
        inner = (held[0] if held else held.add()) if field.is_repeated else held
        grow(inner, tuple(rest), times)
    elif is_object(field):
        getattr(message, field.name).update({"list": [""] * (LEAVES * times)})
    elif field.type == FieldDescriptor.TYPE_STRING and not field.is_repeated:
        setattr(message, field.name, "a b-1 " * (CHARACTERS * times // 6))
    elif field.type == FieldDescriptor.TYPE_STRING:
        getattr(message, field.name).extend(f"item {n}" for n in range(ITEMS * times))
    elif field.message_type is None:
        getattr(message, field.name).extend([1] * (ITEMS * times))
    elif not field.message_type.GetOptions().map_entry:
        held = getattr(message, field.name)
        one = held[0] if held else held.add()
        held.extend([one] * (ITEMS * times))


CASES = [
    pytest.param(method, path, id=f"{method.name}.{'.'.join(field.name for field in path)}")
    for method in UNARY
    for path in growing(method.input_type)
]


@pytest.mark.parametrize(("method", "path"), CASES)
def test_a_longer_field_costs_in_proportion(method: MethodDescriptor, path: Path) -> None:
    service = method.containing_service.name
    kind = GetMessageClass(method.input_type)
    known = METHODS[f"/mneme.v1.{service}/{method.name}"]
    serve = getattr(failing(method, errors.NotFound("there is none")), method.name)

    def request_of(times: int) -> bytes:
        message = example(method)
        grow(message, path, times)
        raw: bytes = message.SerializeToString()
        return raw

    def read(raw: bytes) -> None:
        call, message = Call(known, Unmade()), kind.FromString(raw)
        call.caller = Caller("acme", "key-1", frozenset(ALL_SCOPES), 0)
        with contextlib.suppress(errors.MnemeError):  # Refused, or by the use case, which fails.
            check_rules(call, message)
            serve(message, call)

    small, large = request_of(1), request_of(TIMES)
    assert grows_in_proportion(lambda: read(small), lambda: read(large))


class Unmade:
    """The edge of a call that nobody made."""

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def peer(self) -> str:
        return "nowhere"

    def is_active(self) -> bool:
        return True

    def time_remaining(self) -> None:
        return None

    def cancel(self) -> bool:
        return False

    def add_callback(self, _callback: Callable[[], None]) -> bool:
        return True


SHAPES: dict[str, Callable[[int], Any]] = {
    "many empty texts": lambda n: [""] * n,
    "many words": lambda n: ["word"] * n,
    "one long text": lambda n: "word " * n,
    "many keys": lambda n: {f"key {number}": number for number in range(n)},
    "many empty objects": lambda n: [{}] * n,
    "many lists of a few": lambda n: [["", "a", 1.5, None]] * (n // 4),
    "many escapes": lambda n: '"\\\n\u2028' * n,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("place", ["payload", "metadata"])
def test_a_larger_event_costs_in_proportion(shape: str, place: str) -> None:
    def cost_of(count: int) -> Callable[[], object]:
        given = {place: {"content": SHAPES[shape](count)}}
        new = NewEvent(session_id="s", event_type=EventType.TOOL_RESPONSE, **given)
        return lambda: normalize(new, event_id="e", now_us=1)

    assert grows_in_proportion(cost_of(SHAPED), cost_of(SHAPED * TIMES))


def grows_in_proportion(small: Callable[[], object], large: Callable[[], object]) -> bool:
    least_small = least_large = float("inf")
    for _ in range(TRIES):
        least_small = min(least_small, seconds_of(small))
        least_large = min(least_large, seconds_of(large))
        if least_large <= ALLOWED * least_small + UNNOTICED_S:
            return True
    return False


def seconds_of(work: Callable[[], object]) -> float:
    before = time.thread_time()
    work()
    return time.thread_time() - before
