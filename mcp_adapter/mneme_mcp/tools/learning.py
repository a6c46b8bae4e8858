"""`learning_*`: sessions that learn from rewards which action works in which situation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

from mneme import to_dict
from mneme.types import ActionScore, LearningMetrics
from pydantic import Field

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.learned import SpaceValue, Value, plain, words
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.text import counted
from mneme_mcp.tool import Call, Reply, ToolSpec

IF_MISSING = "learning_start_session starts a session; learning_predict gives a prediction's id."
_MOST_ACTIONS = 20
_EVALUATION_S = 120.0
_MS = 1_000

LearningSessionId = Annotated[str, Field(min_length=1, description="The learning session.")]


class StartArguments(SnakeArguments):
    """What is to learn."""

    holders = {name: name for name in ("config", "state_space", "action_space")}

    session_id: Annotated[
        str, Field(description="Its id; one that exists goes on. Made if left out.")
    ] = ""
    algorithm: Annotated[
        str,
        Field(
            min_length=1,
            description="thompson or linucb learn from tens of rewards which option is best, one "
            "step at a time. For tasks of several steps q_learning, sarsa (tables), or, on servers "
            "that have them, dqn, actor_critic, ppo, a3c, ddpg, sac, td3, decision_transformer.",
        ),
    ]
    config: Annotated[
        dict[str, Any],
        Field(
            description='The algorithm\'s settings, e.g. {"epsilon": 0.1, "learning_rate": 0.1, '
            '"discount_factor": 0.99, "batch_size": 32}; what is left out has its default.'
        ),
    ] = {}
    state_space: Annotated[
        SpaceValue | None,
        Field(
            description='Which states there are; left out: any objects. {"type": "discrete", "n": '
            '4}, {"type": "box", "low": [0, 0], "high": [1, 1]}, {"type": "dict", "spaces": {…}}.'
        ),
    ] = None
    action_space: Annotated[
        SpaceValue | None,
        Field(
            description="Which actions there are; left out: texts or objects as they are first "
            'seen. {"type": "discrete", "labels": ["short", "long"]}.'
        ),
    ] = None
    seed: Annotated[int, Field(ge=0, le=2**53 - 1, description="Of all that is random.")] = 0


class Progress(SnakeOutput):
    """What it has learned from."""

    episodes_completed: int
    total_reward: float
    avg_reward: float


class StartOutput(SnakeOutput):
    """The session."""

    session_id: str
    algorithm: str
    config: Free
    state: Progress
    resumed: bool
    trained: bool


async def start(call: Call, given: StartArguments) -> Reply:
    """Answer `learning_start_session`."""
    answer = await call.client.start_learning_session(
        given.algorithm,
        session_id=given.session_id or None,
        config=given.config or None,
        state_space=given.state_space,
        action_space=given.action_space,
        seed=given.seed,
    )
    session = answer.session
    output = StartOutput(
        session_id=session.id,
        algorithm=session.algorithm,
        config=session.config,
        state=Progress(
            episodes_completed=session.episodes_completed,
            total_reward=session.total_reward,
            avg_reward=session.avg_reward,
        ),
        resumed=answer.resumed,
        trained=session.trained,
    )
    text = f"Started {session.id} ({session.algorithm})."
    if answer.resumed:
        steps = counted(session.transitions, "step")
        text = f"Resumed {session.id} ({session.algorithm}): {steps} recorded."
    return Reply(text, output)


class PredictArguments(SnakeArguments):
    """The situation."""

    synonyms = {"explore": "exploration_mode"}

    session_id: LearningSessionId
    state: Annotated[
        Value, Field(description='The situation, e.g. {"task_type": "auth", "complexity": 0.8}.')
    ]
    exploration_mode: Annotated[
        bool, Field(description="Choose to learn; otherwise the best so far is chosen.")
    ] = False
    allowed_actions: Annotated[
        list[Value],
        Field(description="Choose among these; left out: among all that it was told of before."),
    ] = []
    target_return: Annotated[
        float | None, Field(description="decision_transformer: the sum of rewards to aim at.")
    ] = None


class Chosen(SnakeOutput):
    """The action."""

    type: str
    value: Any
    confidence: float


class Scored(SnakeOutput):
    """What is thought of an action."""

    action: Any
    value: float | None = None
    probability: float


class PredictOutput(SnakeOutput):
    """What to do."""

    session_id: str
    prediction_id: str
    action: Chosen
    q_values: list[float] = []
    actions: list[Scored] = []
    exploration: bool
    trained: bool
    latency_ms: float


async def predict(call: Call, given: PredictArguments) -> Reply:
    """Answer `learning_predict`."""
    began = time.perf_counter()
    answer = await call.client.predict(
        given.session_id,
        given.state,
        explore=given.exploration_mode,
        allowed_actions=given.allowed_actions,
        target_return=given.target_return,
    )
    made = answer.prediction
    output = PredictOutput(
        session_id=given.session_id,
        prediction_id=made.prediction_id,
        action=Chosen(
            # Only actions that are a box have no scores.
            type="discrete" if made.actions else "continuous",
            value=plain(made.action),
            confidence=made.confidence,
        ),
        q_values=_q_values(made.actions),
        actions=[
            Scored(action=plain(one.action), value=one.value, probability=one.probability)
            for one in made.actions[:_MOST_ACTIONS]
        ],
        exploration=made.explored,
        trained=made.trained,
        latency_ms=_ms(timedelta(seconds=time.perf_counter() - began)),
    )
    text = f"{words(output.action.value)} (confidence {made.confidence:.2f})"
    if not made.trained:
        text += "; drawn evenly, since nothing was learned yet"
    elif made.explored:
        text += "; tried to learn from it, another one is best so far"
    return Reply(f"{text}. Tell what comes of it with learning_feedback.", output)


def _q_values(scores: Sequence[ActionScore]) -> list[float]:
    """The values of actions that are numbers, in their order."""
    values = {plain(one.action): one.value for one in scores if one.action.number is not None}
    in_order = [values[number] for number in sorted(values)]
    known = [value for value in in_order if value is not None]
    return known if len(known) == len(scores) else []


class FeedbackArguments(SnakeArguments):
    """What came of an action."""

    synonyms = {"terminated": "done"}

    session_id: Annotated[str, Field(description="Needed without prediction_id.")] = ""
    prediction_id: Annotated[
        str,
        Field(description="The prediction that was followed; state and action are known then."),
    ] = ""
    state: Annotated[Value | None, Field(description="Where, without prediction_id.")] = None
    action: Annotated[
        Value | None, Field(description='What was done, e.g. {"strategy": "oauth2"}.')
    ] = None
    reward: Annotated[float, Field(description="How good it was, usually from -1 to 1.")]
    next_state: Annotated[
        Value | None, Field(description="Where it led; left out in tasks of one step.")
    ] = None
    done: Annotated[bool, Field(description="Whether the episode ended here.")] = False
    truncated: Annotated[
        bool, Field(description="Whether it was broken off, as by a limit of steps.")
    ] = False


class FeedbackMetrics(SnakeOutput):
    """What it changed."""

    loss: float | None = None
    q_value_mean: float | None = None
    episode_reward: float
    episodes_completed: int


class FeedbackOutput(SnakeOutput):
    """The step is recorded."""

    session_id: str = ""
    transition_stored: bool
    model_updated: bool
    metrics: FeedbackMetrics


async def feedback(call: Call, given: FeedbackArguments) -> Reply:
    """Answer `learning_feedback`."""
    answer = await call.client.feedback(
        session_id=given.session_id,
        prediction_id=given.prediction_id,
        state=given.state,
        action=given.action,
        reward=given.reward,
        next_state=given.next_state,
        terminated=given.done,
        truncated=given.truncated,
    )
    output = FeedbackOutput(
        session_id=given.session_id,
        transition_stored=True,
        model_updated=answer.updates > 0,
        metrics=FeedbackMetrics(
            loss=answer.loss,
            q_value_mean=answer.value_mean,
            episode_reward=answer.episode_reward,
            episodes_completed=answer.episodes_completed,
        ),
    )
    learned = "and learned" if output.model_updated else "to be learned later"
    return Reply(f"Step {answer.transition} recorded {learned}.", output)


class MetricsArguments(SnakeArguments):
    """Which session."""

    session_id: LearningSessionId
    window_size: Annotated[
        int, Field(ge=1, le=10_000, description="Episodes that moving averages go over.")
    ] = 100
    evaluate: Annotated[
        bool,
        Field(
            description="Also tell what the learned policy would have earned, and how sure that "
            "is; takes longer."
        ),
    ] = False


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
    answer = await call.client.get_metrics(
        given.session_id,
        window_size=given.window_size,
        history_size=1,
        evaluate=given.evaluate,
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
    return Reply(_standing(found) + said, output)


def _standing(found: LearningMetrics) -> str:
    return (
        f"{counted(found.episodes_completed, 'episode')}, mean reward {found.avg_reward:.3g}, "
        f"lately {found.moving_avg_reward:.3g}; {found.convergence_status} "
        f"({found.convergence_score:.2f})."
    )


class EndArguments(SnakeArguments):
    """How to end it."""

    session_id: LearningSessionId
    save_model: Annotated[
        bool, Field(description="Export a file; what was learned is kept all the same.")
    ] = True
    min_performance: Annotated[
        float, Field(description="Mean reward from which on it is worth keeping as a skill.")
    ] = 0.7


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
    session_duration_ms: float


async def end(call: Call, given: EndArguments) -> Reply:
    """Answer `learning_end_session`."""
    answer = await call.client.end_learning_session(
        given.session_id,
        skip_export=not given.save_model,
        min_performance=given.min_performance,
    )
    found = answer.metrics
    output = EndOutput(
        session_id=answer.session.id,
        final_metrics=FinalMetrics(
            episodes=found.episodes_completed,
            avg_reward=found.avg_reward,
            convergence_score=found.convergence_score,
            training_time_ms=_ms(found.training_time),
        ),
        model_saved=bool(answer.model_path),
        model_path=answer.model_path,
        meets_skill_bar=answer.meets_skill_bar,
        session_duration_ms=_ms(answer.session_duration),
    )
    saved = f" Exported to {answer.model_path}." if answer.model_path else ""
    bar = " It did well enough for a skill." if answer.meets_skill_bar else ""
    return Reply(f"Ended {answer.session.id}: {_standing(found)}{saved}{bar}", output)


def _ms(time_taken: timedelta | None) -> float:
    return time_taken.total_seconds() * _MS if time_taken else 0.0


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="learning_start_session",
        title="Start to learn",
        description=(
            "Starts, or resumes, a session that learns from rewards which action works in which "
            "situation.\n"
            "Use it when you will face the same choice again and again: among prompts, tools, "
            "strategies.\n"
            "Returns the session with its settings.\n"
            'Example: {"session_id": "reply-style", "algorithm": "thompson"}.'
        ),
        arguments=StartArguments,
        output=StartOutput,
        handler=start,
    ),
    ToolSpec(
        name="learning_predict",
        title="Choose by what worked",
        description=(
            "Chooses an action for a situation by what was learned so far.\n"
            "Use it before each choice, with exploration_mode while it shall learn; name the "
            "allowed_actions until it was told of each.\n"
            "Returns the action, how sure it is (the probability that no other is better), what "
            "the others are worth, and a prediction_id for learning_feedback.\n"
            'Example: {"session_id": "reply-style", "state": {"customer": "new"}, '
            '"allowed_actions": ["short", "detailed"], "exploration_mode": true}.'
        ),
        arguments=PredictArguments,
        output=PredictOutput,
        handler=predict,
        read_only=True,
        if_missing=IF_MISSING,
    ),
    ToolSpec(
        name="learning_feedback",
        title="Tell what came of it",
        description=(
            "Tells what came of an action: of a prediction, or as a whole step.\n"
            "Use it once after each prediction that was followed.\n"
            "Returns whether it was learned from, and the episode's reward.\n"
            'Examples: {"session_id": "reply-style", "prediction_id": "abc", "reward": 1}, '
            '{"session_id": "auth", "state": {"task_type": "auth"}, "action": {"strategy": '
            '"oauth2"}, "reward": 0.9, "next_state": {"implemented": true}, "done": true}.'
        ),
        arguments=FeedbackArguments,
        output=FeedbackOutput,
        handler=feedback,
        if_missing=IF_MISSING,
    ),
    ToolSpec(
        name="learning_metrics",
        title="See how it learns",
        description=(
            "Shows how a session does.\n"
            "Use it to see whether it has settled: convergence_score is from 0 to 1, and "
            "convergence_status the same in a word (0.95 converged, 0.80 converging, 0.60 "
            "learning).\n"
            "Returns rewards in all and over the last window_size episodes, loss trend, "
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
            "Ends a session and exports what it learned as a file on the server.\n"
            "Use it when it need not learn any more; learning_start_session resumes it.\n"
            "Returns how it did, the file, and whether it did well enough for a skill.\n"
            'Example: {"session_id": "reply-style", "min_performance": 0.7}.'
        ),
        arguments=EndArguments,
        output=EndOutput,
        handler=end,
        idempotent=True,
        if_missing=IF_MISSING,
    ),
)
