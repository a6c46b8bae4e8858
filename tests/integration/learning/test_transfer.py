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
    assert target.stored().transitions == 500


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
