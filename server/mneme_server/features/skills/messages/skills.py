"""Between the messages of skills and the domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, cast

from mneme.v1 import skill_service_pb2 as pb

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import json_of, stored_time, struct_of, to_timestamp
from mneme_server.edge.grpc.paging import fitting
from mneme_server.features.skills.consolidating import Change, Report
from mneme_server.features.skills.findings import Difference, findings_of
from mneme_server.features.skills.messages.episodes import critique_point
from mneme_server.features.skills.skill_model import (
    MAX_SOURCES,
    FoundSkill,
    Relationship,
    Skill,
    SkillFilter,
    SkillLink,
    SkillUse,
)


def new_skill(request: pb.CreateSkillRequest) -> Skill:
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


def _signature(message: pb.CreateSkillRequest | pb.Skill, parent: str) -> tuple[str, str]:
    path = f"{parent}.signature" if parent else "signature"
    given = message.signature
    inputs, outputs = (json_of(given, field, path) for field in ("inputs", "outputs"))
    return canonical_json(inputs), canonical_json(outputs)


def _claimed(message: pb.CreateSkillRequest | pb.Skill) -> float | None:
    given = message.HasField("claimed_success_rate")
    return message.claimed_success_rate if given else None


@reads("skill")
def skill(stored: Skill) -> pb.Skill:
    """Return the message of a skill."""
    inputs, outputs = struct_of(stored.inputs_json), struct_of(stored.outputs_json)
    signed = inputs is not None or outputs is not None
    return pb.Skill(
        id=stored.id,
        name=stored.name,
        description=stored.description,
        signature=pb.SkillSignature(inputs=inputs, outputs=outputs) if signed else None,
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


def _record(stored: Skill) -> pb.SkillRecord:
    tally = stored.record
    low, high = tally.interval
    return pb.SkillRecord(
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


def _findings(text: str) -> pb.SkillFindings | None:
    found = findings_of(text)
    if found is None:
        return None
    return pb.SkillFindings(
        attempt_count=found.attempts,
        success_count=found.successes,
        example_task=found.example_task,
        example_output=found.example_output,
        example_episode_id=found.example_id,
        ways=[pb.SkillWay(tools=way.tools, success_count=way.successes) for way in found.ways],
        shared=map(_difference, found.shared),
        differences=map(_difference, found.differences),
        compared_count=found.compared,
        critiques=map(critique_point, found.critiques),
    )


def _difference(one: Difference) -> pb.SkillDifference:
    return pb.SkillDifference(
        trait=cast("pb.SkillTrait", one.trait),
        name=one.name,
        success_count=one.successes,
        failure_count=one.failures,
        q_value=one.q_value,
    )


def consolidated(report: Report) -> pb.ConsolidateSkillsResponse:
    """Return the message of the skills that episodes make."""
    return pb.ConsolidateSkillsResponse(
        skills=fitting(
            pb.ConsolidatedSkill(skill=skill(one.skill), change=cast("pb.SkillChange", one.change))
            for one in report.skills
        ),
        created_count=report.count(Change.CREATED),
        updated_count=report.count(Change.UPDATED),
        unchanged_count=report.count(Change.UNCHANGED),
        episode_count=report.episodes,
        not_embedded_count=report.not_embedded,
        group_count=report.groups,
        truncated=report.truncated,
    )


def found_skill(found: FoundSkill) -> pb.FoundSkill:
    """Return the message of a skill that was found."""
    return pb.FoundSkill(
        skill=skill(found.skill),
        score=found.score,
        relevance=found.relevance,
        similarity=found.similarity,
        links=map(link, found.links),
    )


def skill_filter(message: pb.SkillFilter) -> SkillFilter:
    """Return the filter of a message."""
    return SkillFilter(
        project=message.project,
        tags=tuple(message.tags),
        min_rate=message.min_success_rate,
    )


def skill_use(request: pb.RecordSkillUseRequest) -> SkillUse:
    """Return the use that a request reports."""
    return SkillUse(
        id=request.use_id,
        skill_id=request.skill_id,
        success=request.success,
        reward=request.reward if request.HasField("reward") else None,
        latency_ms=request.latency_ms if request.HasField("latency_ms") else None,
        used_us=stored_time(request, "used_at") or 0,
    )


def new_link(request: pb.LinkSkillsRequest) -> SkillLink:
    """Return the link that a request makes."""
    return SkillLink(
        parent_id=request.parent_skill_id,
        child_id=request.child_skill_id,
        relationship=Relationship(request.relationship),
        weight=request.weight,
        metadata_json=canonical_json(json_of(request, "metadata")),
    )


@reads("link of a skill", "parent_id")
def link(stored: SkillLink) -> pb.SkillLink:
    """Return the message of a link."""
    return pb.SkillLink(
        parent_skill_id=stored.parent_id,
        parent_name=stored.parent_name,
        child_skill_id=stored.child_id,
        child_name=stored.child_name,
        relationship=cast("pb.SkillRelationship", stored.relationship),
        weight=stored.weight,
        metadata=struct_of(stored.metadata_json),
    )


# Fields that the domain has under another name or in another form than the message.
_CONVERTED: dict[str, Callable[[pb.Skill], dict[str, Any]]] = {
    "signature": lambda message: dict(
        zip(("inputs_json", "outputs_json"), _signature(message, "skill"), strict=True)
    ),
    "tags": lambda message: {"tags": tuple(sorted(set(message.tags)))},
    "metadata": lambda message: {
        "metadata_json": canonical_json(json_of(message, "metadata", "skill"))
    },
    "claimed_success_rate": lambda message: {"claimed_rate": _claimed(message)},
}


def skill_changes(message: pb.Skill, named: Iterable[str]) -> dict[str, Any]:
    """Return the new values of the named fields, by domain field.

    They must have passed `named_fields` and their rules.
    """
    changes: dict[str, Any] = {}
    for path in named:
        convert = _CONVERTED.get(path)
        changes |= convert(message) if convert else {path: attrgetter(path)(message)}
    return changes


def changed_fields_only(given: pb.Skill, named: Iterable[str]) -> pb.Skill:
    """Return a skill to validate: id and the named fields as given, harmless others."""
    message = pb.Skill(id=given.id, name="unchanged")
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
