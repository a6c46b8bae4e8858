"""What one session has learned, in the hands of another, through the API."""

from __future__ import annotations

import pytest
from integration.learning.test_trust import STRATEGIES, teach
from mneme.v1 import learning_service_pb2 as pb
from mneme.v1 import learning_trust_pb2 as trust_pb
from support.api import Api, grpc, refused
from support.learning import Session, discrete, learner, plain
from support.server import LocalServer

TASK = {"task_type": "auth", "complexity": 0.9, "team": "a"}


@pytest.fixture
def api(server: LocalServer) -> Api:
    return learner(server.keys)


def transfer(api: Api, source: str, target: str, **fields: object) -> pb.TransferResponse:
    request = pb.TransferRequest(source_session_id=source, target_session_id=target, **fields)  # type: ignore[arg-type]
    return api.learning.Transfer(request)


@pytest.mark.parametrize("algorithm", ["linucb", "q_learning"])
def test_a_new_session_begins_with_what_another_one_knows(
    server: LocalServer, api: Api, algorithm: str
) -> None:
    source = Session(api, algorithm, "source", action_space=discrete(labels=STRATEGIES))
    teach(source, 600)
    labels = tuple(reversed(STRATEGIES))
    target = Session(api, algorithm, "target", action_space=discrete(labels=labels))
    assert not target.predict(TASK).trained
    found = transfer(api, "source", "target", similarity_threshold=0)
    assert found.parameters_transferred > 0
    assert found.performance_baseline.refused
    assert not found.HasField("improvement")
    assert target.values(TASK) == pytest.approx(source.values(TASK))
    assert plain(target.predict(TASK).action) == plain(source.predict(TASK).action)
    assert target.stored().trained
    server.close_tenant(api.tenant_id)
    assert target.values(TASK) == pytest.approx(source.values(TASK))


def test_what_a_transfer_is_worth_is_measured_by_the_targets_own_steps(api: Api) -> None:
    source = Session(api, "linucb", "source")
    teach(source, 1_000)
    target = Session(api, "linucb", "target")
    teach(target, 500)
    found = transfer(api, "source", "target")
    assert found.task_similarity.overall > 0.9
    assert found.task_similarity.rewards > 0.8
    assert found.performance_baseline.doubly_robust.value > 0.5
    assert found.performance_after_transfer.doubly_robust.value > 0.5
    assert found.improvement == pytest.approx(
        found.performance_after_transfer.doubly_robust.value
        - found.performance_baseline.doubly_robust.value
    )
    assert found.gain.value == found.improvement
    assert found.gain.low < found.gain.value < found.gain.high
    assert found.worth.startswith("With the transfer an episode of the target brings ")
    assert found.applied
    assert target.stored().transitions == 500


def opposite(session: Session, count: int) -> None:
    """Tell a session that what is worth most elsewhere is worth least."""
    for n in range(count):
        action = STRATEGIES[n % len(STRATEGIES)]
        session.tell(TASK, action, 0.0 if action == STRATEGIES[0] else 1.0)


@pytest.mark.parametrize("steps", [8, 200])
def test_where_rewards_are_opposite_nothing_is_transferred(api: Api, steps: int) -> None:
    source = Session(api, "linucb", "source")
    for n in range(200):
        action = STRATEGIES[n % len(STRATEGIES)]
        source.tell(TASK, action, 1.0 if action == STRATEGIES[0] else 0.0)
    target = Session(api, "linucb", "target")
    opposite(target, steps)
    before = target.values(TASK)
    dry = transfer(api, "source", "target", dry_run=True)
    assert not dry.applied
    assert dry.task_similarity.overall == 0.0
    assert dry.task_similarity.reward_agreement.high < 0.5
    with refused() as failure:
        transfer(api, "source", "target", similarity_threshold=0.01)
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "Rewards speak against it" in failure.message
    assert target.values(TASK) == before


def test_a_target_without_steps_is_told_what_is_not_known_and_begins_with_it(api: Api) -> None:
    source = Session(api, "thompson", "source")
    teach(source, 300)
    target = Session(api, "thompson", "target")
    dry = transfer(api, "source", "target", dry_run=True)
    assert not dry.applied
    assert dry.task_similarity.why.startswith("Nothing of the tasks can be compared yet")
    assert dry.worth.startswith("The target has no steps yet, so that what the transfer is worth")
    assert not target.stored().trained
    assert not target.stored().known_actions
    found = transfer(api, "source", "target")
    assert found.applied
    assert found.worth == dry.worth
    assert target.values(TASK) == pytest.approx(source.values(TASK))


@pytest.mark.parametrize("algorithm", ["linucb", "q_learning"])
def test_a_transfer_can_be_taken_back(server: LocalServer, api: Api, algorithm: str) -> None:
    teach(Session(api, algorithm, "source"), 300)
    target, twin = Session(api, algorithm, "target"), Session(api, algorithm, "twin")
    with refused() as failure:
        transfer(api, "source", "target", undo=True)
    assert "nothing of the learning session 'source' was transferred" in failure.message
    for session in (target, twin):
        teach(session, 60)
    transfer(api, "source", "target", similarity_threshold=0)
    assert target.values(TASK) != twin.values(TASK)
    for session in (target, twin):
        session.tell(TASK, STRATEGIES[1], 1.0)
    assert transfer(api, "source", "target", undo=True).worth
    assert target.values(TASK) == twin.values(TASK)
    server.close_tenant(api.tenant_id)
    assert target.values(TASK) == twin.values(TASK)


def test_tasks_that_are_not_alike_are_refused_and_nothing_changes(api: Api) -> None:
    source = Session(api, "linucb", "source")
    teach(source, 100)
    target = Session(api, "linucb", "target")
    for n in range(30):
        target.tell({"colour": "red", "size": n % 3}, "paint", 1.0)
    before = target.values({"colour": "red", "size": 1})
    with refused() as failure:
        transfer(api, "source", "target")
    assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "At least 70% is asked for (similarity_threshold)" in failure.message
    assert target.values({"colour": "red", "size": 1}) == before


def test_what_does_not_fit_is_refused_with_what_would(api: Api) -> None:
    source = Session(api, "linucb", "source")
    with refused() as failure:
        transfer(api, "source", "source")
    assert "cannot be transferred to itself" in failure.message
    table = Session(api, "q_learning", "table")
    with refused() as failure:
        transfer(api, "source", table.id)
    assert "has learned nothing yet" in failure.message
    source.tell(TASK, "ask", 1.0)
    with refused() as failure:
        transfer(api, "source", table.id)
    assert "only sessions of the same algorithm" in failure.message
    other = Session(api, "linucb", "other", config={"features": 64})
    with refused() as failure:
        transfer(api, "source", other.id)
    assert "differ in features" in failure.message
    target = Session(api, "linucb", "target")
    with refused() as failure:
        transfer(
            api,
            "source",
            target.id,
            transfer_type=trust_pb.TRANSFER_TYPE_FREEZE_ENCODER,
            similarity_threshold=0,
        )
    assert "no encoder that could be frozen; transfer with fine_tune" in failure.message
