"""Sleep, WakeUp and the timeline against a real server: the seed of the session memory."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import context_service_pb2 as pb
from mneme.v1 import event_service_pb2 as events_pb
from support.api import Api, grpc, refused
from support.contexts import end, sleep, summaries, summarised, wake_up
from support.making import MESSAGE, TOOL_CALL, TOOL_ERROR, event, lesson, record, session_of


def _five_sessions(api: Api) -> None:
    """Three sessions on authentication and two on billing, in turn."""
    sleep(
        api, "auth-1", "Implemented JWT token decoding and validation", "Added tests for it",
        project="shop", files=["src/auth/jwt.py", "tests/test_jwt.py"],
        todos=(("Add refresh tokens", 3),),
        decisions=(("Sign with RS256", "services verify without the secret"),),
    )  # fmt: skip
    sleep(
        api, "bill-1", "Monthly invoices are made as PDF", "VAT is computed per country",
        project="shop", files=["src/billing/invoice.py"],
    )  # fmt: skip
    sleep(
        api, "auth-2", "Set up OAuth2 login with Google", project="shop",
        files=["src/auth/oauth.py", "src/auth/jwt.py"], contexts=("auth_spec",),
        todos=(("Add refresh tokens", 2),),
    )  # fmt: skip
    sleep(
        api, "bill-2", "Failed card charges are retried three times", project="shop",
        files=["src/billing/charge.py"],
    )  # fmt: skip
    sleep(
        api, "auth-3", "Fixed JWT validation of tokens without an expiry", project="shop",
        completed_todos=["Reject tokens without exp"], files=["src/auth/jwt.py"],
        todos=(("Tell the mobile team", 0), ("Add refresh tokens", 1)), contexts=("auth_spec",),
        decisions=(("Tokens live 15 minutes", "a stolen one is soon useless"),),
    )  # fmt: skip


def test_waking_up_after_three_sessions_on_authentication_and_two_on_billing_relates_the_right_ones(
    api: Api,
) -> None:
    _five_sessions(api)
    woken = wake_up(api, project="shop")
    assert woken.last_handover.session_id == "auth-3"
    assert {related.session_id for related in woken.related} == {"auth-1", "auth-2"}
    assert woken.sessions_considered == 5


def test_an_agent_that_only_a_handover_names_is_counted_as_the_session_s(api: Api) -> None:
    record(api, event("", "s", TOOL_CALL, name="search"))
    for _ in range(2):
        sleep(api, "s", "Looked for flights", agent_id="bot")
    (agent,) = api.events.ListAgents(events_pb.ListAgentsRequest()).agents
    assert (agent.id, agent.session_count) == ("bot", 1)


def test_of_many_sessions_since_the_last_handover_it_says_that_there_were_at_least_so_many(
    api: Api,
) -> None:
    sleep(api, "handed-over", "Fixed the build")
    names = [f"later-{number}" for number in range(8)]
    for name in names:
        record(api, event("Why is the build red again?", name))
        end(api, name, status=events_pb.SESSION_STATUS_COMPLETED)
    summarised(api, *names)
    assert "Since then at least 5 sessions were at work" in wake_up(api).text


def test_its_narrative_reads_well_to_a_stranger(api: Api) -> None:
    _five_sessions(api)
    lines = wake_up(api, project="shop").text.splitlines()
    assert lines == [
        "Last session on shop, just now: Fixed JWT validation of tokens without an expiry;"
        " Reject tokens without exp.",
        "Decided: Tokens live 15 minutes, because: a stolen one is soon useless.",
        "Pinned context: auth_spec.",
        "",
        "Related work from just now: Implemented JWT token decoding and validation;"
        " Added tests for it.",
        "Related work from just now: Set up OAuth2 login with Google.",
        "",
        "Context: all 3 of these sessions share the topic auth.",
        "Pattern: src/auth/jwt.py was touched in 3 sessions.",
        "Pattern: “Add refresh tokens” has been left open in 3 sessions.",
        "",
        "Suggested next steps:",
        "1. Add refresh tokens (priority 1)",
        "2. Tell the mobile team",
        "3. Test src/auth/jwt.py, changed without touching a test",
    ]


def test_related_sessions_are_scored_by_likeness_recency_and_importance(api: Api) -> None:
    _five_sessions(api)
    related = wake_up(api, project="shop", min_similarity=0.0).related
    assert len(related) == 4
    assert [r.score for r in related] == sorted((r.score for r in related), reverse=True)
    weights = {"auth-1": 3, "auth-2": 1, "bill-1": 2, "bill-2": 1}
    for one in related:
        assert one.importance == pytest.approx(weights[one.session_id] / 10)
        assert one.recency == pytest.approx(1.0, abs=1e-3)
        expected = 0.6 * one.similarity + 0.3 * one.recency + 0.1 * one.importance
        assert one.score == pytest.approx(expected)
    assert list(related[0].files) == ["src/auth/jwt.py", "tests/test_jwt.py"]
    assert [list(r.contexts) for r in related if r.session_id == "auth-2"] == [["auth_spec"]]


def test_an_older_session_ranks_below_a_newer_one_that_is_as_similar(api: Api) -> None:
    now = Timestamp()
    now.GetCurrentTime()
    for name, days in (("old", 60), ("new", 6)):
        at = Timestamp(seconds=now.seconds - days * 86_400)
        said = events_pb.NewEvent(
            session_id=name, event_type=MESSAGE, text="tune the search index", timestamp=at
        )
        api.events.StartSession(events_pb.StartSessionRequest(session_id=name, started_at=at))
        record(api, said)
        end(api, name, ended_at=at)
    summarised(api, "old", "new")
    sleep(api, "last", "Tuned the search index")
    related = wake_up(api).related
    assert [one.session_id for one in related] == ["new", "old"]
    # 30-day decay.
    assert [one.recency for one in related] == pytest.approx([1 / 1.2, 1 / 3], abs=1e-3)


def test_patterns_and_suggestions_cite_sessions_and_events_that_exist(api: Api) -> None:
    for name, amount in (("a", 10), ("b", 25), ("c", 99)):
        error = f"payment of {amount} does not add up to {amount + 1}"
        record(
            api,
            event("book the flight to Lisbon", name),
            event("", name, TOOL_CALL, name="search"),
            event("", name, TOOL_CALL, name="book"),
            event("", name, TOOL_ERROR, name="book", id=f"error-{name}", error=error),
        )
        sleep(api, name, "Tried to book the flight to Lisbon", project="travel")
    kept = lesson(
        api, "Payments", "a payment that does not add up is refused: sum the amounts first"
    )
    woken = wake_up(api, project="travel")
    by_type = {pattern.type: pattern for pattern in woken.patterns}
    error_pattern = by_type["recurring_error"]
    assert set(error_pattern.session_ids) == {"a", "b", "c"}
    assert set(error_pattern.event_ids) == {"error-a", "error-b", "error-c"}
    assert by_type["tool_workflow"].description.startswith("search → book")
    steps = {step.type: step for step in woken.suggestions}
    assert "unresolved_error" not in steps  # It is the one that came before, and told of as such.
    assert "error-c" in steps["repeated_failure"].event_ids
    assert list(steps["repeated_failure"].lesson_ids) == [kept.id]
    assert "sum the amounts first" in steps["repeated_failure"].description


def test_without_evidence_nothing_is_invented(api: Api) -> None:
    empty = wake_up(api)
    assert not empty.HasField("last_handover")
    assert not [*empty.related, *empty.patterns, *empty.suggestions]
    assert empty.text.startswith("There is nothing to pick up")
    sleep(api, "only", "Read the paper on sparse attention")
    woken = wake_up(api)
    assert not [*woken.related, *woken.patterns, *woken.suggestions]
    assert "sparse attention" in woken.text
    assert "Suggested" not in woken.text


def test_without_a_handover_the_session_that_ended_last_is_told(api: Api) -> None:
    record(api, event("compare the tariffs of three insurers", "s"))
    end(api, "s")
    summarised(api, "s")
    woken = wake_up(api)
    assert not woken.HasField("last_handover")
    assert woken.last_summary.session_id == "s"
    assert "compare the tariffs" in woken.text


def test_the_last_handover_is_that_of_the_project_or_of_any(api: Api) -> None:
    sleep(api, "one", "Did one", project="p1", agent_id="ann")
    sleep(api, "two", "Did two", project="p2", agent_id="bob")
    assert wake_up(api).last_handover.session_id == "two"
    assert wake_up(api, project="p1").last_handover.session_id == "one"
    assert wake_up(api, agent_id="ann").last_handover.session_id == "one"
    assert not wake_up(api, project="p3").HasField("last_handover")
    assert not wake_up(api, project="p1", agent_id="bob").HasField("last_handover")


def test_sleep_ends_the_session_and_takes_tools_and_duration_from_its_events(api: Api) -> None:
    start = events_pb.StartSessionRequest(session_id="s", project="p", agent_id="ann")
    api.events.StartSession(start)
    record(
        api,
        event("", "s", TOOL_CALL, name="read"),
        event("", "s", TOOL_CALL, name="edit"),
        event("", "s", TOOL_CALL, name="edit"),
    )
    handover = sleep(api, "s", "Edited the page")
    assert (handover.project, handover.agent_id) == ("p", "ann")
    assert list(handover.tools) == ["edit", "read"]
    session = session_of(api, "s")
    assert session.status == events_pb.SESSION_STATUS_COMPLETED
    assert session.HasField("ended_at")


def test_the_duration_is_that_from_the_first_event_to_the_last(api: Api) -> None:
    record(api, event("start", "s", at=0), event("stop", "s", at=754))
    assert sleep(api, "s").duration_seconds == 754


def test_sleep_opens_a_session_that_is_not_known_and_a_late_start_completes_it(api: Api) -> None:
    sleep(api, "new", "Designed the logo", project="brand", agent_id="ann")
    session = session_of(api, "new")
    assert (session.project, session.agent_id) == ("brand", "ann")
    assert session.status == events_pb.SESSION_STATUS_COMPLETED
    start = events_pb.StartSessionRequest(session_id="new", project="brand", user_id="u")
    assert api.events.StartSession(start).session.user_id == "u"


def test_sleeping_again_replaces_the_handover_and_with_the_same_content_changes_nothing(
    api: Api,
) -> None:
    first = sleep(api, "s", "Painted the fence")
    assert sleep(api, "s", "Painted the fence") == first
    second = sleep(api, "s", "Painted the fence", "Mowed the lawn")
    assert second.created_at.ToNanoseconds() > first.created_at.ToNanoseconds()
    assert wake_up(api).last_handover == second
    assert summaries(api) == {"s": f"{second.summary}."}


def test_a_handover_of_another_project_is_refused_and_changes_nothing(api: Api) -> None:
    first = sleep(api, "s", "Painted the fence", project="garden")
    for field in ("project", "agent_id"):
        sleep(api, "t", "Painted", agent_id="ann", project="garden")
        with refused() as failure:
            sleep(api, "t", "Sold it", **{field: "other"})
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.FAILED_PRECONDITION, "CONSTRAINT_VIOLATION",
        )  # fmt: skip
        assert failure.field == field
    assert sleep(api, "s", "Painted the fence") == first


def test_a_handover_is_found_at_once_and_its_summary_fits_a_model(api: Api) -> None:
    handover = sleep(api, "s", *["Rebuilt the greenhouse heating " * 20] * 10)
    assert len(handover.summary) == 1_020
    assert handover.summary.endswith("...")
    found = api.context.SearchSessions(pb.SearchSessionsRequest(query="greenhouse")).results
    assert found[0].session.id == "s"
    assert found[0].similarity > 0.4


def test_open_todos_come_by_priority(api: Api) -> None:
    handover = sleep(api, "s", todos=(("later", 0), ("soon", 2), ("now", 1)))
    assert [todo.content for todo in handover.open_todos] == ["now", "soon", "later"]


def test_end_to_end_session_memory(api: Api) -> None:
    """The seed's own test: sleep, embedding, wake up, related sessions."""
    sleep(api, "1", "JWT implementation details", contexts=("jwt_spec",), project="test_project")
    found = api.context.SearchSessions(pb.SearchSessionsRequest(query="JWT")).results
    assert found[0].HasField("similarity")
    sleep(api, "2", "OAuth2 setup", contexts=("oauth_spec",), project="test_project")
    woken = wake_up(api, project="test_project", min_similarity=0.0)
    assert "JWT" in woken.text
    assert "OAuth2" in woken.text
    assert "Related work" in woken.text


