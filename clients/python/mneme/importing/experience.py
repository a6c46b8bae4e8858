"""Brings in episodes and skills as `mneme episodes export` and `mneme skills export` write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mneme._generated.choices import EpisodeConflictChoice
from mneme.client import MnemeClient
from mneme.errors import AlreadyExistsError, ArgumentError
from mneme.importing.plan import exact
from mneme.importing.reading import Broken, Record, read_records
from mneme.messages import Episode, ImportEpisodesResponse, Skill, SkillLink
from mneme.plain import from_dict, to_dict

_MAX_BATCH = 500
_MAX_BATCH_BYTES = 1024 * 1024


def import_episodes(
    client: MnemeClient, file: Path, *, on_conflict: EpisodeConflictChoice | None = None
) -> ImportEpisodesResponse:
    """Import a file of episodes; returns the sums of what became of them.

    The whole file is read before anything is sent, so that a broken line brings nothing in.

    Raises:
        ArgumentError: a record is no episode; the message names its place.
        MnemeError: the server refused a batch; batches before it are in.
    """
    with file.open("rb") as stream:
        episodes = [_episode(record) for record in read_records(stream, str(file))]
    totals = ImportEpisodesResponse()
    for batch in _batches(episodes):
        answer = client.import_episodes(batch, on_conflict=on_conflict)
        totals.created_count += answer.created_count
        totals.replaced_count += answer.replaced_count
        totals.unchanged_count += answer.unchanged_count
        totals.skipped_count += answer.skipped_count
        totals.episode_ids.extend(answer.episode_ids)
    return totals


@dataclass
class ImportedSkills:
    """What became of skills: those that are there now, of which some were before, and links."""

    skills: int = 0
    links: int = 0


def import_skills(client: MnemeClient, file: Path) -> ImportedSkills:
    """Import a file of skills with their links.

    A skill's record of uses does not come with it: what it succeeded at elsewhere becomes the rate
    that is claimed of it, unless one is claimed already. Importing again changes nothing.

    Raises:
        ArgumentError: a record is no skill, or another skill has its name; the message names its
            place.
        MnemeError: the server refused one; those before it are in.
    """
    with file.open("rb") as stream:
        found = [_skill(record) for record in read_records(stream, str(file))]
    done = ImportedSkills()
    for place, skill, _ in found:
        try:
            client.create_skill(skill.name, **_fields(skill))
        except AlreadyExistsError as error:
            raise ArgumentError(f"{place}: {error.message}") from error
        done.skills += 1
    for _, skill, links in found:
        for link in links:
            if link.parent_skill_id == skill.id:  # The other end's skill tells it, too.
                client.link_skills(
                    link.parent_skill_id,
                    link.child_skill_id,
                    relationship=to_dict(link)["relationship"],
                    weight=link.weight,
                    metadata=link.metadata if link.HasField("metadata") else None,  # type: ignore[arg-type]
                )
                done.links += 1
    return done


def _fields(skill: Skill) -> dict[str, Any]:
    claimed = None
    if skill.HasField("claimed_success_rate"):
        claimed = skill.claimed_success_rate
    elif skill.record.HasField("success_rate"):
        claimed = skill.record.success_rate
    return {
        "description": skill.description,
        "signature": skill.signature if skill.HasField("signature") else None,
        "code": skill.code,
        "project": skill.project,
        "tags": list(skill.tags),
        "metadata": skill.metadata if skill.HasField("metadata") else None,
        "claimed_success_rate": claimed,
        "source_episode_ids": list(skill.source_episode_ids),
        "skill_id": skill.id or None,
    }


def _episode(record: Record | Broken) -> Episode:
    if isinstance(record, Broken):
        raise ArgumentError(f"{record.place}: {record.reason}")
    try:
        episode = from_dict(exact(record.value), Episode())
    except ArgumentError as error:
        raise ArgumentError(f"{record.place}: no episode: {error}") from error
    if not episode.task:
        raise ArgumentError(f"{record.place}: no episode: it has no task")
    return episode


def _skill(record: Record | Broken) -> tuple[str, Skill, Sequence[SkillLink]]:
    if isinstance(record, Broken):
        raise ArgumentError(f"{record.place}: {record.reason}")
    value = dict(record.value) if isinstance(record.value, dict) else record.value
    links = value.pop("links", []) if isinstance(value, dict) else []
    try:
        skill = from_dict(exact(value), Skill())
        found = [from_dict(exact(link), SkillLink()) for link in links]
    except (ArgumentError, TypeError) as error:
        raise ArgumentError(f"{record.place}: no skill: {error}") from error
    if not skill.name:
        raise ArgumentError(f"{record.place}: no skill: it has no name")
    return str(record.place), skill, found


def _batches(episodes: list[Episode]) -> Iterator[list[Episode]]:
    batch: list[Episode] = []
    size = 0
    for episode in episodes:
        length = episode.ByteSize()
        if batch and (len(batch) == _MAX_BATCH or size + length > _MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(episode)
        size += length
    if batch:
        yield batch
