"""Skills from episodes: what succeeded again and again, what told it from what failed, and the
words that say so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from mneme_server.common import deadline, turns
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.ports import WHOLE, Matrix, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.features.context.words import ended, folded, words_of
from mneme_server.features.events.store.history import SqlActivity
from mneme_server.features.recall.search import Recall
from mneme_server.features.reflect.wording import of, percent, sequence, sure
from mneme_server.features.skills.comparison import MIN_GROUP, TaskGroup, compared
from mneme_server.features.skills.dp_means import groups_of
from mneme_server.features.skills.model import (
    SKILL,
    Episode,
    EpisodeFilter,
    Skill,
    SkillFindings,
    Trait,
    TraitCounts,
    UseTally,
    rate_interval,
)
from mneme_server.features.skills.skills import documents_of
from mneme_server.features.skills.store.episodes import SqlEpisodes
from mneme_server.features.skills.store.skills import SqlSkills

MAX_EPISODES = 10_000
"""Episodes that are looked at, the latest."""
SAME_TASK = 0.76
"""Cosine to a group's mean from which a task belongs to it, under the default model. Of an agent of
an airline, which tried each of fifty tasks four times, three in four pairs of attempts at one task
fall together so."""
_PAGE = 500
_ERRORS = 20
_NAME_WORDS = 5
_FREQUENT = 0.5
"""Share of a group's tasks from which a word may be part of its name."""
_DIGIT = re.compile(r"\d")
_SMALL = re.compile(r"(?<![\w'’])[^\W\dA-Z_][^\W_]*")
_NAMED = re.compile(r"(?<=[\w,;)] )[A-Z][a-z][^\W\dA-Z_]*(?![\w@])")
_MAX_TOOLS = 6
_MAX_CRITIQUES = 3


class SkillChange(IntEnum):
    """What became of a group. The numbers are those of `mneme.v1.SkillChange`."""

    CREATED = 1
    UPDATED = 2
    UNCHANGED = 3


@dataclass(frozen=True, slots=True)
class ConsolidatedSkill:
    """A skill that a group of episodes makes, and what became of it."""

    skill: Skill
    change: SkillChange


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """The skills that episodes make, those with the most successes first."""

    skills: Sequence[ConsolidatedSkill]
    episodes: int
    not_embedded: int
    groups: int
    truncated: bool

    def count(self, change: SkillChange) -> int:
        """Return of how many skills that became."""
        return sum(one.change is change for one in self.skills)


