"""A server that kills itself at a point of an operation: `python -m support.cutting POINT`.

A point is what the operation's work does: "keep", "commit", "finish" or a stage of its progress;
before it, or after it with a "+". The server is gone as by SIGKILL, in the middle of its work.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Callable
from typing import Any


def _gone() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _cut(point: str, when: str, do: Callable[..., Any]) -> Callable[..., Any]:
    def cut(*arguments: Any, **named: Any) -> Any:
        name = when if when != "report" else arguments[1]
        if name == point:
            _gone()
        done = do(*arguments, **named)
        if f"{name}+" == point:
            _gone()
        return done

    return cut


def main() -> None:
    """Serve with what is cut."""
    point = sys.argv.pop(1)
    from mneme_server.operations import running

    task, run = running._Task, running.Run
    for owner, method, name in (
        (task, "keep", "keep"),
        (task, "commit", "commit"),
        (task, "report", "report"),
        (run, "_finish", "finish"),
    ):
        setattr(owner, method, _cut(point, name, getattr(owner, method)))
    runpy.run_module("mneme_server", run_name="__main__")


if __name__ == "__main__":
    main()
