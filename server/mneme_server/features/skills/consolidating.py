"""Skills from episodes: what succeeded again and again, and what told it from what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial

import numpy as np

from mneme_server.common import deadline
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.ports import Matrix, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.scheduling.foreground import Foreground, Size
from mneme_server.features.recall.search import Recall
from mneme_server.features.skills.comparing import Group, compared
from mneme_server.features.skills.episode_model import Episode, EpisodeFilter
from mneme_server.features.skills.findings import Findings
from mneme_server.features.skills.grouping import groups_of
from mneme_server.features.skills.kinds import SKILL
from mneme_server.features.skills.ports import SkillsUnit
from mneme_server.features.skills.skill_model import Skill, Tally
from mneme_server.features.skills.skills import document_of
from mneme_server.features.skills.wording import description_of, free_name, name_of, word_sets

MAX_EPISODES = 10_000
"""Episodes that are looked at, the latest."""
SAME_TASK = 0.76
"""Cosine to a group's mean from which a task belongs to it, under the default model. Of an agent of
an airline, which tried each of fifty tasks four times, three in four pairs of attempts at one task
fall together so."""
_PAGE = 500
_ERRORS = 20


class Change(IntEnum):
    """What became of a group. The numbers are those of `mneme.v1.SkillChange`."""

    CREATED = 1
    UPDATED = 2
    UNCHANGED = 3


@dataclass(frozen=True, slots=True)
class Consolidated:
    """A skill that a group of episodes makes, and what became of it."""

    skill: Skill
    change: Change


@dataclass(frozen=True, slots=True)
class Report:
    """The skills that episodes make, those with the most successes first."""

    skills: Sequence[Consolidated]
    episodes: int
    not_embedded: int
    groups: int
    truncated: bool

    def count(self, change: Change) -> int:
        """Return of how many skills that became."""
        return sum(one.change is change for one in self.skills)


@dataclass(frozen=True, slots=True)
class _Read:
    """The episodes, the latest first, and their vectors (n, d)."""

    episodes: Sequence[Episode]
    vectors: Matrix
    not_embedded: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class ConsolidateSkills:
    """Groups episodes by the meaning of their tasks, and makes groups that succeed skills."""

    tenants: OpenTenants[SkillsUnit]
    embedder: TextEmbedder
    recall: Recall
    foreground: Foreground = field(default_factory=Foreground)

    def __call__(
        self,
        tenant_id: str,
        filter_: EpisodeFilter,
        *,
        min_attempts: int,
        min_reward: float,
        dry_run: bool,
    ) -> Report:
        """Make skills of the episodes, or keep those up to date that were made of them.

        With `dry_run` nothing is changed.

        Raises:
            ResourceExhausted: they cannot be embedded soon, and too much waits; nothing is changed.
            Abandoned: nobody waits for the answer any more.
        """
        with self.tenants.open(tenant_id) as tenant:
            read = self._read(tenant, filter_)
            groups, count = self._groups(tenant, read, min_attempts, min_reward)
            with self.foreground.computing(Size.LARGE):
                findings = compared(groups)
                names = _names(groups, read.episodes)
            while True:
                with tenant.read() as unit:
                    learned = unit.skills.learned()
                    taken = unit.skills.names()
                made = _made(groups, findings, names, learned, taken)
                if dry_run or self._write(tenant, made, learned):
                    break
        return Report(made, len(read.episodes), read.not_embedded, count, read.truncated)

    def _read(self, tenant: OpenTenant[SkillsUnit], filter_: EpisodeFilter) -> _Read:
        """Read the latest episodes, page by page, with the vectors that they have."""
        episodes: list[Episode] = []
        vectors: list[Matrix] = []
        missing, last = 0, None
        while True:
            deadline.check()
            with tenant.read() as unit:
                page = unit.episodes.digests(filter_, last, _PAGE)
                known = {**unit.episodes.task_vectors([one.id for one in page])}
                plain = unit.queue.known_vectors([one.text for one in page if not one.critique])
            known |= {one.id: plain[one.text] for one in page if one.text in plain}
            known |= self._embedded([one for one in page if one.id not in known])
            truncated = len(episodes) + missing + len(page) > MAX_EPISODES
            page = page[: MAX_EPISODES - len(episodes) - missing]
            for episode in page:
                if episode.id in known:
                    episodes.append(episode)
                    vectors.append(known[episode.id])
                else:
                    missing += 1
            if truncated or len(page) < _PAGE:
                stacked = np.stack(vectors) if vectors else np.empty((0, 0), np.float32)
                return _Read(episodes, stacked, missing, truncated)
            last = (page[-1].occurred_us, page[-1].id)

    def _embedded(self, episodes: Sequence[Episode]) -> dict[str, Matrix]:
        """Return the vectors (d,) of tasks that could not be had when they were stored, by id;
        none if they cannot be had now either."""
        made = self.embedder.embed([one.task for one in episodes]) if episodes else None
        if made is None:
            return {}
        return {one.id: vector for one, vector in zip(episodes, made, strict=True)}

    def _groups(
        self, tenant: OpenTenant[SkillsUnit], read: _Read, min_attempts: int, min_reward: float
    ) -> tuple[list[Group], int]:
        """Return the groups with enough successes, and how many groups there are at all."""
        if not read.episodes:
            return [], 0
        # In the order of time, so that what comes later joins what was there before.
        in_order = np.ascontiguousarray(read.vectors[::-1])
        least = self.recall.scale.of_usual(SAME_TASK)
        turn = partial(self.foreground.computing, Size.LARGE)
        groups = groups_of(in_order, least, turn)[::-1]
        worked = [one.success and one.reward >= min_reward for one in read.episodes]
        found = []
        for number in range(int(groups.max()) + 1):
            rows = np.flatnonzero(groups == number).tolist()
            of_group = [bool(worked[row]) for row in rows]
            if sum(of_group) < max(min_attempts, 1):
                continue
            deadline.check()
            episodes = [read.episodes[row] for row in rows]
            with tenant.read() as unit:
                sessions = {one.session_id for one in episodes if one.session_id}
                errors = unit.activity.errors_of(sessions, _ERRORS)
            found.append(Group(episodes, of_group, _example(read, rows, of_group), errors))
        found.sort(key=lambda group: -group.successes)
        return found, int(groups.max()) + 1

    def _write(
        self,
        tenant: OpenTenant[SkillsUnit],
        made: list[Consolidated],
        learned: Mapping[str, Skill],
    ) -> bool:
        """Write what changed; False: nothing, because somebody else changed the skills meanwhile.

        New skills get their ids.
        """
        places = [place for place, one in enumerate(made) if one.change is not Change.UNCHANGED]
        if not places:
            return True
        now = now_us()
        skills = [_dated(made[place].skill, now) for place in places]
        vectors = self.embedder.embed([skill.text for skill in skills])  # Before the lock.
        if vectors is None:
            tenant.require_room(len(skills))
        with tenant.write() as unit:
            deadline.check()
            before = {skill.id: skill.updated_us for skill in learned.values()}
            same = {one.id: one.updated_us for one in unit.skills.learned().values()} == before
            new = [skill.name for skill in skills if skill.id not in before]
            if not same or unit.skills.ids_named(new):
                return False
            reported = unit.skills.get_many([skill.id for skill in skills])
            for place, skill in zip(places, skills, strict=True):
                known = reported.get(skill.id)
                kept = skill if known is None else replace(skill, reported=known.reported)
                unit.skills.save(kept)
                unit.skills.set_sources(kept.id, kept.source_ids)
                made[place] = Consolidated(kept, made[place].change)
            unit.documents.remove(SKILL, [skill.id for skill in skills])
            unit.documents.add([document_of(made[place].skill) for place in places], vectors)
        return True


def _example(read: _Read, rows: Sequence[int], worked: Sequence[bool]) -> Episode:
    """Return the success that is nearest to the mean of the group's successes."""
    won = [row for row, success in zip(rows, worked, strict=True) if success]
    near = read.vectors[won] @ read.vectors[won].mean(axis=0)
    return read.episodes[won[int(near.argmax())]]


