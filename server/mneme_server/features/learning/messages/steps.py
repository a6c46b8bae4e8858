"""Questions, predictions, and what came of them."""

from __future__ import annotations

import numpy as np
from mneme.v1 import learning_pb2 as pb
from mneme.v1 import learning_service_pb2 as service_pb

from mneme_server.common.canonical import canonical_json
from mneme_server.common.identity import new_id
from mneme_server.edge.grpc.conversions import json_of
from mneme_server.edge.grpc.records import message_writer
from mneme_server.features.learning.messages.spaces import action, given, value_of
from mneme_server.features.learning.messages.trust import baseline, verdict
from mneme_server.features.learning.model import StepInput, Trajectory, TrajectoryInput
from mneme_server.features.learning.sessions.policy import ChosenAction, StateInput
from mneme_server.features.learning.sessions.prediction import ActAnswer, ActMessage, Prediction


def asked(request: service_pb.PredictRequest) -> StateInput:
    """Return the question of a request."""
    return _asked(request, "")


def _asked(message: service_pb.PredictRequest | service_pb.ActState, field: str) -> StateInput:
    return StateInput(
        state=value_of(message.state, f"{field}state"),
        allowed=[
            value_of(one, f"{field}allowed_actions[{place}]")
            for place, one in enumerate(message.allowed_actions)
        ],
        actor=message.actor_id,
        target_return=message.target_return if message.HasField("target_return") else None,
    )


def act_message(request: service_pb.ActRequest, session_id: str) -> ActMessage:
    """Return what a message of a stream says; `session_id` is the stream's."""
    return ActMessage(
        session_id=session_id,
        feedback=[told(step, f"feedback[{place}].") for place, step in enumerate(request.feedback)],
        states=[_asked(one, f"states[{place}].") for place, one in enumerate(request.states)],
        explore=request.explore,
        with_ids=not request.without_feedback,
        baseline=baseline(request),
    )


def act_answer(answer: ActAnswer, *, scores: bool) -> service_pb.ActResponse:
    """Return the message of an answer."""
    response = service_pb.ActResponse(
        predictions=[prediction(made, scores=scores) for made in answer.predictions]
    )
    gate = verdict(answer.verdict)
    if gate is not None:
        response.gate.CopyFrom(gate)
    recorded = answer.recorded
    if recorded is not None:
        response.transitions = recorded.counts.transitions
        response.episodes_completed = recorded.counts.episodes
        response.updates = recorded.learned.updates
        if recorded.learned.loss is not None:
            response.loss = recorded.learned.loss
    return response


def told(message: pb.Experience | service_pb.FeedbackRequest, field: str) -> StepInput:
    """Return what a message tells; `field` is its path in the request, with a dot behind it."""
    return StepInput(
        reward=message.reward,
        prediction_id=message.prediction_id,
        state=given(message, "state", field),
        action=given(message, "action", field),
        next_state=given(message, "next_state", field),
        terminated=message.terminated,
        truncated=message.truncated,
        actor=message.actor_id,
        probability=message.probability if message.HasField("probability") else None,
        allowed=[
            value_of(one, f"{field}next_allowed_actions[{place}]")
            for place, one in enumerate(message.next_allowed_actions)
        ],
        available=[
            value_of(one, f"{field}allowed_actions[{place}]")
            for place, one in enumerate(message.allowed_actions)
        ],
    )


def trajectory(
    message: service_pb.RecordExperienceRequest | service_pb.RecordTrajectoriesRequest,
) -> TrajectoryInput:
    """Return the trajectory of a message; without an id it is given one."""
    return TrajectoryInput(
        id=message.trajectory_id or new_id(),
        steps=[told(step, f"steps[{place}].") for place, step in enumerate(message.steps)],
        metadata_json=canonical_json(json_of(message, "metadata")),
    )


recorded_trajectory = message_writer(
    Trajectory, pb.Trajectory, spelled={"first": "first_transition"}
)
"""Return the message of a trajectory."""


def prediction(made: Prediction, *, scores: bool) -> pb.Prediction:
    """Return the message of a prediction, with what is thought of each action if `scores`."""
    chosen = made.chosen
    return pb.Prediction(
        prediction_id=made.id,
        action=action(chosen.action),
        confidence=chosen.confidence,
        probability=chosen.probability,
        explored=chosen.explored,
        trained=chosen.trained,
        actions=_scores(chosen) if scores else (),
    )


def _scores(chosen: ChosenAction) -> list[pb.ActionScore]:
    """Return what is thought of each action, the best first."""
    if not chosen.labels:
        return []
    valued = len(chosen.values) > 0
    order = np.argsort(-(chosen.values if valued else chosen.policy), kind="stable")
    return [
        pb.ActionScore(
            action=action(chosen.labels[place]),
            value=float(chosen.values[place]) if valued else None,
            probability=float(chosen.policy[place]),
        )
        for place in order.tolist()
    ]
