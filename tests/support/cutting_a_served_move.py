"""A server that is gone, as by SIGKILL, at a point of a move of a tenant that it serves:
`python -m support.cutting_a_served_move POINT serve`.

A point is what a move says that it does, e.g. "comparing", or "put": the catalog is about to say
where the tenant lives; "put+", it has.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from typing import Any


def _gone() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _Cut:
    """A step that ends the process where it reports the point."""

    def __init__(self, step: Any, point: str) -> None:
        self._step, self._point = step, point

    def __getattr__(self, name: str) -> Any:
        return getattr(self._step, name)

    def report(self, stage: str, *counts: int) -> None:
        if stage == self._point:
            _gone()
        self._step.report(stage, *counts)


def main() -> None:
    """Run the command line with the cut."""
    point = sys.argv.pop(1)
    from mneme_server.engine.cluster.moves import LiveMove
    from mneme_server.features.admin.store.catalog import SqlPlacements

    move, put = LiveMove.run, SqlPlacements.put

    def moved(self: LiveMove, tenant_id: str, to: str, step: Any, commit: Any) -> Any:
        return move(self, tenant_id, to, _Cut(step, point), commit)

    def said(self: SqlPlacements, tenant_id: str, placement: Any) -> None:
        switches = placement.other is not None and placement.place != ""
        if switches and point == "put":
            _gone()
        put(self, tenant_id, placement)
        if switches and point == "put+":
            _gone()

    LiveMove.run = moved  # type: ignore[method-assign]
    SqlPlacements.put = said  # type: ignore[method-assign]
    runpy.run_module("mneme_server", run_name="__main__")


if __name__ == "__main__":
    main()
