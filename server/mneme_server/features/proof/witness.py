"""The log as a witness of events: whether chains are those that were recorded, and end where they
did.
"""

from __future__ import annotations

from collections.abc import Sequence

from mneme_server.common.errors import DataLoss
from mneme_server.engine.corpus.document import MemoryView
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.events.chain import ChainLink, ForgottenPlace
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.events.grading import content_of
from mneme_server.features.events.model import GRADE, Event
from mneme_server.features.events.store.grades import SqlGrades
from mneme_server.features.proof.heads import Heads
from mneme_server.features.proof.keys import trusted
from mneme_server.features.proof.leaves import gives_hash, leaves_of, marks_of
from mneme_server.features.proof.store.log import SqlLog


class LogWitness:
    """Implements `features.events.verification.Witness`.

    Args:
        heads: what was signed.
    """

    def __init__(self, heads: Heads) -> None:
        self._heads = heads

    def against_all(self, tenant_id: str, tenant: OpenTenant) -> str:
        """Check that the log is what was signed, and that each of its leaves is of something."""
        try:
            with self._heads.checked(tenant_id, tenant) as (unit, _):
                leaves = unit.get(SqlLog).unaccounted()
                graded = unit.get(SqlLog).count_of(GRADE)
                grades = unit.get(SqlGrades).total()
        except DataLoss as error:
            return error.message
        if leaves:
            return (
                f"{abs(leaves)} leaves of the log are of events that are neither stored nor"
                " forgotten, or of nothing: rows were removed or added where they are stored"
            )
        if graded != grades:
            return (
                f"the log has {graded} grades, and {grades} are stored: rows were removed or added"
                " where they are stored"
            )
        return ""

    def against_links(
        self, tenant_id: str, unit: CorpusUnit, session: str, links: Sequence[ChainLink]
    ) -> tuple[int, str] | None:
        """Check that events have the leaves and the documents that they were recorded with, and
        that what is marked as forgotten was."""
        places = [link for link in links if isinstance(link, ForgottenPlace)]
        marks = None
        if places:
            marks = marks_of(tenant_id, unit, trusted(self._heads.known(tenant_id).keys))
        recallable = [link.id for link in links if isinstance(link, Event) and link.searchable]
        memories = unit.memories.of_sources(EVENT, recallable)
        if (
            not places
            and len(memories) == len(recallable)
            and _all_logged(unit, [*memories.values()])
        ):
            return None
        for at, link in enumerate(links):
            if isinstance(link, ForgottenPlace):
                if marks is None or not marks.has_place(session, link.sequence):
                    return at, "it is marked as forgotten, and nothing that was signed says so"
            elif isinstance(link, Event) and link.searchable:
                why = _against(unit, memories.get(link.id))
                if why:
                    return at, why
        return None

    def against_session(self, unit: CorpusUnit, session_id: str, recallable: int) -> str:
        """Check that nothing is recalled of a session that is not in its chain, and that its
        grades are those that were recorded."""
        found = unit.get(SqlLog).events_of(session_id)
        if found != recallable:
            return (
                f"{found} of its events are recalled, and {recallable} of those in its chain can be"
            )
        grades = {one.id: one for one in unit.get(SqlGrades).of_sessions([session_id])[session_id]}
        leaves = unit.get(SqlLog).newest(GRADE, grades)
        for one in grades.values():
            leaf = leaves.get(one.id)
            if leaf is None or leaf.content != content_of(one) or not gives_hash(leaf):
                return f"its grade {one.id!r} is not what was logged: it was changed"
        return ""


def _all_logged(unit: CorpusUnit, memories: Sequence[MemoryView]) -> bool:
    try:
        tree = unit.get(SqlLog).tree()
        for leaf in leaves_of(unit, memories):
            tree.require(leaf.index)
    except DataLoss:
        return False
    return True


def _against(unit: CorpusUnit, memory: MemoryView | None) -> str:
    if memory is None:
        return "it cannot be recalled, and was recorded so that it could be"
    try:
        tree = unit.get(SqlLog).tree()
        for leaf in leaves_of(unit, [memory]):
            tree.require(leaf.index)
    except DataLoss as error:
        return error.message
    return ""
