"""Episodes: storing them, and finding those that bear on a task."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mneme_server.common import deadline, turns
from mneme_server.common.clock import now_us
from mneme_server.common.errors import NotFound
from mneme_server.common.etags import existing, require_unchanged
from mneme_server.common.identity import new_id
from mneme_server.common.pages import least_bytes
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.imports import ImportReport, OnConflict, exported, import_of
from mneme_server.engine.corpus.ports import Matrix, TextEmbedder
from mneme_server.engine.corpus.revision import revised
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.events.model import Outcome, Session
from mneme_server.features.memory.store import SqlMemories
from mneme_server.features.recall.model import RecallAnswer, RecallQuery
from mneme_server.features.recall.search import Recall
from mneme_server.features.skills.model import (
    EPISODE,
    Episode,
    EpisodeFilter,
    FoundEpisode,
    NewEpisode,
    within_bounds,
)
from mneme_server.features.skills.session_record import completed, read_record
from mneme_server.features.skills.store.episodes import SqlEpisodes
from mneme_server.features.skills.store.skills import SqlSkills

_GIVEN = (
    "session_id", "agent_id", "user_id", "project", "task", "input", "output", "critique",
    "latency_ms", "tokens_used", "tools", "tags",
)  # fmt: skip
_OUTCOMES: dict[bool | None, frozenset[str]] = {
    None: frozenset(), True: frozenset({"success"}), False: frozenset({"failure"})
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Episodes:
    """The use cases of episodes."""

    tenants: OpenTenants
    embedder: TextEmbedder
    recall: Recall

    def store(self, tenant_id: str, given: NewEpisode) -> Episode:
        """Store the attempt; what was left out is taken from its session's record.

        An empty id is made. The same content again under the same id changes nothing.

        Raises:
            NotFound: it rests on a memory that does not exist.
            InvalidArgument: neither the caller nor a record says the task, or how it ended.
            AlreadyExists: the id is taken by an episode with other content.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is stored.
        """
        with self.tenants.open(tenant_id) as tenant:
            known = _known(tenant, given.id)
            if known is not None:
                return _unchanged(known, given)
            record = read_record(tenant, given.session_id) if given.session_id else None
            episode = completed(replace(given, id=given.id or new_id()), record, now_us())
            made = self.embedder.embed(_texts([episode]))  # Before the lock: it may take long.
            vectors, of_tasks = _apart([episode], made)
            with tenant.write() as unit:
                deadline.check()
                known = unit.get(SqlEpisodes).get_many([episode.id]).get(episode.id)
                if known is not None:
                    return _unchanged(known, given)
                _require_memories(unit, episode)
                if vectors is None:
                    tenant.require_room(1)
                unit.get(SqlEpisodes).save([episode], of_tasks)
                unit.documents.add([_document(episode)], vectors)
        return episode

    def get(self, tenant_id: str, episode_id: str) -> Episode:
        """Return the episode.

        Raises:
            NotFound: there is no such episode.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return _existing(unit, episode_id)

    def page(
        self, tenant_id: str, filter_: EpisodeFilter, after: tuple[int, str] | None, limit: int
    ) -> tuple[Sequence[Episode], int]:
        """Return episodes, latest first, after (occurred_us, id); and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = turns.read_page(
                partial(unit.get(SqlEpisodes).page, filter_),
                after,
                limit,
                lambda one: (one.occurred_us, one.id),
                lambda one: least_bytes(
                    len(one.input) + len(one.output) + len(one.critique), len(one.metadata_json)
                ),
            )
            return page, unit.get(SqlEpisodes).count(filter_)

    def retrieve(
        self, tenant_id: str, task: str, filter_: EpisodeFilter, *, limit: int, min_score: float
    ) -> tuple[Sequence[FoundEpisode], RecallAnswer]:
        """Return the episodes that bear on a task, and what recall said.

        The filter goes into the search: every episode that passes it is searched.
        """
        answer = self.recall.search(
            tenant_id,
            RecallQuery(
                text=task,
                filter=_document_filter(filter_),
                limit=limit,
                min_score=min_score,
                bare=True,
            ),
        )
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            stored = unit.get(SqlEpisodes).get_many([r.document.source_id for r in answer.results])
        found = [
            FoundEpisode(stored[result.document.source_id], result.score, result.similarity)
            for result in answer.results
            if result.document.source_id in stored
        ]
        return found, answer

    def update(
        self, tenant_id: str, episode_id: str, changes: Mapping[str, Any], *, etag: str = ""
    ) -> Episode:
        """Change the given fields. What was taken from a session's record is then the caller's.

        What others change meanwhile is kept; with an `etag` it is the reason to refuse.

        Raises:
            NotFound: there is no such episode.
            Aborted: `etag` is given and is not the episode's any more.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is changed.
        """
        with self.tenants.open(tenant_id) as tenant:
            return revised(
                tenant,
                self.embedder,
                read=lambda unit: _existing(unit, episode_id, etag),
                change=partial(Episode.changed, changes=changes),
                texts=lambda after: _texts([after]),
                save=_rewrite,
            )

    def delete(self, tenant_id: str, episode_id: str, *, etag: str = "") -> Episode:
        """Delete the episode, and return it as it was.

        Raises:
            NotFound: there is no such episode.
            Aborted: `etag` is given and is not the episode's any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            episode = _existing(unit, episode_id, etag)
            unit.get(SqlEpisodes).remove(episode_id)
            unit.documents.remove(EPISODE, [episode_id])
        return episode

    def import_(
        self, tenant_id: str, episodes: Sequence[Episode], on_conflict: OnConflict
    ) -> ImportReport:
        """Bring in episodes, all or none. Memories that they name and that are not here are left
        out.

        Raises:
            AlreadyExists: an id is taken by other content, and `on_conflict` is FAIL.
            ResourceExhausted: they cannot be embedded soon, and too much waits; nothing is brought
                in.
        """
        now = now_us()
        given = [_imported(episode, now) for episode in episodes]
        vectors, of_tasks = _apart(given, self.embedder.embed(_texts(given)))
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            deadline.check()  # It may have waited for the tenant's other writes.
            if vectors is None:
                tenant.require_room(len(given))
            stored = unit.get(SqlEpisodes).get_many([episode.id for episode in given])
            done = import_of(given, stored, _same, on_conflict, "episode")
            if done.rows:
                given = _with_known_memories(unit, given)
                unit.get(SqlEpisodes).save([given[row] for row in done.rows], of_tasks)
                unit.documents.remove(EPISODE, list(done.replaced))
                unit.documents.add(
                    [_document(given[row]) for row in done.rows],
                    None if vectors is None else vectors[done.rows],
                )
        return done.report

    def export(self, tenant_id: str, filter_: EpisodeFilter) -> Iterator[Episode]:
        """Yield episodes by id."""
        with self.tenants.open(tenant_id) as tenant:
            yield from exported(
                tenant,
                lambda unit, after, limit: unit.get(SqlEpisodes).by_id(filter_, after, limit),
            )


