"""Tenants do not see each other's learning sessions, nor their models."""

from __future__ import annotations

from mneme.v1 import learning_service_pb2 as learning_pb
from support.isolation import (
    ALL_SCOPES,
    OTHER,
    Checks,
    World,
    answered_as_absent,
    not_found,
    policy,
)

isolates = Checks()

LEARNING = "mneme.v1.LearningService/"
isolates.needs_none(LEARNING + "ListAlgorithms", "it tells of no tenant's data")


@isolates(LEARNING + "StartLearningSession")
def _(world: World) -> None:
    started = world.administrator.learning.StartLearningSession(policy(OTHER))
    assert (started.resumed, started.session.transitions) == (False, 0)
    assert not started.session.known_actions


@isolates(LEARNING + "DownloadModel")
def _(world: World) -> None:
    theirs = world.server.keys.key(world.theirs.tenant_id, *ALL_SCOPES)
    theirs.learning.EndLearningSession(
        learning_pb.EndLearningSessionRequest(session_id=OTHER, skip_skill=True)
    )
    theirs.learning.StartLearningSession(policy(OTHER))
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
    ours.StartLearningSession(policy(OTHER))
    ours.EndLearningSession(
        learning_pb.EndLearningSessionRequest(session_id=OTHER, skip_skill=True)
    )
    own = list(ours.DownloadModel(request))
    assert own[0].model.sha256 not in ("", before[0].model.sha256)
    assert list(theirs.learning.DownloadModel(request)) == before


@isolates(LEARNING + "ListLearningSessions")
def _(world: World) -> None:
    request = learning_pb.ListLearningSessionsRequest()
    world.administrator.learning.StartLearningSession(policy("policy"))
    found = world.administrator.learning.ListLearningSessions(request).sessions
    assert [session.id for session in found] == ["policy"]


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