@dataclass(frozen=True, slots=True)
class _EpisodeVectors:
    """The episodes, the latest first, and their vectors (n, d)."""

    episodes: Sequence[Episode]
    vectors: Matrix
    not_embedded: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Consolidation:
    """Groups episodes by the meaning of their tasks, and makes groups that succeed skills."""

    tenants: OpenTenants
    embedder: TextEmbedder
    recall: Recall

    def run(
        self,
        tenant_id: str,
        filter_: EpisodeFilter,
        *,
        min_attempts: int,
        min_reward: float,
        dry_run: bool,
    ) -> ConsolidationReport:
        """Make skills of the episodes, or keep those up to date that were made of them.

        With `dry_run` nothing is changed.

        Raises:
            ResourceExhausted: they cannot be embedded soon, and too much waits; nothing is changed.
            Abandoned: nobody waits for the answer any more.
        """
        with self.tenants.open(tenant_id) as tenant:
            read = self._read(tenant, filter_)
            groups, count = self._groups(tenant, read, min_attempts, min_reward)
            with turns.computing():
                findings = compared(groups)
                names = _names(groups, read.episodes)
            while True:
                with tenant.read() as unit:
                    learned = unit.get(SqlSkills).learned()
                    taken = unit.get(SqlSkills).names()
                made = _made(groups, findings, names, learned, taken)
                if dry_run or self._write(tenant, made, learned):
                    break
        return ConsolidationReport(
            made, len(read.episodes), read.not_embedded, count, read.truncated
        )

    def _read(self, tenant: OpenTenant, filter_: EpisodeFilter) -> _EpisodeVectors:
        """Read the latest episodes, page by page, with the vectors that they have."""
        episodes: list[Episode] = []
        vectors: list[Matrix] = []
        missing, last = 0, None
        while True:
            deadline.check()
            with tenant.read() as unit:
                page = unit.get(SqlEpisodes).digests(filter_, last, _PAGE)
                known = {**unit.get(SqlEpisodes).task_vectors([one.id for one in page])}
                plain = unit.queue.known_vectors([one.text for one in page if not one.critique])
            known |= {one.id: plain[one.text][WHOLE] for one in page if one.text in plain}
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
                return _EpisodeVectors(episodes, stacked, missing, truncated)
            last = (page[-1].occurred_us, page[-1].id)

    def _embedded(self, episodes: Sequence[Episode]) -> dict[str, Matrix]:
        """Return the vectors (d,) of tasks that could not be had when they were stored, by id;
        none if they cannot be had now either."""
        made = self.embedder.embed([one.task for one in episodes]) if episodes else None
        if made is None:
            return {}
        return {one.id: vector for one, vector in zip(episodes, made, strict=True)}

    def _groups(
        self,
        tenant: OpenTenant,
        read: _EpisodeVectors,
        min_attempts: int,
        min_reward: float,
    ) -> tuple[list[TaskGroup], int]:
        """Return the groups with enough successes, and how many groups there are at all."""
        if not read.episodes:
            return [], 0
        # In the order of time, so that what comes later joins what was there before.
        in_order = np.ascontiguousarray(read.vectors[::-1])
        least = self.recall.scale.of_usual(SAME_TASK)
        groups = groups_of(in_order, least, turns.computing)[::-1]
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
                errors = unit.get(SqlActivity).errors_of(sessions, _ERRORS)
            found.append(TaskGroup(episodes, of_group, _example(read, rows, of_group), errors))
        found.sort(key=lambda group: -group.successes)
        return found, int(groups.max()) + 1

    def _write(
        self,
        tenant: OpenTenant,
        made: list[ConsolidatedSkill],
        learned: Mapping[str, Skill],
    ) -> bool:
        """Write what changed; False: nothing, because somebody else changed the skills meanwhile.

        New skills get their ids.
        """
        places = [
            place for place, one in enumerate(made) if one.change is not SkillChange.UNCHANGED
        ]
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
            same = {
                one.id: one.updated_us for one in unit.get(SqlSkills).learned().values()
            } == before
            new = [skill.name for skill in skills if skill.id not in before]
            if not same or unit.get(SqlSkills).ids_named(new):
                return False
            reported = unit.get(SqlSkills).get_many([skill.id for skill in skills])
            for place, skill in zip(places, skills, strict=True):
                known = reported.get(skill.id)
                kept = skill if known is None else replace(skill, reported=known.reported)
                unit.get(SqlSkills).save(kept)
                unit.get(SqlSkills).set_sources(kept.id, kept.source_ids)
                made[place] = ConsolidatedSkill(kept, made[place].change)
            unit.documents.remove(SKILL, [skill.id for skill in skills])
            unit.documents.add(documents_of(unit, skills), vectors)
        return True


def _example(read: _EpisodeVectors, rows: Sequence[int], worked: Sequence[bool]) -> Episode:
    """Return the success that is nearest to the mean of the group's successes."""
    won = [row for row, success in zip(rows, worked, strict=True) if success]
    near = read.vectors[won] @ read.vectors[won].mean(axis=0)
    return read.episodes[won[int(near.argmax())]]


def _names(groups: Sequence[TaskGroup], episodes: Sequence[Episode]) -> list[str]:
    proper = proper_names([one.task for one in episodes])
    everywhere = Counter(
        word for words in word_sets([one.task for one in episodes], proper) for word in words
    )
    return [
        name_of(
            " ".join(_plain_words(group.example.task, proper)),
            word_sets([one.task for one in group.episodes], proper),
            everywhere,
            len(episodes),
        )
        for group in groups
    ]


def _made(
    groups: Sequence[TaskGroup],
    findings: Sequence[SkillFindings],
    names: Sequence[str],
    learned: Mapping[str, Skill],
    taken: set[str],
) -> list[ConsolidatedSkill]:
    skill_of = _matched(groups, learned)
    made = []
    for place, (group, found) in enumerate(zip(groups, findings, strict=True)):
        before = skill_of.get(place)
        name = free_name(names[place], taken) if before is None else before.name
        taken.add(name)
        after = _skill(group, found, before or Skill(id="", name=name, edited=False))
        if before is None:
            change = SkillChange.CREATED
        else:
            change = SkillChange.UNCHANGED if after == before else SkillChange.UPDATED
        made.append(ConsolidatedSkill(after, change))
    return made


def _matched(groups: Sequence[TaskGroup], learned: Mapping[str, Skill]) -> dict[int, Skill]:
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


def _skill(group: TaskGroup, findings: SkillFindings, before: Skill) -> Skill:
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