def _texts(episodes: Sequence[Episode]) -> list[str]:
    """Return what is embedded of episodes: their texts, then the tasks of those with a critique,
    which makes their texts others."""
    return [*(one.text for one in episodes), *(one.task for one in episodes if one.critique)]


def _apart(
    episodes: Sequence[Episode], made: Matrix | None
) -> tuple[Matrix | None, dict[str, Matrix]]:
    """Return the vectors of the texts (n, d), None if they are not to be had soon; and those of the
    tasks (d,) by id, where a critique makes them others."""
    if made is None:
        return None, {}
    with_critique = [one.id for one in episodes if one.critique]
    of_tasks = zip(with_critique, made[len(episodes) :], strict=True)
    return made[: len(episodes)], dict(of_tasks)


def _rewrite(unit: CorpusUnit, after: Episode, _: Episode, made: Matrix | None) -> Episode:
    vectors, of_tasks = _apart([after], made)
    unit.get(SqlEpisodes).save([after], of_tasks)
    unit.documents.remove(EPISODE, [after.id])
    unit.documents.add([_document(after)], vectors)
    return after


def follow_grades(unit: CorpusUnit, sessions: Sequence[Session]) -> None:
    """Give episodes that sessions judge what these say now, in the same transaction."""
    judging = {one.id: one for one in sessions if one.worth is not None}
    changed: list[Episode] = []
    for episode in unit.get(SqlEpisodes).judged_by_session(sorted(judging)):
        session = judging[episode.session_id]
        success, worth = session.outcome == Outcome.SUCCESS, session.worth
        assert worth is not None
        after = replace(episode, success=success, reward=within_bounds(worth))
        if after != episode:
            changed.append(after)
    if changed:
        ids = [one.id for one in changed]
        unit.get(SqlEpisodes).save(changed, unit.get(SqlEpisodes).task_vectors(ids))
        unit.documents.remove(EPISODE, ids)
        unit.documents.add([_document(one) for one in changed])


