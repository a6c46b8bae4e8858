"""Between the messages of the knowledge log and the domain."""

from __future__ import annotations

from typing import cast

from mneme.v1 import knowledge_pb2 as pb

from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import stored_time, to_timestamp
from mneme_server.features.learn.knowledge_model import (
    FoundKnowledge,
    KnowledgeAnswer,
    KnowledgeEntry,
    KnowledgeType,
    SuccessRate,
)


def new_entry(request: pb.LogKnowledgeRequest) -> KnowledgeEntry:
    """Return the entry that a request logs."""
    rate = request.success_rate if request.HasField("success_rate") else None
    return KnowledgeEntry(
        id=request.entry_id,
        project=request.project,
        agent_id=request.agent_id,
        type=KnowledgeType(request.type),
        context=request.context,
        command=request.command,
        lesson=request.lesson,
        success_rate=SuccessRate(rate.successes, rate.tries) if rate else None,
        tags=tuple(sorted(set(request.tags))),
        timestamp_us=stored_time(request, "timestamp") or 0,
    )


@reads("knowledge entry")
def entry(stored: KnowledgeEntry) -> pb.KnowledgeEntry:
    """Return the message of an entry."""
    rate = stored.success_rate
    return pb.KnowledgeEntry(
        id=stored.id,
        project=stored.project,
        agent_id=stored.agent_id,
        type=cast("pb.KnowledgeType", stored.type),
        context=stored.context,
        command=stored.command,
        lesson=stored.lesson,
        success_rate=pb.SuccessRate(successes=rate.successes, tries=rate.tries) if rate else None,
        tags=stored.tags,
        timestamp=to_timestamp(stored.timestamp_us),
    )


def knowledge_answer(answer: KnowledgeAnswer) -> pb.QueryKnowledgeResponse:
    """Return the message of an answer."""
    return pb.QueryKnowledgeResponse(
        entries=[_found(found) for found in answer.found],
        markdown=answer.markdown,
        token_count=answer.tokens,
        omitted_count=answer.omitted,
        words_only=answer.words_only,
    )


def _found(found: FoundKnowledge) -> pb.FoundKnowledge:
    return pb.FoundKnowledge(
        entry=entry(found.entry),
        score=found.score,
        similarity=found.similarity,
        success_lower_bound=found.success_lower_bound,
    )
