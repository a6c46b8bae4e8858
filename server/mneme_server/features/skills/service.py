"""SkillService."""

from __future__ import annotations

from collections.abc import Iterator

from mneme.v1 import episode_pb2, skill_service_pb2

from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages, fitting
from mneme_server.edge.grpc.updates import changes_of
from mneme_server.engine.corpus.imports import OnConflict
from mneme_server.features.skills import messages as convert
from mneme_server.features.skills.comparison import summarize_critiques
from mneme_server.features.skills.consolidation import Consolidation
from mneme_server.features.skills.episodes import Episodes
from mneme_server.features.skills.model import Relationship
from mneme_server.features.skills.skills import Skills


class SkillServicer:
    """Serves `mneme.v1.SkillService`."""

    def __init__(
        self,
        episodes: Episodes,
        skills: Skills,
        consolidation: Consolidation,
    ) -> None:
        self._consolidation = consolidation
        self._episodes = episodes
        self._skills = skills

    def CreateEpisode(
        self, request: episode_pb2.CreateEpisodeRequest, call: Call
    ) -> episode_pb2.CreateEpisodeResponse:
        """Store an attempt."""
        with fields(id="episode_id"):
            stored = self._episodes.store(call.tenant, convert.new_episode(request))
        return episode_pb2.CreateEpisodeResponse(episode=convert.episode(stored))

    def GetEpisode(
        self, request: episode_pb2.GetEpisodeRequest, call: Call
    ) -> episode_pb2.GetEpisodeResponse:
        """Return an episode."""
        with fields(id="episode_id"):
            episode = self._episodes.get(call.tenant, request.episode_id)
        return episode_pb2.GetEpisodeResponse(episode=convert.episode(episode))

    def ListEpisodes(
        self, request: episode_pb2.ListEpisodesRequest, call: Call
    ) -> episode_pb2.ListEpisodesResponse:
        """List episodes."""
        pages = Pages(request)
        key = pages.after(int, str)
        found, total = self._episodes.page(
            call.tenant, convert.episode_filter(request.filter), key, pages.size + 1
        )
        page, token = pages.fit(found, convert.episode, lambda last: (last.occurred_us, last.id))
        return episode_pb2.ListEpisodesResponse(
            episodes=page, next_page_token=token, total_size=total
        )

    def SearchEpisodes(
        self, request: episode_pb2.SearchEpisodesRequest, call: Call
    ) -> episode_pb2.SearchEpisodesResponse:
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
        return episode_pb2.SearchEpisodesResponse(
            results=results,
            critiques=convert.critique_summary(critiques),
            searched_count=answer.searched_count,
            words_only=answer.words_only,
        )

    def UpdateEpisode(
        self, request: skill_service_pb2.UpdateEpisodeRequest, call: Call
    ) -> skill_service_pb2.UpdateEpisodeResponse:
        """Change an episode."""
        changes = changes_of(request, "episode", convert.read_episode, task="-")
        with fields(id="episode.id"):
            episode = self._episodes.update(
                call.tenant, request.episode.id, changes, etag=request.episode.etag
            )
        return skill_service_pb2.UpdateEpisodeResponse(episode=convert.episode(episode))

    def DeleteEpisode(
        self, request: episode_pb2.DeleteEpisodeRequest, call: Call
    ) -> episode_pb2.DeleteEpisodeResponse:
        """Delete an episode."""
        with fields(id="episode_id"):
            episode = self._episodes.delete(call.tenant, request.episode_id, etag=request.etag)
        return episode_pb2.DeleteEpisodeResponse(episode=convert.episode(episode))

    def ImportEpisodes(
        self, request: skill_service_pb2.ImportEpisodesRequest, call: Call
    ) -> skill_service_pb2.ImportEpisodesResponse:
        """Bring in episodes."""
        with fields(id="episodes[{item}].id"):
            report = self._episodes.import_(
                call.tenant,
                [
                    convert.read_episode(episode, f"episodes[{i}]")
                    for i, episode in enumerate(request.episodes)
                ],
                OnConflict(request.on_conflict),
            )
        return skill_service_pb2.ImportEpisodesResponse(
            created_count=report.created,
            replaced_count=report.replaced,
            unchanged_count=report.unchanged,
            skipped_count=report.skipped,
            episode_ids=report.ids,
        )

    def ExportEpisodes(
        self, request: skill_service_pb2.ExportEpisodesRequest, call: Call
    ) -> Iterator[skill_service_pb2.ExportEpisodesResponse]:
        """Stream episodes."""
        for episode in self._episodes.export(call.tenant, convert.episode_filter(request.filter)):
            yield skill_service_pb2.ExportEpisodesResponse(episode=convert.episode(episode))

    def CreateSkill(
        self, request: skill_service_pb2.CreateSkillRequest, call: Call
    ) -> skill_service_pb2.CreateSkillResponse:
        """Save a skill."""
        with fields(id="skill_id"):
            saved = self._skills.create(call.tenant, convert.new_skill(request))
        return skill_service_pb2.CreateSkillResponse(skill=convert.skill(saved))

    def GetSkill(
        self, request: skill_service_pb2.GetSkillRequest, call: Call
    ) -> skill_service_pb2.GetSkillResponse:
        """Return a skill and its links."""
        with fields(id="skill_id"):
            skill, links = self._skills.get(call.tenant, request.skill_id)
        return skill_service_pb2.GetSkillResponse(
            skill=convert.skill(skill), links=map(convert.link, links)
        )

    def UpdateSkill(
        self, request: skill_service_pb2.UpdateSkillRequest, call: Call
    ) -> skill_service_pb2.UpdateSkillResponse:
        """Change a skill."""
        changes = changes_of(request, "skill", convert.read_skill, name="-")
        with fields(id="skill.id", name="skill.name"):
            skill = self._skills.update(
                call.tenant, request.skill.id, changes, etag=request.skill.etag
            )
        return skill_service_pb2.UpdateSkillResponse(skill=convert.skill(skill))

    def ListSkills(
        self, request: skill_service_pb2.ListSkillsRequest, call: Call
    ) -> skill_service_pb2.ListSkillsResponse:
        """List skills."""
        pages = Pages(request)
        key = pages.after(str)
        found, total = self._skills.page(
            call.tenant, convert.skill_filter(request.filter), key, pages.size + 1
        )
        page, token = pages.fit(found, convert.skill, lambda last: (last.name,))
        return skill_service_pb2.ListSkillsResponse(
            skills=page, next_page_token=token, total_size=total
        )

    def SearchSkills(
        self, request: skill_service_pb2.SearchSkillsRequest, call: Call
    ) -> skill_service_pb2.SearchSkillsResponse:
        """Find skills for a task."""
        found, answer = self._skills.search(
            call.tenant, request.task, convert.skill_filter(request.filter), limit=request.limit
        )
        return skill_service_pb2.SearchSkillsResponse(
            results=fitting(map(convert.found_skill, found)),
            searched_count=answer.searched_count,
            words_only=answer.words_only,
        )

    def RecordSkillUse(
        self, request: skill_service_pb2.RecordSkillUseRequest, call: Call
    ) -> skill_service_pb2.RecordSkillUseResponse:
        """Count a use of a skill."""
        with fields(id="skill_id"):
            skill = self._skills.record_use(call.tenant, convert.skill_use(request))
        return skill_service_pb2.RecordSkillUseResponse(skill=convert.skill(skill))

    def LinkSkills(
        self, request: skill_service_pb2.LinkSkillsRequest, call: Call
    ) -> skill_service_pb2.LinkSkillsResponse:
        """Link two skills."""
        with fields(parent_id="parent_skill_id", child_id="child_skill_id"):
            link = self._skills.link(call.tenant, convert.new_link(request))
        return skill_service_pb2.LinkSkillsResponse(link=convert.link(link))

    def UnlinkSkills(
        self, request: skill_service_pb2.UnlinkSkillsRequest, call: Call
    ) -> skill_service_pb2.UnlinkSkillsResponse:
        """Remove a link."""
        which = Relationship(request.relationship) if request.relationship else None
        with fields(parent_id="parent_skill_id", child_id="child_skill_id"):
            removed = self._skills.unlink(
                call.tenant, request.parent_skill_id, request.child_skill_id, which
            )
        return skill_service_pb2.UnlinkSkillsResponse(removed_count=removed)

    def ConsolidateSkills(
        self, request: skill_service_pb2.ConsolidateSkillsRequest, call: Call
    ) -> skill_service_pb2.ConsolidateSkillsResponse:
        """Make skills of episodes."""
        report = self._consolidation.run(
            call.tenant,
            convert.episode_filter(request.filter),
            min_attempts=request.min_attempts,
            min_reward=request.min_reward,
            dry_run=request.dry_run,
        )
        return convert.consolidated(report)

    def DeleteSkill(
        self, request: skill_service_pb2.DeleteSkillRequest, call: Call
    ) -> skill_service_pb2.DeleteSkillResponse:
        """Delete a skill."""
        with fields(id="skill_id"):
            skill = self._skills.delete(call.tenant, request.skill_id, etag=request.etag)
        return skill_service_pb2.DeleteSkillResponse(skill=convert.skill(skill))
