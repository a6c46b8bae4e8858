"""The calls that concern the knowledge log."""

from __future__ import annotations

from mneme.v1 import knowledge_pb2 as pb

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.features.learn.knowledge import Knowledge
from mneme_server.features.learn.knowledge_model import KnowledgeType
from mneme_server.features.learn.messages import knowledge as convert


class KnowledgeCalls:
    """Serves what `mneme.v1.LearnService` says of the knowledge log."""

    _knowledge: Knowledge

    def LogKnowledge(self, request: pb.LogKnowledgeRequest, call: Call) -> pb.LogKnowledgeResponse:
        """Log one line of experience."""
        with fields(id="entry_id"):
            entry, duplicate = self._knowledge.log(call.tenant, convert.new_entry(request))
        return pb.LogKnowledgeResponse(entry=convert.entry(entry), duplicate=duplicate)

    def QueryKnowledge(
        self, request: pb.QueryKnowledgeRequest, call: Call
    ) -> pb.QueryKnowledgeResponse:
        """Answer with the experience that bears on a query."""
        answer = self._knowledge.query(
            call.tenant,
            request.query,
            project=request.project,
            type_=KnowledgeType(request.type) if request.type else None,
            tags=frozenset(request.tags),
            limit=request.limit,
            token_budget=request.token_budget,
        )
        return convert.knowledge_answer(answer)
