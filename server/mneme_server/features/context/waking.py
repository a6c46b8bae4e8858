"""WakeUp: the last session, what bears on it, and the next steps that the evidence points to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from mneme_server.common.clock import now_us
from mneme_server.common.humanize import ago
from mneme_server.engine.corpus.ports import CorpusIndex, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.features.context.experience import Attempt, Experience, ProvenSkill
from mneme_server.features.context.learned import Advice, Learned, addresses
from mneme_server.features.context.model import (
    Awakening,
    Evidence,
    PastSession,
    Related,
    Suggestion,
    WorkPattern,
)
from mneme_server.features.context.narrative import narrate
from mneme_server.features.context.patterns import Topics, patterns_of, topic_key
from mneme_server.features.context.ports import ContextUnit
from mneme_server.features.context.sessions import (
    MIN_SIMILARITY,
    latest,
    load,
    related_to,
    vectors_of,
)
from mneme_server.features.context.words import cut
from mneme_server.features.events.history import ActivityFilter

_EVIDENCE = 20
"""Related sessions that patterns are looked for in, at least."""
_LATER = 5
_LATEST = 20
_TOPICS_OF = 300
"""Sessions that tell which topics are common, the latest ones: enough for a share."""
MAX_SUGGESTIONS = 8
_TODOS = 5
_ADDRESSED = 2
"""Recurring errors that lessons and reflections are looked up for; each costs an embedding. And
what is left to do that skills and earlier attempts are looked up for."""

_SUFFIXES = (
    "py pyi js jsx ts tsx mjs go rs java kt scala c cc cpp cxx h hpp cs rb php swift "
    "m sql sh lua ex exs erl clj hs ml dart vue svelte "
)
_CODE = frozenset(_SUFFIXES.split())
_TEST = re.compile(r"(^|[/\\_.-])(tests?|specs?|__tests__|testing)([/\\_.-]|$)|Tests?\.\w+$")


@dataclass(frozen=True, slots=True)
class WakeUp:
    """Tells what an agent needs at the start of a session."""

    tenants: OpenTenants[ContextUnit]
    embedder: TextEmbedder
    learned: Learned
    experience: Experience = field(default_factory=Experience)

    def __call__(
        self,
        tenant_id: str,
        *,
        project: str,
        agent_id: str,
        user_id: str = "",
        limit: int,
        min_similarity: float = MIN_SIMILARITY,
        with_experience: bool = True,
    ) -> Awakening:
        """Return the last session, the sessions related to it, patterns and next steps.

        Without a project it is that of the last handover, or of the last session without one. With
        a user, all of it is of sessions that served the user.

        When the last session's summary is not embedded yet and cannot be soon, no other session is
        compared with it.
        """
        now = now_us()
        filter_ = ActivityFilter(project=project, agent_id=agent_id, user_id=user_id)
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                last = _last(unit, tenant.index, filter_)
                if last is None or last.summary is None:
                    return _narrated(Awakening(None), now)
                filter_ = replace(filter_, project=project or last.session.project)
                later, more_later = _later(unit, tenant.index, filter_, last)
                vectors = vectors_of(unit, self.embedder, [last.summary.text])
                vector = vectors.get(last.summary.text)
                related: list[Related] = []
                considered = 0
                if vector is not None:
                    related, considered = related_to(
                        unit,
                        tenant.index,
                        vector,
                        filter_,
                        without=last.session.id,
                        min_similarity=min_similarity,
                        limit=max(limit, _EVIDENCE),
                        now_us=now,
                    )
            compared = [last, *(one.past for one in related)]
            of_project = ActivityFilter(project=filter_.project, user_id=user_id)
            patterns = patterns_of(compared, _topics(tenant, of_project, len(compared)))
            known = self._experience(tenant_id, last, of_project) if with_experience else ()
            suggestions = suggestions_of(
                last,
                patterns,
                lambda error: self.learned.advice_on(tenant_id, error, user_id),
                experience_with(last, known, now),
            )
        woken = Awakening(
            last=last,
            later=later,
            more_later=more_later,
            related=related[:limit],
            patterns=patterns,
            suggestions=suggestions,
            considered=considered,
            not_compared=vector is None,
        )
        return _narrated(woken, now)

    def _experience(
        self, tenant_id: str, last: PastSession, filter_: ActivityFilter
    ) -> list[Known]:
        """Return what is known of how to do what the last session left."""
        found = []
        for what in left_to_do(last):
            skills = self.experience.skills_on(tenant_id, what, filter_, 1, addresses)
            attempts = self.experience.attempts_on(tenant_id, what, filter_, _ADDRESSED, addresses)
            found.append(Known(what, skills, [one for one in attempts if one.critique][:1]))
        return found


@dataclass(frozen=True, slots=True)
class Known:
    """The skill for something to do, and the earlier attempt at it that says most."""

    what: str
    skills: Sequence[ProvenSkill]
    attempts: Sequence[Attempt]


def _last(unit: ContextUnit, index: CorpusIndex, filter_: ActivityFilter) -> PastSession | None:
    """Return the session that was handed over last; else the one with a summary that ended last."""
    handover = unit.handovers.last(filter_.project, filter_.agent_id, filter_.user_id)
    if handover is not None:
        return load(unit, [handover.session_id]).get(handover.session_id)
    ids = latest(unit, index, filter_, _LATEST)
    known = load(unit, ids)
    past = [known[key] for key in ids if key in known]
    # A session in which nothing happened does not hide one in which something did.
    return next((one for one in past if one.session.event_count), past[0] if past else None)


def _later(
    unit: ContextUnit, index: CorpusIndex, filter_: ActivityFilter, last: PastSession
) -> tuple[list[PastSession], bool]:
    """Return the latest sessions that were active after the last handover and left none, and
    whether there may be more."""
    if last.handover is None:
        return [], False
    since = replace(filter_, start_us=last.handover.created_us)
    ids = latest(unit, index, since, _LATER)
    known = load(unit, [key for key in ids if key != last.session.id])
    left_none = [known[key] for key in ids if key in known and known[key].handover is None]
    return left_none, len(ids) == _LATER


def _topics(tenant: OpenTenant[ContextUnit], filter_: ActivityFilter, compared: int) -> Topics:
    """Return what a project's sessions are about; of all projects, where those are all of its."""
    with tenant.read() as unit:
        ids = latest(unit, tenant.index, filter_, _TOPICS_OF)
        if filter_.project and len(ids) <= compared:
            ids = latest(unit, tenant.index, replace(filter_, project=""), _TOPICS_OF)
        found = unit.summaries.topics(ids)
    counts = Counter(key for topics in found for key in {topic_key(one) for one in topics})
    return Topics(len(found), counts)