def test_sessions_since_the_last_handover_are_told(api: Api) -> None:
    sleep(api, "s", "Painted the fence", project="garden")
    start = events_pb.StartSessionRequest(session_id="later", project="garden")
    api.events.StartSession(start)
    record(api, event("the hedge is cut", "later"))
    end(api, "later")
    summarised(api, "later")
    assert "Since then one session was at work and left no handover" in wake_up(api).text


def test_a_timeline_links_each_session_to_the_earlier_ones_that_it_resembles(api: Api) -> None:
    _five_sessions(api)
    sleep(api, "elsewhere", "Implemented JWT token decoding", project="other")
    answer = api.context.GetTimeline(pb.GetTimelineRequest(project="shop"))
    links = {e.session.id: [link.session_id for link in e.related] for e in answer.entries}
    assert list(links) == ["auth-3", "bill-2", "auth-2", "bill-1", "auth-1"]
    assert set(links["auth-3"]) == {"auth-1", "auth-2"}
    assert links["auth-2"] == ["auth-1"]
    assert links["auth-1"] == links["bill-1"] == []
    similar = [link.similarity for link in answer.entries[0].related]
    assert similar == sorted(similar, reverse=True)
    request = pb.GetTimelineRequest(project="shop", links=1)
    assert len(api.context.GetTimeline(request).entries[0].related) == 1


def test_a_timeline_comes_in_pages_without_gaps_or_repeats(api: Api) -> None:
    for n in range(7):
        sleep(api, f"s{n}", f"Chapter {n}", project="book")
    request, seen = pb.GetTimelineRequest(project="book", page_size=3), []
    while True:
        page = api.context.GetTimeline(request)
        seen += [entry.session.id for entry in page.entries]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert seen == [f"s{n}" for n in range(6, -1, -1)]


def test_a_timeline_shows_sessions_without_a_summary_too(api: Api) -> None:
    record(api, event("still at it", "active"))
    (entry,) = api.context.GetTimeline(pb.GetTimelineRequest()).entries
    assert entry.session.id == "active"
    assert not entry.HasField("summary")
