"""A server that kills itself at a point of its work: `python -m support.cutting POINT`.

A point is what an operation's work does: "keep", "commit", "finish" or a stage of its progress;
before it, or after it with a "+". Or it is "apply": an event or a memory of the id LAST is
committed, and the index is about to be told. The server is gone as by SIGKILL, in the middle of its
work.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mneme_server.corpus.change import CorpusChange


LAST = "the-last"


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
    from mneme_server.corpus.live_index import LiveIndex

    apply = LiveIndex.apply

    def apply_or_go(self: LiveIndex[Any], change: CorpusChange) -> None:
        if point == "apply" and any(document.source_id == LAST for document in change.saved):
            _gone()
        apply(self, change)

    LiveIndex.apply = apply_or_go  # type: ignore[method-assign]
    runpy.run_module("mneme_server", run_name="__main__")


if __name__ == "__main__":
    main()
