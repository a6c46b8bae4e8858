"""GetContext and SearchSessions against a real server: the seed's Stories 5.2 to 5.4."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import context_service_pb2 as pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import reflection_pb2
from support.api import Api
from support.contexts import end, get_context, sessions_found, sleep, summarised
from support.making import MESSAGE, TOOL_CALL, TOOL_ERROR, event, lesson, recall, record

_DAY = 86_400


def _session(
    api: Api, name: str, *said: str, tool: str = "", error: str = "", **start: str
) -> None:
    api.events.StartSession(events_pb.StartSessionRequest(session_id=name, **start))
    events = [event(text, name, MESSAGE) for text in said]
    if tool:
        events.append(event("", name, TOOL_CALL, name=tool))
    if error:
        events.append(event("", name, TOOL_ERROR, name=tool, error=error))
    record(api, *events, wait=True)


@pytest.fixture
def world(api: Api) -> Api:
    """Two sessions on databases, for different users, agents and projects, and one on cooking."""
    _session(
        api, "db-1", "the orders table needs a new column", "the migration ran in the night",
        tool="db_migrate", error="lock wait timeout exceeded", user_id="user123", agent_id="ann",
        project="shop",
    )  # fmt: skip
    _session(
        api, "db-2", "move the database schema to version 9", tool="db_migrate",
        user_id="other", agent_id="bob", project="bank",
    )  # fmt: skip
    _session(api, "soup", "boil the carrots for an hour and add ginger", user_id="user123")
    for name in ("db-1", "db-2", "soup"):
        end(api, name)
    summarised(api, "db-1", "db-2", "soup")
    return api


def test_given_the_topic_database_migrations_sessions_with_database_tools_and_events_are_returned(
    world: Api,
) -> None:
    answer = get_context(world, "database migrations")
    assert set(sessions_found(answer)) == {"db-1", "db-2"}
    assert answer.total_sessions == 3


def test_given_a_user_then_only_sessions_with_that_user_are_included(world: Api) -> None:
    assert sessions_found(get_context(world, "database migrations", user_id="user123")) == ["db-1"]
    nobody = get_context(world, "database migrations", user_id="nobody")
    assert (sessions_found(nobody), nobody.total_sessions) == ([], 0)


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [("agent_id", "bob", ["db-2"]), ("project", "shop", ["db-1"]), ("project", "bank", ["db-2"])],
)
def test_agents_and_projects_really_filter(
    world: Api, field: str, value: str, found: list[str]
) -> None:
    answer = get_context(world, "database migrations", **{field: value})
    assert sessions_found(answer) == found
    assert answer.total_sessions == 2  # One is of no agent and no project: it is for all.
    own = get_context(world, "database migrations", only_own=True, **{field: value})
    assert (sessions_found(own), own.total_sessions) == (found, 1)


def test_what_is_of_nobody_is_for_everybody_and_what_is_of_another_one_is_not(api: Api) -> None:
    for name, user in (("mine", "ann"), ("theirs", "bob"), ("shared", "")):
        _session(api, name, "the shop closes at six on Sundays", user_id=user)
        lesson(api, f"Sundays, {name}", "the shop closes early", source_session_id=name)
        api.memory.CreateMemory(
            memory_pb.CreateMemoryRequest(text=f"the shop closes at six ({name})", user_id=user)
        )
        end(api, name)
    summarised(api, "mine", "theirs", "shared")
    question = "when does the shop close on Sundays"
    for own, names in ((False, {"mine", "shared"}), (True, {"mine"})):
        answer = get_context(api, question, user_id="ann", only_own=own)
        assert set(sessions_found(answer)) == names
        assert answer.total_sessions == len(names)
        taught = {one.lesson.source_session_id for one in answer.lessons}
        assert taught == names
        found = recall(api, question, user_id="ann", only_own=own, limit=100, every_copy=True)
        told = {one for one in ("mine", "theirs", "shared") if one in str(found)}
        assert told == names


def test_times_really_filter(world: Api) -> None:
    now = Timestamp()
    now.GetCurrentTime()
    past, future = Timestamp(seconds=now.seconds - _DAY), Timestamp(seconds=now.seconds + _DAY)
    topic = "database migrations"
    assert not get_context(world, topic, end_time=past).sessions
    assert not get_context(world, topic, start_time=future).sessions
    assert len(get_context(world, topic, start_time=past, end_time=future).sessions) == 2
    assert get_context(world, topic, end_time=past).total_sessions == 0


def test_each_session_includes_summary_relevance_score_key_events_and_start_and_end_time(
    world: Api,
) -> None:
    (session,) = get_context(world, "database migrations", user_id="user123").sessions
    assert "db_migrate" in session.summary
    assert 0 < session.relevance_score <= 1
    assert 0 < session.similarity <= 1
    assert session.started_at.seconds <= session.ended_at.seconds
    assert session.agent_id == "ann"
    said = [key.summary for key in session.key_events]
    assert any("lock wait timeout exceeded" in text for text in said)
    assert any("migration ran" in text for text in said)
    times = [key.timestamp.ToNanoseconds() for key in session.key_events]
    assert times == sorted(times)


def test_key_events_are_not_the_full_timeline(api: Api) -> None:
    said = [f"step {n} of the database migration" for n in range(30)]
    _session(api, "long", *said)
    (session,) = get_context(api, "database migration").sessions
    assert len(session.key_events) <= 5
    assert len({key.event_id for key in session.key_events}) == len(session.key_events)


def test_relevant_lessons_and_reflections_are_included_alongside_sessions(world: Api) -> None:
    kept = lesson(world, "Database migrations", "take a backup before you migrate a database")
    lesson(world, "Soup", "carrots need ginger")
    world.learn.CreateReflection(
        reflection_pb2.CreateReflectionRequest(
            session_id="x", task_description="migrate the database", outcome="OUTCOME_FAILURE",
            next_strategy="migrate in the night",
        )
    )  # fmt: skip
    answer = get_context(world, "database migrations")
    assert [found.lesson.id for found in answer.lessons] == [kept.id]
    (reflection,) = answer.reflections
    assert reflection.reflection.next_strategy == "migrate in the night"
    for said in ("Past sessions", "take a backup", "migrate in the night", "db_migrate"):
        assert said in answer.prompt


def test_lessons_of_another_project_are_left_out_and_those_of_none_are_for_all(world: Api) -> None:
    for project in ("shop", "bank", ""):
        lesson(
            world, f"Migrations {project}", "take a backup before database migrations",
            lesson_id=project or "all", project=project,
        )  # fmt: skip
    answer = get_context(world, "database migrations", project="shop")
    assert {found.lesson.id for found in answer.lessons} == {"shop", "all"}


def test_given_no_relevant_context_the_answer_is_empty_and_says_so(world: Api, api: Api) -> None:
    answer = get_context(world, "the mating calls of penguins")
    assert not answer.sessions
    assert not answer.lessons
    assert answer.prompt == "No relevant past context found."
    assert answer.total_sessions == 3


def test_a_name_that_means_nothing_to_a_model_is_found_by_its_letters(api: Api) -> None:
    _session(api, "flight", "passenger of HAT136 asks for a window seat")
    _session(api, "other", "passenger asks for a vegetarian meal")
    assert sessions_found(get_context(api, "HAT136"))[:1] == ["flight"]


def test_sessions_are_ranked_by_relevance_and_recency(api: Api) -> None:
    now = Timestamp()
    now.GetCurrentTime()
    for name, age in (("new", 0), ("old", 90)):
        at = Timestamp(seconds=now.seconds - age * _DAY)
        record(
            api,
            events_pb.NewEvent(
                session_id=name, event_type=MESSAGE, text="rotate the database password",
                timestamp=at,
            ),
            wait=True,
        )  # fmt: skip
        end(api, name, ended_at=at)
    summarised(api, "new", "old")
    new, old = get_context(api, "rotating database passwords").sessions
    assert (new.session_id, old.session_id) == ("new", "old")
    # Equal texts are about equally relevant, but for the copy that recall puts back a little;
    # what is left is 0.3 of recency, 1 and 1 / (1 + 90 / 30).
    assert new.relevance_score - old.relevance_score == pytest.approx(0.3 * 0.75, abs=0.05)


def test_a_limit_is_kept_and_all_sessions_are_counted(api: Api) -> None:
    for n in range(7):
        sleep(api, f"s{n}", f"database migration number {n}")
    answer = get_context(api, "database migrations", limit=2)
    assert (len(answer.sessions), answer.total_sessions) == (2, 7)
    assert len(get_context(api, "database migrations").sessions) == 5


def test_sessions_are_searched_by_summaries_and_handovers(world: Api) -> None:
    sleep(world, "hand", "Wrote the runbook for database failover", project="shop")
    request = pb.SearchSessionsRequest(query="database failover runbook")
    answer = world.context.SearchSessions(request)
    best = answer.results[0]
    assert (best.session.id, answer.searched_count) == ("hand", 4)
    assert best.summary.summary.startswith("Progress: Wrote the runbook")
    assert 0 < best.score <= 1
    assert best.similarity > 0.5
    of_bank = pb.SearchSessionsRequest(query="database", project="bank")
    assert [r.session.id for r in world.context.SearchSessions(of_bank).results] == ["db-2"]
    high = pb.SearchSessionsRequest(query="database failover runbook", min_score=0.99)
    assert not world.context.SearchSessions(high).results
