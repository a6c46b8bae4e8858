"""A server whose clock is off and whose words get lost.

    python -m support.adrift CLOCK LOST serve

Its wall clock is CLOCK seconds ahead of the machine's. Of each hundred times that it would tell the
other servers of commits, LOST are lost.
"""

from __future__ import annotations

import random
import runpy
import sys
import time


def _set_clock(seconds: float) -> None:
    # Mneme's own. What gRPC reckons deadlines by is set with the machine's, in all its parts.
    said = time.time_ns
    time.time_ns = lambda: said() + round(seconds * 1e9)


def _lose(percent: int) -> None:
    from mneme_server.engine.store.postgres.node import PostgresNode

    tell, rng = PostgresNode.tell, random.Random(percent)

    def lost(self: PostgresNode) -> None:
        if rng.randrange(100) >= percent:
            tell(self)

    PostgresNode.tell = lost  # type: ignore[method-assign]


if __name__ == "__main__":
    clock, lost = float(sys.argv.pop(1)), int(sys.argv.pop(1))
    _set_clock(clock)
    _lose(lost)
    runpy.run_module("mneme_server", run_name="__main__", alter_sys=True)
