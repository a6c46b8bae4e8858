"""`learning_metrics` and `learning_end_session`: how a session does, and how it did."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from mneme import to_dict
from mneme.types import LearningMetrics

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.text import counted
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.learning import IF_MISSING, SESSION

# The algorithm is taught anew for it.
_EVALUATION_S = 120.0
_MS = 1_000


@offers(
    "get_learning_metrics",
    session_id=SESSION,
    window_size=...,
    evaluate="Also say what the learned policy would have earned, and how sure that "
    "is; takes longer.",
)
class MetricsArguments(SnakeArguments):
    """Which session."""


class Metrics(SnakeOutput):
    """How it does."""

    episodes_completed: int
    total_reward: float
    avg_reward: float
    moving_avg_reward: float
    convergence_score: float
    loss_trend: str = ""
    exploration_rate: float | None = None


class MetricsOutput(SnakeOutput):
    """How it does, and how settled it is."""

    session_id: str
    metrics: Metrics
    convergence_status: str
    training_time_total_ms: float
    evaluation: Free = {}


async def metrics(call: Call, given: MetricsArguments) -> Reply:
    """Answer `learning_metrics`."""
    answer = await call.client.get_learning_metrics(
        **given.request(),
        history_size=1,
        timeout=_EVALUATION_S if given.evaluate else None,
    )
    found = answer.metrics
    output = MetricsOutput(
        session_id=given.session_id,
        metrics=Metrics(
            episodes_completed=found.episodes_completed,
            total_reward=found.total_reward,
            avg_reward=found.avg_reward,
            moving_avg_reward=found.moving_avg_reward,
            convergence_score=found.convergence_score,
            loss_trend=found.loss_trend or "",
            exploration_rate=found.exploration_rate,
        ),
        convergence_status=found.convergence_status or "",
        training_time_total_ms=_ms(found.training_time),
        evaluation=to_dict(answer.evaluation) if given.evaluate else {},
    )
    said = f" {answer.evaluation.summary}" if given.evaluate else ""
    notes = "".join(f" {note}" for note in found.notes)
    return Reply(_standing(found) + notes + said, output)


def _standing(found: LearningMetrics) -> str:
    return (
        f"{counted(found.episodes_completed, 'episode')}, mean reward {found.avg_reward:.3g}, "
        f"lately {found.moving_avg_reward:.3g}; convergence {found.convergence_score:.2f} "
        f"({found.convergence_status})."
    )


@offers(
    "end_learning_session",
    session_id=SESSION,
    save_model=Offer(
        "Export a file; what was learned is kept in any case.",
        at="skip_export",
        default=True,
        negated=True,
    ),
    create_skill=Offer(
        "Turn it into a skill if it did well enough.", at="skip_skill", default=True, negated=True
    ),
    min_performance="The mean reward it needs to become a skill.",
)
class EndArguments(SnakeArguments):
    """How to end it."""


class FinalMetrics(SnakeOutput):
    """How it did."""

    episodes: int
    avg_reward: float
    convergence_score: float
    training_time_ms: float


class EndOutput(SnakeOutput):
    """The session has ended."""

    session_id: str
    final_metrics: FinalMetrics
    model_saved: bool
    model_path: str = ""
    meets_skill_bar: bool
    skill_created: bool
    skill_id: str = ""
    session_duration_ms: float


async def end(call: Call, given: EndArguments) -> Reply:
    """Answer `learning_end_session`."""
    answer = await call.client.end_learning_session(**given.request())
    found = answer.metrics
    output = EndOutput(
        session_id=answer.session.id,
        final_metrics=FinalMetrics(
            episodes=found.episodes_completed,
            avg_reward=found.avg_reward,
            convergence_score=found.convergence_score,
            training_time_ms=_ms(found.training_time),
        ),
        model_saved=answer.model_bytes > 0,
        model_path=answer.model_path,
        meets_skill_bar=answer.meets_skill_bar,
        skill_created=answer.skill_created,
        skill_id=answer.skill_id,
        session_duration_ms=_ms(answer.session_duration),
    )
    saved = f" Exported {answer.model_bytes:,} bytes." if answer.model_bytes else ""
    if answer.model_path:
        saved = f" Exported to {answer.model_path}."
    bar = " It did well enough for a skill." if answer.meets_skill_bar else ""
    if answer.skill_id:
        bar = f" It did well enough: the skill {answer.skill_id} tells what it learned."
    return Reply(f"Ended {answer.session.id}: {_standing(found)}{saved}{bar}", output)


def _ms(time_taken: timedelta | None) -> float:
    return time_taken.total_seconds() * _MS if time_taken else 0.0


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="learning_metrics",
        title="See how it learns",
        description=(
            "Shows how a session is doing.\n"
            "Use it to see whether it has settled: convergence_score is from 0 to 1, and "
            "convergence_status the same in a word (converged from 0.95, or settled where nothing "
            "may be learned, converging from 0.80, learning from 0.60).\n"
            "Returns rewards in total and over the last window_size episodes, loss trend, "
            "exploration rate.\n"
            'Example: {"session_id": "reply-style", "window_size": 50}.'
        ),
        arguments=MetricsArguments,
        output=MetricsOutput,
        handler=metrics,
        read_only=True,
        if_missing=IF_MISSING,
    ),
    ToolSpec(
        name="learning_end_session",
        title="End learning",
        description=(
            "Ends a session and exports what it learned, for programs that download it.\n"
            "Use it when it no longer needs to learn; learning_start_session resumes it.\n"
            "Returns how it did, the file's path if the server keeps a copy, and the skill that it "
            "became if it did well enough.\n"
            'Example: {"session_id": "reply-style", "min_performance": 0.7}.'
        ),
        arguments=EndArguments,
        output=EndOutput,
        handler=end,
        idempotent=True,
        if_missing=IF_MISSING,
    ),
)
