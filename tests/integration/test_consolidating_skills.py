"""Skills from episodes: groups that succeed become skills, once, and are kept up to date."""

from __future__ import annotations

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import skill_service_pb2 as pb
from support.api import Api
from support.making import TOOL_CALL, at, episode, event, record, skill
from support.server import LocalServer

CREATED, UPDATED = pb.SKILL_CHANGE_CREATED, pb.SKILL_CHANGE_UPDATED


@pytest.fixture
def api(server: LocalServer) -> Api:
    return server.keys.tenant("consolidating")


def consolidate(api: Api, **fields: object) -> pb.ConsolidateSkillsResponse:
    return api.skill.ConsolidateSkills(
        pb.ConsolidateSkillsRequest(**fields)  # type: ignore[arg-type]
    )


def counts(answer: pb.ConsolidateSkillsResponse) -> tuple[int, int, int]:
    return answer.created_count, answer.updated_count, answer.unchanged_count


def listed(api: Api) -> list[pb.Skill]:
    return list(api.skill.ListSkills(pb.ListSkillsRequest()).skills)


def cancellations(api: Api) -> None:
    """Nine attempts to cancel a flight: those that checked the policy succeeded."""
    for number in range(9):
        good = number < 5
        tools = ["get_reservation", "check_policy"] if good else ["get_reservation", "cancel"]
        episode(
            api, f"Cancel the flight reservation of customer {number}", success=good,
            episode_id=f"cancel-{number}", tools=tools, occurred_at=at(number), output="Cancelled.",
            critique="" if good else "Basic economy cannot be refunded.", latency_ms=1_000,
        )  # fmt: skip


def others(api: Api) -> None:
    for number in range(2):
        episode(api, f"Water the plants in room {number}", episode_id=f"plants-{number}")


def test_what_succeeded_again_and_again_becomes_a_skill(api: Api) -> None:
    cancellations(api)
    others(api)
    answer = consolidate(api)
    assert (counts(answer), answer.episode_count, answer.group_count) == ((1, 0, 0), 11, 2)
    (made,) = answer.skills
    found = made.skill
    assert "cancel" in found.name
    assert found == listed(api)[0]
    assert (found.record.uses, found.record.successes) == (9, 5)
    assert (found.record.episode_count, found.record.average_latency_ms) == (9, 1_000)
    assert list(found.source_episode_ids) == [f"cancel-{n}" for n in reversed(range(9))]
    assert [tuple(way.tools) for way in found.findings.ways] == [
        ("get_reservation", "check_policy")
    ]
    named = {one.name: (one.success_count, one.failure_count) for one in found.findings.differences}
    assert named == {"check_policy": (5, 0), "cancel": (0, 4)}
    assert found.findings.example_episode_id in found.source_episode_ids
    assert "Worked in 5 of 9 attempts" in found.description
    assert "Basic economy cannot be refunded." in found.description
    (best, *_) = api.skill.SearchSkills(
        pb.SearchSkillsRequest(task="a customer wants to cancel a flight")
    ).results
    assert best.skill == found


def test_running_it_again_changes_nothing(api: Api) -> None:
    cancellations(api)
    others(api)
    consolidate(api)
    before = listed(api)
    assert counts(consolidate(api)) == (0, 0, 1)
    assert listed(api) == before


def test_a_name_that_is_taken_again_and_again_gets_the_first_free_number(api: Api) -> None:
    cancellations(api)
    (planned,) = consolidate(api, dry_run=True).skills
    for taken in ("", "_2"):
        skill(api, planned.skill.name + taken)
    (dry,) = consolidate(api, dry_run=True).skills
    (made,) = consolidate(api).skills
    assert dry.skill.name == made.skill.name == f"{planned.skill.name}_3"