def _narrated(woken: Awakening, now: int) -> Awakening:
    return replace(woken, narrative=narrate(woken, now))


def suggestions_of(
    last: PastSession | None,
    patterns: Sequence[WorkPattern],
    advice_on: Callable[[str], Advice | None],
    known: Sequence[Suggestion] = (),
) -> list[Suggestion]:
    """Return next steps, the most pressing first; empty when nothing points to one.

    None is made up: each names what it follows from. `known` is what experience says; it keeps
    its place whatever else there is to do.
    """
    if last is None:
        return []
    repeated = _repeated(patterns, advice_on)
    told = {event_id for one in repeated for event_id in one.evidence.event_ids}
    found = [*_open_todos(last), *_unresolved(last, told), *repeated, *_untested(last)]
    return [*found[: MAX_SUGGESTIONS - len(known)], *known]


def left_to_do(last: PastSession) -> list[str]:
    """Return what the last session left, the most pressing first: todos, then errors."""
    todos = [todo.content for todo in last.handover.open_todos] if last.handover else []
    errors = [e.example for e in (last.summary.errors if last.summary else ()) if not e.resolved]
    return [*todos, *errors][:_ADDRESSED]


def experience_with(last: PastSession, known: Sequence[Known], now_us: int) -> list[Suggestion]:
    """Return what skills and earlier attempts say about what is left to do, each once."""
    made: dict[str, Suggestion] = {}
    for one in known:
        what = cut(one.what, 100)
        for skill in one.skills:
            said = f"For “{what}” there is the skill {skill.name}, which {skill.said}"
            if skill.description:
                said += f": {cut(skill.description, 200)}"
            evidence = Evidence((last.session.id,), skill_ids=(skill.skill_id,))
            made.setdefault(skill.skill_id, Suggestion("known_skill", said, evidence))
        for attempt in one.attempts:
            ended = "worked" if attempt.success else "failed"
            said = (
                f"“{what}” is like what {ended} {ago(attempt.occurred_us, now_us)}:"
                f" {cut(attempt.critique, 200)}"
            )
            evidence = Evidence((last.session.id,), episode_ids=(attempt.episode_id,))
            made.setdefault(attempt.episode_id, Suggestion("earlier_attempt", said, evidence))
    return list(made.values())


