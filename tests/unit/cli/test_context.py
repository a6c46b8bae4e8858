"""`mneme context`, `sleep`, `wake-up`, `timeline` and `sessions search`, by what a person sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.messages import (
    ContextEpisode,
    ContextItem,
    ContextSession,
    ContextSkill,
    FoundLesson,
    FoundSession,
    GetContextResponse,
    GetTimelineResponse,
    Handover,
    KeyEvent,
    Lesson,
    Outcome,
    RelatedSession,
    SearchSessionsResponse,
    Session,
    SessionLink,
    SessionSummary,
    SleepResponse,
    Suggestion,
    TimelineEntry,
    Todo,
    WakeUpResponse,
    WorkPattern,
)
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer

_AT = Timestamp(seconds=1_790_000_000)
_WHEN = "2026-09-21"


def _answer(server: ScriptedServer, method: str, answer: Any) -> list[Any]:
    asked: list[Any] = []

    def reply(request: Any, _context: Any) -> Any:
        asked.append(request)
        return answer

    server.on(method, reply)
    return asked


def _context() -> GetContextResponse:
    return GetContextResponse(
        sessions=[
            ContextSession(
                session_id="s1", summary="Moved the schema\nTools: migrate.", relevance_score=0.75,
                started_at=_AT, ended_at=_AT, agent_id="ann", outcome=Outcome.OUTCOME_SUCCESS,
                key_events=[KeyEvent(event_id="e", summary="the table was locked")],
            )
        ],
        lessons=[FoundLesson(lesson=Lesson(title="Backups", content="first of all"), score=0.5)],
        episodes=[ContextEpisode(task="Move it", critique="Copy in batches.", reward=0.2)],
        skills=[ContextSkill(name="in_batches", use_count=3, success_count=2)],
        total_sessions=3,
        text="## Past sessions",
        items=[
            ContextItem(kind="memory", source_id="m-1", text="Invoices go by post.", worth=0.875),
            ContextItem(kind="lesson", source_id="l-1", text="Backups: first of all"),
        ],
    )  # fmt: skip


def test_given_a_topic_relevant_sessions_and_lessons_are_displayed(
    served: ScriptedServer,
) -> None:
    asked = _answer(served, "GetContext", _context())
    result = mneme(
        "context", "database migrations", "--user", "u", "--agent", "a", "--project", "p",
        "--limit", "3", "--without-experience", "--token-budget", "700", "--only-own",
    )  # fmt: skip
    assert result.code == 0, result.err
    request = asked[0]
    assert (request.topic, request.user_id, request.agent_id, request.project, request.limit) == (
        "database migrations", "u", "a", "p", 3,
    )  # fmt: skip
    assert request.without_experience
    assert (request.token_budget, request.only_own) == (700, True)
    (remembered,) = (line for line in result.lines if "Invoices go by post." in line)
    assert "memory m-1" in remembered
    assert "lesson l-1" not in result.out, "it has a table of its own"
    place = next(n for n, line in enumerate(result.lines) if line.startswith("s1"))
    head = result.lines[place]
    for shown in ("s1", "0.75", _WHEN, "success", "ann"):  # Id, relevance, time.
        assert shown in head
    assert result.lines[place + 1 : place + 4] == [
        "  Moved the schema", "  Tools: migrate.", "  - the table was locked",
    ]  # fmt: skip
    assert "Backups" in result.out
    assert "first of all" in result.out
    for shown in ("failure", "Copy in batches.", "in_batches", "2 of 3"):
        assert shown in result.out


def test_context_says_when_there_is_none(served: ScriptedServer) -> None:
    _answer(served, "GetContext", GetContextResponse(total_sessions=7))
    result = mneme("context", "penguins")
    assert (result.code, result.out) == (0, "")
    assert result.err == "No relevant past context found. 7 sessions searched.\n"


def test_context_as_a_prompt_is_the_prompt_and_nothing_else(served: ScriptedServer) -> None:
    _answer(served, "GetContext", _context())
    assert mneme("context", "x", "--prompt").out == "## Past sessions\n"


def test_context_as_json_has_everything(served: ScriptedServer) -> None:
    _answer(served, "GetContext", _context())
    (document,) = mneme("context", "x", "--json").documents
    assert document["sessions"][0]["session_id"] == "s1"
    assert document["total_sessions"] == 3


def test_sleep_sends_what_the_options_say(served: ScriptedServer) -> None:
    asked = _answer(
        served, "Sleep",
        SleepResponse(
            stored=True,
            handover=Handover(
                session_id="s1", summary="Progress: a", open_todos=[Todo(content="t")]
            ),
        ),
    )  # fmt: skip
    result = mneme(
        "sleep", "s1", "--progress", "a", "--progress", "b", "--done", "c", "--todo", "urgent !1",
        "--todo", "whenever", "--decision", "Use RS256 because it is safer", "--decision", "Go",
        "--context", "api@1.0", "--context", "plain", "--file", "src/a.py", "--project", "p",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert result.out == "handed over s1: Progress: a (1 open todo)\n"
    request = asked[0]
    assert (request.session_id, request.project) == ("s1", "p")
    assert (list(request.progress), list(request.completed_todos)) == (["a", "b"], ["c"])
    assert [(t.content, t.priority) for t in request.open_todos] == [("urgent", 1), ("whenever", 0)]
    decided = [(d.decision, d.rationale) for d in request.decisions]
    assert decided == [("Use RS256", "because it is safer"), ("Go", "")]
    pinned = [(c.label, c.version) for c in request.locked_contexts]
    assert pinned == [("api", "1.0"), ("plain", "")]
    assert list(request.files) == ["src/a.py"]


@pytest.mark.parametrize("source", ["file", "-"])
def test_sleep_takes_a_handover_from_json_and_adds_what_the_options_say(
    served: ScriptedServer, tmp_path: Path, source: str
) -> None:
    asked = _answer(served, "Sleep", SleepResponse())
    text = json.dumps({"progress": ["a"], "open_todos": [{"content": "t", "priority": 2}]})
    file = tmp_path / "handover.json"
    file.write_text(text)
    given = str(file) if source == "file" else "-"
    result = mneme("sleep", "s", "--from-json", given, "--progress", "b", stdin=text)
    assert result.code == 0, result.err
    assert list(asked[0].progress) == ["a", "b"]
    assert asked[0].open_todos[0].priority == 2


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"mistyped": 1}'])
def test_json_that_is_no_handover_is_refused(served: ScriptedServer, text: str) -> None:
    asked = _answer(served, "Sleep", SleepResponse())
    result = mneme("sleep", "s", "--from-json", "-", stdin=text)
    assert result.code == 2
    assert not asked


def _awake() -> WakeUpResponse:
    return WakeUpResponse(
        text="Last session, 3 days ago: x.\n\nSuggested next step: y.",
        related=[RelatedSession(session_id="s0", score=0.7, similarity=0.61, created_at=_AT)],
        patterns=[WorkPattern(type="topic", description="about auth", session_ids=["s0", "s1"])],
        suggestions=[Suggestion(type="open_todo", description="y", session_ids=["s1"])],
        sessions_considered=5,
    )


def test_waking_up_tells_the_narrative_and_nothing_else(served: ScriptedServer) -> None:
    asked = _answer(served, "WakeUp", _awake())
    result = mneme("wake-up", "--project", "p")
    assert result.out == "Last session, 3 days ago: x.\n\nSuggested next step: y.\n"
    assert asked[0].project == "p"
    assert not asked[0].HasField("min_similarity")


def test_waking_up_shows_its_evidence_when_asked(served: ScriptedServer) -> None:
    _answer(served, "WakeUp", _awake())
    result = mneme("wake-up", "--evidence")
    for shown in ("0.70", "0.61", "s0", "about auth", "s0, s1", "open_todo"):
        assert shown in result.out
    assert "5 sessions compared." in result.err


def test_a_narrative_cannot_drive_the_terminal(served: ScriptedServer) -> None:
    _answer(served, "WakeUp", WakeUpResponse(text="before\x1b[2Jafter"))
    assert "\x1b" not in mneme("wake-up").out


def test_a_timeline_shows_bars_and_what_each_session_goes_back_to(served: ScriptedServer) -> None:
    entries = [
        TimelineEntry(
            session=Session(id=name, event_count=count, started_at=_AT),
            summary=SessionSummary(summary="did it", outcome=Outcome.OUTCOME_FAILURE),
            related=[SessionLink(session_id="s0", similarity=0.71)],
        )
        for name, count in (("s2", 100), ("s1", 50))
    ]
    _answer(served, "GetTimeline", GetTimelineResponse(entries=entries))
    lines = mneme("timeline", "--project", "p").lines[1:]
    assert [line.count("▇") for line in lines] == [10, 5]
    for line in lines:
        for shown in (_WHEN, "failure", "s0 0.71", "did it"):
            assert shown in line


def test_sessions_are_searched(served: ScriptedServer) -> None:
    found = FoundSession(
        session=Session(id="s1", ended_at=_AT), score=0.5,
        summary=SessionSummary(summary="moved the schema", outcome=Outcome.OUTCOME_PARTIAL),
    )  # fmt: skip
    asked = _answer(served, "SearchSessions", SearchSessionsResponse(results=[found]))
    result = mneme("sessions", "search", "schema", "--project", "p", "-n", "4")
    assert (asked[0].query, asked[0].project, asked[0].limit) == ("schema", "p", 4)
    for shown in ("0.50", "s1", "partial", "moved the schema"):
        assert shown in result.lines[1]


def test_a_search_without_results_says_how_much_was_searched(served: ScriptedServer) -> None:
    _answer(served, "SearchSessions", SearchSessionsResponse(searched_count=1))
    result = mneme("sessions", "search", "x")
    assert (result.out, result.err) == ("", "Nothing found; 1 session searched.\n")