def test_a_dry_run_shows_what_a_run_then_does(api: Api) -> None:
    cancellations(api)
    dry = consolidate(api, dry_run=True)
    assert (counts(dry), listed(api)) == ((1, 0, 0), [])
    assert (dry.skills[0].skill.id, dry.skills[0].skill.etag) == ("", "")
    made = consolidate(api).skills[0].skill
    for ours in (dry.skills[0].skill, made):
        for field in ("id", "created_at", "updated_at", "etag"):
            ours.ClearField(field)
    assert dry.skills[0].skill == made


def test_new_episodes_go_into_the_skill_that_is_there(api: Api) -> None:
    cancellations(api)
    first = consolidate(api).skills[0].skill
    api.skill.RecordSkillUse(pb.RecordSkillUseRequest(skill_id=first.id, success=True))
    episode(api, "Cancel the flight reservation of customer 9", episode_id="cancel-9")
    answer = consolidate(api)
    assert counts(answer) == (0, 1, 0)
    (again,) = answer.skills
    assert (again.change, again.skill.id, again.skill.name) == (UPDATED, first.id, first.name)
    assert again.skill.source_episode_ids[0] == "cancel-9"
    record_ = again.skill.record
    assert (record_.uses, record_.successes, record_.episode_count) == (11, 7, 10)
    assert "Worked in 6 of 10 attempts" in again.skill.description
    assert listed(api) == [again.skill]


def test_a_description_that_somebody_wrote_stays(api: Api) -> None:
    cancellations(api)
    first = consolidate(api).skills[0].skill
    mine = pb.Skill(id=first.id, name="cancel", description="Check the policy first.")
    mask = FieldMask(paths=["name", "description"])
    api.skill.UpdateSkill(pb.UpdateSkillRequest(skill=mine, update_mask=mask))
    assert counts(consolidate(api)) == (0, 0, 1)
    episode(api, "Cancel the flight reservation of customer 9")
    (again,) = consolidate(api).skills
    assert (again.change, again.skill.name) == (UPDATED, "cancel")
    assert again.skill.description == "Check the policy first."
    assert again.skill.findings.attempt_count == 10


def test_how_often_and_how_good_it_must_be_can_be_said(api: Api) -> None:
    for number, reward in enumerate((0.6, 0.8, 0.9)):
        episode(api, f"Cancel the flight reservation {number}", reward=reward)
    assert counts(consolidate(api, dry_run=True)) == (0, 0, 0)
    assert counts(consolidate(api, dry_run=True, min_attempts=2)) == (1, 0, 0)
    assert counts(consolidate(api, dry_run=True, min_reward=0.5)) == (1, 0, 0)
    assert counts(consolidate(api, dry_run=True, min_attempts=1, min_reward=0.95)) == (0, 0, 0)


def test_only_the_episodes_that_are_asked_for_are_looked_at(api: Api) -> None:
    cancellations(api)
    some = episode_pb.EpisodeFilter(end_time=at(3))
    answer = consolidate(api, filter=some)
    assert answer.episode_count == 3
    assert sorted(answer.skills[0].skill.source_episode_ids) == [f"cancel-{n}" for n in range(3)]


def test_a_name_that_is_taken_gets_a_number(api: Api) -> None:
    cancellations(api)
    name = consolidate(api, dry_run=True).skills[0].skill.name
    skill(api, name)
    assert consolidate(api).skills[0].skill.name == f"{name}_2"


def test_errors_of_recorded_sessions_tell_failures_apart(api: Api) -> None:
    for number in range(10):
        failed = number >= 5
        session = f"s-{number}"
        record(api, event("", session, TOOL_CALL, name="book", at=number))
        if failed:
            record(
                api,
                event(
                    "", session, "tool_error", name="book", at=number, error=f"seat {number} gone"
                ),
            )
        episode(api, f"Book a seat for customer {number}", success=not failed, session_id=session)
    (made,) = consolidate(api).skills
    (one,) = made.skill.findings.differences
    assert (one.trait, one.success_count, one.failure_count) == (pb.SKILL_TRAIT_ERROR, 0, 5)
    assert one.name == "book: seat <num> gone"


def test_without_episodes_there_are_no_skills(api: Api) -> None:
    assert consolidate(api) == pb.ConsolidateSkillsResponse()
