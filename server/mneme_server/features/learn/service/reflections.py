"""The calls that concern reflections."""

from __future__ import annotations

from mneme.v1 import reflection_pb2 as pb

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages, fitting
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.learn.messages import reflections as convert
from mneme_server.features.learn.reflection_model import ReflectionFilter, prompt_of
from mneme_server.features.learn.reflections import Reflections

_SAID = 2
"""How often an answer says what its reflections do: as messages, and as text for a prompt."""


class ReflectionCalls:
    """Serves what `mneme.v1.LearnService` says of reflections."""

    _reflections: Reflections
    _foreground: Foreground

    def StoreReflection(
        self, request: pb.StoreReflectionRequest, call: Call
    ) -> pb.StoreReflectionResponse:
        """Store a reflection."""
        with fields(id="reflection_id"):
            stored, pruned = self._reflections.store(call.tenant, convert.new_reflection(request))
        return pb.StoreReflectionResponse(
            reflection=convert.reflection(stored), pruned_count=pruned
        )

    def ListReflections(
        self, request: pb.ListReflectionsRequest, call: Call
    ) -> pb.ListReflectionsResponse:
        """List convert."""
        pages = Pages(request)
        found, total = self._reflections.page(
            call.tenant,
            convert.reflection_filter(request.filter),
            pages.after(int, str),
            pages.size + 1,
        )
        page, token = pages.fit(
            found,
            convert.reflection,
            lambda last: (last.created_us, last.id),
            self._foreground,
            times=_SAID,
        )
        return pb.ListReflectionsResponse(
            reflections=page,
            next_page_token=token,
            total_size=total,
            prompt=prompt_of(found[: len(page)]),
        )

    def SearchReflections(
        self, request: pb.SearchReflectionsRequest, call: Call
    ) -> pb.SearchReflectionsResponse:
        """Search reflections that bear on a task."""
        found, answer = self._reflections.search(
            call.tenant,
            request.task_description,
            convert.reflection_filter(request.filter),
            limit=request.limit,
            min_score=request.min_score,
            counted=not request.peek,
        )
        results = fitting(map(convert.found_reflection, found), times=_SAID)
        return pb.SearchReflectionsResponse(
            results=results,
            prompt=prompt_of([one.reflection for one in found[: len(results)]]),
            searched_count=answer.searched_count,
            words_only=answer.words_only,
        )

    def SummarizeReflections(
        self, request: pb.SummarizeReflectionsRequest, call: Call
    ) -> pb.SummarizeReflectionsResponse:
        """Summarize convert."""
        made = self._reflections.summarize(
            call.tenant,
            ReflectionFilter(
                project=request.project, session_id=request.session_id, user_id=request.user_id
            ),
            request.limit,
        )
        return convert.summary(made)
