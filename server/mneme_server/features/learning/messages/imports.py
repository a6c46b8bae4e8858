"""Imports of experience."""

from __future__ import annotations

from collections import Counter

from mneme.v1 import learning_import_pb2 as pb
from mneme.v1 import learning_pb2

from mneme_server.common.errors import InvalidArgument
from mneme_server.edge.grpc.conversions import time_range
from mneme_server.features.learning.imports.experience_import import (
    ExperienceImportReport,
    ImportExample,
)
from mneme_server.features.learning.imports.mapping import field_names
from mneme_server.features.learning.imports.records import (
    ActionSource,
    ImportPlan,
    RecordKind,
    RecordSelection,
    StateField,
)
from mneme_server.features.learning.messages.spaces import action, state
from mneme_server.features.learning.model import RecordedStep

_SHOWN_STEPS = 10


def plan(request: pb.ImportExperienceRequest) -> ImportPlan:
    """Return how a request wants records to be imported.

    Raises:
        InvalidArgument: two facts have one name.
    """
    paths = [one.path for one in request.state_fields]
    names = [
        one.name or name for one, name in zip(request.state_fields, field_names(paths), strict=True)
    ]
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidArgument(
                f"state_fields: {count} of them are called {name!r}; give them names",
                field="state_fields",
            )
    of = request.selection
    start_us, end_us = time_range(of)
    return ImportPlan(
        kind=RecordKind(request.kind),
        selection=RecordSelection(
            agent_id=of.agent_id,
            user_id=of.user_id,
            project=of.project,
            tags=tuple(of.tags),
            start_us=start_us,
            end_us=end_us,
        ),
        fields=[StateField(*one) for one in zip(names, paths, strict=True)],
        source=ActionSource(request.action_source),
        action_name=request.action_name,
        reward_field=request.reward_field,
        failed_call_reward=request.failed_call_reward,
        dry_run=request.dry_run,
        examples=request.example_count,
    )


def report(found: ExperienceImportReport) -> pb.ImportExperienceResponse:
    """Return the message of how far an import is."""
    response = pb.ImportExperienceResponse(
        records_read=found.read,
        records=found.records,
        imported=found.imported,
        known=found.known,
        steps=found.steps,
        transitions=found.transitions,
        dry_run=found.dry_run,
        skipped=[
            pb.SkippedRecords(reason=one.reason, count=one.count, examples=one.examples)
            for one in found.most_skipped()
        ],
    )
    if found.is_last:
        response.examples.extend(_example(one) for one in found.examples)
        response.actions.extend(
            pb.ActionCount(
                action=action(one.action),
                count=one.count,
                mean_reward=one.reward / one.records,
            )
            for one in found.most_done()
        )
    return response


def _example(example: ImportExample) -> pb.ImportedTrajectory:
    return pb.ImportedTrajectory(
        record_id=example.record_id,
        steps=[_step(one) for one in example.steps[:_SHOWN_STEPS]],
        step_count=len(example.steps),
        total_reward=sum(step.reward for step in example.steps),
    )


def _step(step: RecordedStep) -> learning_pb2.Experience:
    return learning_pb2.Experience(
        state=state(step.state),
        action=action(step.action),
        reward=step.reward,
        next_state=None if step.next_state is None else state(step.next_state),
        terminated=step.terminated,
    )