def _open_todos(last: PastSession) -> list[Suggestion]:
    todos = last.handover.open_todos[:_TODOS] if last.handover else ()
    evidence = Evidence((last.session.id,))
    return [
        Suggestion(
            "open_todo",
            cut(todo.content, 200) + (f" (priority {todo.priority})" if todo.priority else ""),
            evidence,
        )
        for todo in todos
    ]


def _unresolved(last: PastSession, told: set[str]) -> list[Suggestion]:
    """Errors that are still open, but for those whose events are told of with what addresses
    them."""
    errors = [
        error
        for error in (last.summary.errors if last.summary else ())
        if not error.resolved and told.isdisjoint(error.event_ids)
    ]
    return [
        Suggestion(
            "unresolved_error",
            f"Resolve what {error.tool or 'the session'} failed with: {cut(error.example, 160)}",
            Evidence((last.session.id,), error.event_ids),
        )
        for error in errors[:3]
    ]


def _repeated(
    patterns: Sequence[WorkPattern], advice_on: Callable[[str], Advice | None]
) -> list[Suggestion]:
    found = []
    errors = [pattern for pattern in patterns if pattern.type == "recurring_error"]
    for pattern in errors[:_ADDRESSED]:
        advice = advice_on(pattern.description.partition(": ")[2])
        if advice is not None:
            kind = "a lesson" if advice.lesson_id else "a reflection"
            evidence = Evidence(
                pattern.evidence.session_ids,
                pattern.evidence.event_ids,
                tuple(filter(None, [advice.lesson_id])),
                tuple(filter(None, [advice.reflection_id])),
            )
            what = f"{pattern.description[0].upper()}{pattern.description[1:]}"
            said = f"{what.rstrip('. ')}; {kind} says: {cut(advice.text, 200)}"
            found.append(Suggestion("repeated_failure", said, evidence))
    return found


def _untested(last: PastSession) -> list[Suggestion]:
    """Code that was changed in a session that touched no test."""
    files = last.files
    if any(_TEST.search(path) for path in files):
        return []
    events = {f.path: f for f in last.summary.files} if last.summary else {}
    handed_over = set(last.handover.given_files) if last.handover else set()
    changed = [
        path for path in files if _is_code(path) and (path in handed_over or events[path].changed)
    ]
    if not changed:
        return []
    more = f" and {len(changed) - 2} more" if len(changed) > 2 else ""
    said = f"Test {', '.join(changed[:2])}{more}, changed without touching a test"
    seen = tuple(events[path].event_id for path in changed if path in events)
    return [Suggestion("untested_change", said, Evidence((last.session.id,), seen[:20]))]


def _is_code(path: str) -> bool:
    suffix = PurePosixPath(path.replace("\\", "/")).suffix
    return suffix.removeprefix(".").lower() in _CODE
