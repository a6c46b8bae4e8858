"""Skills: saving them, finding those that fit a task, and keeping their records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mneme_server.common import deadline, turns
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
)
from mneme_server.common.etags import existing, require_unchanged
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.document import Document, DocumentFilter, user_of
from mneme_server.engine.corpus.ports import Matrix, TextEmbedder
from mneme_server.engine.corpus.revision import revised
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.recall.model import RecallAnswer, RecallQuery
from mneme_server.features.recall.search import Recall
from mneme_server.features.skills.links import circle_closed_by
from mneme_server.features.skills.model import (
    SKILL,
    FoundSkill,
    Relationship,
    Skill,
    SkillFilter,
    SkillLink,
    SkillUse,
    score_of,
)
from mneme_server.features.skills.store.episodes import SqlEpisodes
from mneme_server.features.skills.store.skills import SqlSkills

CANDIDATES = 100
"""Most relevant skills among which a search ranks."""


@dataclass(frozen=True, slots=True)
class Skills:
    """The use cases of skills."""

    tenants: OpenTenants
    embedder: TextEmbedder
    recall: Recall

    def create(self, tenant_id: str, given: Skill) -> Skill:
        """Save the skill; an empty id is made. The same content again changes nothing.

        Raises:
            AlreadyExists: its name is taken, or its id is, by a skill with other content.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is saved.
        """
        now = now_us()
        skill = replace(given, id=given.id or new_id(), created_us=now, updated_us=now)
        vectors = self.embedder.embed([skill.text])  # Before the lock: it may take long.
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            skills = unit.get(SqlSkills)
            deadline.check()
            known = skills.get_many([skill.id]).get(skill.id)
            if known is not None:
                return _unchanged(known, skill)
            _require_free_name(unit, skill)
            if vectors is None:
                tenant.require_room(1)
            skills.save(skill)
            skills.set_sources(skill.id, skill.source_ids)
            unit.documents.add(documents_of(unit, [skill]), vectors)
        return skill

    def get(self, tenant_id: str, skill_id: str) -> tuple[Skill, Sequence[SkillLink]]:
        """Return the skill and its links.

        Raises:
            NotFound: there is no such skill.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            skill = _existing(unit, skill_id)
            return skill, unit.get(SqlSkills).links([skill_id]).get(skill_id, ())

    def update(
        self, tenant_id: str, skill_id: str, changes: Mapping[str, Any], *, etag: str = ""
    ) -> Skill:
        """Change the given fields, of those in `model.CONTENT`.

        Raises:
            NotFound: there is no such skill.
            Aborted: `etag` is given and is not the skill's any more.
            AlreadyExists: another skill has the new name.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is changed.
        """
        with self.tenants.open(tenant_id) as tenant:
            return revised(
                tenant,
                self.embedder,
                read=lambda unit: _existing(unit, skill_id, etag=etag),
                change=lambda before: _changed(before, changes),
                texts=lambda after: [after.text],
                save=_rewrite,
            )

    def page(
        self, tenant_id: str, filter_: SkillFilter, after: tuple[str] | None, limit: int
    ) -> tuple[Sequence[Skill], int]:
        """Return skills by name, after that name; and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = turns.read_page(
                partial(unit.get(SqlSkills).page, filter_), after, limit, lambda one: (one.name,)
            )
            return page, unit.get(SqlSkills).count(filter_)

    def search(
        self, tenant_id: str, task: str, filter_: SkillFilter, *, limit: int
    ) -> tuple[Sequence[FoundSkill], RecallAnswer]:
        """Return the skills that fit best and are known to work, and what recall said."""
        query = RecallQuery(
            text=task, filter=_document_filter(filter_), limit=CANDIDATES, bare=True
        )
        answer = self.recall.search(tenant_id, query)
        relevant = {result.document.source_id: result for result in answer.results}
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            skills = unit.get(SqlSkills)
            records = skills.records(list(relevant))
            scores = {
                one: score_of(found.score, records[one].interval[0])
                for one, found in relevant.items()
                if one in records
            }
            # Stable: of equal scores the more relevant one stays first.
            best = sorted(scores, key=lambda one: -scores[one])[:limit]
            stored, links = skills.get_many(best), skills.links(best)
        found = [
            FoundSkill(
                stored[one],
                scores[one],
                relevant[one].score,
                relevant[one].similarity,
                links.get(one, ()),
            )
            for one in best
            if one in stored
        ]
        return found, answer

    def record_use(self, tenant_id: str, given: SkillUse) -> Skill:
        """Count a use; the same use again counts once.

        Raises:
            NotFound: there is no such skill.
            AlreadyExists: the use's id is taken by another use.
        """
        use = replace(given, id=given.id or new_id(), used_us=given.used_us or now_us())
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            skills = unit.get(SqlSkills)
            skill = _existing(unit, use.skill_id)
            known = skills.use(use.skill_id, use.id)
            if known is not None:
                _require_same_use(known, replace(use, used_us=given.used_us or known.used_us))
                return skill
            after = skill.used(use)
            skills.add_use(use)
            skills.save(after)
            if after.value != skill.value:
                unit.documents.set_value(SKILL, skill.id, after.value)
        return after

    def link(self, tenant_id: str, link: SkillLink) -> SkillLink:
        """Link two skills; the same link again replaces its weight and metadata.

        Raises:
            NotFound: one of the skills does not exist.
            InvalidArgument: they are the same.
            FailedPrecondition: they would be prerequisites of each other.
        """
        if link.parent_id == link.child_id:
            raise InvalidArgument("a skill cannot be linked with itself", field="child_id")
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            parent = _existing(unit, link.parent_id, "parent_id")
            child = _existing(unit, link.child_id, "child_id")
            if link.relationship == Relationship.PREREQUISITE:
                _refuse_circle(unit, link)
            unit.get(SqlSkills).save_link(link)
        return replace(link, parent_name=parent.name, child_name=child.name)

    def unlink(
        self, tenant_id: str, parent_id: str, child_id: str, relationship: Relationship | None
    ) -> int:
        """Remove the links of that relationship, or of any, from one skill to the other; return
        how many there were.

        Raises:
            NotFound: one of the skills does not exist.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            _existing(unit, parent_id, "parent_id")
            _existing(unit, child_id, "child_id")
            return unit.get(SqlSkills).remove_links(parent_id, child_id, relationship)

    def delete(self, tenant_id: str, skill_id: str, *, etag: str = "") -> Skill:
        """Delete the skill with its links and uses, and return it as it was.

        Raises:
            NotFound: there is no such skill.
            Aborted: `etag` is given and is not the skill's any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            skill = _existing(unit, skill_id, etag=etag)
            unit.get(SqlSkills).remove(skill_id)
            unit.documents.remove(SKILL, [skill_id])
        return skill


class DependentSkills:
    """Skills whose episodes are all deleted. Implements `engine.corpus.forgetting.Dependents`."""

    name = "skills"

    def resting_on(self, unit: CorpusUnit, gone: Mapping[str, Collection[str]]) -> Collection[str]:
        """Return the skills that came from some of the episodes and from no others."""
        going = set(gone["episodes"])
        sources = unit.get(SqlSkills).sources_among(going)
        return {one for one, episodes in sources.items() if going.issuperset(episodes)}

    def remove(self, unit: CorpusUnit, ids: Collection[str]) -> None:
        """Delete the skills."""
        for skill_id in ids:
            unit.get(SqlSkills).remove(skill_id)
        unit.documents.remove(SKILL, list(ids))


def _existing(unit: CorpusUnit, skill_id: str, field_: str = "id", *, etag: str = "") -> Skill:
    """Return the skill, which must still have this etag, if one is given."""
    found = unit.get(SqlSkills).get_many([skill_id])
    return existing("skill", found.get(skill_id), skill_id, etag, field=field_)


def _changed(before: Skill, changes: Mapping[str, Any]) -> Skill:
    after = replace(before, **changes)
    if not after.differing(before):
        return before
    edited = before.edited or after.description != before.description
    return replace(after, edited=edited, updated_us=later_us(before.updated_us))


def _rewrite(unit: CorpusUnit, after: Skill, now: Skill, vectors: Matrix | None) -> Skill:
    _require_free_name(unit, after)
    after = replace(after, reported=now.reported, learned=now.learned)
    unit.get(SqlSkills).save(after)
    unit.documents.remove(SKILL, [after.id])
    unit.documents.add(documents_of(unit, [after]), vectors)
    return after


def _unchanged(known: Skill, given: Skill) -> Skill:
    require_unchanged("skill", known, known.differing(given))
    return known


def _require_free_name(unit: CorpusUnit, skill: Skill) -> None:
    other = unit.get(SqlSkills).ids_named([skill.name]).get(skill.name)
    if other not in (None, skill.id):
        raise AlreadyExists(f"skill {other!r} has the name {skill.name!r}", field="name")


def _require_same_use(known: SkillUse, given: SkillUse) -> None:
    if known != given:
        raise AlreadyExists(f"use {known.id!r} was reported with other content", field="use_id")


def _refuse_circle(unit: CorpusUnit, link: SkillLink) -> None:
    circle = circle_closed_by(link.parent_id, link.child_id, unit.get(SqlSkills).dependents)
    if not circle:
        return
    skills = unit.get(SqlSkills).get_many(circle)
    path = " → ".join(repr(skills[one].name) if one in skills else one for one in circle)
    raise FailedPrecondition(
        f"these skills would be prerequisites of each other: {path}", field="child_id"
    )


def documents_of(unit: CorpusUnit, skills: Sequence[Skill]) -> list[Document]:
    """Return what skills are found by. Each is of the user whose attempts taught it."""
    users = unit.get(SqlEpisodes).users({one for skill in skills for one in skill.source_ids})
    return [
        _document(skill, user_of(users.get(source, "") for source in skill.source_ids))
        for skill in skills
    ]


def _document(skill: Skill, user_id: str) -> Document:
    return Document(
        doc_id=0,
        kind=SKILL,
        source_id=skill.id,
        text=skill.text,
        timestamp_us=skill.updated_us,
        user_id=user_id,
        project=skill.project,
        value=skill.value,
        tags=skill.tags,
    )


def _document_filter(filter_: SkillFilter) -> DocumentFilter:
    return DocumentFilter(
        kinds=frozenset({SKILL}),
        project=filter_.project,
        tags=frozenset(filter_.tags),
        min_value=filter_.min_rate or None,
    )
