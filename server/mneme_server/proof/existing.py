"""Logging what was there before there was a log: in batches, beside the calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from mneme_server.common.clock import now_us
from mneme_server.corpus.document import Memory, ids_by_kind
from mneme_server.corpus.tenant import OpenTenant
from mneme_server.proof.ports import ProofUnit
from mneme_server.proof.versions import Version, version_of
from mneme_server.runtime.turns import TenantWorker

LOGGING_JOB = "log"
_BATCH = 256
"""Documents logged in one transaction, in some milliseconds: writes of calls come in between."""


class LoggingWorker(TenantWorker):
    """Gives leaves to documents of a database that an older version wrote.

    How far it came is in the database, in the transaction that added the leaves.

    Args:
        open_tenant: lends a tenant's memory.
    """

    def __init__(
        self, open_tenant: Callable[[str], AbstractContextManager[OpenTenant[ProofUnit]]]
    ) -> None:
        super().__init__("logging", thread="log-existing")
        self._open_tenant = open_tenant

    def step(self, tenant_id: str) -> int | None:
        """Log some documents of the tenant."""
        with self._open_tenant(tenant_id) as memory:
            with memory.read() as unit:
                if not unit.log.unlogged(1):
                    return None
            with memory.write() as unit:
                log_existing(unit, _BATCH)
        return now_us()


def log_existing(unit: ProofUnit, limit: int) -> None:
    """Log the next documents from before there was a log."""
    doc_ids = unit.log.unlogged(limit)
    found = unit.memories.get_many(doc_ids)
    memories = without_leaf(unit, [found[doc_id] for doc_id in doc_ids if doc_id in found])
    unit.log.add(list(versions_of(unit, memories)))
    unit.log.logged(doc_ids[-1] if len(doc_ids) == limit else 0)


def without_leaf(unit: ProofUnit, memories: Sequence[Memory]) -> list[Memory]:
    """Return those of which no version was logged."""
    known = {kind: unit.log.newest(kind, ids) for kind, ids in ids_by_kind(memories).items()}
    return [one for one in memories if one.document.source_id not in known[one.document.kind.name]]


def versions_of(unit: ProofUnit, memories: Iterable[Memory]) -> Iterator[Version]:
    """Yield the versions of memories that have no leaf: those of events have commitments, but for
    the oldest."""
    memories = list(memories)
    committing = [one.document for one in memories if one.document.kind.commits]
    stored = unit.events.by_ids({document.source_id for document in committing})
    for memory in memories:
        document = memory.document
        event = stored.get(document.source_id) if document.kind.commits else None
        if event is not None and event.commitment:
            yield Version(document.kind.name, document.source_id, event.commitment, document.doc_id)
        else:
            yield version_of(memory)
