"""A tenant that has something of every kind, to be called in every way."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import alert_service_pb2 as alert_pb
from mneme.v1 import auth_pb2, learning_pb2
from mneme.v1 import certificate_pb2 as certificate_pb
from mneme.v1 import experiment_pb2 as experiment_pb
from mneme.v1 import learning_service_pb2 as learning_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import pattern_pb2 as pattern_pb
from mneme.v1 import reflection_pb2 as reflection_pb

from support.api import Api
from support.contexts import eventually
from support.making import add_edge, episode, event, lesson, record, skill, struct
from support.server import Keys

ALL_MEMORIES = memory_pb.MemoryFilter(where=[memory_pb.MetadataCondition(key="set", number=1)])
"""A filter that lets every memory of a world through."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class World:
    """A tenant with something in it, called with a key that may do everything."""

    api: Api
    keys: Keys
    certificate: certificate_pb.Certificate


def world_of(keys: Keys) -> World:
    """Make one, with three of everything, so that what is listed has pages."""
    tenant = keys.tenant("input")
    api = keys.key(tenant.tenant_id, *(s for s in auth_pb2.KeyScope.values() if s))
    for number in range(3):
        record(api, event("some words", f"session-{number}", id=f"event-{number}", agent_id="a"))
        record(api, event("more words", "session-0", agent_id=f"agent-{number}"))
        lesson(api, "A title", f"content {number}", lesson_id=f"lesson-{number}")
        api.memory.InsertMemory(
            memory_pb.InsertMemoryRequest(
                memory_id=f"memory-{number}", text=f"content {number}", metadata=struct(set=1)
            )
        )
        api.memory.StorePattern(pattern(f"pattern-{number}"))
        reflection = reflection_pb.StoreReflectionRequest(
            session_id="session-0", task_description="a task", outcome=number + 1,
        )  # fmt: skip
        api.learn.StoreReflection(reflection)
        episode(api, f"task {number}", episode_id=f"episode-{number}")
        skill(api, f"skill-{number}", skill_id=f"skill-{number}")
        add_edge(api, f"cause-{number}", "effect", 0.5, edge_id=f"edge-{number}")
        api.causal.CreateExperiment(experiment(f"experiment-{number}"))
        api.alert.CreateAlertRule(alert_rule(f"rule-{number}"))
        keys.admin.admin.CreateTenant(
            admin_pb.CreateTenantRequest(tenant_id=f"input-page-{number}")
        )
        api.admin.StartBackup(admin_pb.StartBackupRequest(operation_id=f"operation-{number}"))
    for policy in ("policy-0", "policy"):
        api.learning.StartSession(learning(policy))
        done = {"state": seen(), "action": learning_pb2.Action(label="go")}
        api.learning.Feedback(learning_pb.FeedbackRequest(session_id=policy, **done))
        for _ in range(4):
            steps = [learning_pb2.Experience(**done)]
            told = learning_pb.RecordExperienceRequest(session_id=policy, steps=steps)
            api.learning.RecordExperience(told)
    asked = certificate_pb.RecallWithCertificateRequest(query="words")
    certificate = api.recall.RecallWithCertificate(asked).certificate
    # Whatever is recorded triggers the rules.
    history = alert_pb.ListAlertHistoryRequest()
    eventually(lambda: api.alert.ListAlertHistory(history), lambda seen: len(seen.entries) == 3)
    return World(api, keys, certificate)


def pattern(name: str) -> pattern_pb.StorePatternRequest:
    """A pattern that the memories match."""
    return pattern_pb.StorePatternRequest(
        name=name, regex=pattern_pb.RegexPattern(expression=r"content \d")
    )


def experiment(experiment_id: str) -> experiment_pb.CreateExperimentRequest:
    """An experiment on anything."""
    return experiment_pb.CreateExperimentRequest(
        experiment_id=experiment_id, name="name", cause="cause", effect="effect"
    )


def alert_rule(rule_id: str) -> alert_pb.CreateAlertRuleRequest:
    """A rule that any event triggers."""
    return alert_pb.CreateAlertRuleRequest(
        rule_id=rule_id, name="name", condition=alert_pb.ALERT_CONDITION_EVENT_COUNT_EXCEEDS
    )


def learning(session_id: str) -> learning_pb.LearningServiceStartSessionRequest:
    """A learning session."""
    return learning_pb.LearningServiceStartSessionRequest(session_id=session_id, algorithm="linucb")


def seen() -> learning_pb2.State:
    """A state that its sessions take."""
    return learning_pb2.State(json=struct(size=1))


def new(prefix: str) -> str:
    """Return a name that nothing has yet."""
    return f"{prefix}-{next(_numbers)}"
