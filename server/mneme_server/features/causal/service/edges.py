"""The calls that concern edges."""

from __future__ import annotations

from mneme.v1 import causal_pb2, causal_service_pb2

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages
from mneme_server.edge.grpc.schema_options import named_fields
from mneme_server.edge.grpc.validation import validate
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.causal.chains import QueryEffects
from mneme_server.features.causal.edges import Edges
from mneme_server.features.causal.messages import edges as convert


class EdgeCalls:
    """Serves what `mneme.v1.CausalService` says of edges and chains."""

    _edges: Edges
    _query: QueryEffects
    _foreground: Foreground

    def AddEdge(self, request: causal_pb2.AddEdgeRequest, call: Call) -> causal_pb2.AddEdgeResponse:
        """Add an edge."""
        with fields(id="edge_id"):
            edge = self._edges.add(call.tenant, convert.new_edge(request))
        return causal_pb2.AddEdgeResponse(edge=convert.edge(edge))

    def GetEdge(self, request: causal_pb2.GetEdgeRequest, call: Call) -> causal_pb2.GetEdgeResponse:
        """Return an edge."""
        with fields(id="edge_id"):
            edge = self._edges.get(call.tenant, request.edge_id)
        return causal_pb2.GetEdgeResponse(edge=convert.edge(edge))

    def ListEdges(
        self, request: causal_pb2.ListEdgesRequest, call: Call
    ) -> causal_pb2.ListEdgesResponse:
        """List edges."""
        pages = Pages(request)
        found, total = self._edges.page(
            call.tenant,
            convert.edge_filter(request.filter),
            pages.after(int, str),
            pages.size + 1,
        )
        page, token = pages.fit(
            found, convert.edge, lambda last: (last.created_us, last.id), self._foreground
        )
        return causal_pb2.ListEdgesResponse(edges=page, next_page_token=token, total_size=total)

    def UpdateEdge(
        self, request: causal_service_pb2.UpdateEdgeRequest, call: Call
    ) -> causal_service_pb2.UpdateEdgeResponse:
        """Change an edge."""
        if not request.edge.id:
            raise InvalidArgument(
                "edge.id is required", reason=Reason.MISSING_REQUIRED_FIELD, field="edge.id"
            )
        named = named_fields(request)
        validate(convert.changed_fields_only(request.edge, named), prefix="edge")
        changes = convert.edge_changes(request.edge, named)
        with fields(id="edge.id"):
            edge = self._edges.update(call.tenant, request.edge.id, changes)
        return causal_service_pb2.UpdateEdgeResponse(edge=convert.edge(edge))

    def DeleteEdge(
        self, request: causal_pb2.DeleteEdgeRequest, call: Call
    ) -> causal_pb2.DeleteEdgeResponse:
        """Delete an edge."""
        with fields(id="edge_id"):
            edge = self._edges.delete(call.tenant, request.edge_id)
        return causal_pb2.DeleteEdgeResponse(edge=convert.edge(edge))

    def QueryEffects(
        self, request: causal_pb2.QueryEffectsRequest, call: Call
    ) -> causal_pb2.QueryEffectsResponse:
        """Find chains."""
        found = self._query(call.tenant, convert.effect_query(request), request.limit)
        return convert.found_chains(found)
