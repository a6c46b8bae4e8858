"""WakeUp: the last session, what bears on it, the next steps that the evidence points to, and all
of it in the words of a person."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from mneme.visible import visible, visible_line

from mneme_server.common.clock import DAY_US, now_us
from mneme_server.common.humanize import ago, lasting
from mneme_server.engine.corpus.ports import CorpusIndex, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.context.attempts import said_of_tries, tries_of
from mneme_server.features.context.experience import Attempt, Experience, ProvenSkill
from mneme_server.features.context.handover import decided
from mneme_server.features.context.items import ContextFormat, markdown_line
from mneme_server.features.context.learned import Advice, Learned, addresses
from mneme_server.features.context.model import (
    Awakening,
    Evidence,
    Handover,
    PastSession,
    Profile,
    Related,
    Suggestion,
    WorkPattern,
)
from mneme_server.features.context.patterns import Topics, patterns_of, topic_key
from mneme_server.features.context.profile import item_of, profile
from mneme_server.features.context.sessions import (
    MIN_SIMILARITY,
    latest,
    load,
    related_to,
    vectors_of,
)
from mneme_server.features.context.store.handovers import SqlHandovers
from mneme_server.features.context.store.summaries import SqlSummaries
from mneme_server.features.context.words import compared_words, cut, ended
from mneme_server.features.events.history import ActivityFilter, active_us
from mneme_server.features.events.model import GradeSource, Outcome, Session, SessionStatus
from mneme_server.features.memory.model import OfUser

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
NOTHING = "There is nothing to pick up: no session has been handed over or summarised yet."
NOT_COMPARED = "Related sessions could not be looked for: the embedding backend does not answer."
_PROFILE_TOKENS = 300
"""Of the user's profile as much is told as this budget holds."""
_STALE_US = 60 * DAY_US
"""What was left so long ago is told, and not suggested."""
_MOST_OF_A_TODO = 0.75
_SAID = 220
_DECIDED = 300
_DONE = 400
_RELATED = 5
_LATER_TOLD = 3
_PATTERNS = 4
_STEPS = 5


