"""Another tenant's id is answered as one that nobody has, by RPCs that have no check of their own.

The requests are the examples: those that name what is there, of RPCs that say that it may not be.
A new RPC of that kind needs nothing here; what it names needs an RPC that gets it, and to be among
what the other tenant has.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.rpc import code_pb2
from mneme.v1 import options_pb2
from support.api import METHODS
from support.examples import full_name, makers, requests_of, short_name, texts_in
from support.isolation import ALL_SCOPES, OTHER, Check, Checks, World, answered_as_absent, not_found

isolates = Checks()

_MADE = makers()
_ELSEWHERE = {
    rpc
    for file in Path(__file__).parent.glob("test_*.py")
    if file.name not in (Path(__file__).name, "test_coverage.py")
    for rpc in run_path(str(file))["isolates"]
}


def _named(request: Message) -> tuple[Message, FieldDescriptor] | None:
    """Return where a request first names what was made before; of tenants, others see to it."""
    places = (
        (holder, field)
        for holder, field in texts_in(request)
        if field.name != "tenant_id" and getattr(holder, field.name) in _MADE
    )
    return next(places, None)


def _asking(rpc: str) -> Callable[[str], Message]:
    """Return an RPC's example as it asks for something."""

    def asking(asked: str) -> Message:
        request = requests_of(short_name(rpc))[0]
        holder, field = _named(request) or (request, None)
        assert field is not None, f"the example of {rpc} names nothing"
        setattr(holder, field.name, asked)
        return request

    return asking


def _may_not_be_there(rpc: str) -> bool:
    said: Any = METHODS[rpc].GetOptions().Extensions[options_pb2.errors]  # type: ignore[index]
    return any(error.code == code_pb2.NOT_FOUND for error in said)


def _reader_of(rpc: str) -> str:
    """Return the RPC of the same service that reads what the example of this one names."""
    named = _named(requests_of(short_name(rpc))[0])
    assert named is not None
    holder, field = named
    name = field.name
    if name == "id":  # Of what an update holds: of a Lesson, where GetLesson has `lesson_id`.
        name = f"{holder.DESCRIPTOR.name.lower()}_id"
    readers = [
        full_name(f"{method.containing_service.name}.{method.name}")
        for method in METHODS[rpc].containing_service.methods
        if method.name.startswith("Get")
        and any(name.endswith(one.name) for one in method.input_type.fields)
    ]
    assert readers, f"{rpc}: its service has no Get by {name}; check it in a file of this folder"
    return readers[0]


def _check(rpc: str) -> Check:
    def check(world: World) -> None:
        theirs = world.server.keys.key(world.theirs.tenant_id, *ALL_SCOPES)
        reader = _reader_of(rpc)
        before = theirs.call(reader, _asking(reader)(OTHER))
        assert not_found(answered_as_absent(world.administrator, rpc, _asking(rpc)))
        assert theirs.call(reader, _asking(reader)(OTHER)) == before

    return check


for _rpc in METHODS:
    if (
        _rpc not in _ELSEWHERE
        and _may_not_be_there(_rpc)
        and _named(requests_of(short_name(_rpc))[0])
    ):
        isolates(_rpc)(_check(_rpc))


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
