"""The messages of episodes and skills, from and to the domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, cast

from mneme.v1 import episode_pb2, skill_service_pb2

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import (
    json_of,
    stored_time,
    struct_of,
    time_range,
    to_timestamp,
)
from mneme_server.edge.grpc.paging import fitting
from mneme_server.features.skills.consolidation import ConsolidationReport, SkillChange
from mneme_server.features.skills.model import (
    MAX_SOURCES,
    CritiquePoint,
    CritiqueSummary,
    Episode,
    EpisodeFilter,
    FoundEpisode,
    FoundSkill,
    NewEpisode,
    Relationship,
    Skill,
    SkillFilter,
    SkillLink,
    SkillUse,
    TraitCounts,
    findings_of,
)


def new_episode(request: episode_pb2.StoreEpisodeRequest) -> NewEpisode:
    """Return the episode that a request stores."""
    return NewEpisode(
        id=request.episode_id,
        task=request.task,
        reward=request.reward if request.HasField("reward") else None,
        success=request.success if request.HasField("success") else None,
        session_id=request.session_id,
        agent_id=request.agent_id,
        user_id=request.user_id,
        project=request.project,
        input=request.input,
        output=request.output,
        critique=request.critique,
        latency_ms=request.latency_ms if request.HasField("latency_ms") else None,
        tokens_used=request.tokens_used if request.HasField("tokens_used") else None,
        tools=tuple(request.tools),
        tags=tuple(request.tags),
        metadata_json=canonical_json(json_of(request, "metadata")),
        occurred_us=stored_time(request, "occurred_at"),
        memory_ids=tuple(sorted(set(request.memory_ids))),
    )


def imported_episode(message: episode_pb2.Episode, field: str) -> Episode:
    """Return the episode of a message as it was exported; `field` is its path in the request."""
    return Episode(
        id=message.id,
        task=message.task,
        reward=message.reward,
        success=message.success,
        session_id=message.session_id,
        agent_id=message.agent_id,
        user_id=message.user_id,
        project=message.project,
        input=message.input,
        output=message.output,
        critique=message.critique,
        latency_ms=message.latency_ms if message.HasField("latency_ms") else None,
        tokens_used=message.tokens_used if message.HasField("tokens_used") else None,
        tools=tuple(message.tools),
        tags=tuple(sorted(set(message.tags))),
        metadata_json=canonical_json(json_of(message, "metadata", field)),
        occurred_us=stored_time(message, "occurred_at", field) or 0,
        created_us=stored_time(message, "created_at", field) or 0,
        filled=tuple(message.filled_fields),
        memory_ids=tuple(sorted(set(message.memory_ids))),
    )


@reads("episode")
def episode(stored: Episode) -> episode_pb2.Episode:
    """Return the message of an episode."""
    return episode_pb2.Episode(
        id=stored.id,
        session_id=stored.session_id,
        agent_id=stored.agent_id,
        user_id=stored.user_id,
        project=stored.project,
        task=stored.task,
        input=stored.input,
        output=stored.output,
        critique=stored.critique,
        reward=stored.reward,
        success=stored.success,
        latency_ms=stored.latency_ms,
        tokens_used=stored.tokens_used,
        tools=stored.tools,
        tags=stored.tags,
        metadata=struct_of(stored.metadata_json),
        occurred_at=to_timestamp(stored.occurred_us),
        created_at=to_timestamp(stored.created_us),
        filled_fields=stored.filled,
        memory_ids=stored.memory_ids,
    )


def found_episode(found: FoundEpisode) -> episode_pb2.FoundEpisode:
    """Return the message of an episode that was found."""
    return episode_pb2.FoundEpisode(
        episode=episode(found.episode), score=found.score, similarity=found.similarity
    )


def episode_filter(message: episode_pb2.EpisodeFilter) -> EpisodeFilter:
    """Return the filter of a message.

    Raises:
        InvalidArgument: the range of time ends before it starts.
    """
    start_us, end_us = time_range(message)
    return EpisodeFilter(
        session_id=message.session_id,
        agent_id=message.agent_id,
        user_id=message.user_id,
        project=message.project,
        tags=tuple(message.tags),
        success=True if message.only_successes else False if message.only_failures else None,
        min_reward=message.min_reward if message.HasField("min_reward") else None,
        start_us=start_us,
        end_us=end_us,
    )


def critique_summary(made: CritiqueSummary) -> episode_pb2.CritiqueSummary:
    """Return the message of what critiques say."""
    return episode_pb2.CritiqueSummary(
        points=map(critique_point, made.points),
        more_count=made.more,
        with_critique=made.with_critique,
        without_critique=made.without_critique,
        text=made.text,
    )


def critique_point(point: CritiquePoint) -> episode_pb2.CritiquePoint:
    """Return the message of something that critiques say."""
    return episode_pb2.CritiquePoint(
        text=point.text,
        episode_ids=point.episode_ids,
        failure_count=point.failures,
        success_count=point.successes,
    )


def new_skill(request: skill_service_pb2.CreateSkillRequest) -> Skill:
    """Return the skill that a request saves."""
    inputs, outputs = _signature(request, "")
    return Skill(
        id=request.skill_id,
        name=request.name,
        description=request.description,
        inputs_json=inputs,
        outputs_json=outputs,
        code=request.code,
        project=request.project,
        tags=tuple(sorted(set(request.tags))),
        metadata_json=canonical_json(json_of(request, "metadata")),
        claimed_rate=_claimed(request),
        source_ids=tuple(dict.fromkeys(request.source_episode_ids)),
    )


def _signature(
    message: skill_service_pb2.CreateSkillRequest | skill_service_pb2.Skill, parent: str
) -> tuple[str, str]:
    path = f"{parent}.signature" if parent else "signature"
    given = message.signature
    inputs, outputs = (json_of(given, field, path) for field in ("inputs", "outputs"))
    return canonical_json(inputs), canonical_json(outputs)


def _claimed(
    message: skill_service_pb2.CreateSkillRequest | skill_service_pb2.Skill,
) -> float | None:
    given = message.HasField("claimed_success_rate")
    return message.claimed_success_rate if given else None


@reads("skill")
def skill(stored: Skill) -> skill_service_pb2.Skill:
    """Return the message of a skill."""
    inputs, outputs = struct_of(stored.inputs_json), struct_of(stored.outputs_json)
    signed = inputs is not None or outputs is not None
    return skill_service_pb2.Skill(
        id=stored.id,
        name=stored.name,
        description=stored.description,
        signature=skill_service_pb2.SkillSignature(inputs=inputs, outputs=outputs)
        if signed
        else None,
        code=stored.code,
        project=stored.project,
        tags=stored.tags,
        metadata=struct_of(stored.metadata_json),
        claimed_success_rate=stored.claimed_rate,
        record=_record(stored),
        source_episode_ids=stored.source_ids[:MAX_SOURCES],
        findings=_findings(stored.findings_json),
        created_at=to_timestamp(stored.created_us),
        updated_at=to_timestamp(stored.updated_us),
    )


def _record(stored: Skill) -> skill_service_pb2.SkillRecord:
    tally = stored.record
    low, high = tally.interval
    return skill_service_pb2.SkillRecord(
        uses=tally.uses,
        successes=tally.successes,
        success_rate=tally.rate,
        lower_bound=low,
        upper_bound=high,
        average_reward=tally.average_reward,
        average_latency_ms=tally.average_ms,
        last_used_at=None if tally.last_us is None else to_timestamp(tally.last_us),
        episode_count=stored.learned.uses,
    )


def _findings(text: str) -> skill_service_pb2.SkillFindings | None:
    found = findings_of(text)
    if found is None:
        return None
    return skill_service_pb2.SkillFindings(
        attempt_count=found.attempts,
        success_count=found.successes,
        example_task=found.example_task,
        example_output=found.example_output,
        example_episode_id=found.example_id,
        ways=[
            skill_service_pb2.SkillWay(tools=way.tools, success_count=way.successes)
            for way in found.ways
        ],
        shared=map(_difference, found.shared),
        differences=map(_difference, found.differences),
        compared_count=found.compared,
        critiques=map(critique_point, found.critiques),
    )


def _difference(one: TraitCounts) -> skill_service_pb2.SkillDifference:
    return skill_service_pb2.SkillDifference(
        trait=cast("skill_service_pb2.SkillTrait", one.trait),
        name=one.name,
        success_count=one.successes,
        failure_count=one.failures,
        q_value=one.q_value,
    )


def consolidated(report: ConsolidationReport) -> skill_service_pb2.ConsolidateSkillsResponse:
    """Return the message of the skills that episodes make."""
    return skill_service_pb2.ConsolidateSkillsResponse(
        skills=fitting(
            skill_service_pb2.ConsolidatedSkill(
                skill=skill(one.skill), change=cast("skill_service_pb2.SkillChange", one.change)
            )
            for one in report.skills
        ),
        created_count=report.count(SkillChange.CREATED),
        updated_count=report.count(SkillChange.UPDATED),
        unchanged_count=report.count(SkillChange.UNCHANGED),
        episode_count=report.episodes,
        not_embedded_count=report.not_embedded,
        group_count=report.groups,
        truncated=report.truncated,
    )


def found_skill(found: FoundSkill) -> skill_service_pb2.FoundSkill:
    """Return the message of a skill that was found."""
    return skill_service_pb2.FoundSkill(
        skill=skill(found.skill),
        score=found.score,
        relevance=found.relevance,
        similarity=found.similarity,
        links=map(link, found.links),
    )


def skill_filter(message: skill_service_pb2.SkillFilter) -> SkillFilter:
    """Return the filter of a message."""
    return SkillFilter(
        project=message.project,
        tags=tuple(message.tags),
        min_rate=message.min_success_rate,
    )


def skill_use(request: skill_service_pb2.RecordSkillUseRequest) -> SkillUse:
    """Return the use that a request reports."""
    return SkillUse(
        id=request.use_id,
        skill_id=request.skill_id,
        success=request.success,
        reward=request.reward if request.HasField("reward") else None,
        latency_ms=request.latency_ms if request.HasField("latency_ms") else None,
        used_us=stored_time(request, "used_at") or 0,
    )


def new_link(request: skill_service_pb2.LinkSkillsRequest) -> SkillLink:
    """Return the link that a request makes."""
    return SkillLink(
        parent_id=request.parent_skill_id,
        child_id=request.child_skill_id,
        relationship=Relationship(request.relationship),
        weight=request.weight,
        metadata_json=canonical_json(json_of(request, "metadata")),
    )


@reads("link of a skill", "parent_id")
def link(stored: SkillLink) -> skill_service_pb2.SkillLink:
    """Return the message of a link."""
    return skill_service_pb2.SkillLink(
        parent_skill_id=stored.parent_id,
        parent_name=stored.parent_name,
        child_skill_id=stored.child_id,
        child_name=stored.child_name,
        relationship=cast("skill_service_pb2.SkillRelationship", stored.relationship),
        weight=stored.weight,
        metadata=struct_of(stored.metadata_json),
    )


# Fields that the domain has under another name or in another form than the message.
_CONVERTED: dict[str, Callable[[skill_service_pb2.Skill], dict[str, Any]]] = {
    "signature": lambda message: dict(
        zip(("inputs_json", "outputs_json"), _signature(message, "skill"), strict=True)
    ),
    "tags": lambda message: {"tags": tuple(sorted(set(message.tags)))},
    "metadata": lambda message: {
        "metadata_json": canonical_json(json_of(message, "metadata", "skill"))
    },
    "claimed_success_rate": lambda message: {"claimed_rate": _claimed(message)},
}


def skill_changes(message: skill_service_pb2.Skill, named: Iterable[str]) -> dict[str, Any]:
    """Return the new values of the named fields, by domain field.

    They must have passed `named_fields` and their rules.
    """
    changes: dict[str, Any] = {}
    for path in named:
        convert = _CONVERTED.get(path)
        changes |= convert(message) if convert else {path: attrgetter(path)(message)}
    return changes


def changed_fields_only(
    given: skill_service_pb2.Skill, named: Iterable[str]
) -> skill_service_pb2.Skill:
    """Return a skill to validate: id and the named fields as given, harmless others."""
    message = skill_service_pb2.Skill(id=given.id, name="unchanged")
    for path in named:
        message.ClearField(path)
        value = getattr(given, path)
        if path == "tags":
            message.tags.extend(value)
        elif path in ("signature", "metadata"):
            getattr(message, path).CopyFrom(value)
        elif path != "claimed_success_rate" or given.HasField(path):
            setattr(message, path, value)
    return message
