"""Sessions, algorithms and metrics."""

from __future__ import annotations

import math
from typing import cast

from mneme.v1 import learning_pb2 as pb
from mneme.v1 import learning_service_pb2 as service_pb

from mneme_server.edge.grpc.conversions import json_of, struct_of_object, to_duration, to_timestamp
from mneme_server.edge.grpc.records import message_writer
from mneme_server.features.learning.algorithms.algorithm import Algorithm, BestPolicy, ConfigKey
from mneme_server.features.learning.catalogue import missing
from mneme_server.features.learning.export.exports import LearnedModel, file_name
from mneme_server.features.learning.messages.spaces import action, space, space_message
from mneme_server.features.learning.model import LearningMode, LearningSession, MetricPoint
from mneme_server.features.learning.sessions.metrics import SessionMetrics
from mneme_server.features.learning.sessions.sessions import NewLearningSession
from mneme_server.features.learning.spaces import Box, OpenLabels, OpenObject


def new_session(request: service_pb.StartLearningSessionRequest) -> NewLearningSession:
    """Return the session that a request starts."""
    return NewLearningSession(
        id=request.session_id,
        algorithm=request.algorithm,
        config=json_of(request, "config"),
        states=space(request.state_space, "state_space", OpenObject()),
        actions=space(request.action_space, "action_space", OpenLabels()),
        seed=request.seed,
        mode=LearningMode(request.learning),
    )


def session(stored: LearningSession, *, with_actions: bool = True) -> pb.LearningSession:
    """Return the message of a session."""
    definition, counts = stored.definition, stored.counts
    known = () if isinstance(definition.actions, Box) or not with_actions else stored.seen
    return pb.LearningSession(
        id=stored.id,
        algorithm=definition.algorithm,
        config=struct_of_object(definition.config),
        state_space=space_message(definition.states),
        action_space=space_message(definition.actions),
        seed=definition.seed,
        learning=cast("pb.LearningMode", definition.mode),
        status=cast("pb.LearningStatus", stored.status),
        trained=stored.progress.learned > 0 or stored.progress.updates > 0,
        transitions=counts.transitions,
        learned=stored.progress.learned,
        episodes_completed=counts.episodes,
        total_reward=counts.total_reward,
        avg_reward=average(stored),
        known_actions=[action(one) for one in known],
        experience_bytes=counts.bytes,
        created_at=to_timestamp(stored.created_us),
        updated_at=to_timestamp(stored.updated_us),
        ended_at=None if stored.ended_us is None else to_timestamp(stored.ended_us),
    )


def exported(model: LearnedModel) -> pb.ExportedModel:
    """Return the message that says what was exported."""
    export = model.export
    return pb.ExportedModel(
        name=file_name(model.session),
        size_bytes=export.size,
        sha256=export.digest.hex(),
        exported_at=to_timestamp(export.exported_us),
    )


def average(stored: LearningSession) -> float:
    """Return the mean reward of a session's episodes; 0 without any."""
    counts = stored.counts
    return counts.ended_reward / counts.episodes if counts.episodes else 0.0


def description(algorithm: Algorithm) -> service_pb.AlgorithmDescription:
    """Return the message of an algorithm."""
    lacking = missing(algorithm)
    return service_pb.AlgorithmDescription(
        name=algorithm.name,
        summary=algorithm.summary,
        source=algorithm.source,
        discrete_actions=algorithm.discrete,
        continuous_actions=algorithm.continuous,
        open_actions=algorithm.open_actions,
        on_policy=algorithm.on_policy,
        keys=[_key(key) for key in algorithm.keys],
        available=not lacking,
        missing=lacking,
    )


def _key(key: ConfigKey) -> service_pb.AlgorithmKey:
    message = service_pb.AlgorithmKey(name=key.name, meaning=key.meaning, choices=key.choices)
    if isinstance(key.default, str):
        message.text = key.default
        return message
    message.number = key.default
    message.whole = isinstance(key.default, int)
    message.low = key.low
    if math.isfinite(key.high):
        message.high = key.high
    return message


def metrics(found: SessionMetrics) -> pb.LearningMetrics:
    """Return the message of metrics."""
    stored = found.session
    return pb.LearningMetrics(
        episodes_completed=stored.counts.episodes,
        transitions=stored.counts.transitions,
        total_reward=stored.counts.total_reward,
        avg_reward=average(stored),
        moving_avg_reward=found.moving_average,
        convergence_score=found.convergence,
        convergence_status=cast("pb.ConvergenceStatus", found.status),
        loss_trend=cast("pb.LossTrend", found.trend),
        exploration_rate=found.exploration,
        updates=stored.progress.updates,
        training_time=to_duration(stored.progress.training_us),
        history=[_point(point) for point in found.history],
        best_policy=_best(found.best),
        notes=found.notes,
    )


def _best(found: BestPolicy | None) -> pb.BestPolicy | None:
    if found is None:
        return None
    return pb.BestPolicy(
        avg_reward=found.mean,
        episode=found.episode,
        recent_avg_reward=found.now,
        chooses=found.chooses,
    )


_point = message_writer(
    MetricPoint,
    pb.MetricsPoint,
    spelled={
        "reward": "episode_reward",
        "moving_average": "moving_avg_reward",
        "value": "value_mean",
        "exploration": "exploration_rate",
    },
    unshown=["convergence"],
)
