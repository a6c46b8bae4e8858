"""Records of which experience is made, and the plan that says of which and how."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from mneme_server.common.canonical import Json, JsonObject
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.features.events.event_types import EventPart, traits_of
from mneme_server.features.events.history import EventDigest
from mneme_server.features.events.model import Session, SessionFilter, Severity
from mneme_server.features.events.store.history import SqlActivity
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.skills.model import Episode, EpisodeFilter
from mneme_server.features.skills.store.episodes import SqlEpisodes

MOST_CALLS = 10_000
"""Calls of a record that can be imported."""
_KEYS = 1_000
_PAGE = 2_000


class RecordKind(IntEnum):
    """What is imported; the numbers are the wire's."""

    SESSIONS = 1
    EPISODES = 2


class ActionSource(IntEnum):
    """What the actions of a record are; the numbers are the wire's."""

    TOOL = 1
    TAG = 2
    FIELD = 3


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """Which records. Empty fields do not filter; given ones must all match."""

    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    start_us: int | None = None
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class StateField:
    """A fact of a state: what it is called there, and where a record has it."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """How records become trajectories.

    Args:
        kind: what is imported.
        selection: which of them.
        fields: what a state is made of, at least one.
        source: what the actions are.
        action_name: how the label begins, or which field it is.
        reward_field: the field with a record's reward; empty: how it ended.
        failed_call_reward: what each call of a tool that failed brings besides.
        dry_run: whether to record nothing.
        examples: how many trajectories to show.
    """

    kind: RecordKind
    selection: RecordSelection
    fields: Sequence[StateField]
    source: ActionSource
    action_name: str = ""
    reward_field: str = ""
    failed_call_reward: float = 0.0
    dry_run: bool = False
    examples: int = 3


@dataclass(slots=True)
class RecordedCall:
    """A call of a tool."""

    tool: str
    call_id: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ExperienceRecord:
    """A recorded session or an episode.

    Args:
        id: its own.
        facts: what is known of it, by name.
        tags: its labels.
        reward: how it ended; None if that is not known.
        calls: the tools that were called, in their order, `MOST_CALLS` + 1 at most.
    """

    id: str
    facts: JsonObject
    tags: Sequence[str]
    reward: float | None
    calls: Sequence[RecordedCall]


class ExperienceRecords:
    """The records of a tenant, oldest first.

    Args:
        tenant: the tenant.
        kind: what they are.
        selection: which ones.
    """

    def __init__(self, tenant: OpenTenant, kind: RecordKind, selection: RecordSelection) -> None:
        self._tenant = tenant
        self._kind = kind
        self._selection = selection
        self._ids = self._all_ids()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._ids)

    def parts(self, size: int, *, with_calls: bool) -> Iterator[Sequence[ExperienceRecord]]:
        """Yield them in parts; those that were deleted meanwhile are missing."""
        for first in range(0, len(self._ids), size):
            ids = self._ids[first : first + size]
            with self._tenant.read() as unit:
                if self._kind is RecordKind.EPISODES:
                    episodes = unit.get(SqlEpisodes).get_many(ids)
                    yield [_of_episode(episodes[one]) for one in ids if one in episodes]
                    continue
                sessions = unit.get(SqlSessions).get_many(ids)
            yield [
                self._of_session(sessions[one], with_calls=with_calls)
                for one in ids
                if one in sessions
            ]

    def _all_ids(self) -> list[str]:
        found: list[str] = []
        after: tuple[int, str] | None = None
        while True:
            page = self._keys(after)
            found += [key[1] for key in page]
            if len(page) < _KEYS:
                return found[::-1]
            after = page[-1]

    def _keys(self, after: tuple[int, str] | None) -> Sequence[tuple[int, str]]:
        """Return when records were, and their ids, latest first."""
        of = self._selection
        with self._tenant.read() as unit:
            if self._kind is RecordKind.EPISODES:
                episodes = unit.get(SqlEpisodes).digests(
                    EpisodeFilter(
                        agent_id=of.agent_id,
                        user_id=of.user_id,
                        project=of.project,
                        tags=of.tags,
                        start_us=of.start_us,
                        end_us=of.end_us,
                    ),
                    after,
                    _KEYS,
                )
                return [(one.occurred_us, one.id) for one in episodes]
            sessions = unit.get(SqlSessions).page(
                SessionFilter(
                    agent_id=of.agent_id,
                    user_id=of.user_id,
                    project=of.project,
                    tags=of.tags,
                    start_us=of.start_us,
                    end_us=of.end_us,
                ),
                after,
                _KEYS,
            )
            return [(one.started_us, one.id) for one in sessions]

    def _of_session(self, session: Session, *, with_calls: bool) -> ExperienceRecord:
        return ExperienceRecord(
            id=session.id,
            facts=_facts(
                session.metadata_json,
                agent_id=session.agent_id,
                agent_name=session.agent_name,
                user_id=session.user_id,
                project=session.project,
                tags=session.tags,
            ),
            tags=session.tags,
            reward=session.worth,
            calls=self._calls(session.id) if with_calls else (),
        )

    def _calls(self, session_id: str) -> Sequence[RecordedCall]:
        calls: list[RecordedCall] = []
        last = 0
        while len(calls) <= MOST_CALLS:
            with self._tenant.read() as unit:
                page = unit.get(SqlActivity).digests(session_id, last, _PAGE)
            for event in page:
                _note(event, calls)
            if len(page) < _PAGE:
                break
            last = page[-1].sequence
        return calls


def _note(event: EventDigest, calls: list[RecordedCall]) -> None:
    """Note a call of a tool, or that one failed."""
    traits = traits_of(event.event_type)
    if traits.part is EventPart.CALL:
        if event.name:
            calls.append(RecordedCall(event.name, event.call_id))
    elif traits.answers_call and (
        traits.part is EventPart.FAILURE or event.severity >= Severity.ERROR
    ):
        failed = next((one for one in reversed(calls) if _answers(event, one)), None)
        if failed is not None:
            failed.failed = True


def _answers(event: EventDigest, call: RecordedCall) -> bool:
    if event.call_id and call.call_id:
        return event.call_id == call.call_id
    return event.name in ("", call.tool)


def _of_episode(episode: Episode) -> ExperienceRecord:
    return ExperienceRecord(
        id=episode.id,
        facts=_facts(
            episode.metadata_json,
            agent_id=episode.agent_id,
            user_id=episode.user_id,
            project=episode.project,
            session_id=episode.session_id,
            task=episode.task,
            tags=episode.tags,
        ),
        tags=episode.tags,
        reward=episode.reward,
        calls=[RecordedCall(tool) for tool in episode.tools],
    )


def _facts(metadata_json: str, *, tags: Sequence[str], **facts: str) -> JsonObject:
    """Return what is known of a record; what is empty is not known."""
    found: dict[str, Json] = {name: value for name, value in facts.items() if value}
    if tags:
        found["tags"] = dict.fromkeys(tags, True)
    return {**found, "metadata": json.loads(metadata_json)}
