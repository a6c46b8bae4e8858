"""How the processor time of every call grows with what is stored and with what it is sent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.context import FULL, Context
from benchmarks.report import Row, at_most
from benchmarks.server import ROOT

if TYPE_CHECKING:
    from support.costs import Costs

_MOST = 1.5
"""The exponent that is allowed; that of n log n is 1.2 between these sizes, and time varies."""
_TIMES = 3
_HOW = (
    "three sizes, each four times the one before; growth that takes less than 20 ms is not judged;"
    " all calls and fields come from the descriptors"
)


def run(context: Context) -> list[Row]:
    """Measure all calls on a server in this process; return those that grow fastest."""
    sys.path.insert(0, str(ROOT / "tests"))
    from mneme_server.edge.grpc.logging import configure_logging
    from support.api import METHODS
    from support.costs import metered
    from support.growing import growing_fields
    from support.growth import with_sent, with_stored
    from support.server import local_server
    from support.world import world_of

    times = _TIMES if context.sizes == FULL else 1
    log = (context.work / "growth.log").open("w")
    configure_logging("error", "console", log)  # Before anything has a logger.
    with log, metered(memory=False) as meter, local_server(context.work / "growth") as server:
        world = world_of(server.keys)
        context.say(f"growth: {len(METHODS)} calls with what is stored")
        stored = with_stored(world, meter)
        sent: dict[str, Sequence[Costs]] = {}
        for rpc in sorted(METHODS):
            for field in growing_fields(METHODS[rpc].input_type):
                sent[f"{rpc} {field.path}"] = with_sent(world, meter, rpc, field, times)
        context.say(f"growth: {len(sent)} fields measured")
    return [*_rows("stored", stored), *_rows("sent", sent)]


def _rows(kind: str, costs: dict[str, Sequence[Costs]]) -> list[Row]:
    """Return a row for all, and one for each that grows faster than what it is of."""
    from support.growth import exponents

    found = {name: exponents(one)["cpu_s"] for name, one in costs.items()}
    faster = sorted((name for name in found if found[name] > 1), key=lambda one: -found[one])
    return [
        _row(f"Processor time with what is {kind}, {len(found)} in all", max(found.values()), []),
        *(_row(f"Of them {name.removeprefix('mneme.v1.')}", found[name], costs[name])
          for name in faster),
    ]  # fmt: skip


def _row(what: str, exponent: float, costs: Sequence[Costs]) -> Row:
    took = ", ".join(f"{one.cpu_s * 1000:.0f}" for one in costs)
    return Row(
        what=what,
        budget=f"exponent ≤ {_MOST}",
        measured=f"{exponent:.2f}" + (f" ({took} ms)" if took else ""),
        verdict=at_most(exponent, _MOST),
        how=_HOW,
        figures={"exponent": exponent},
    )
