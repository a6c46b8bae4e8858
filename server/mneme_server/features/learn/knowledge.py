"""Logging knowledge, and answering with what bears on a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mneme_server.common import turns
from mneme_server.common.clock import DAY_US, now_us
from mneme_server.common.errors import AlreadyExists
from mneme_server.common.etags import existing
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.ports import Matrix, TextEmbedder
from mneme_server.engine.corpus.revision import revised
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.learn.model import (
    KNOWLEDGE,
    FoundKnowledge,
    KnowledgeAnswer,
    KnowledgeEntry,
    KnowledgeFilter,
    markdown_of,
)
from mneme_server.features.learn.store.knowledge import SqlKnowledge
from mneme_server.features.recall.model import Recalled, RecallQuery
from mneme_server.features.recall.search import Recall

RELEVANCE, RECENCY, SUCCESS = 0.7, 0.15, 0.15
"""Weights of the score: relevance decides, recency and success settle what is about as relevant."""
RECENCY_DAYS = 30.0
"""Recency is 1 / (1 + age in days / 30)."""
UNKNOWN_SUCCESS = 0.2065
"""An entry without a rate counts as one success out of one try."""
RELEVANT_SHARE = 0.5
"""Entries less than half as relevant as the best one are no answer, however recent."""
_CANDIDATES = 50


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The use cases of the knowledge log."""

    tenants: OpenTenants
    embedder: TextEmbedder
    recall: Recall

    def log(self, tenant_id: str, given: KnowledgeEntry) -> tuple[KnowledgeEntry, bool]:
        """Log the entry; return it as stored, and whether it had been logged before.

        Raises:
            AlreadyExists: the given id is taken by other content.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is logged.
        """
        entry = given.identified(now_us())
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                known = _known(unit, entry, given)
            if known is not None:  # Whole files are sent again and again; embed only what is new.
                return known, True
            vectors = self.embedder.embed([entry.text])
            if vectors is None:
                tenant.require_room(1)
            with tenant.write() as unit:
                known = _known(unit, entry, given)
                if known is None:
                    _add(unit, entry, vectors)
        return known or entry, known is not None

    def get(self, tenant_id: str, entry_id: str) -> KnowledgeEntry:
        """Return the entry.

        Raises:
            NotFound: there is no such entry.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return _existing(unit, entry_id)

    def page(
        self, tenant_id: str, filter_: KnowledgeFilter, after: tuple[int, str] | None, limit: int
    ) -> tuple[Sequence[KnowledgeEntry], int]:
        """Return entries, newest first, after (timestamp_us, id); and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            entries = unit.get(SqlKnowledge)
            page = turns.read_page(
                partial(entries.page, filter_),
                after,
                limit,
                lambda one: (one.timestamp_us, one.id),
            )
            return page, entries.count(filter_)

    def update(
        self, tenant_id: str, entry_id: str, changes: Mapping[str, Any], *, etag: str = ""
    ) -> KnowledgeEntry:
        """Change the given fields; the id and the time stay.

        What others change meanwhile is kept; with an `etag` it is the reason to refuse.

        Raises:
            NotFound: there is no such entry.
            Aborted: `etag` is given and is not the entry's any more.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is changed.
        """
        with self.tenants.open(tenant_id) as tenant:
            return revised(
                tenant,
                self.embedder,
                read=lambda unit: _existing(unit, entry_id, etag),
                change=lambda before: replace(before, **changes),
                texts=lambda after: [after.text],
                save=_rewrite,
            )

    def delete(self, tenant_id: str, entry_id: str, *, etag: str = "") -> KnowledgeEntry:
        """Delete the entry, and return it as it was.

        Raises:
            NotFound: there is no such entry.
            Aborted: `etag` is given and is not the entry's any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            entry = _existing(unit, entry_id, etag)
            _remove(unit, entry_id)
        return entry

    def query(
        self,
        tenant_id: str,
        text: str,
        filter_: KnowledgeFilter,
        *,
        limit: int,
        token_budget: int,
    ) -> KnowledgeAnswer:
        """Return the entries that bear on the text, within the token budget.

        score = 0.7 relevance + 0.15 recency + 0.15 success: relevance is recall's score over the
        best candidate's, success the lower bound of the rate's Wilson interval.
        """
        answer = self.recall.search(
            tenant_id,
            RecallQuery(
                text=text,
                filter=_document_filter(filter_),
                limit=max(_CANDIDATES, limit),
            ),
        )
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            stored = unit.get(SqlKnowledge).get_many([r.document.source_id for r in answer.results])
        best = max((result.score for result in answer.results), default=0.0)
        now = now_us()
        ranked = [
            _found(stored[result.document.source_id], result, best, now)
            for result in answer.results
            if result.document.source_id in stored and result.score >= RELEVANT_SHARE * best
        ]
        ranked.sort(key=lambda found: (-found.score, -found.entry.timestamp_us, found.entry.id))
        return replace(markdown_of(ranked[:limit], token_budget), words_only=answer.words_only)


def _add(unit: CorpusUnit, entry: KnowledgeEntry, vectors: Matrix | None) -> None:
    """Add an entry and its document, whose vector (1, d) may be made later."""
    unit.get(SqlKnowledge).add(entry)
    unit.documents.add([_document(entry)], vectors)


def _remove(unit: CorpusUnit, entry_id: str) -> None:
    """Remove an entry and its document."""
    unit.get(SqlKnowledge).remove(entry_id)
    unit.documents.remove(KNOWLEDGE, [entry_id])


def _rewrite(
    unit: CorpusUnit, after: KnowledgeEntry, now: KnowledgeEntry, vectors: Matrix | None
) -> KnowledgeEntry:
    _remove(unit, now.id)
    _add(unit, after, vectors)
    return after


def _document_filter(filter_: KnowledgeFilter) -> DocumentFilter:
    return DocumentFilter(
        kinds=frozenset({KNOWLEDGE}),
        project=filter_.project,
        categories=frozenset({filter_.type.name.lower()} if filter_.type else ()),
        tags=frozenset(filter_.tags),
    )


def _existing(unit: CorpusUnit, entry_id: str, etag: str = "") -> KnowledgeEntry:
    """Return the entry, which must still have this etag, if one is given."""
    found = unit.get(SqlKnowledge).get_many([entry_id])
    return existing("knowledge entry", found.get(entry_id), entry_id, etag)


def _known(unit: CorpusUnit, entry: KnowledgeEntry, given: KnowledgeEntry) -> KnowledgeEntry | None:
    """Return the entry that has this one's id.

    An id that was not given is made of the content: then it is the same line, changed since or not.
    """
    known = unit.get(SqlKnowledge).get_many([entry.id]).get(entry.id)
    if given.id and known is not None and not known.same_content(entry):
        raise AlreadyExists(
            f"knowledge entry {entry.id!r} already exists with different content", field="id"
        )
    return known


def _found(entry: KnowledgeEntry, result: Recalled, best: float, now: int) -> FoundKnowledge:
    age_days = max(0, now - entry.timestamp_us) / DAY_US
    bound = entry.success_rate.lower_bound if entry.success_rate else None
    score = (
        RELEVANCE * (result.score / best if best else 0.0)
        + RECENCY / (1 + age_days / RECENCY_DAYS)
        + SUCCESS * (UNKNOWN_SUCCESS if bound is None else bound)
    )
    return FoundKnowledge(entry, score, result.similarity, bound)


def _document(entry: KnowledgeEntry) -> Document:
    return Document(
        doc_id=0,
        kind=KNOWLEDGE,
        source_id=entry.id,
        text=entry.text,
        timestamp_us=entry.timestamp_us,
        agent_id=entry.agent_id,
        project=entry.project,
        category=entry.type.name.lower(),
        tags=entry.tags,
    )
