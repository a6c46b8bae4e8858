"""Where Discover runs: in a call that waits for it, or as an operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mneme_server.common import deadline
from mneme_server.common.canonical import JsonObject
from mneme_server.common.errors import Unavailable
from mneme_server.common.progress import Cancelled
from mneme_server.engine.scheduling.jobs.jobs import Jobs
from mneme_server.engine.scheduling.jobs.processes import InWorker
from mneme_server.features.causal.discovering import Discover
from mneme_server.features.causal.discovery_model import Discovered, Question
from mneme_server.features.operations.model import OperationTask

MOST_LISTED = 2_000
"""Findings, and refused causes, that an answer lists."""
_LOOK_EVERY_S = 0.02
_STOP_S = 2.0


class InACall:
    """Implements `common.progress.Step` for a call that waits."""

    def __init__(self, jobs: Jobs, tenant_id: str) -> None:
        self._jobs = jobs
        self._tenant_id = tenant_id

    def report(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Go on only while somebody waits for the answer."""
        deadline.check()

    def apart(self, function: str, /, **arguments: Any) -> Any:
        """Do it in a worker process, and wait."""
        job = self._jobs.submit(self._tenant_id, InWorker(function, arguments))
        try:
            while not job.wait(_LOOK_EVERY_S):
                deadline.check()
        except BaseException:
            if not self._jobs.forget(job):
                job.wait(_STOP_S)  # The process is gone before its files are.
            raise
        try:
            return job.result()
        except Cancelled:
            raise Unavailable("the server is stopping") from None


@dataclass(frozen=True, slots=True)
class DiscoverLong:
    """The work of the operation: as much as Discover takes at all."""

    discover: Discover

    def run(self, task: OperationTask) -> JsonObject:
        """Discover. Run again, it finds and keeps the same."""
        question = Question.of(task.request["question"])
        return as_fields(self.discover(task.tenant_id, question, task, at_once=False))

    def recover(self, tenant_id: str, kept: Mapping[str, Any]) -> None:
        """Do nothing: edges are written at once, or not at all."""


def as_fields(found: Discovered) -> JsonObject:
    """Return the fields of `mneme.v1.DiscoverResponse`."""
    findings: list[JsonObject] = [
        {
            "cause": one.cause,
            "outcome": one.outcome,
            "uplift": one.uplift,
            "low": one.low,
            "high": one.high,
            "p_value": one.p_value,
            "q_value": one.q_value,
            "confidence": one.confidence,
            "mean_with": one.with_cause,
            "mean_without": one.without,
            "plain_difference": one.plain,
            "confounder_score": one.confounder_score,
            "treated_count": one.treated,
            "control_count": one.control,
            "overlap": one.overlap,
            "change": int(one.change),
            "edge_id": one.edge_id,
        }
        for one in found.findings
    ]
    refused: list[JsonObject] = [
        {
            "cause": one.cause,
            "outcome": one.outcome,
            "why": int(one.why),
            "treated_count": one.treated,
            "control_count": one.control,
            "overlap": one.overlap,
        }
        for one in found.refused
    ]
    return {
        "findings": findings[:MOST_LISTED],
        "refused": refused[:MOST_LISTED],
        "tested_count": len(findings),
        "refused_count": len(refused),
        "removed_count": found.removed,
        "episode_count": found.episodes,
        "not_embedded_count": found.not_embedded,
        "adjusted_for": list(found.adjusted_for),
        "not_adjusted_for": [
            {"name": name, "why": int(why)} for name, why in found.not_adjusted_for.items()
        ],
        "truncated": found.truncated,
    }
