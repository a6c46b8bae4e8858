"""Between the messages of experiments and the domain."""

from __future__ import annotations

from typing import cast

from mneme.v1 import experiment_pb2 as pb

from mneme_server.common.canonical import canonical_json
from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import json_of, stored_time, struct_of, to_timestamp
from mneme_server.features.causal.experiment_model import Arm, Experiment, Observation, Result


def new_experiment(request: pb.CreateExperimentRequest) -> Experiment:
    """Return the experiment that a request creates."""
    return Experiment(
        id=request.experiment_id,
        name=request.name,
        cause=request.cause,
        effect=request.effect,
        description=request.description,
        block_size=request.block_size,
        treated_per_block=request.treated_per_block or request.block_size // 2,
        seed=request.seed,
        metadata_json=canonical_json(json_of(request, "metadata")),
    )


def new_observation(request: pb.RecordObservationRequest) -> Observation:
    """Return the observation that a request records."""
    return Observation(
        id=request.observation_id,
        outcome=request.outcome,
        subject=request.subject,
        treatment=request.treatment if request.HasField("treatment") else None,
        context_json=canonical_json(json_of(request, "context")),
        observed_us=stored_time(request, "observed_at") or 0,
    )


@reads("experiment")
def experiment(stored: Experiment) -> pb.Experiment:
    """Return the message of an experiment."""
    return pb.Experiment(
        id=stored.id,
        name=stored.name,
        cause=stored.cause,
        effect=stored.effect,
        description=stored.description,
        block_size=stored.block_size,
        treated_per_block=stored.treated_per_block,
        seed=stored.seed,
        metadata=struct_of(stored.metadata_json),
        status=cast("pb.ExperimentStatus", stored.status),
        assigned_count=stored.assigned,
        observation_count=stored.observations,
        result=None if stored.result is None else result(stored.result),
        edge_id=stored.edge_id,
        created_at=to_timestamp(stored.created_us),
        completed_at=None if stored.completed_us is None else to_timestamp(stored.completed_us),
    )


def result(found: Result) -> pb.ExperimentResult:
    """Return the message of what observations say."""
    return pb.ExperimentResult(
        treatment=_arm(found.treatment),
        control=_arm(found.control),
        uplift=found.uplift,
        p_value=found.p_value,
        low=found.low,
        high=found.high,
        sequential_low=found.sequential_low,
        sequential_high=found.sequential_high,
        not_assigned_count=found.not_assigned,
        notes=found.notes,
    )


def _arm(arm: Arm) -> pb.ExperimentArm:
    return pb.ExperimentArm(count=arm.count, mean=arm.mean, deviation=arm.deviation)
