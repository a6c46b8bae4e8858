"""Logging knowledge, and answering with what bears on a query."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mneme_server.common.clock import DAY_US, now_us
from mneme_server.common.errors import AlreadyExists
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.ports import TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.learn.model import (
    KNOWLEDGE,
    FoundKnowledge,
    KnowledgeAnswer,
    KnowledgeEntry,
    KnowledgeType,
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
                known = _known(unit, entry)
            if known is not None:  # Whole files are sent again and again; embed only what is new.
                return known, True
            vectors = self.embedder.embed([entry.text])
            if vectors is None:
                tenant.require_room(1)
            with tenant.write() as unit:
                known = _known(unit, entry)
                if known is None:
                    unit.get(SqlKnowledge).add(entry)
                    unit.documents.add([_document(entry)], vectors)
        return known or entry, known is not None

    def query(
        self,
        tenant_id: str,
        text: str,
        *,
        project: str,
        type_: KnowledgeType | None,
        tags: frozenset[str],
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
                filter=DocumentFilter(
                    kinds=frozenset({KNOWLEDGE}),
                    project=project,
                    categories=frozenset({type_.name.lower()} if type_ else ()),
                    tags=tags,
                ),
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


def _known(unit: CorpusUnit, entry: KnowledgeEntry) -> KnowledgeEntry | None:
    known = unit.get(SqlKnowledge).get_many([entry.id]).get(entry.id)
    if known is not None and not known.same_content(entry):
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
