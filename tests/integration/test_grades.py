"""Grades: who says how a session turned out, at any time, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest
from mneme.v1 import auth_pb2
from mneme.v1 import certificate_pb2 as certificate_pb
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as pb
from mneme.v1 import grade_pb2 as grade_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from support.api import Api, grpc, refused
from support.behind import Behind
from support.contexts import eventually
from support.forgetting import counts, forget
from support.making import at, event, list_events, record, session_of, struct, verify
from support.server import LocalServer

UNKNOWN = reflection_pb.OUTCOME_UNSPECIFIED
SUCCESS, PARTIAL = reflection_pb.OUTCOME_SUCCESS, reflection_pb.OUTCOME_PARTIAL
FAILURE = reflection_pb.OUTCOME_FAILURE
NOBODY, AGENT = grade_pb.GRADE_SOURCE_UNSPECIFIED, grade_pb.GRADE_SOURCE_AGENT
METADATA = grade_pb.GRADE_SOURCE_METADATA
GRADER, PERSON = grade_pb.GRADE_SOURCE_GRADER, grade_pb.GRADE_SOURCE_PERSON


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("grades")


@pytest.fixture
def admin(server: LocalServer, api: Api) -> Api:
    """What administers the same tenant."""
    return server.keys.key(api.tenant_id, *(one for one in auth_pb2.KeyScope.values() if one))


def ended(
    api: Api, session_id: str, status: Any = 0, *, observed: bool = False, **said: Any
) -> Any:
    """A session of one message, with this metadata, ended."""
    start = pb.StartSessionRequest(session_id=session_id, agent_id="coder", metadata=struct(**said))
    api.events.StartSession(start)
    record(api, event(f"Cancel order 7 of {session_id}.", session_id, payload={"role": "user"}))
    end = pb.EndSessionRequest(session_id=session_id, status=status, observed=observed)
    return api.events.EndSession(end).session


def grade(api: Api, session_id: str, **said: Any) -> pb.GradeSessionResponse:
    return api.events.GradeSession(pb.GradeSessionRequest(session_id=session_id, **said))


def grades(api: Api, **fields: Any) -> list[grade_pb.Grade]:
    return list(api.events.ListGrades(grade_pb.ListGradesRequest(**fields)).grades)


def said_of(session: pb.Session) -> tuple[int, int, float | None]:
    reward = session.reward if session.HasField("reward") else None
    return session.outcome, session.outcome_by, reward


def test_the_agents_own_status_says_how_a_session_turned_out_where_nobody_else_does(
    api: Api,
) -> None:
    assert said_of(ended(api, "well")) == (SUCCESS, AGENT, None)
    assert said_of(ended(api, "badly", pb.SESSION_STATUS_ERROR)) == (FAILURE, AGENT, None)
    api.events.StartSession(pb.StartSessionRequest(session_id="open"))
    assert said_of(session_of(api, "open")) == (UNKNOWN, NOBODY, None)


def test_that_a_session_was_seen_to_end_does_not_say_how(api: Api) -> None:
    for session_id, status in (("a", 0), ("b", pb.SESSION_STATUS_ERROR)):
        session = ended(api, session_id, status, observed=True)
        assert session.status == (status or pb.SESSION_STATUS_COMPLETED)
        assert said_of(session) == (UNKNOWN, NOBODY, None)
    said = event(session="c", kind="session_ended", at=5)
    api.events.RecordEvents(pb.RecordEventsRequest(events=[said], observed=True))
    assert session_of(api, "c").status == pb.SESSION_STATUS_COMPLETED
    assert said_of(session_of(api, "c")) == (UNKNOWN, NOBODY, None)
    record(api, event(session="d", kind="session_ended", at=5))
    assert said_of(session_of(api, "d")) == (SUCCESS, AGENT, None)


def test_a_handover_does_not_say_how_its_session_turned_out(api: Api) -> None:
    record(api, event("Cancel order 7.", "s", payload={"role": "user"}))
    api.context.Sleep(context_pb.SleepRequest(session_id="s"))
    assert session_of(api, "s").status == pb.SESSION_STATUS_COMPLETED
    assert said_of(session_of(api, "s")) == (UNKNOWN, NOBODY, None)


def test_a_persons_word_comes_before_a_graders_that_before_metadata_that_before_the_status(
    api: Api,
) -> None:
    assert said_of(ended(api, "s", reward=0.2)) == (FAILURE, METADATA, 0.2)
    assert said_of(grade(api, "s", reward=0.9).session) == (SUCCESS, GRADER, 0.9)
    by_ann = grade(api, "s", outcome=PARTIAL, source=PERSON, grader="ann").session
    assert said_of(by_ann) == (PARTIAL, PERSON, None)
    assert said_of(grade(api, "s", outcome=FAILURE).session) == (PARTIAL, PERSON, None)
    assert said_of(session_of(api, "s")) == (PARTIAL, PERSON, None)


def test_of_grades_of_one_kind_the_latest_counts_in_whatever_order_they_come(api: Api) -> None:
    ended(api, "s")
    grade(api, "s", outcome=FAILURE, graded_at=at(20))
    assert said_of(grade(api, "s", outcome=SUCCESS, graded_at=at(10)).session)[0] == FAILURE
    assert said_of(grade(api, "s", outcome=PARTIAL, graded_at=at(30)).session)[0] == PARTIAL


def test_a_session_that_goes_on_is_graded_and_its_end_changes_nothing_about_it(api: Api) -> None:
    api.events.StartSession(pb.StartSessionRequest(session_id="s"))
    grade(api, "s", outcome=FAILURE)
    record(api, event("more", "s"))
    session = api.events.EndSession(pb.EndSessionRequest(session_id="s")).session
    assert said_of(session) == (FAILURE, GRADER, None)


def test_a_grade_keeps_what_was_said_and_by_whom(api: Api) -> None:
    ended(api, "s")
    said: dict[str, Any] = {
        "outcome": PARTIAL, "reward": 0.4, "source": PERSON, "grader": "ann",
        "comment": "one of two orders", "graded_at": at(5),
    }  # fmt: skip
    kept = grade(api, "s", grade_id="g-1", **said).grade
    assert (kept.id, kept.session_id, kept.HasField("recorded_at")) == ("g-1", "s", True)
    kept_again = grade(api, "s", grade_id="g-1", **said).grade
    assert kept_again == kept
    assert grades(api, session_id="s") == [kept]
    kept.ClearField("recorded_at")
    assert kept == grade_pb.Grade(id="g-1", session_id="s", **said)


def test_grades_are_listed_the_latest_first_of_a_session_or_by_a_grader(api: Api) -> None:
    for name in ("one", "two"):
        ended(api, name)
        for seconds, grader in ((10, "tests"), (20, "ann")):
            grade(api, name, outcome=SUCCESS, grader=grader, graded_at=at(seconds))
    assert [one.grader for one in grades(api, session_id="two")] == ["ann", "tests"]
    assert [one.session_id for one in grades(api, grader="tests")].count("one") == 1
    first = api.events.ListGrades(grade_pb.ListGradesRequest(page_size=3))
    rest = grade_pb.ListGradesRequest(page_size=3, page_token=first.next_page_token)
    assert len(first.grades) + len(api.events.ListGrades(rest).grades) == 4


def test_a_grade_without_outcome_and_reward_is_refused(api: Api) -> None:
    ended(api, "s")
    with refused() as failure:
        grade(api, "s", comment="no idea")
    assert (failure.code, failure.reason) == (
        grpc.StatusCode.INVALID_ARGUMENT, "MISSING_REQUIRED_FIELD",
    )  # fmt: skip
    assert failure.field == "outcome"


def test_another_grade_under_an_id_that_is_taken_is_refused(api: Api) -> None:
    ended(api, "s")
    grade(api, "s", outcome=SUCCESS, grade_id="g")
    assert grade(api, "s", outcome=SUCCESS, grade_id="g").session.outcome == SUCCESS
    with refused() as failure:
        grade(api, "s", outcome=FAILURE, grade_id="g")
    assert (failure.code, failure.field) == (grpc.StatusCode.ALREADY_EXISTS, "grade_id")


def test_many_grades_are_recorded_at_once_all_or_none(api: Api) -> None:
    for name in ("one", "two"):
        ended(api, name, observed=True)
    given = [
        grade_pb.NewGrade(id=f"of-{name}", session_id=name, reward=reward)
        for name, reward in (("one", 1), ("two", 0), ("none", 1))
    ]
    with refused() as failure:
        api.events.RecordGrades(grade_pb.RecordGradesRequest(grades=given))
    assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")
    assert failure.field == "grades[2].session_id"
    assert said_of(session_of(api, "one")) == (UNKNOWN, NOBODY, None)
    request = grade_pb.RecordGradesRequest(grades=given[:2])
    for recorded, duplicates in ((2, 0), (0, 2)):
        answer = api.events.RecordGrades(request)
        assert (answer.recorded_count, answer.duplicate_count) == (recorded, duplicates)
        assert [one.session_id for one in answer.grades] == ["one", "two"]
    assert said_of(session_of(api, "one")) == (SUCCESS, GRADER, 1)
    assert said_of(session_of(api, "two")) == (FAILURE, GRADER, 0)


def test_a_refused_late_reward_says_where_it_belongs(api: Api) -> None:
    ended(api, "s")
    late = pb.StartSessionRequest(session_id="s", agent_id="coder", metadata=struct(reward=1))
    with refused() as started:
        api.events.StartSession(late)
    with refused() as again:
        api.events.EndSession(pb.EndSessionRequest(session_id="s", status=pb.SESSION_STATUS_ERROR))
    for failure in (started, again):
        assert "GradeSession" in failure.message


def test_sessions_are_listed_by_how_they_turned_out(api: Api) -> None:
    ended(api, "well")
    ended(api, "said", pb.SESSION_STATUS_ERROR, success=True)
    ended(api, "seen", observed=True)
    ended(api, "badly")
    grade(api, "badly", outcome=FAILURE)

    def listed(outcome: Any) -> tuple[set[str], int]:
        answer = api.events.ListSessions(pb.ListSessionsRequest(outcome=outcome))
        return {one.id for one in answer.sessions}, answer.total_size

    assert listed(SUCCESS) == ({"well", "said"}, 2)
    assert listed(FAILURE) == ({"badly"}, 1)
    assert listed(PARTIAL) == (set(), 0)
    assert listed(UNKNOWN)[1] == 4


def test_a_grade_is_a_leaf_of_the_log_and_no_event(api: Api) -> None:
    before = ended(api, "s", observed=True)
    api.context.Sleep(context_pb.SleepRequest(session_id="s"))  # Its summary is made.

    def size() -> int:
        return api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).size

    had = size()
    grade(api, "s", outcome=UNKNOWN, reward=0.0, grade_id="g", comment="it cancelled order 8")
    proof = api.proof.GetInclusionProof(
        proof_pb.GetInclusionProofRequest(source_type="grade", source_id="g")
    )
    assert proof.leaf_index == had
    after = session_of(api, "s")
    assert (after.event_count, after.head_hash) == (before.event_count, before.head_hash)
    assert len(list_events(api, session_id="s")) == 1
    assert verify(api).valid


def test_summaries_follow_a_late_grade_and_certificates_of_before_stay_true(api: Api) -> None:
    ended(api, "s", observed=True)
    eventually(lambda: _summaries(api), lambda found: found == {"s": UNKNOWN})
    request = certificate_pb.RecallWithCertificateRequest(
        query="Cancel order 7", scopes=["session"]
    )
    certificate = api.recall.RecallWithCertificate(request).certificate
    grade(api, "s", outcome=FAILURE)
    eventually(lambda: _summaries(api), lambda found: found == {"s": FAILURE})
    verdict = api.recall.VerifyCertificate(
        certificate_pb.VerifyCertificateRequest(json=certificate.json)
    )
    assert verdict.valid, verdict
    states = {one.source_id: one.state for one in verdict.results if one.source_type == "session"}
    assert states == {"s": certificate_pb.CERTIFIED_STATE_KIND_CHANGED}


def test_episodes_follow_a_late_grade_where_their_session_judges_them(api: Api) -> None:
    ended(api, "s")
    for episode_id, said in (("of-session", {}), ("own", {"success": True})):
        request = episode_pb.CreateEpisodeRequest(episode_id=episode_id, session_id="s", **said)
        api.skill.CreateEpisode(request)
    grade(api, "s", reward=0.25)

    def judged(episode_id: str) -> tuple[bool, float]:
        request = episode_pb.GetEpisodeRequest(episode_id=episode_id)
        found = api.skill.GetEpisode(request).episode
        return found.success, found.reward

    assert judged("of-session") == (False, 0.25)
    assert judged("own") == (True, 1)
    request = episode_pb.SearchEpisodesRequest(
        task="Cancel order 7", filter=episode_pb.EpisodeFilter(only_failures=True)
    )
    found = api.skill.SearchEpisodes(request).results
    assert [one.episode.id for one in found] == ["of-session"]


def _summaries(api: Api) -> dict[str, int]:
    request = context_pb.SearchSessionsRequest(query="Cancel order")
    return {
        one.session.id: one.summary.outcome
        for one in api.context.SearchSessions(request).results
        if one.HasField("summary")
    }


def test_a_grade_that_is_forgotten_leaves_what_was_said_before_it(api: Api, admin: Api) -> None:
    for name in ("seen", "said", "graded"):
        ended(api, name, observed=name == "seen")
    grade(api, "graded", outcome=PARTIAL)
    for name in ("seen", "said", "graded"):
        grade(api, name, outcome=FAILURE, source=PERSON, grade_id=f"of-{name}")
    items = [("grade", f"of-{name}") for name in ("seen", "said", "graded")]
    assert counts(forget(admin, items=items))["grade"] == 3
    assert said_of(session_of(api, "seen")) == (UNKNOWN, NOBODY, None)
    assert said_of(session_of(api, "said")) == (SUCCESS, AGENT, None)
    assert said_of(session_of(api, "graded")) == (PARTIAL, GRADER, None)


GRADE_CHANGES = {
    "a better outcome": "UPDATE session_grades SET outcome = 1 WHERE tenant_id = ?",
    "another session": "UPDATE session_grades SET session_id = 'other' WHERE tenant_id = ?",
    "none": "DELETE FROM session_grades WHERE tenant_id = ?",
}


@pytest.mark.parametrize("change", GRADE_CHANGES)
def test_who_verifies_is_told_of_a_grade_that_was_changed_where_it_lies(
    change: str, api: Api, server: LocalServer
) -> None:
    ended(api, "s")
    ended(api, "other")
    grade(api, "s", outcome=FAILURE)
    assert verify(api).valid
    Behind(server, api.tenant_id).tenant(GRADE_CHANGES[change], api.tenant_id)
    found = verify(api)
    assert not found.valid
    assert "grade" in found.broken_chains[0].reason


def test_forgetting_a_session_forgets_its_grades_and_what_the_log_says_of_them(
    api: Api, admin: Api
) -> None:
    for name in ("gone", "kept"):
        ended(api, name)
        grade(api, name, outcome=FAILURE, comment="unrepeatable words", grade_id=f"of-{name}")
    assert counts(forget(admin, session_id="gone"))["grade"] == 1
    assert [one.id for one in grades(api)] == ["of-kept"]
    with refused() as failure:
        api.proof.GetInclusionProof(
            proof_pb.GetInclusionProofRequest(source_type="grade", source_id="of-gone")
        )
    assert failure.code == grpc.StatusCode.NOT_FOUND
    assert verify(api).valid
    assert session_of(api, "kept").outcome == FAILURE
