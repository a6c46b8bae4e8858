"""A world that is filled with more and more of everything, for tests of what grows with it.

It has the projects, tags and words that the examples ask for, so that they find it.
"""

from __future__ import annotations

from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import context_service_pb2 as context_pb
from mneme.v1 import episode_pb2 as episode_pb
from mneme.v1 import event_service_pb2 as events_pb
from mneme.v1 import experiment_pb2 as experiment_pb
from mneme.v1 import knowledge_pb2 as knowledge_pb
from mneme.v1 import learn_service_pb2 as learn_pb
from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as learning_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import memory_stats_pb2 as stats_pb
from mneme.v1 import reflection_pb2 as reflection_pb
from mneme.v1 import skill_service_pb2 as skill_pb

from support.contexts import eventually
from support.making import TOOL_CALL, TOOL_ERROR, create_edge, event, record, skill, struct
from support.world import World, alert_rule, experiment, learning, pattern, seen

PROJECT = "shop-api"
STRATEGIES = ("ask_first", "write_tests", "just_do_it")
WORDS = "a fixture of the database is not found"


def fill(world: World, first: int, last: int) -> None:
    """Make what has the numbers from `first` to before `last` of everything, and wait until all
    can be found. It hangs together: sessions have more events, experiments more observations,
    learning sessions more steps, and skills, causes and memories longer chains.
    """
    numbers = range(first, last)
    for number in numbers:
        started = {"session_id": f"filled-{number}", "project": PROJECT}
        world.api.events.StartSession(events_pb.StartSessionRequest(**started))
    record(world.api, *(one for number in numbers for one in _events(number)))
    _memories(world, numbers)
    _experience(world, numbers)
    _causes(world, numbers)
    _learning(world, numbers)
    _others(world, numbers)
    asked = stats_pb.GetMemoryStatsRequest()
    eventually(
        lambda: world.api.memory.GetMemoryStats(asked), lambda stats: not stats.counts.pending
    )


def _events(number: int) -> list[events_pb.NewEvent]:
    tools = {"tool_name": f"tool-{number % 7}", "agent_id": "a"}
    return [
        event(f"{WORDS} {number}", "s-42", agent_id=f"filled-{number}", at=number),
        event(f"a call {number}", f"filled-{number}", TOOL_CALL, at=number, payload=tools),
        event(f"{WORDS} {number}", "s-42", TOOL_ERROR, at=number, payload=tools),
        event(f"{WORDS} {number}", f"filled-{number}", agent_id="a", at=number + 0.5),
    ]


def _memories(world: World, numbers: range) -> None:
    made = [
        memory_pb.CreateMemoriesRequest(
            memory=memory_pb.NewMemory(
                id=f"filled-{number}",
                text=f"Ann wants her invoice {number} before noon",
                user_id="ann",
                tags=["billing"],
                metadata=struct(priority=1),
                supersedes=[f"filled-{number - 1}"] if number % 2 else [],
            )
        )
        for number in numbers
    ]
    world.api.memory.CreateMemories(iter(made))
    lessons = [
        learn_pb.Lesson(
            id=f"filled-{number}", title=f"Title {number}", content=f"{WORDS} {number}",
            category="testing", project=PROJECT,
        )
        for number in numbers
    ]  # fmt: skip
    world.api.learn.ImportLessons(learn_pb.ImportLessonsRequest(lessons=lessons))


def _experience(world: World, numbers: range) -> None:
    episodes = [
        episode_pb.Episode(
            id=f"filled-{number}", task=f"a test suite {number % 5}", success=number % 3 > 0,
            reward=0.5, tools=["edit", f"tool-{number % 7}"], session_id="s-42",
            tags=["testing"], project=PROJECT,
        )
        for number in numbers
    ]  # fmt: skip
    world.api.skill.ImportEpisodes(skill_pb.ImportEpisodesRequest(episodes=episodes))
    for number in numbers:
        skill(world.api, f"filled-{number}", skill_id=f"filled-{number}", tags=["testing"])
        for parent in {max(0, number - 1), number // 2} - {number}:
            world.api.skill.LinkSkills(
                skill_pb.LinkSkillsRequest(
                    parent_skill_id=f"filled-{parent}",
                    child_skill_id=f"filled-{number}",
                    relationship=skill_pb.SKILL_RELATIONSHIP_PREREQUISITE,
                )
            )
        world.api.learn.CreateReflection(
            reflection_pb.CreateReflectionRequest(
                session_id="s-42",
                project=PROJECT,
                task_description=f"Read a CSV export {number}",
                outcome=reflection_pb.OUTCOME_SUCCESS,
            )
        )
        world.api.learn.CreateKnowledge(
            knowledge_pb.CreateKnowledgeRequest(
                project=PROJECT, type=knowledge_pb.KNOWLEDGE_TYPE_ERROR,
                context=f"npm install {number}", lesson=f"permission {number}",
            )
        )  # fmt: skip
        world.api.context.Sleep(
            context_pb.SleepRequest(
                session_id=f"filled-{number}", open_todos=[context_pb.Todo(content="to do")]
            )
        )


def _causes(world: World, numbers: range) -> None:
    for number in numbers:
        create_edge(world.api, f"filled-{number}", "tests_pass", 0.5, edge_id=f"filled-{number}")
        create_edge(world.api, "skill:shared-fixtures", f"filled-{number}", 0.5)
        create_edge(world.api, f"filled-{number}", f"filled-{number + 1}", 0.4)
        world.api.causal.CreateExperiment(experiment(f"filled-{number}"))
        world.api.causal.RecordObservation(
            experiment_pb.RecordObservationRequest(
                experiment_id="review-first", outcome=number % 5, treatment=number % 2 > 0
            )
        )


def _learning(world: World, numbers: range) -> None:
    steps = [
        learning_pb2.Experience(
            state=learning_pb2.State(json=struct(size=number, task=f"task-{number % 5}")),
            action=learning_pb2.Action(label=STRATEGIES[number % 3]),
            reward=number % 2,
        )
        for number in numbers
        for _ in range(4)
    ]
    told = learning_pb.RecordExperienceRequest(session_id="which-strategy", steps=steps)
    world.api.learning.RecordExperience(told)
    done = learning_pb2.Experience(state=seen(), action=learning_pb2.Action(label=STRATEGIES[0]))
    for number in numbers:
        world.api.learning.StartLearningSession(learning(f"filled-{number}"))
        told = learning_pb.RecordExperienceRequest(session_id="next-project", steps=[done])
        world.api.learning.RecordExperience(told)


def _others(world: World, numbers: range) -> None:
    for number in numbers:
        world.api.memory.CreatePattern(pattern(f"filled-{number}"))
        rule = alert_rule(f"filled-{number}")
        rule.threshold = 1e9
        world.api.alert.CreateAlertRule(rule)
        made = admin_pb.CreateTenantRequest(tenant_id=f"filled-{number}")
        world.keys.admin.admin.CreateTenant(made)
        key = admin_pb.CreateApiKeyRequest(tenant_id=world.api.tenant_id, name=f"filled-{number}")
        world.api.admin.CreateApiKey(key)
