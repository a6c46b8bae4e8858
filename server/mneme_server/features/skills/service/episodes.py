"""The calls that concern episodes."""

from __future__ import annotations

from collections.abc import Iterator

from mneme.v1 import episode_pb2 as pb
from mneme.v1 import skill_service_pb2 as service_pb

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages, fitting
from mneme_server.engine.corpus.importing import OnConflict
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.skills.critiques import summarize_critiques
from mneme_server.features.skills.episodes import Episodes
from mneme_server.features.skills.messages import episodes as convert


class EpisodeCalls:
    """Serves what `mneme.v1.SkillService` says of episodes."""

    _episodes: Episodes
    _foreground: Foreground

    def StoreEpisode(self, request: pb.StoreEpisodeRequest, call: Call) -> pb.StoreEpisodeResponse:
        """Store an attempt."""
        with fields(id="episode_id"):
            stored = self._episodes.store(call.tenant, convert.new_episode(request))
        return pb.StoreEpisodeResponse(episode=convert.episode(stored))

    def GetEpisode(self, request: pb.GetEpisodeRequest, call: Call) -> pb.GetEpisodeResponse:
        """Return an episode."""
        with fields(id="episode_id"):
            episode = self._episodes.get(call.tenant, request.episode_id)
        return pb.GetEpisodeResponse(episode=convert.episode(episode))

    def ListEpisodes(self, request: pb.ListEpisodesRequest, call: Call) -> pb.ListEpisodesResponse:
        """List episodes."""
        pages = Pages(request)
        key = pages.after(int, str)
        found, total = self._episodes.page(
            call.tenant, convert.episode_filter(request.filter), key, pages.size + 1
        )
        page, token = pages.fit(
            found, convert.episode, lambda last: (last.occurred_us, last.id), self._foreground
        )
        return pb.ListEpisodesResponse(episodes=page, next_page_token=token, total_size=total)

    def RetrieveEpisodes(
        self, request: pb.RetrieveEpisodesRequest, call: Call
    ) -> pb.RetrieveEpisodesResponse:
        """Find the episodes that bear on a task."""
        found, answer = self._episodes.retrieve(
            call.tenant,
            request.task,
            convert.episode_filter(request.filter),
            limit=request.limit,
            min_score=request.min_score,
        )
        results = fitting(convert.found_episode(one) for one in found)
        critiques = summarize_critiques([one.episode for one in found[: len(results)]])
        return pb.RetrieveEpisodesResponse(
            results=results,
            critiques=convert.critique_summary(critiques),
            searched_count=answer.searched_count,
            words_only=answer.words_only,
        )

    def DeleteEpisode(
        self, request: pb.DeleteEpisodeRequest, call: Call
    ) -> pb.DeleteEpisodeResponse:
        """Delete an episode."""
        with fields(id="episode_id"):
            episode = self._episodes.delete(call.tenant, request.episode_id)
        return pb.DeleteEpisodeResponse(episode=convert.episode(episode))

    def ImportEpisodes(
        self, request: service_pb.ImportEpisodesRequest, call: Call
    ) -> service_pb.ImportEpisodesResponse:
        """Bring in episodes."""
        with fields(id="episodes[{item}].id"):
            report = self._episodes.import_(
                call.tenant,
                [
                    convert.imported_episode(episode, f"episodes[{i}]")
                    for i, episode in enumerate(request.episodes)
                ],
                OnConflict(request.on_conflict),
            )
        return service_pb.ImportEpisodesResponse(
            created_count=report.created,
            replaced_count=report.replaced,
            unchanged_count=report.unchanged,
            skipped_count=report.skipped,
            episode_ids=report.ids,
        )

    def ExportEpisodes(
        self, request: service_pb.ExportEpisodesRequest, call: Call
    ) -> Iterator[service_pb.ExportEpisodesResponse]:
        """Stream episodes."""
        for episode in self._episodes.export(call.tenant, convert.episode_filter(request.filter)):
            yield service_pb.ExportEpisodesResponse(episode=convert.episode(episode))