@dataclass(frozen=True, slots=True)
class WakeUp:
    """Tells what an agent needs at the start of a session."""

    tenants: OpenTenants
    embedder: TextEmbedder
    learned: Learned
    experience: Experience = field(default_factory=Experience)

    def awaken(
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
        a user, all of it is of sessions that served the user; and the user's profile.

        When the last session's summary is not embedded yet and cannot be soon, no other session is
        compared with it.
        """
        now = now_us()
        filter_ = ActivityFilter(project=project, agent_id=agent_id, user_id=user_id)
        known_of = OfUser(user_id, agent_id, project)
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                last = _last(unit, tenant.index, filter_)
                if last is None or last.summary is None:
                    return _narrated(Awakening(None, profile=_profile(unit, known_of)), now)
                filter_ = replace(filter_, project=project or last.session.project)
                profiled = _profile(unit, replace(known_of, project=filter_.project))
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
                later=later,
                now_us=now,
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
            tries=tries_of(last, [*later, *(one.past for one in related)]),
            profile=profiled,
        )
        return _narrated(woken, now)

    def _experience(
        self, tenant_id: str, last: PastSession, filter_: ActivityFilter
    ) -> list[KnownExperience]:
        """Return what is known of how to do what the last session left."""
        found = []
        for what in left_to_do(last):
            for_all = replace(filter_, shared=True)
            skills = self.experience.skills_on(tenant_id, what, for_all, 1, addresses)
            attempts = self.experience.attempts_on(tenant_id, what, filter_, _ADDRESSED, addresses)
            found.append(
                KnownExperience(what, skills, [one for one in attempts if one.critique][:1])
            )
        return found


@dataclass(frozen=True, slots=True)
class KnownExperience:
    """The skill for something to do, and the earlier attempt at it that says most."""

    what: str
    skills: Sequence[ProvenSkill]
    attempts: Sequence[Attempt]


def _last(unit: CorpusUnit, index: CorpusIndex, filter_: ActivityFilter) -> PastSession | None:
    """Return the session that was handed over last; else the one with a summary that ended last."""
    handover = unit.get(SqlHandovers).last(filter_.project, filter_.agent_id, filter_.user_id)
    if handover is not None:
        return load(unit, [handover.session_id]).get(handover.session_id)
    ids = latest(unit, index, filter_, _LATEST)
    known = load(unit, ids)
    past = [known[key] for key in ids if key in known]
    # A session in which nothing happened does not hide one in which something did.
    return next((one for one in past if one.session.event_count), past[0] if past else None)


def _later(
    unit: CorpusUnit, index: CorpusIndex, filter_: ActivityFilter, last: PastSession
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


def _topics(tenant: OpenTenant, filter_: ActivityFilter, compared: int) -> Topics:
    """Return what a project's sessions are about; of all projects, where those are all of its."""
    with tenant.read() as unit:
        ids = latest(unit, tenant.index, filter_, _TOPICS_OF)
        if filter_.project and len(ids) <= compared:
            ids = latest(unit, tenant.index, replace(filter_, project=""), _TOPICS_OF)
        found = unit.get(SqlSummaries).topics(ids)
    counts = Counter(key for topics in found for key in {topic_key(one) for one in topics})
    return Topics(len(found), counts)


def _profile(unit: CorpusUnit, whose: OfUser) -> Profile:
    """Return what is known of a user, if one is named."""
    if not whose.user_id:
        return Profile()
    return profile(unit, whose, _PROFILE_TOKENS, ContextFormat.MARKDOWN)


def _narrated(woken: Awakening, now: int) -> Awakening:
    return replace(woken, narrative=narrate(woken, now))


def suggestions_of(
    last: PastSession | None,
    patterns: Sequence[WorkPattern],
    advice_on: Callable[[str], Advice | None],
    known: Sequence[Suggestion] = (),
    *,
    later: Sequence[PastSession] = (),
    now_us: int = 0,
) -> list[Suggestion]:
    """Return next steps, the most pressing first; empty when nothing points to one.

    None is made up: each names what it follows from. `known` is what experience says; it keeps
    its place whatever else there is to do. What `later` sessions did is not to do any more, and
    what was left months before `now_us` is told, and not suggested.
    """
    if last is None or now_us - last.at_us > _STALE_US:
        return []
    repeated = _repeated(patterns, advice_on)
    told = {event_id for one in repeated for event_id in one.evidence.event_ids}
    left = [*_open_todos(last, later), *_unresolved(last, told, later)]
    found = [*left, *repeated, *_untested(last)]
    return [*found[: MAX_SUGGESTIONS - len(known)], *known]


def left_to_do(last: PastSession) -> list[str]:
    """Return what the last session left, the most pressing first: todos, then errors."""
    todos = [todo.content for todo in last.handover.open_todos] if last.handover else []
    errors = [e.example for e in (last.summary.errors if last.summary else ()) if not e.resolved]
    return [*todos, *errors][:_ADDRESSED]


def experience_with(
    last: PastSession, known: Sequence[KnownExperience], now_us: int
) -> list[Suggestion]:
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


def _open_todos(last: PastSession, later: Sequence[PastSession]) -> list[Suggestion]:
    left = last.handover.open_todos if last.handover else ()
    todos = [todo for todo in left if not any(_did(one, todo.content) for one in later)][:_TODOS]
    evidence = Evidence((last.session.id,))
    return [
        Suggestion(
            "open_todo",
            cut(todo.content, 200) + (f" (priority {todo.priority})" if todo.priority else ""),
            evidence,
        )
        for todo in todos
    ]


def _did(session: PastSession, todo: str) -> bool:
    """Tell whether a session that succeeded was about a todo: most of its words are said in it."""
    summary = session.summary
    if summary is None or summary.outcome != Outcome.SUCCESS:
        return False
    wanted, said = compared_words(todo), compared_words(summary.text)
    return bool(wanted) and len(wanted & said) >= _MOST_OF_A_TODO * len(wanted)


def _worked(session: PastSession, tool: str) -> bool:
    """Tell whether a tool was called in a session, and left no failure there."""
    summary = session.summary
    if summary is None or tool not in {name for name, _ in summary.tools}:
        return False
    return all(error.tool != tool or error.resolved for error in summary.errors)


def _unresolved(
    last: PastSession, told: set[str], later: Sequence[PastSession]
) -> list[Suggestion]:
    """Errors that are still open, but for those whose events are told of with what addresses
    them, and those whose tools worked since."""
    errors = [
        error
        for error in (last.summary.errors if last.summary else ())
        if not error.resolved
        and told.isdisjoint(error.event_ids)
        and not (error.tool and any(_worked(one, error.tool) for one in later))
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


def narrate(woken: Awakening, now_us: int) -> str:
    """Weave the last session, related work, patterns and next steps into one text.

    What is stored stays on the line that says what it is: it cannot pass for another one.
    """
    known = _known_of_the_user(woken.profile)
    if woken.last is None:
        return visible("\n\n".join(filter(None, [NOTHING, known])))
    parts = [_last_session(woken.last, now_us)]
    if known:
        parts.append(known)
    if woken.tries:
        parts.append(said_of_tries(woken.tries))
    if woken.later:
        parts.append(_later_sessions(woken.later, now_us, more=woken.more_later))
    if woken.related:
        parts.append("\n".join(_related(woken.related[:_RELATED], now_us)))
    if woken.not_compared:
        parts.append(NOT_COMPARED)
    if woken.patterns:
        parts.append("\n".join(_pattern(pattern) for pattern in woken.patterns[:_PATTERNS]))
    if woken.suggestions:
        parts.append(_steps(woken.suggestions))
    return visible("\n\n".join(parts))


def _known_of_the_user(known: Profile) -> str:
    lines = [markdown_line(item_of(one.memory)) for one in known.items]
    if known.left_out and lines:
        lines.append(f"- and {known.left_out} more")
    return "\n".join(["Known of the user:", *lines]) if lines else ""


def gist(past: PastSession) -> str:
    """Return in a few words what a session did."""
    if past.handover is not None and not past.handover.all_collected:
        done = [*past.handover.progress, *past.handover.completed_todos]
        if done:
            return cut("; ".join(item.rstrip(". ") for item in done[:3]), _SAID)
    if past.summary is not None:
        return cut(past.summary.text.split("\n", 1)[0].rstrip("."), _SAID)
    return "no summary yet"


def _last_session(last: PastSession, now_us: int) -> str:
    when = ago(last.at_us, now_us)
    handover = last.handover
    took = f", after {lasting(handover.duration_s)}" if handover and handover.duration_s else ""
    project = last.session.project or (handover.project if handover else "")
    on = f" on {visible_line(project)}" if project else ""
    lines = [f"Last session{on}, {when}{took}: {ended(gist(last))}"]
    if handover is not None:
        if handover.all_collected:
            lines += _collected(handover)
        lines += _decided(handover)
        if handover.locked_contexts:
            labels = ", ".join(
                visible_line(f"{c.label} {c.version}") for c in handover.locked_contexts[:5]
            )
            lines.append(f"Pinned context: {labels}.")
    elif last.summary is not None:
        lines.append("It left no handover; this is what its events tell.")
    # Who wrote a handover said what matters, where nobody judged.
    written = handover is not None and not handover.all_collected
    known = last.session.outcome != Outcome.UNKNOWN
    if last.session.status != SessionStatus.ACTIVE and (known or not written):
        lines.append(_how_it_ended(last.session))
    return "\n".join(lines)


_ENDED = {
    Outcome.SUCCESS: "succeeded", Outcome.PARTIAL: "partly succeeded", Outcome.FAILURE: "failed",
}  # fmt: skip
_SAYS = {
    GradeSource.AGENT: "says its agent", GradeSource.METADATA: "says its record",
    GradeSource.GRADER: "says a grader", GradeSource.PERSON: "says a person",
}  # fmt: skip


def _how_it_ended(session: Session) -> str:
    if session.outcome == Outcome.UNKNOWN:
        return "Nobody said how it turned out."
    said = _SAYS.get(session.outcome_by, "")
    how = _ENDED[session.outcome]
    return f"It {how}, {said}." if said else f"It {how}."


def _collected(handover: Handover) -> list[str]:
    lines = ["Nobody wrote this handover: it is what the session's events tell."]
    done = [*handover.progress, *handover.completed_todos]
    if done:
        told = cut("; ".join(item.rstrip(". ") for item in done[:3]), _DONE)
        lines.append(f"What came of it: {ended(told)}")
    return lines


def _decided(handover: Handover) -> list[str]:
    return [f"Decided: {ended(decided(one, _DECIDED))}" for one in handover.decisions[:3]]


def _later_sessions(later: Sequence[PastSession], now_us: int, *, more: bool) -> str:
    told = [
        f"{ago(active_us(past.session), now_us)}: {ended(gist(past))}"
        for past in later[:_LATER_TOLD]
    ]
    count = len(later)
    sessions = "one session was" if count == 1 else f"{count} sessions were"
    return (
        f"Since then {'at least ' if more else ''}{sessions} at work and left no handover. "
        + " ".join(told)
    )


def _related(related: Sequence[Related], now_us: int) -> list[str]:
    """Return a line for each thing that was done, however many sessions did it."""
    done: dict[str, list[PastSession]] = {}
    for one in related:
        done.setdefault(ended(gist(one.past)), []).append(one.past)
    return [
        f"Related work {_when([one.at_us for one in past], now_us)}{_went(past)}: {did}"
        for did, past in done.items()
    ]


def _went(past: Sequence[PastSession]) -> str:
    """Return how sessions turned out, of those that anybody judged."""
    if len(past) == 1:
        how = _ENDED.get(past[0].session.outcome, "")
        return f", which {how}" if how else ""
    counts = Counter(one.session.outcome for one in past)
    told = [(counts[Outcome.SUCCESS], "succeeded"), (counts[Outcome.FAILURE], "failed")]
    said = ", ".join(f"{count} {word}" for count, word in told if count)
    return f" ({said})" if said else ""


def _when(at_us: Sequence[int], now_us: int) -> str:
    latest = f"from {ago(max(at_us), now_us)}"
    return latest if len(at_us) == 1 else f"in {len(at_us)} sessions, the latest {latest}"


def _pattern(pattern: WorkPattern) -> str:
    name = "Context" if pattern.type == "topic" else "Pattern"
    return f"{name}: {ended(cut(pattern.description, _SAID))}"


def _steps(suggestions: Sequence[Suggestion]) -> str:
    if len(suggestions) == 1:
        return f"Suggested next step: {visible_line(suggestions[0].description).rstrip('. ')}."
    steps = [
        f"{n}. {visible_line(step.description)}" for n, step in enumerate(suggestions[:_STEPS], 1)
    ]
    return "Suggested next steps:\n" + "\n".join(steps)