class DependentEpisodes:
    """Episodes whose memories are deleted. Implements `engine.corpus.forgetting.Dependents`."""

    name = "episodes"

    def resting_on(self, unit: CorpusUnit, gone: Mapping[str, Collection[str]]) -> Collection[str]:
        """Return the episodes that name one of the memories."""
        return unit.get(SqlEpisodes).resting_on(gone["memories"])

    def remove(self, unit: CorpusUnit, ids: Collection[str]) -> None:
        """Delete the episodes; skills that came from others, too, name only those from now on."""
        unit.get(SqlSkills).forget_sources(ids)
        unit.get(SqlEpisodes).remove_many(ids)
        unit.documents.remove(EPISODE, list(ids))


def _known(tenant: OpenTenant, episode_id: str) -> Episode | None:
    if not episode_id:
        return None
    with tenant.read() as unit:
        return unit.get(SqlEpisodes).get_many([episode_id]).get(episode_id)


def _existing(unit: CorpusUnit, episode_id: str, etag: str = "") -> Episode:
    """Return the episode, which must still have this etag, if one is given."""
    found = unit.get(SqlEpisodes).get_many([episode_id])
    return existing("episode", found.get(episode_id), episode_id, etag)


def _require_memories(unit: CorpusUnit, episode: Episode) -> None:
    there = unit.get(SqlMemories).successors(episode.memory_ids)
    for memory_id in episode.memory_ids:
        if memory_id not in there:
            raise NotFound(f"there is no memory {memory_id!r}", field="memory_ids")


def _with_known_memories(unit: CorpusUnit, given: list[Episode]) -> list[Episode]:
    named = {memory_id for episode in given for memory_id in episode.memory_ids}
    if not named:
        return given
    there = unit.get(SqlMemories).successors(named)
    return [
        replace(
            one, memory_ids=tuple(memory_id for memory_id in one.memory_ids if memory_id in there)
        )
        for one in given
    ]


def _unchanged(known: Episode, given: NewEpisode) -> Episode:
    """Return the stored episode, which must hold what is given again.

    What was taken from the session's record need not be the record's of now: it goes on.

    Raises:
        AlreadyExists: it holds something else.
    """
    nothing = NewEpisode()
    differing = []
    for name in _GIVEN:
        value = getattr(given, name)
        was_filled = name in known.filled and value == getattr(nothing, name)
        if name == "tags":
            value = tuple(sorted(set(value)))
        if not was_filled and value != getattr(known, name):
            differing.append(name)
    if given.metadata_json != known.metadata_json:
        differing.append("metadata")
    differing += [
        name
        for name, value, stored in (
            ("reward", given.reward, known.reward),
            ("success", given.success, known.success),
            ("occurred_at", given.occurred_us, known.occurred_us),
        )
        if value is not None and value != stored
    ]
    require_unchanged("episode", known, differing)
    return known


def _imported(episode: Episode, now: int) -> Episode:
    return replace(
        episode,
        id=episode.id or new_id(),
        occurred_us=episode.occurred_us or episode.created_us or now,
        created_us=episode.created_us or now,
    )


def _same(before: Episode, after: Episode) -> bool:
    return not before.differing(after)


def _document(episode: Episode) -> Document:
    return Document(
        doc_id=0,
        kind=EPISODE,
        source_id=episode.id,
        text=episode.text,
        timestamp_us=episode.occurred_us,
        session_id=episode.session_id,
        agent_id=episode.agent_id,
        user_id=episode.user_id,
        project=episode.project,
        category=episode.outcome,
        value=episode.reward,
        tags=episode.tags,
    )


def _document_filter(filter_: EpisodeFilter) -> DocumentFilter:
    return DocumentFilter(
        kinds=frozenset({EPISODE}),
        session_id=filter_.session_id,
        agent_id=filter_.agent_id,
        user_id=filter_.user_id,
        project=filter_.project,
        categories=_OUTCOMES[filter_.success],
        tags=frozenset(filter_.tags),
        min_value=filter_.min_reward,
        start_us=filter_.start_us,
        end_us=filter_.end_us,
    )
