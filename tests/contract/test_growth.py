"""No call costs more than n log n of what is stored, or of what it is sent.

All RPCs are measured, and all their fields that can hold much: both come from the descriptors, what
else a request holds from `scripts/api_examples.json`. Only what is declared here with a
reason may grow faster. Processor time is for `make bench`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest
from support.api import METHODS
from support.costs import Costs, Meter, exponent, metered
from support.growing import Growing, growing_fields
from support.growth import exponents, with_sent, with_stored
from support.server import local_server
from support.world import World, world_of

pytestmark = [pytest.mark.slow, pytest.mark.on_sqlite("statements are counted by its driver")]

COUNTED = ("statements", "instructions", "bytes")
MOST = 1.3
"""The exponent of n log n between the sizes that are measured, with something for chance."""
AGAIN = 3
"""What grows too fast is measured so often: other threads allocate, too."""
DECLARED: Mapping[str, str] = {}
"""What may grow faster, and why: `RPC` with what is stored, `RPC field` with what it is sent."""

FIELDS = [
    pytest.param(rpc, field, id=f"{rpc.rpartition('.')[2]}-{field.path}")
    for rpc in sorted(METHODS)
    for field in growing_fields(METHODS[rpc].input_type)
]


@pytest.fixture(scope="module")
def metered_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Meter]]:
    """A world of a server whose databases are listened to."""
    folder = tmp_path_factory.mktemp("growth")
    with metered() as meter, local_server(folder / "data") as server:
        yield world_of(server.keys), meter


@pytest.fixture(scope="module")
def stored(metered_world: tuple[World, Meter]) -> Mapping[str, Sequence[Costs]]:
    """What each call costs while there is more and more of everything."""
    return with_stored(*metered_world)


@pytest.fixture(scope="module")
def filled_world(
    metered_world: tuple[World, Meter], stored: Mapping[str, Sequence[Costs]]
) -> tuple[World, Meter]:
    """The world when there is most in it."""
    assert stored
    return metered_world


@pytest.mark.parametrize(
    ("cost", "power"),
    [
        (lambda _: 5.0, 0.0),
        (lambda n: 1e6 + n, 1.0),
        (lambda n: n * math.log(n), 1.2),
        (lambda n: 1e6 + n**2, 2.0),
        (lambda n: n**3, 3.0),
    ],
)
def test_the_exponent_is_that_of_the_growth_whatever_a_call_costs_beside(
    cost: Callable[[float], float], power: float
) -> None:
    found = exponent([cost(n) for n in (1_000, 4_000, 16_000)], noticed=10.0)
    assert found == pytest.approx(power, abs=0.1)
    assert (found > MOST) == (power >= 2)


def test_what_may_grow_faster_is_a_call_or_a_field_that_there_is() -> None:
    fields = {f"{rpc} {field.path}" for rpc, field in (one.values for one in FIELDS)}  # type: ignore[misc]
    assert DECLARED.keys() <= METHODS.keys() | fields


@pytest.mark.parametrize("rpc", sorted(METHODS))
def test_no_call_costs_more_than_n_log_n_of_what_is_stored(
    rpc: str, stored: Mapping[str, Sequence[Costs]]
) -> None:
    too_fast = _too_fast(stored[rpc])
    assert not too_fast or rpc in DECLARED, (too_fast, stored[rpc])


@pytest.mark.parametrize(("rpc", "field"), FIELDS)
def test_no_call_costs_more_than_n_log_n_of_what_it_is_sent(
    rpc: str, field: Growing, filled_world: tuple[World, Meter]
) -> None:
    costs = with_sent(*filled_world, rpc, field)
    if _too_fast(costs):
        costs = with_sent(*filled_world, rpc, field, AGAIN)
    too_fast = _too_fast(costs)
    assert not too_fast or f"{rpc} {field.path}" in DECLARED, (too_fast, costs)


def _too_fast(costs: Sequence[Costs]) -> Mapping[str, float]:
    return {what: one for what, one in exponents(costs).items() if what in COUNTED and one > MOST}
