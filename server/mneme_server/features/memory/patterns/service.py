"""The calls of MemoryService that concern patterns."""

from __future__ import annotations

from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import pattern_pb2 as pb

from mneme_server.common.errors import InvalidArgument
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages
from mneme_server.edge.grpc.updates import changes_of
from mneme_server.features.memory.messages import memory_filter
from mneme_server.features.memory.patterns import messages as convert
from mneme_server.features.memory.patterns.patterns import Patterns


class PatternCalls:
    """Serves what `mneme.v1.MemoryService` says of patterns."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns

    def CreatePattern(
        self, request: pb.CreatePatternRequest, call: Call
    ) -> pb.CreatePatternResponse:
        """Store a pattern."""
        with fields(id="pattern_id"):
            stored = self._patterns.store(call.tenant, convert.new_pattern(request))
        return pb.CreatePatternResponse(pattern=convert.pattern(stored))

    def GetPattern(self, request: pb.GetPatternRequest, call: Call) -> pb.GetPatternResponse:
        """Return a pattern."""
        found = self._patterns.get(call.tenant, request.name)
        return pb.GetPatternResponse(pattern=convert.pattern(found.pattern))

    def ListPatterns(self, request: pb.ListPatternsRequest, call: Call) -> pb.ListPatternsResponse:
        """List patterns."""
        pages = Pages(request)
        after = pages.after(str)
        found, total = self._patterns.page(call.tenant, after[0] if after else "", pages.size + 1)
        page, token = pages.fit(
            [one.pattern for one in found],
            convert.pattern,
            lambda last: (last.name,),
        )
        return pb.ListPatternsResponse(patterns=page, next_page_token=token, total_size=total)

    def UpdatePattern(
        self, request: pb.UpdatePatternRequest, call: Call
    ) -> pb.UpdatePatternResponse:
        """Change a pattern."""
        changes = changes_of(request, "pattern", convert.read_pattern, name="-")
        with fields(
            **{
                field: f"pattern.{field}"
                for field in ("id", "name", "regex.expression", "structural.schema")
            }
        ):
            changed = self._patterns.update(
                call.tenant, request.pattern.id, changes, etag=request.pattern.etag
            )
        return pb.UpdatePatternResponse(pattern=convert.pattern(changed))

    def DeletePattern(
        self, request: pb.DeletePatternRequest, call: Call
    ) -> pb.DeletePatternResponse:
        """Delete a pattern."""
        gone = self._patterns.delete(call.tenant, request.name, etag=request.etag)
        return pb.DeletePatternResponse(pattern=convert.pattern(gone))

    def MatchPattern(
        self, request: memory_pb.MatchPatternRequest, call: Call
    ) -> memory_pb.MatchPatternResponse:
        """Search memories with a pattern."""
        found = self._patterns.search(
            call.tenant,
            request.name,
            memory_filter(request.filter, include_superseded=request.include_superseded),
            limit=request.limit,
            matches=not request.omit_matches,
            counted=not request.peek,
        )
        return convert.search_response(found)

    def RecordPatternMatches(
        self, request: pb.RecordPatternMatchesRequest, call: Call
    ) -> pb.RecordPatternMatchesResponse:
        """Note whether matches were right."""
        verdicts = {one.memory_id: one.right for one in request.verdicts}
        if len(verdicts) < len(request.verdicts):
            raise InvalidArgument("verdicts speak of one memory twice", field="verdicts")
        with fields(memory_id="verdicts[{item}].memory_id"):
            found = self._patterns.report(call.tenant, request.name, verdicts)
        return pb.RecordPatternMatchesResponse(stats=convert.stats(found))

    def ListPatternStats(
        self, request: pb.ListPatternStatsRequest, call: Call
    ) -> pb.ListPatternStatsResponse:
        """Return statistics of patterns."""
        pages = Pages(request)
        after = pages.after(str)
        if request.name:
            one = self._patterns.get(call.tenant, request.name)
            return pb.ListPatternStatsResponse(stats=[convert.stats(one)])
        found, _ = self._patterns.page(call.tenant, after[0] if after else "", pages.size + 1)
        page, token = pages.fit(found, convert.stats, lambda last: (last.pattern.name,))
        return pb.ListPatternStatsResponse(stats=page, next_page_token=token)
