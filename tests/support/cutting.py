"""A server that kills itself at a point of its work: `python -m support.cutting POINT`.

A point is what an operation's work does: "keep", "commit", "finish" or a stage of its progress;
before it, or after it with a "+". Of forgetting it is "note", which says in the tenant's database
what was forgotten, before that is committed, or "scrub", which rewrites that database. Of the
deletion of a tenant it is "remove", which removes what the tenant has. Or it is
of an event or a memory of the id LAST: "leaf", its rows are written, and its leaf in the log not
yet; "leaf+", that too, and nothing is committed; "apply", it is committed, and the index is about
to be told. Or it is the name of an RPC of edges, experiments or patterns, with a "+": its work is
committed, and nobody was answered; "row CreateEdge+": its row is written and not committed.
So it is of EndLearningSession, whose row is the model; "copy EndLearningSession" is before that is
copied to a file. The server is gone as by SIGKILL, in the middle of its work.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mneme_server.engine.corpus.cache import CorpusChange


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


def _cut_at_last(point: str, name: str, do: Callable[..., Any]) -> Callable[..., Any]:
    def cut(self: object, change: CorpusChange, *others: Any) -> None:
        if not any(document.source_id == LAST for document in change.saved):
            do(self, change, *others)
        else:
            _cut(point, name, do)(self, change, *others)

    return cut


def _cut_calls(point: str) -> None:
    """Cut the calls of edges, experiments and patterns, what ends a learning session, and the rows
    that they write."""
    from mneme_server.features.causal.service import CausalServicer
    from mneme_server.features.causal.store.edges import SqlEdges
    from mneme_server.features.causal.store.experiments import SqlExperiments
    from mneme_server.features.learning.export.exports import KeepModel
    from mneme_server.features.learning.service.sessions import SessionCalls
    from mneme_server.features.learning.store.exports import SqlLearningExports
    from mneme_server.features.memory.patterns.service import PatternCalls
    from mneme_server.features.memory.patterns.store import SqlPatterns

    parts: tuple[tuple[Any, str, Any, str], ...] = (
        (CausalServicer, "CreateEdge", SqlEdges, "save"),
        (CausalServicer, "AssignTreatment", SqlExperiments, "assign"),
        (CausalServicer, "RecordObservation", SqlExperiments, "observe"),
        (PatternCalls, "CreatePattern", SqlPatterns, "add"),
        (PatternCalls, "RecordPatternMatches", SqlPatterns, "judge"),
        (SessionCalls, "EndLearningSession", SqlLearningExports, "put"),
    )
    KeepModel.copy = _cut(point, "copy EndLearningSession", KeepModel.copy)  # type: ignore[method-assign]
    for servicer, call, rows, write in parts:
        setattr(servicer, call, _cut(point, call, getattr(servicer, call)))
        setattr(rows, write, _cut(point, f"row {call}", getattr(rows, write)))


def main() -> None:
    """Serve with what is cut."""
    point = sys.argv.pop(1)
    from mneme_server.engine.store.sqlite_store import SqliteTenantStore
    from mneme_server.features.admin.forgetting.store import SqlForgettings
    from mneme_server.features.admin.store.tenant_files import TenantFiles
    from mneme_server.features.operations import operations

    task, run = operations._RunningTask, operations.Run
    for owner, method, name in (
        (task, "keep", "keep"),
        (task, "commit", "commit"),
        (task, "report", "report"),
        (run, "_finish", "finish"),
        (SqlForgettings, "save", "note"),
        (SqliteTenantStore, "scrub", "scrub"),
        (TenantFiles, "remove", "remove"),
    ):
        setattr(owner, method, _cut(point, name, getattr(owner, method)))
    _cut_calls(point)
    from mneme_server.engine.corpus.live_index import LiveIndex
    from mneme_server.features.proof.store.log import SqlLog

    for owner, method, name in ((SqlLog, "seal", "leaf"), (LiveIndex, "apply", "apply")):
        setattr(owner, method, _cut_at_last(point, name, getattr(owner, method)))
    runpy.run_module("mneme_server", run_name="__main__")


if __name__ == "__main__":
    main()
