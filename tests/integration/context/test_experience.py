"""Episodes and skills in GetContext and WakeUp: where they bear on what there is to do, and where
there is evidence."""

from __future__ import annotations

from mneme.v1 import context_service_pb2 as pb
from mneme.v1 import episode_pb2
from mneme.v1 import skill_service_pb2 as skill_pb
from support.api import Api
from support.contexts import get_context, sleep, wake_up
from support.making import episode, lesson, skill

TOPIC = "migrate the orders database"
ATTEMPT = "Migrate the orders database to a new schema"


def used(api: Api, name: str, description: str, *worked: bool, **fields: str) -> skill_pb.Skill:
    """Save a skill that was used, and worked or not."""
    made = skill(api, name, description=description, skill_id=name, **fields)
    for number, success in enumerate(worked):
        use = skill_pb.RecordSkillUseRequest(skill_id=name, use_id=str(number), success=success)
        api.skill.RecordSkillUse(use)
    return made


def test_attempts_and_skills_that_bear_on_the_topic_are_there_with_what_speaks_for_them(
    api: Api,
) -> None:
    tried = episode(
        api, ATTEMPT, success=False, reward=0.2, critique="The lock timed out: copy in batches.",
        episode_id="tried",
    )  # fmt: skip
    episode(api, "Boil carrots with ginger", episode_id="soup")
    used(api, "copy_in_batches", "Migrate a database table in small batches", True, True, False)
    used(api, "make_soup", "Boil carrots for an hour", True)
    answer = get_context(api, TOPIC)
    (attempt,) = answer.episodes
    assert (attempt.episode_id, attempt.success, attempt.reward) == ("tried", False, 0.2)
    assert (attempt.task, attempt.critique) == (ATTEMPT, tried.critique)
    assert attempt.occurred_at == tried.occurred_at
    assert 0 < attempt.score <= 1
    assert attempt.similarity > 0.25
    (known,) = answer.skills
    assert (known.skill_id, known.use_count, known.success_count) == ("copy_in_batches", 3, 2)
    assert 0 < known.success_low < 2 / 3 < known.success_high < 1
    assert 0 < known.score <= 1
    for said in (
        f"episode tried: “{ATTEMPT}” failed, reward 0.2: The lock timed out: copy in batches.",
        "copy_in_batches (worked in 2 of 3 uses): Migrate a database table in small batches",
    ):  # fmt: skip
        assert said in answer.text
    assert "carrots" not in answer.text


def test_a_skill_that_nobody_used_or_that_fails_is_no_advice(api: Api) -> None:
    used(api, "untried", "Migrate a database in one transaction")
    used(api, "failing", "Migrate a database without a backup", *[False] * 9)
    used(api, "young", "Migrate a database by hand", False)
    assert [one.skill_id for one in get_context(api, TOPIC).skills] == ["young"]


def test_the_skill_that_is_known_to_work_comes_before_one_that_is_not(api: Api) -> None:
    used(api, "seldom", "Migrate the orders database", True, False, False)
    used(api, "often", "Migrate the orders database!", *[True] * 20)
    assert [one.skill_id for one in get_context(api, TOPIC).skills] == ["often", "seldom"]
    assert [one.skill_id for one in get_context(api, TOPIC, limit=1).skills] == ["often"]


def test_filters_hold_for_attempts_and_what_is_of_no_project_is_for_all(api: Api) -> None:
    for project in ("shop", "bank", ""):
        episode(
            api, ATTEMPT, episode_id=f"e-{project}", project=project, agent_id=f"agent-{project}"
        )
        used(api, f"s_{project}", f"Migrate a database {project}", True, project=project)
    answer = get_context(api, TOPIC, project="shop")
    assert {one.episode_id for one in answer.episodes} == {"e-shop", "e-"}
    assert {one.skill_id for one in answer.skills} == {"s_shop", "s_"}
    answer = get_context(api, TOPIC, agent_id="agent-bank", only_own=True)
    assert [one.episode_id for one in answer.episodes] == ["e-bank"]


def test_experience_can_be_left_out_and_then_the_answer_is_as_it_was_without_any(api: Api) -> None:
    lesson(api, "Database migrations", "take a backup before you migrate a database")
    sleep(api, "s", "migrated the orders database", todos=((ATTEMPT, 1),), project="shop")
    before = get_context(api, TOPIC), wake_up(api, project="shop")
    episode(api, ATTEMPT, critique="Copy in batches.", project="shop")
    used(api, "copy_in_batches", "Migrate a database table in small batches", True)
    assert get_context(api, TOPIC).text != before[0].text
    assert wake_up(api, project="shop").text != before[1].text
    without = get_context(api, TOPIC, without_experience=True)
    assert without.text == before[0].text
    assert (without.episodes, without.skills) == ([], [])
    assert wake_up(api, project="shop", without_experience=True) == before[1]


def test_waking_up_names_the_skill_and_the_attempt_for_what_is_left_to_do(api: Api) -> None:
    episode(
        api, ATTEMPT, success=False, critique="The lock timed out: copy in batches.",
        episode_id="tried", project="shop",
    )  # fmt: skip
    episode(api, ATTEMPT, critique="Elsewhere it went well.", project="bank", episode_id="other")
    used(api, "migrate_in_batches", "Migrate the orders database in small batches", True, True)
    todos = (("Migrate the orders database to the new schema", 1), ("Water the plants", 2))
    sleep(api, "s", "planned the migration", todos=todos, project="shop")
    woken = wake_up(api, project="shop")
    made = {one.type: one for one in woken.suggestions}
    assert set(made) == {"open_todo", "known_skill", "earlier_attempt"}
    assert list(made["known_skill"].skill_ids) == ["migrate_in_batches"]
    assert list(made["earlier_attempt"].episode_ids) == ["tried"]
    assert list(made["known_skill"].session_ids) == ["s"]
    assert "worked in 2 of 2 uses" in made["known_skill"].description
    assert "failed" in made["earlier_attempt"].description
    for one in made.values():
        assert one.description[:40] in woken.text


def test_what_experience_says_keeps_its_place_however_much_there_is_to_do(api: Api) -> None:
    episode(api, ATTEMPT, critique="Copy in batches.", episode_id="tried")
    todos = tuple((f"Migrate the orders database, part {number}", 1) for number in range(9))
    sleep(api, "s", "planned the migration", todos=todos)
    woken = wake_up(api)
    assert len(woken.suggestions) <= 8
    assert [one.type for one in woken.suggestions].count("earlier_attempt") == 1


def test_two_tenants_do_not_advise_each_other(api: Api, new_tenant: object) -> None:
    assert callable(new_tenant)
    other: Api = new_tenant()
    episode(other, ATTEMPT, critique="Copy in batches.")
    used(other, "copy_in_batches", "Migrate a database table in small batches", True)
    sleep(api, "s", "planned", todos=((ATTEMPT, 1),))
    answer: pb.GetContextResponse = get_context(api, TOPIC)
    assert (answer.episodes, answer.skills) == ([], [])
    assert [one.type for one in wake_up(api).suggestions] == ["open_todo"]


def test_a_long_critique_is_cut(api: Api) -> None:
    told = episode_pb2.CreateEpisodeRequest(task=ATTEMPT, success=True, critique="batch " * 500)
    api.skill.CreateEpisode(told)
    (one,) = get_context(api, TOPIC).episodes
    assert len(one.critique) <= 600
