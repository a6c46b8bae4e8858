"""Skills, their uses and their links in a tenant's database."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, delete, func, or_, select

from mneme_server.common.canonical import JsonObject
from mneme_server.common.stored import reads
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.memories import Details
from mneme_server.engine.store.portable import array_of, insert, listed
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import (
    chunks,
    equal_where_given,
    read_with,
    rows_among,
    upsert,
)
from mneme_server.engine.store.totals import add_to_total, known, total
from mneme_server.features.skills.model import (
    Relationship,
    Skill,
    SkillFilter,
    SkillLink,
    SkillUse,
    UseTally,
)
from mneme_server.features.skills.store.tables import skill_links, skill_tags, skill_uses, skills

_TALLIES = 8_192
"""Tallies that are remembered as they were read: a search compares those of a hundred skills."""
_RECORDS = Prepared(
    select(skills.c.id, skills.c.reported, skills.c.learned).where(
        skills.c.tenant_id == bindparam("tenant"), skills.c.id.in_(listed(bindparam("ids")))
    )
)


class SqlSkills:
    """The tenant's skills."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get_many(self, skill_ids: Collection[str]) -> dict[str, Skill]:
        """Return those that exist, by id."""
        found = read_with(
            self._connection, skills, _skill, self._tenant_id, skill_ids, kind="skill"
        )
        return {skill.id: skill for skill in found}

    def records(self, skill_ids: Collection[str]) -> dict[str, UseTally]:
        """Return `Skill.record` of those that exist, by id."""
        wanted = {"tenant": self._tenant_id, "ids": array_of(skill_ids)}
        return dict(read_rows(self._connection, _RECORDS, _record, wanted, kind="skill"))

    def learned(self) -> Mapping[str, Skill]:
        """Return the skills that were consolidated from episodes, by id."""
        query = select(skills).where(
            skills.c.tenant_id == self._tenant_id, skills.c.findings != "{}"
        )
        found = read_rows(self._connection, query, _skill, kind="skill")
        return {skill.id: skill for skill in found}

    def names(self) -> set[str]:
        """Return every name that is taken."""
        query = select(skills.c.name).where(skills.c.tenant_id == self._tenant_id)
        return set(self._connection.execute(query).scalars())

    def ids_named(self, names: Collection[str]) -> dict[str, str]:
        """Return the ids of skills, by name, of those names that are taken."""
        query = select(skills.c.name, skills.c.id)
        rows = rows_among(self._connection, self._tenant_id, query, skills.c.name, set(names))
        return {row.name: row.id for row in rows}

    def save(self, skill: Skill) -> None:
        """Insert or replace a skill, but for its episodes."""
        before = known(self._connection, self._tenant_id, skills.c.id, {skill.id})
        self._connection.execute(
            upsert(skills, keep=("sources",)), _skill_row(skill, self._tenant_id)
        )
        add_to_total(self._connection, self._tenant_id, "skills", 1 - before)
        mine = {"tenant_id": self._tenant_id, "skill_id": skill.id}
        if before:
            self._connection.execute(
                delete(skill_tags).where(
                    skill_tags.c.tenant_id == self._tenant_id, skill_tags.c.skill_id == skill.id
                )
            )
        if skill.tags:
            rows = [mine | {"tag": tag} for tag in skill.tags]
            self._connection.execute(insert(skill_tags), rows)

    def set_sources(self, skill_id: str, episode_ids: Sequence[str]) -> None:
        """Replace the episodes that a skill came from; the latest is first."""
        self._connection.execute(
            skills.update()
            .where(skills.c.tenant_id == self._tenant_id, skills.c.id == skill_id)
            .values(sources=json.dumps(episode_ids, ensure_ascii=False))
        )

    def average_rate(self) -> float | None:
        """Return the mean success rate of the skills that were used; None without any."""
        query = select(skills.c.reported, skills.c.learned).where(
            skills.c.tenant_id == self._tenant_id
        )
        records = [
            _tally(row.reported) + _tally(row.learned) for row in self._connection.execute(query)
        ]
        rates = [record.rate for record in records if record.rate is not None]
        return sum(rates) / len(rates) if rates else None

    def sources_among(self, episode_ids: Collection[str]) -> Mapping[str, Sequence[str]]:
        """Return the episodes of the skills that came from some of these, by skill."""
        wanted = set(episode_ids)
        if not wanted:
            return {}
        query = select(skills.c.id, skills.c.sources).where(
            skills.c.tenant_id == self._tenant_id, skills.c.sources != "[]"
        )
        sources = {row.id: json.loads(row.sources) for row in self._connection.execute(query)}
        return {one: ids for one, ids in sources.items() if not wanted.isdisjoint(ids)}

    def forget_sources(self, episode_ids: Collection[str]) -> None:
        """Take these episodes out of those that skills came from."""
        gone = set(episode_ids)
        for skill_id, sources in self.sources_among(gone).items():
            self.set_sources(skill_id, [one for one in sources if one not in gone])

    def remove(self, skill_id: str) -> None:
        """Remove a skill with its links, uses and the ids of its episodes."""
        gone = self._connection.execute(
            delete(skills).where(skills.c.tenant_id == self._tenant_id, skills.c.id == skill_id)
        )
        add_to_total(self._connection, self._tenant_id, "skills", -gone.rowcount)

    def page(self, filter_: SkillFilter, after: tuple[str] | None, limit: int) -> Sequence[Skill]:
        """Return skills by name, after that name."""
        query = self._filtered(select(skills), filter_)
        if after is not None:
            query = query.where(skills.c.name > after[0])
        query = query.order_by(skills.c.name).limit(limit)
        return read_rows(self._connection, query, _skill, kind="skill")

    def count(self, filter_: SkillFilter) -> int:
        """Return how many match."""
        if filter_ == SkillFilter():
            return total(self._connection, self._tenant_id, "skills")
        query = self._filtered(select(func.count()).select_from(skills), filter_)
        return int(self._connection.execute(query).scalar_one())

    def use(self, skill_id: str, use_id: str) -> SkillUse | None:
        """Return a reported use, or None."""
        query = select(skill_uses).where(
            skill_uses.c.tenant_id == self._tenant_id,
            skill_uses.c.skill_id == skill_id,
            skill_uses.c.id == use_id,
        )
        row = self._connection.execute(query).first()
        return None if row is None else _use(row)

    def add_use(self, use: SkillUse) -> None:
        """Insert a use."""
        self._connection.execute(skill_uses.insert(), _use_row(use, self._tenant_id))

    def links(self, skill_ids: Collection[str]) -> Mapping[str, Sequence[SkillLink]]:
        """Return the links of skills that have some, in both directions, by skill."""
        found: dict[str, dict[SkillLink, None]] = defaultdict(dict)
        for some in chunks(skill_ids):
            for link in self._links_of(some):
                for one in (link.parent_id, link.child_id):
                    if one in some:
                        found[one][link] = None
        return {skill_id: list(links) for skill_id, links in found.items()}

    def _links_of(self, skill_ids: Sequence[str]) -> list[SkillLink]:
        wanted = {"tenant": self._tenant_id, "ids": array_of(skill_ids)}
        return read_rows(
            self._connection, _links(), _link, wanted, kind="link of a skill", key="parent_id"
        )

    def save_link(self, link: SkillLink) -> None:
        """Insert or replace a link."""
        self._connection.execute(upsert(skill_links), _link_row(link, self._tenant_id))

    def remove_links(self, parent_id: str, child_id: str, relationship: Relationship | None) -> int:
        """Remove links from one skill to another; return how many there were."""
        columns = skill_links.c
        statement = delete(skill_links).where(
            columns.tenant_id == self._tenant_id,
            columns.parent_id == parent_id,
            columns.child_id == child_id,
        )
        if relationship is not None:
            statement = statement.where(columns.relationship == int(relationship))
        return self._connection.execute(statement).rowcount

    def dependents(self, skill_ids: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return the skills that each of these is a prerequisite of, of those that are some's."""
        columns = skill_links.c
        found: dict[str, set[str]] = defaultdict(set)
        query = select(columns.parent_id, columns.child_id).where(
            columns.relationship == int(Relationship.PREREQUISITE)
        )
        mine = self._connection, self._tenant_id
        for row in rows_among(*mine, query, columns.parent_id, skill_ids):
            found[row.parent_id].add(row.child_id)
        return found

    def _filtered(self, query: Select[Any], filter_: SkillFilter) -> Select[Any]:
        conditions: list[ColumnElement[bool]] = [skills.c.tenant_id == self._tenant_id]
        conditions += equal_where_given(skills.c, filter_, ("project",))
        if filter_.min_rate:
            conditions.append(skills.c.value >= filter_.min_rate)
        for tag in filter_.tags:
            tagged = select(skill_tags.c.skill_id).where(
                skill_tags.c.tenant_id == self._tenant_id, skill_tags.c.tag == tag
            )
            conditions.append(skills.c.id.in_(tagged))
        return query.where(*conditions)


@cache
def _links() -> Prepared:
    """Return what selects the links of skills, in either direction, with the names of both."""
    columns = skill_links.c
    parent, child = skills.alias("parent"), skills.alias("child")
    ids = listed(bindparam("ids"))
    return Prepared(
        select(skill_links, parent.c.name.label("parent"), child.c.name.label("child"))
        .join(
            parent,
            (parent.c.tenant_id == columns.tenant_id) & (parent.c.id == columns.parent_id),
        )
        .join(child, (child.c.tenant_id == columns.tenant_id) & (child.c.id == columns.child_id))
        .where(
            columns.tenant_id == bindparam("tenant"),
            or_(columns.parent_id.in_(ids), columns.child_id.in_(ids)),
        )
        .order_by(columns.relationship, parent.c.name, child.c.name)
    )


@lru_cache(maxsize=_TALLIES)
def _tally(text: str) -> UseTally:
    return UseTally(*json.loads(text))


@reads("skill")
def _record(row: Row[Any]) -> tuple[str, UseTally]:
    return row.id, _tally(row.reported) + _tally(row.learned)


_skill = reads("skill")(
    row_reader(
        skills,
        Skill,
        spelled={"source_ids": "sources"},
        parts={"reported": _tally, "learned": _tally},
    )
)
_skill_row = row_writer(
    Skill,
    skills,
    spelled={"source_ids": "sources"},
    made={
        "reported": lambda skill: json.dumps(astuple(skill.reported)),
        "learned": lambda skill: json.dumps(astuple(skill.learned)),
    },
    sets=["tags"],
)
_use = reads("use of a skill")(row_reader(skill_uses, SkillUse))
_use_row = row_writer(SkillUse, skill_uses)
_link = reads("link of a skill", "parent_id")(
    row_reader(skill_links, SkillLink, spelled={"parent_name": "parent", "child_name": "child"})
)
_link_row = row_writer(SkillLink, skill_links, elsewhere=["parent_name", "child_name"])


def _skill_details(name: str, reported: str, learned: str) -> JsonObject:
    tally = UseTally(*json.loads(reported)) + UseTally(*json.loads(learned))
    return {
        "name": name,
        "uses": tally.uses,
        "success_rate": tally.rate,
        "lower_bound": tally.interval[0],
    }


SKILL_DETAILS = Details(
    key=skills.c.id,
    columns=(skills.c.name, skills.c.reported, skills.c.learned),
    decode=_skill_details,  # Not followed: a use that leaves the rate as it is changes no document.
)