def _tally(group: TaskGroup) -> UseTally:
    times = [one.latency_ms for one in group.episodes if one.latency_ms is not None]
    return UseTally(
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


def proper_names(tasks: Sequence[str]) -> frozenset[str]:
    """Return the words that tasks write as names, folded: with a capital within a sentence, and
    nowhere small. Whose task it was is not what is done; abbreviations are."""
    named: set[str] = set()
    small: set[str] = set()
    for task in tasks:
        small.update(folded(word.lower()) for word in _SMALL.findall(task))
        named.update(folded(word.lower()) for word in _NAMED.findall(task))
    return frozenset(named - small)


def word_sets(tasks: Sequence[str], without: Collection[str] = frozenset()) -> list[frozenset[str]]:
    """Return the words of each task that say something, folded, without ids and those words."""
    return [frozenset(map(folded, _plain_words(task, without))) for task in tasks]


def _plain_words(task: str, without: Collection[str] = frozenset()) -> list[str]:
    words = (word for word in words_of(task) if not _DIGIT.search(word))
    return [word for word in words if folded(word) not in without]


def name_of(
    example: str, inside: Sequence[frozenset[str]], share_of: Counter[str], total: int
) -> str:
    """Return a name: the words that half of a group's tasks have, and that others have less often.

    Args:
        example: the most typical task, whose order and forms of words it takes.
        inside: the words of the group's tasks.
        share_of: how many of all tasks have each word.
        total: how many tasks there are.
    """
    here = Counter(word for words in inside for word in words)
    size = len(inside)

    def weight(word: str) -> float:
        share, everywhere = here[word] / size, share_of[word] / total
        return share * (1.0 + share - everywhere)

    frequent = [word for word in here if here[word] >= _FREQUENT * size]
    chosen = set(sorted(frequent, key=lambda word: (-weight(word), word))[:_NAME_WORDS])
    in_order = dict.fromkeys(word for word in _plain_words(example) if folded(word) in chosen)
    forms: dict[str, str] = {}
    for word in in_order:
        forms.setdefault(folded(word), word)
    missing = sorted(chosen - forms.keys())
    words = [*forms.values(), *missing] or _plain_words(example)[:_NAME_WORDS] or ["task"]
    return "_".join(re.sub(r"\W+", "_", word).strip("_") for word in words)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number behind it if it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def description_of(findings: SkillFindings) -> str:
    """Return what the findings say, in sentences, a line for each point."""
    return "\n".join(_lines(findings))


def _lines(findings: SkillFindings) -> Iterator[str]:
    yield f"For tasks like: “{findings.example_task}”"
    low, high = rate_interval(findings.successes, findings.attempts)
    yield (
        f"Worked in {findings.successes} of {findings.attempts} attempts"
        f" ({percent(findings.successes / findings.attempts)}; 95 % interval {percent(low)} to"
        f" {percent(high)})."
    )
    if findings.ways:
        ways = (f"{sequence(way.tools)} ({way.successes} of {findings.successes})"
                for way in findings.ways)  # fmt: skip
        yield f"How successes went: {'; '.join(ways)}."
    if findings.shared:
        tools = (_called(one, findings) for one in findings.shared[:_MAX_TOOLS])
        yield f"Most successes called {', '.join(tools)}."
    yield from _told_apart(findings)
    for point in findings.critiques[:_MAX_CRITIQUES]:
        said_by = ", ".join(
            f"{count} {how}"
            for count, how in ((point.failures, "failed"), (point.successes, "succeeded"))
            if count
        )
        yield f"A critique says: “{point.text}” ({said_by})"
    if findings.example_output:
        yield f"A typical success ended with: “{findings.example_output}”"


def _called(tool: TraitCounts, findings: SkillFindings) -> str:
    successes = f"{tool.successes} of {findings.successes}"
    if not findings.failures:
        return f"{tool.name} ({successes})"
    return f"{tool.name} ({successes}; failures: {tool.failures} of {findings.failures})"


def _told_apart(findings: SkillFindings) -> Iterator[str]:
    """Say what failures do or lack, or why nobody knows."""
    failures = findings.failures
    if not failures:
        yield "No attempt failed, so nothing tells what to avoid."
    elif failures < MIN_GROUP or findings.successes < MIN_GROUP:
        fewer = min(failures, findings.successes)
        how = "failed" if fewer == failures else "succeeded"
        few = "1 attempt" if fewer == 1 else f"{fewer} attempts"
        yield f"Only {few} {how}: too few to tell what failures lack."
    elif not findings.differences:
        yield "Nothing that was recorded tells successes from failures reliably."
    for one in findings.differences:
        yield ended(_difference(one, findings))


def _difference(one: TraitCounts, findings: SkillFindings) -> str:
    successes = of(one.successes, findings.successes)
    failures = of(one.failures, findings.failures)
    more_often = one.successes * findings.failures > one.failures * findings.successes
    what = {
        Trait.TOOL: f"called {one.name}",
        Trait.TAG: f"had the label {one.name}",
        Trait.ERROR: f"met the error “{one.name}”",
    }[one.trait]
    if more_often:
        return (
            f"Successes {what} more often than failures: {successes} against {failures},"
            f" {sure(one.q_value)}"
        )
    return (
        f"Failures {what} more often than successes: {failures} against {successes},"
        f" {sure(one.q_value)}"
    )