def _names(groups: Sequence[Group], episodes: Sequence[Episode]) -> list[str]:
    everywhere = Counter(
        word for words in word_sets([one.task for one in episodes]) for word in words
    )
    return [
        name_of(
            group.example.task,
            word_sets([one.task for one in group.episodes]),
            everywhere,
            len(episodes),
        )
        for group in groups
    ]


def _made(
    groups: Sequence[Group],
    findings: Sequence[Findings],
    names: Sequence[str],
    learned: Mapping[str, Skill],
    taken: set[str],
) -> list[Consolidated]:
    skill_of = _matched(groups, learned)
    made = []
    for place, (group, found) in enumerate(zip(groups, findings, strict=True)):
        before = skill_of.get(place)
        name = free_name(names[place], taken) if before is None else before.name
        taken.add(name)
        after = _skill(group, found, before or Skill(id="", name=name, edited=False))
        if before is None:
            change = Change.CREATED
        else:
            change = Change.UNCHANGED if after == before else Change.UPDATED
        made.append(Consolidated(after, change))
    return made


def _matched(groups: Sequence[Group], learned: Mapping[str, Skill]) -> dict[int, Skill]:
    """Return the skill that each group already is: the one that shares most episodes with it."""
    owner: dict[str, list[str]] = {}
    for skill in learned.values():
        for episode_id in skill.source_ids:
            owner.setdefault(episode_id, []).append(skill.id)
    common: Counter[tuple[int, str]] = Counter(
        (place, skill_id)
        for place, group in enumerate(groups)
        for episode in group.episodes
        for skill_id in owner.get(episode.id, ())
    )
    found: dict[int, Skill] = {}
    matched: set[str] = set()
    for (place, skill_id), _ in sorted(common.items(), key=lambda one: (-one[1], one[0])):
        if place not in found and skill_id not in matched:
            found[place] = learned[skill_id]
            matched.add(skill_id)
    return found


def _skill(group: Group, findings: Findings, before: Skill) -> Skill:
    """Return the skill as the group's episodes have it."""
    projects = {episode.project for episode in group.episodes}
    return replace(
        before,
        description=before.description if before.edited else description_of(findings),
        project=before.project if before.id or len(projects) > 1 else projects.pop(),
        learned=_tally(group),
        findings_json=findings.json,
        source_ids=tuple(episode.id for episode in group.episodes),
    )


def _tally(group: Group) -> Tally:
    times = [one.latency_ms for one in group.episodes if one.latency_ms is not None]
    return Tally(
        uses=len(group.episodes),
        successes=group.successes,
        rewards=len(group.episodes),
        reward_sum=sum(one.reward for one in group.episodes),
        times=len(times),
        time_sum_ms=sum(times),
        last_us=max(one.occurred_us for one in group.episodes),
    )


def _dated(skill: Skill, now: int) -> Skill:
    if not skill.id:
        return replace(skill, id=new_id(), created_us=now, updated_us=now)
    return replace(skill, updated_us=later_us(skill.updated_us))
