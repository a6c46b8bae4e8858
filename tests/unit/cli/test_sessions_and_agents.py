from __future__ import annotations

from mneme._core.convert import fill
from mneme.messages import (
    Agent,
    EndSessionResponse,
    Event,
    GetSessionResponse,
    Grade,
    GradeSessionResponse,
    GradeSource,
    ListAgentsResponse,
    ListEventsResponse,
    ListGradesResponse,
    ListSessionsResponse,
    Outcome,
    Session,
    SessionStatus,
    StartSessionResponse,
)
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer

SESSION = Session()
fill(
    SESSION,
    {
        "id": "task-1",
        "agent_id": "coder",
        "status": "error",
        "outcome": "failure",
        "outcome_by": "grader",
        "reward": 0.25,
        "event_count": 1234,
        "tool_call_count": 12,
        "error_count": 3,
        "tags": ["a", "b"],
        "metadata": {"trial": 1},
        "total_cost_usd": 0.25,
        "total_input_tokens": 1000,
        "total_output_tokens": 234,
    },
)


def test_sessions_are_listed_with_their_counters(served: ScriptedServer) -> None:
    served.on("ListSessions", ListSessionsResponse(sessions=[SESSION]))
    result = mneme(
        *["sessions", "list", "--agent", "coder", "--status", "error", "--tag", "a"],
        *["--user", "u", "--project", "p", "--from", "2026-01-01T00:00:00Z"],
    )
    assert result.lines[1].split()[:7] == [
        "task-1",
        "coder",
        "error",
        "failure",
        "1,234",
        "12",
        "3",
    ]
    request = served.last("ListSessions")
    assert request.agent_id == "coder"
    assert request.status == SessionStatus.SESSION_STATUS_ERROR
    assert (list(request.tags), request.user_id, request.project) == (["a"], "u", "p")
    assert request.start_time.seconds == 1767225600
    assert request.page_size == 51


def test_sessions_as_json_are_one_a_line(served: ScriptedServer) -> None:
    served.on("ListSessions", ListSessionsResponse(sessions=[SESSION, SESSION]))
    documents = mneme("sessions", "list", "--json").documents
    assert [d["event_count"] for d in documents] == [1234, 1234]
    assert documents[0]["metadata"] == {"trial": 1}


def test_a_session_is_shown_with_its_facts_and_first_events(served: ScriptedServer) -> None:
    served.on("GetSession", GetSessionResponse(session=SESSION))
    event = Event(event_type="tool_error", name="pytest", text="2 failed")
    served.on("ListEvents", ListEventsResponse(events=[event] * 5))
    result = mneme("sessions", "show", "task-1", "--events", "2")
    assert "Tool calls  12" in result.out
    assert "Cost        0.2500 USD" in result.out
    assert "Tokens      1,234" in result.out
    assert "Outcome     failure, says a grader" in result.out
    assert "Reward      0.25" in result.out
    assert 'Metadata    {"trial": 1}' in result.out
    assert result.out.count("2 failed") == 2
    assert "1,232 more: mneme events list --session task-1 --limit 0" in result.err


def test_starting_a_session_prints_its_id(served: ScriptedServer) -> None:
    served.on("StartSession", StartSessionResponse(session=Session(id="new")))
    result = mneme(
        *["sessions", "start", "--agent", "a", "--agent-name", "A", "--user", "u"],
        *["--project", "p", "--tag", "t", "--metadata", '{"k": 1}'],
    )
    assert result.out == "new\n"
    request = served.last("StartSession")
    assert (request.agent_id, request.agent_name, request.user_id) == ("a", "A", "u")
    assert request.metadata.fields["k"].number_value == 1
    assert request.session_id


def test_ending_a_session_says_how_it_went(served: ScriptedServer) -> None:
    served.on("EndSession", EndSessionResponse(session=SESSION))
    assert mneme("sessions", "end", "task-1").out == ("ended task-1 after 1,234 events, 3 errors\n")
    assert served.last("EndSession").status == SessionStatus.SESSION_STATUS_COMPLETED
    mneme("sessions", "end", "task-1", "--status", "error")
    assert served.last("EndSession").status == SessionStatus.SESSION_STATUS_ERROR


def test_agents_are_listed(served: ScriptedServer) -> None:
    agent = Agent(id="coder", name="Coder", session_count=3, event_count=4000, error_count=1)
    served.on("ListAgents", ListAgentsResponse(agents=[agent]))
    assert mneme("agents").lines[1].split() == ["coder", "Coder", "3", "4,000", "0", "1", "0.0000"]
    assert mneme("agents", "--json").documents[0]["id"] == "coder"


def test_a_session_is_graded_by_whom_with_what(served: ScriptedServer) -> None:
    graded = Grade(id="g", outcome=Outcome.OUTCOME_PARTIAL)
    served.on("GradeSession", GradeSessionResponse(grade=graded, session=SESSION))
    result = mneme(
        *["sessions", "grade", "task-1", "--outcome", "partial", "--reward", "0.5"],
        *["--source", "person", "--by", "ann", "--comment", "half", "--id", "g"],
    )
    assert result.out == "graded task-1: partial\n"
    request = served.last("GradeSession")
    assert (request.session_id, request.grade_id, request.reward) == ("task-1", "g", 0.5)
    assert (request.grader, request.comment) == ("ann", "half")
    assert request.outcome == Outcome.OUTCOME_PARTIAL
    assert request.source == GradeSource.GRADE_SOURCE_PERSON


def test_grades_are_listed_with_who_said_what(served: ScriptedServer) -> None:
    given = Grade()
    fill(
        given,
        {
            "id": "g", "session_id": "task-1", "outcome": "partial", "reward": 0.5,
            "source": "person", "grader": "ann", "comment": "half of it",
        },
    )  # fmt: skip
    served.on("ListGrades", ListGradesResponse(grades=[given]))
    result = mneme("sessions", "grades", "--session", "task-1")
    assert result.lines[1].split()[:5] == ["task-1", "partial", "0.5", "person", "ann"]
    assert served.last("ListGrades").session_id == "task-1"
