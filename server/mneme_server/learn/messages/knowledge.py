"""Between the messages of the knowledge log and the domain."""

from __future__ import annotations

from typing import cast

from mneme.v1 import knowledge_pb2 as pb

from mneme_server.common.errors import InvalidArgument
from mneme_server.common.stored import reads
from mneme_server.learn.knowledge_model import (
    FoundKnowledge,
    KnowledgeAnswer,
    KnowledgeEntry,
    KnowledgeType,
)
from mneme_server.transport.convert.time import stored_time, to_timestamp


def new_entry(request: pb.LogKnowledgeRequest) -> KnowledgeEntry:
    """Return the entry that a request logs.

    Raises:
        InvalidArgument: the success rate has more successes than tries, or no tries.
    """
    _check_rate(request.success_rate)
    return KnowledgeEntry(
        id=request.entry_id,
        repo=request.repo,
        agent_id=request.agent_id,
        type=KnowledgeType(request.type),
        context=request.context,
        command=request.command,
        lesson=request.lesson,
        success_rate=request.success_rate,
        tags=tuple(sorted(set(request.tags))),
        timestamp_us=stored_time(request, "timestamp") or 0,
    )


@reads("knowledge entry")
def entry(stored: KnowledgeEntry) -> pb.KnowledgeEntry:
    """Return the message of an entry."""
    return pb.KnowledgeEntry(
        id=stored.id,
        repo=stored.repo,
        agent_id=stored.agent_id,
        type=cast("pb.KnowledgeType", stored.type),
        context=stored.context,
        command=stored.command,
        lesson=stored.lesson,
        success_rate=stored.success_rate,
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


def _check_rate(rate: str) -> None:
    if not rate:
        return
    wins, tries = (int(part) for part in rate.split("/"))
    if tries < 1 or wins > tries:
        raise InvalidArgument(
            f"success_rate {rate!r} is no rate: of X/Y, Y must be at least 1 and X at most Y",
            field="success_rate",
        )
