"""Tenants do not see each other's learning sessions, nor their models."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import Message
from mneme.v1 import learning_import_pb2 as import_pb
from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as learning_pb
from support.isolation import (
    ALL_SCOPES,
    OTHER,
    Check,
    Checks,
    World,
    action,
    answered_as_absent,
    done,
    not_found,
    policy,
)
from support.making import struct

isolates = Checks()

LEARNING = "mneme.v1.LearningService/"
isolates.needs_none(LEARNING + "DescribeAlgorithms", "it tells of no tenant's data")

_OF_A_SESSION: dict[str, Callable[[str], Message]] = {
    "GetLearningSession": lambda asked: learning_pb.GetLearningSessionRequest(session_id=asked),
    "DeleteLearningSession": lambda asked: learning_pb.DeleteLearningSessionRequest(
        session_id=asked
    ),
    "Predict": lambda asked: learning_pb.PredictRequest(
        session_id=asked, state=learning_pb2.State(json=struct(size=1))
    ),
    "Feedback": lambda asked: done(session_id=asked, action=action("go"), reward=1),
    "RecordExperience": lambda asked: learning_pb.RecordExperienceRequest(
        session_id=asked,
        trajectory_id="trajectory",
        steps=[learning_pb2.Experience(state=learning_pb2.State(json=struct(size=1)))],
    ),
    "GetMetrics": lambda asked: learning_pb.GetMetricsRequest(session_id=asked, evaluate=True),
    "Explain": lambda asked: learning_pb.ExplainRequest(
        session_id=asked, state=learning_pb2.State(json=struct(size=1))
    ),
    "ShapeReward": lambda asked: learning_pb.ShapeRewardRequest(
        session_id=asked, state=learning_pb2.State(json=struct(size=1))
    ),
    "Transfer": lambda asked: learning_pb.TransferRequest(
        source_session_id=asked, target_session_id="policy"
    ),
    "Act": lambda asked: learning_pb.ActRequest(
        session_id=asked,
        states=[learning_pb.ActState(state=learning_pb2.State(json=struct(size=1)))],
    ),
    "Train": lambda asked: learning_pb.TrainRequest(session_id=asked),
    "RecordTrajectories": lambda asked: learning_pb.RecordTrajectoriesRequest(
        session_id=asked,
        trajectory_id="trajectory",
        steps=[learning_pb2.Experience(state=learning_pb2.State(json=struct(size=1)))],
    ),
    "ListTrajectories": lambda asked: learning_pb.ListTrajectoriesRequest(session_id=asked),
    "ImportExperience": lambda asked: import_pb.ImportExperienceRequest(
        session_id=asked, state_fields=[import_pb.StateField(path="project")]
    ),
    "EndSession": lambda asked: learning_pb.LearningServiceEndSessionRequest(session_id=asked),
}


def _of_a_session(rpc: str) -> Check:
    """Check that the other tenant's session is absent for an RPC, and is as it was."""

    def check(world: World) -> None:
        theirs = world.server.keys.key(world.theirs.tenant_id, *ALL_SCOPES)
        asked = learning_pb.GetLearningSessionRequest(session_id=OTHER)
        before = theirs.learning.GetLearningSession(asked)
        assert not_found(
            answered_as_absent(world.administrator, LEARNING + rpc, _OF_A_SESSION[rpc])
        )
        assert theirs.learning.GetLearningSession(asked) == before

    return check


for _rpc in _OF_A_SESSION:
    isolates(LEARNING + _rpc)(_of_a_session(_rpc))


@isolates(LEARNING + "StartSession")
def _(world: World) -> None:
    started = world.administrator.learning.StartSession(policy(OTHER))
    assert (started.resumed, started.session.transitions) == (False, 0)
    assert not started.session.known_actions


@isolates(LEARNING + "DownloadModel")
def _(world: World) -> None:
    theirs = world.server.keys.key(world.theirs.tenant_id, *ALL_SCOPES)
    theirs.learning.EndSession(
        learning_pb.LearningServiceEndSessionRequest(session_id=OTHER, skip_skill=True)
    )
    theirs.learning.StartSession(policy(OTHER))
    request = learning_pb.DownloadModelRequest(session_id=OTHER)
    before = list(theirs.learning.DownloadModel(request))
    assert OTHER.encode() in b"".join(part.data for part in before)
    assert not_found(
        answered_as_absent(
            world.administrator,
            LEARNING + "DownloadModel",
            lambda asked: learning_pb.DownloadModelRequest(session_id=asked),
        )
    )
    ours = world.administrator.learning  # With a session of that name it has a model of its own.
    ours.StartSession(policy(OTHER))
    ours.EndSession(learning_pb.LearningServiceEndSessionRequest(session_id=OTHER, skip_skill=True))
    own = list(ours.DownloadModel(request))
    assert own[0].model.sha256 not in ("", before[0].model.sha256)
    assert list(theirs.learning.DownloadModel(request)) == before


@isolates(LEARNING + "ListLearningSessions")
def _(world: World) -> None:
    request = learning_pb.ListLearningSessionsRequest()
    world.administrator.learning.StartSession(policy("policy"))
    found = world.administrator.learning.ListLearningSessions(request).sessions
    assert [session.id for session in found] == ["policy"]


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
