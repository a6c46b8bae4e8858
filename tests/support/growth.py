"""How what calls cost grows with what is stored and with what they are sent, of every RPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import grpc
from google.protobuf.message import Message

from support.api import METHODS
from support.costs import NOTICED, STEP, Costs, Meter, exponent
from support.filling import fill
from support.growing import Growing, sizes
from support.valid_requests import valid
from support.world import World

FILLED = (8, 32, 128)
"""How much there is of everything when what is stored is measured."""
_LAST = ("Restore", "MoveTenant", "Reindex")
"""What is measured after the others: it is in their way."""


def with_stored(world: World, meter: Meter) -> Mapping[str, Sequence[Costs]]:
    """Return what each call costs while there is more and more of everything: at three sizes."""
    found: dict[str, list[Costs]] = {rpc: [] for rpc in METHODS}
    there = 0
    for size in FILLED:
        fill(world, there, size)
        there = size
        for rpc in sorted(METHODS, key=lambda rpc: rpc.endswith(_LAST)):
            found[rpc].append(_cheapest(meter, world, rpc, [valid(rpc, world) for _ in range(2)]))
    return found


def with_sent(
    world: World, meter: Meter, rpc: str, field: Growing, times: int = 1
) -> Sequence[Costs]:
    """Return what a call costs while a field of it holds more and more: at three sizes."""
    return [
        _cheapest(meter, world, rpc, [_grown(rpc, field, size, world) for _ in range(times)])
        for size in sizes(field.most, STEP)
    ]


def exponents(costs: Sequence[Costs]) -> Mapping[str, float]:
    """Return the exponents of each that is counted: what grows with n has 1."""
    return {
        what: exponent([getattr(one, what) for one in costs], getattr(NOTICED, what))
        for what in Costs.__slots__
    }


def _cheapest(meter: Meter, world: World, rpc: str, requests: Sequence[Message]) -> Costs:
    """Return what the cheapest of some requests costs, answered or refused."""
    found: Costs | None = None
    for request in requests:
        costs = meter.of(lambda request=request: _called(world, rpc, request))  # type: ignore[misc]
        found = costs if found is None else found.at_most(costs)
    assert found is not None
    return found


def _called(world: World, rpc: str, request: Message) -> None:
    try:
        world.api.call(rpc, request)
    except grpc.RpcError as error:
        if error.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL):
            raise


def _grown(rpc: str, field: Growing, size: int, world: World) -> Message:
    request = valid(rpc, world)
    field.grow(request, size)
    return request
