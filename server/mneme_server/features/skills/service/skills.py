"""The calls that concern skills."""

from __future__ import annotations

from mneme.v1 import skill_service_pb2 as pb

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.errors import fields
from mneme_server.edge.grpc.paging import Pages, fitting
from mneme_server.edge.grpc.schema_options import named_fields
from mneme_server.edge.grpc.validation import validate
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.skills.consolidating import ConsolidateSkills
from mneme_server.features.skills.messages import skills as convert
from mneme_server.features.skills.messages.episodes import episode_filter
from mneme_server.features.skills.skill_model import Relationship
from mneme_server.features.skills.skills import Skills


class SkillCalls:
    """Serves what `mneme.v1.SkillService` says of skills."""

    _skills: Skills
    _consolidate: ConsolidateSkills
    _foreground: Foreground

    def CreateSkill(self, request: pb.CreateSkillRequest, call: Call) -> pb.CreateSkillResponse:
        """Save a skill."""
        with fields(id="skill_id"):
            saved = self._skills.create(call.tenant, convert.new_skill(request))
        return pb.CreateSkillResponse(skill=convert.skill(saved))

    def GetSkill(self, request: pb.GetSkillRequest, call: Call) -> pb.GetSkillResponse:
        """Return a skill and its links."""
        with fields(id="skill_id"):
            skill, links = self._skills.get(call.tenant, request.skill_id)
        return pb.GetSkillResponse(skill=convert.skill(skill), links=map(convert.link, links))

    def UpdateSkill(self, request: pb.UpdateSkillRequest, call: Call) -> pb.UpdateSkillResponse:
        """Change a skill."""
        if not request.skill.id:
            raise InvalidArgument(
                "skill.id is required", reason=Reason.MISSING_REQUIRED_FIELD, field="skill.id"
            )
        named = named_fields(request)
        validate(convert.changed_fields_only(request.skill, named), prefix="skill")
        changes = convert.skill_changes(request.skill, named)
        with fields(id="skill.id", name="skill.name"):
            skill = self._skills.update(call.tenant, request.skill.id, changes)
        return pb.UpdateSkillResponse(skill=convert.skill(skill))

    def ListSkills(self, request: pb.ListSkillsRequest, call: Call) -> pb.ListSkillsResponse:
        """List skills."""
        pages = Pages(request)
        key = pages.after(str)
        found, total = self._skills.page(
            call.tenant, convert.skill_filter(request.filter), key, pages.size + 1
        )
        page, token = pages.fit(found, convert.skill, lambda last: (last.name,), self._foreground)
        return pb.ListSkillsResponse(skills=page, next_page_token=token, total_size=total)

    def SearchSkills(self, request: pb.SearchSkillsRequest, call: Call) -> pb.SearchSkillsResponse:
        """Find skills for a task."""
        found, answer = self._skills.search(
            call.tenant, request.task, convert.skill_filter(request.filter), limit=request.limit
        )
        return pb.SearchSkillsResponse(
            results=fitting(map(convert.found_skill, found)),
            searched_count=answer.searched_count,
            words_only=answer.words_only,
        )

    def RecordSkillUse(
        self, request: pb.RecordSkillUseRequest, call: Call
    ) -> pb.RecordSkillUseResponse:
        """Count a use of a skill."""
        with fields(id="skill_id"):
            skill = self._skills.record_use(call.tenant, convert.skill_use(request))
        return pb.RecordSkillUseResponse(skill=convert.skill(skill))

    def LinkSkills(self, request: pb.LinkSkillsRequest, call: Call) -> pb.LinkSkillsResponse:
        """Link two skills."""
        with fields(parent_id="parent_skill_id", child_id="child_skill_id"):
            link = self._skills.link(call.tenant, convert.new_link(request))
        return pb.LinkSkillsResponse(link=convert.link(link))

    def UnlinkSkills(self, request: pb.UnlinkSkillsRequest, call: Call) -> pb.UnlinkSkillsResponse:
        """Remove a link."""
        which = Relationship(request.relationship) if request.relationship else None
        with fields(parent_id="parent_skill_id", child_id="child_skill_id"):
            removed = self._skills.unlink(
                call.tenant, request.parent_skill_id, request.child_skill_id, which
            )
        return pb.UnlinkSkillsResponse(removed_count=removed)

    def ConsolidateSkills(
        self, request: pb.ConsolidateSkillsRequest, call: Call
    ) -> pb.ConsolidateSkillsResponse:
        """Make skills of episodes."""
        report = self._consolidate(
            call.tenant,
            episode_filter(request.filter),
            min_attempts=request.min_attempts,
            min_reward=request.min_reward,
            dry_run=request.dry_run,
        )
        return convert.consolidated(report)

    def DeleteSkill(self, request: pb.DeleteSkillRequest, call: Call) -> pb.DeleteSkillResponse:
        """Delete a skill."""
        with fields(id="skill_id"):
            skill = self._skills.delete(call.tenant, request.skill_id)
        return pb.DeleteSkillResponse(skill=convert.skill(skill))
