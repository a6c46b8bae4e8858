"""Episodes in a tenant's database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    delete,
    func,
    literal,
    select,
)

from mneme_server.common.canonical import JsonObject
from mneme_server.common.stored import reads
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.memories import Details
from mneme_server.engine.store.portable import array_of, insert, listed
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import (
    chunks,
    equal_where_given,
    latest_after,
    read_with,
    rows_among,
    upsert,
)
from mneme_server.engine.store.totals import add_to_total, known, total
from mneme_server.engine.store.vectors import STORED_VECTOR
from mneme_server.features.skills.model import Episode, EpisodeFilter
from mneme_server.features.skills.store.tables import episode_memories, episode_tags, episodes

_OUTPUT_CHARS = 1_000
"""Of an output, those that a digest has."""
_DIGEST = (
    *(one for one in episodes.c if one.name not in ("input", "output", "task_vector")),
    literal("").label("input"),
    func.substr(episodes.c.output, 1, _OUTPUT_CHARS).label("output"),
)


class SqlEpisodes:
    """The tenant's episodes."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get_many(self, episode_ids: Collection[str]) -> dict[str, Episode]:
        """Return those that exist, by id."""
        found = read_with(
            self._connection, episodes, _episode, self._tenant_id, episode_ids, kind="episode"
        )
        return {episode.id: episode for episode in self._linked(found)}

    def users(self, episode_ids: Collection[str]) -> dict[str, str]:
        """Return whose the episodes are, by id."""
        query = select(episodes.c.id, episodes.c.user_id)
        rows = rows_among(self._connection, self._tenant_id, query, episodes.c.id, episode_ids)
        return {row.id: row.user_id for row in rows}

    def of_others(self, episode_ids: Collection[str], user_id: str) -> set[str]:
        """Return those of the episodes that are of another user than this one; none of nobody."""
        query = select(episodes.c.id).where(episodes.c.user_id.not_in(["", user_id]))
        rows = rows_among(self._connection, self._tenant_id, query, episodes.c.id, episode_ids)
        return {row.id for row in rows}

    def _linked(self, read: Sequence[Episode]) -> list[Episode]:
        """Return episodes as they were read, with the memories that they name."""
        if not read:
            return []
        wanted = {"tenant": self._tenant_id, "ids": array_of(one.id for one in read)}
        named: dict[str, list[str]] = {}
        for row in _named_memories().all(self._connection, wanted):
            named.setdefault(row.episode_id, []).append(row.memory_id)
        return [
            replace(one, memory_ids=tuple(sorted(named[one.id]))) if one.id in named else one
            for one in read
        ]

    def judged_by_session(self, session_ids: Collection[str]) -> Sequence[Episode]:
        """Return the episodes of these sessions of which the session said how they turned out."""
        found: list[Episode] = []
        for some in chunks(session_ids):
            query = select(episodes).where(
                episodes.c.tenant_id == self._tenant_id, episodes.c.session_id.in_(some)
            )
            read = read_rows(self._connection, query, _episode, kind="episode")
            found += [one for one in read if "success" in one.filled]
        return self._linked(found)

    def average_reward(self) -> float | None:
        """Return the mean of the rewards; None without episodes."""
        query = select(func.avg(episodes.c.reward)).where(episodes.c.tenant_id == self._tenant_id)
        average: float | None = self._connection.execute(query).scalar_one()
        return average

    def resting_on(self, memory_ids: Collection[str]) -> set[str]:
        """Return the ids of the episodes that name one of these memories."""
        found: set[str] = set()
        columns = episode_memories.c
        for some in chunks(memory_ids):
            query = select(columns.episode_id).where(
                columns.tenant_id == self._tenant_id, columns.memory_id.in_(some)
            )
            found.update(self._connection.execute(query).scalars())
        return found

    def _link(self, saved: Collection[Episode], *, anew: bool) -> None:
        """Write which memories episodes name, of those that exist."""
        columns = episode_memories.c
        for some in chunks([episode.id for episode in saved]) if anew else ():
            self._connection.execute(
                delete(episode_memories).where(
                    columns.tenant_id == self._tenant_id, columns.episode_id.in_(some)
                )
            )
        rows = [
            {"tenant_id": self._tenant_id, "memory_id": memory_id, "episode_id": episode.id}
            for episode in saved
            for memory_id in episode.memory_ids
        ]
        if rows:
            self._connection.execute(insert(episode_memories), rows)

    def save(self, saved: Collection[Episode], task_vectors: Mapping[str, Matrix]) -> None:
        """Insert or replace these episodes; `task_vectors` (d,) are those of tasks, by episode.

        The memories that they name must exist.
        """
        ids = {episode.id for episode in saved}
        before = known(self._connection, self._tenant_id, episodes.c.id, ids)
        rows = [
            _episode_row(episode, self._tenant_id) | _vector_row(task_vectors.get(episode.id))
            for episode in saved
        ]
        self._connection.execute(upsert(episodes), rows)
        add_to_total(self._connection, self._tenant_id, "episodes", len(ids) - before)
        if before:
            self._forget_tags(ids)
        self._link(saved, anew=bool(before))
        tags = [
            {"tenant_id": self._tenant_id, "episode_id": episode.id, "tag": tag}
            for episode in saved
            for tag in episode.tags
        ]
        if tags:
            self._connection.execute(insert(episode_tags), tags)

    def task_vectors(self, episode_ids: Collection[str]) -> Mapping[str, Matrix]:
        """Return the vectors (d,) of tasks that were saved, by episode."""
        found: dict[str, Matrix] = {}
        for some in chunks(episode_ids):
            query = select(episodes.c.id, episodes.c.task_vector).where(
                episodes.c.tenant_id == self._tenant_id,
                episodes.c.id.in_(some),
                episodes.c.task_vector != b"",
            )
            for episode_id, vector in self._connection.execute(query):
                found[episode_id] = np.frombuffer(vector, STORED_VECTOR)
        return found

    def _forget_tags(self, episode_ids: Collection[str]) -> None:
        for some in chunks(episode_ids):
            self._connection.execute(
                delete(episode_tags).where(
                    episode_tags.c.tenant_id == self._tenant_id,
                    episode_tags.c.episode_id.in_(some),
                )
            )

    def remove(self, episode_id: str) -> None:
        """Remove an episode. An unknown one is ignored."""
        self.remove_many([episode_id])

    def remove_many(self, episode_ids: Collection[str]) -> None:
        """Remove these episodes. Unknown ones are ignored."""
        for some in chunks(episode_ids):
            gone = self._connection.execute(
                delete(episodes).where(
                    episodes.c.tenant_id == self._tenant_id, episodes.c.id.in_(some)
                )
            )
            add_to_total(self._connection, self._tenant_id, "episodes", -gone.rowcount)

    def page(
        self, filter_: EpisodeFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Episode]:
        """Return episodes, latest first, that come after the key (occurred_us, id)."""
        return self._page(select(episodes), filter_, after, limit)

    def digests(
        self, filter_: EpisodeFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Episode]:
        """Return what `page` does, without inputs, and only the beginnings of outputs."""
        return self._page(select(*_DIGEST), filter_, after, limit)

    def _page(
        self,
        query: Select[Any],
        filter_: EpisodeFilter,
        after: tuple[int, str] | None,
        limit: int,
    ) -> Sequence[Episode]:
        query = self._filtered(query, filter_)
        query = latest_after(query, episodes.c.occurred_at, episodes.c.id, after, limit)
        read = read_rows(self._connection, query, _episode, kind="episode")
        return self._linked(read)

    def by_id(self, filter_: EpisodeFilter, after: str, limit: int) -> Sequence[Episode]:
        """Return episodes by id, after that id."""
        query = self._filtered(select(episodes), filter_).where(episodes.c.id > after)
        query = query.order_by(episodes.c.id).limit(limit)
        return self._linked(read_rows(self._connection, query, _episode, kind="episode"))

    def count(self, filter_: EpisodeFilter) -> int:
        """Return how many match."""
        if filter_ == EpisodeFilter():
            return total(self._connection, self._tenant_id, "episodes")
        query = self._filtered(select(func.count()).select_from(episodes), filter_)
        return int(self._connection.execute(query).scalar_one())

    def _filtered(self, query: Select[Any], filter_: EpisodeFilter) -> Select[Any]:
        columns = episodes.c
        conditions: list[ColumnElement[bool]] = [columns.tenant_id == self._tenant_id]
        conditions += equal_where_given(
            columns, filter_, ("session_id", "agent_id", "user_id", "project")
        )
        if filter_.success is not None:
            conditions.append(columns.success == filter_.success)
        if filter_.min_reward is not None:
            conditions.append(columns.reward >= filter_.min_reward)
        if filter_.start_us is not None:
            conditions.append(columns.occurred_at >= filter_.start_us)
        if filter_.end_us is not None:
            conditions.append(columns.occurred_at < filter_.end_us)
        for tag in filter_.tags:
            tagged = select(episode_tags.c.episode_id).where(
                episode_tags.c.tenant_id == self._tenant_id, episode_tags.c.tag == tag
            )
            conditions.append(columns.id.in_(tagged))
        return query.where(*conditions)


@cache
def _named_memories() -> Prepared:
    columns = episode_memories.c
    return Prepared(
        select(columns.episode_id, columns.memory_id).where(
            columns.tenant_id == bindparam("tenant"),
            columns.episode_id.in_(listed(bindparam("ids"))),
        )
    )


_episode = reads("episode")(row_reader(episodes, Episode))
_episode_row = row_writer(
    Episode, episodes, sets=["tags"], elsewhere=["memory_ids"], besides=["task_vector"]
)


def _vector_row(vector: Matrix | None) -> dict[str, bytes]:
    return {"task_vector": b"" if vector is None else vector.astype(STORED_VECTOR).tobytes()}


def _episode_details(
    success: bool, reward: float, latency_ms: int | None, tokens_used: int | None
) -> JsonObject:
    return {
        "success": success,
        "reward": reward,
        "latency_ms": latency_ms,
        "tokens_used": tokens_used,
    }


EPISODE_DETAILS = Details(
    key=episodes.c.id,
    columns=(
        episodes.c.success,
        episodes.c.reward,
        episodes.c.latency_ms,
        episodes.c.tokens_used,
    ),
    decode=_episode_details,
    followed=True,
)
