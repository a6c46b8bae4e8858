"""The messages of episodes and skills, from and to the domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mneme.v1 import episode_pb2, skill_service_pb2

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import (
    json_of,
    struct_of,
    to_timestamp,
)
from mneme_server.edge.grpc.paging import fitting
from mneme_server.edge.grpc.records import MessageReader, message_writer
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
    Skill,
    SkillFilter,
    SkillFindings,
    SkillLink,
    SkillUse,
    ToolPath,
    TraitCounts,
    findings_of,
)

new_episode = MessageReader(
    episode_pb2.CreateEpisodeRequest, NewEpisode, spelled={"id": "episode_id"}, sets=["memory_ids"]
)
"""Return the episode that a request stores."""
read_episode = MessageReader(
    episode_pb2.Episode,
    Episode,
    spelled={"filled": "filled_fields"},
    sets=["tags", "memory_ids"],
    unread=["etag"],
)
"""Return the episode of a message as it was exported; its etag follows from the rest of it."""
episode = reads("episode")(
    message_writer(Episode, episode_pb2.Episode, spelled={"filled": "filled_fields"})
)
"""Return the message of an episode."""
found_episode = message_writer(FoundEpisode, episode_pb2.FoundEpisode, parts={"episode": episode})
"""Return the message of an episode that was found."""


def _success(message: episode_pb2.EpisodeFilter, _path: str) -> bool | None:
    return True if message.only_successes else False if message.only_failures else None


episode_filter = MessageReader(
    episode_pb2.EpisodeFilter,
    EpisodeFilter,
    made={"success": _success},
    unread=["only_successes", "only_failures"],
)
"""Return the filter of a message."""
critique_point = message_writer(
    CritiquePoint,
    episode_pb2.CritiquePoint,
    spelled={"failures": "failure_count", "successes": "success_count"},
)
"""Return the message of something that critiques say."""
critique_summary = message_writer(
    CritiqueSummary,
    episode_pb2.CritiqueSummary,
    spelled={"more": "more_count"},
    parts={"points": critique_point},
)
"""Return the message of what critiques say."""


def _signature(field: str) -> Callable[[Any, str], str]:
    """Return what reads a part of a signature."""

    def read(message: Any, path: str) -> str:
        return canonical_json(json_of(message.signature, field, f"{path}.signature".lstrip(".")))

    return read


_SIGNATURE = {"inputs_json": _signature("inputs"), "outputs_json": _signature("outputs")}
_SPELLED = dict.fromkeys(_SIGNATURE, "signature") | {"claimed_rate": "claimed_success_rate"}


def _sources(message: skill_service_pb2.CreateSkillRequest, _path: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(message.source_episode_ids))


new_skill = MessageReader(
    skill_service_pb2.CreateSkillRequest,
    Skill,
    spelled=_SPELLED | {"id": "skill_id", "source_ids": "source_episode_ids"},
    made={**_SIGNATURE, "source_ids": _sources},
    sets=["tags"],
)
"""Return the skill that a request saves."""
read_skill = MessageReader(
    skill_service_pb2.Skill,
    Skill,
    spelled=_SPELLED | {"findings_json": ""},
    made=_SIGNATURE,
    sets=["tags"],
    unread=["record", "findings", "source_episode_ids", "etag"],
)
"""Return the skill of a message, without what the server adds to it."""


def _signed(stored: Skill) -> skill_service_pb2.SkillSignature | None:
    inputs, outputs = struct_of(stored.inputs_json), struct_of(stored.outputs_json)
    if inputs is None and outputs is None:
        return None
    return skill_service_pb2.SkillSignature(inputs=inputs, outputs=outputs)


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


_COUNTS = {"successes": "success_count", "failures": "failure_count"}
_difference = message_writer(TraitCounts, skill_service_pb2.SkillDifference, spelled=_COUNTS)
_findings = message_writer(
    SkillFindings,
    skill_service_pb2.SkillFindings,
    spelled=_COUNTS
    | {
        "attempts": "attempt_count",
        "example_id": "example_episode_id",
        "compared": "compared_count",
    },
    parts={
        "ways": message_writer(ToolPath, skill_service_pb2.SkillWay, spelled=_COUNTS),
        "shared": _difference,
        "differences": _difference,
        "critiques": critique_point,
    },
)


def _findings_of(stored: Skill) -> skill_service_pb2.SkillFindings | None:
    found = findings_of(stored.findings_json)
    return None if found is None else _findings(found)


skill = reads("skill")(
    message_writer(
        Skill,
        skill_service_pb2.Skill,
        spelled={"claimed_rate": "claimed_success_rate"},
        made={
            "signature": _signed,
            "record": _record,
            "findings": _findings_of,
            "source_episode_ids": lambda stored: stored.source_ids[:MAX_SOURCES],
        },
        unshown=[
            "inputs_json",
            "outputs_json",
            "reported",
            "learned",
            "edited",
            "findings_json",
            "source_ids",
        ],
    )
)
"""Return the message of a skill."""


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


skill_filter = MessageReader(
    skill_service_pb2.SkillFilter, SkillFilter, spelled={"min_rate": "min_success_rate"}
)
"""Return the filter of a message."""
skill_use = MessageReader(
    skill_service_pb2.RecordSkillUseRequest, SkillUse, spelled={"id": "use_id"}
)
"""Return the use that a request reports."""
_LINKED = {"parent_id": "parent_skill_id", "child_id": "child_skill_id"}
new_link = MessageReader(skill_service_pb2.LinkSkillsRequest, SkillLink, spelled=_LINKED)
"""Return the link that a request makes."""
link = reads("link of a skill", "parent_id")(
    message_writer(SkillLink, skill_service_pb2.SkillLink, spelled=_LINKED)
)
"""Return the message of a link."""
found_skill = message_writer(
    FoundSkill, skill_service_pb2.FoundSkill, parts={"skill": skill, "links": link}
)
"""Return the message of a skill that was found."""
