"""Translation between the recall service's messages and the domain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from google.protobuf.message import Message
from mneme.v1 import common_pb2 as common_pb
from mneme.v1 import recall_service_pb2 as pb

from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.errors import InvalidArgument
from mneme_server.common.passages import QuotedPassage
from mneme_server.edge.grpc.conversions import (
    stored_time,
    struct_of_object,
    time_range,
    to_timestamp,
)
from mneme_server.edge.grpc.records import message_writer
from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind
from mneme_server.features.events.event_types import type_named
from mneme_server.features.recall.model import (
    RecallAnswer,
    Recalled,
    RecallMode,
    RecallQuery,
    ScoreScale,
)
from mneme_server.features.recall.ranking import RankingWeights
from mneme_server.features.recall.relative import NOW, AsOf
from mneme_server.features.recall.succession import is_superseded

_TEXT_CHARACTERS = 8_192
"""So much of a text is answered: a hundred of them then fit a message of 4 MiB."""

_SUPERSEDED = "[superseded] "

_TURNS_CHARACTERS = 60_000
_MOST_OF_A_TURN, _LEAST_OF_A_TURN = 1_000, 100
_DEFAULT = RankingWeights()


_passage = message_writer(QuotedPassage, common_pb.Passage)


def recall_query(request: pb.RecallRequest, kinds: Mapping[str, MemoryKind]) -> RecallQuery:
    """Return the query of a request; `kinds` are those that there are, by name.

    Raises:
        InvalidArgument: it names a kind that is none of them.
    """
    start_us, end_us = time_range(request)
    return RecallQuery(
        text=request.query,
        filter=DocumentFilter(
            kinds=_kinds(request, kinds),
            agent_id=request.agent_id,
            session_id=request.session_id,
            user_id=request.user_id,
            project=request.project,
            start_us=start_us,
            end_us=end_us,
            tags=frozenset(request.tags),
            any_tags=frozenset(request.any_tags),
            shared=not request.only_own,
            types=frozenset(map(type_named, request.event_types)),
            min_severity=request.min_severity,
            name=request.name,
            author=request.author,
            include_archived=request.include_archived,
            # What was replaced is shown behind what replaced it; what was withdrawn, by nothing.
            archived_kinds=frozenset(kind for kind in kinds.values() if kind.successor),
        ),
        limit=request.limit,
        min_score=request.min_score,
        mode=RecallMode(request.mode),
        weights=_weights(request.weights),
        explain=request.explain,
        rerank=request.rerank if request.HasField("rerank") else True,
        at_once=True,
        every_copy=request.every_copy,
        turns=request.context_turns,
        confidence=True,
        min_confidence=request.min_confidence,
        as_of=as_of(request),
        include_superseded=request.include_superseded,
    )


def as_of(request: Message) -> AsOf:
    """Return when a request is asked, by its `reference_time` and `time_zone`.

    Raises:
        InvalidArgument: there is no such zone.
    """
    name: str = request.time_zone  # type: ignore[attr-defined]
    if not name and not request.HasField("reference_time"):
        return NOW
    try:
        zone = ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidArgument(
            f"{name!r} is no time zone; one is, for example, Europe/Berlin", field="time_zone"
        ) from error
    if not request.HasField("reference_time"):
        return AsOf.at(datetime.now(UTC), zone)
    given_us = stored_time(request, "reference_time") or 0
    return AsOf.at(datetime.fromtimestamp(given_us / MICROSECONDS, UTC), zone)


def recall_response(answer: RecallAnswer) -> pb.RecallResponse:
    """Return the message of an answer."""
    turns = sum(len(result.before) + len(result.after) for result in answer.results)
    characters = max(_LEAST_OF_A_TURN, min(_MOST_OF_A_TURN, _TURNS_CHARACTERS // max(1, turns)))
    return pb.RecallResponse(
        results=[_result(result, characters, answer.scale) for result in answer.results],
        total_results=answer.total,
        outcome=f"RECALL_OUTCOME_{answer.outcome.name}",
        searched_count=answer.searched_count,
        pending_count=answer.pending_count,
        candidates_capped=answer.capped,
        words_only=answer.words_only,
        partial=answer.partial,
        reranking=f"RERANKING_{answer.reranking.name}" if answer.reranking else None,
        confidence=answer.confidence,
    )


def _kinds(request: pb.RecallRequest, known: Mapping[str, MemoryKind]) -> frozenset[MemoryKind]:
    for place, name in enumerate(request.scopes):
        if name.lower() not in known:
            raise InvalidArgument(
                f"{name!r} is not a kind of memory; known kinds: {', '.join(known)}",
                field=f"scopes[{place}]",
            )
    return frozenset(known[name.lower()] for name in request.scopes)


def _weights(message: pb.RankingWeights) -> RankingWeights:
    """Return the default weights, with the groups of terms that the message names scaled."""
    weights = _DEFAULT
    if message.HasField("neighbors"):
        weights = replace(
            weights,
            answer=weights.answer * message.neighbors,
            next=weights.next * message.neighbors,
            alone=weights.alone * message.neighbors,
        )
    if message.HasField("session"):
        weights = replace(
            weights,
            session_dense=weights.session_dense * message.session,
            session_lexical=weights.session_lexical * message.session,
            passage=weights.passage * message.session,
            events=weights.events * message.session,
        )
    if message.HasField("recency"):
        weights = replace(weights, recency=message.recency)
    if message.HasField("importance"):
        weights = replace(weights, importance=message.importance)
    if message.HasField("repeated"):
        weights = replace(weights, repeated=message.repeated)
    return weights


def _result(recalled: Recalled, turn_characters: int, scale: ScoreScale | None) -> pb.RecallResult:
    document, copies = recalled.document, recalled.copies
    text = f"{_SUPERSEDED}{document.text}" if is_superseded(recalled) else document.text
    return pb.RecallResult(
        source_type=document.kind.name,
        source_id=document.source_id,
        score=recalled.score,
        similarity=recalled.similarity,
        text=text[:_TEXT_CHARACTERS],
        text_truncated=len(text) > _TEXT_CHARACTERS,
        timestamp=to_timestamp(document.timestamp_us),
        session_id=document.session_id,
        agent_id=document.agent_id,
        metadata=struct_of_object(recalled.details) if recalled.details else None,
        terms=[
            pb.ScoreTerm(name=term.name, value=term.value, contribution=term.contribution)
            for term in recalled.terms
        ],
        copies=copies.count if copies else 1,
        first_time=to_timestamp(copies.first_us) if copies else None,
        last_time=to_timestamp(copies.last_us) if copies else None,
        before=[_turn(turn, turn_characters) for turn in recalled.before],
        after=[_turn(turn, turn_characters) for turn in recalled.after],
        older=_version(recalled.older),
        newer=_version(recalled.newer),
        steps=None if scale is None else _steps(recalled, scale),
        passage=None if recalled.passage is None else _passage(recalled.passage.quoted(text)),
    )


def _steps(recalled: Recalled, scale: ScoreScale) -> pb.ScoreSteps:
    return pb.ScoreSteps(
        sum=math.fsum(term.contribution for term in recalled.terms),
        highest=scale.highest,
        evidence=scale.evidence,
    )


def _turn(document: Document, characters: int) -> pb.RecallTurn:
    return pb.RecallTurn(
        source_id=document.source_id,
        event_type=document.type,
        author=document.role or document.agent_id,
        text=document.text[:characters],
        timestamp=to_timestamp(document.timestamp_us),
    )


def _version(document: Document | None) -> pb.RecallVersion | None:
    if document is None:
        return None
    return pb.RecallVersion(
        source_id=document.source_id, timestamp=to_timestamp(document.timestamp_us)
    )
