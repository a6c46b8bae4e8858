"""`learning_start_session`, `_predict`, `_feedback`: choosing, and telling what came of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from mneme.types import ActionScore

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.learned import plain, words
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.text import counted
from mneme_mcp.tool import Call, Reply, ToolSpec

IF_MISSING = "learning_start_session starts a session; learning_predict returns a prediction's id."
_MOST_ACTIONS = 20
_MS = 1_000

SESSION = "The learning session."


@offers(
    "start_learning_session",
    session_id="Your own id; an existing session is resumed. One is made if left out.",
    algorithm="thompson and linucb learn from tens of rewards which option is best, one "
    "step at a time. For tasks of several steps: q_learning, sarsa (tables) or, on servers "
    "that have them, dqn, actor_critic, ppo, a3c, ddpg, sac, td3, decision_transformer.",
    config='The algorithm\'s settings, e.g. {"epsilon": 0.1, "learning_rate": 0.1, '
    '"discount_factor": 0.99, "batch_size": 32}; what is left out has its default.',
    state_space='Which states there are; left out: any objects. {"type": "discrete", "n": '
    '4}, {"type": "box", "low": [0, 0], "high": [1, 1]}, {"type": "dict", "spaces": {…}}.',
    action_space="Which actions there are; left out: texts or objects as they are first "
    'seen. {"type": "discrete", "labels": ["short", "long"]}.',
    seed="Seed of everything random.",
)
class StartArguments(SnakeArguments):
    """What is to learn."""


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
    answer = await call.client.start_learning_session(**given.request())
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


@offers(
    "predict",
    session_id=SESSION,
    state='The situation, e.g. {"task_type": "auth", "complexity": 0.8}.',
    exploration_mode=Offer(
        "true: choose so as to learn; false: choose the best so far.", at="explore"
    ),
    allowed_actions="Choose among these; left out: among all known actions.",
    target_return="decision_transformer: the sum of rewards to aim for.",
)
class PredictArguments(SnakeArguments):
    """The situation."""

    synonyms = {"explore": "exploration_mode"}


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
    answer = await call.client.predict(**given.request())
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
        latency_ms=(time.perf_counter() - began) * _MS,
    )
    text = f"{words(output.action.value)} (confidence {made.confidence:.2f})"
    if not made.trained:
        text += "; drawn at random, since nothing has been learned yet"
    elif made.explored:
        text += "; chosen to learn from it: another one is best so far"
    return Reply(f"{text}. Report what comes of it with learning_feedback.", output)


def _q_values(scores: Sequence[ActionScore]) -> list[float]:
    """The values of actions that are numbers, in their order."""
    values = {plain(one.action): one.value for one in scores if one.action.number is not None}
    in_order = [values[number] for number in sorted(values)]
    known = [value for value in in_order if value is not None]
    return known if len(known) == len(scores) else []


@offers(
    "feedback",
    session_id="Needed if prediction_id is left out.",
    prediction_id="The prediction you followed; state and action are then known.",
    state="The situation, if prediction_id is left out.",
    action='What was done, e.g. {"strategy": "oauth2"}.',
    reward=Offer("How good it was, usually from -1 to 1.", required=True),
    next_state="Where it led; leave it out in tasks of one step.",
    done=Offer("Whether the episode ended here.", at="terminated"),
    truncated="Whether it was cut short, e.g. by a step limit.",
)
class FeedbackArguments(SnakeArguments):
    """What came of an action."""

    synonyms = {"terminated": "done"}


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
    answer = await call.client.feedback(**given.request())
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
    learned = "and learned from" if output.model_updated else "to be learned from later"
    return Reply(f"Step {answer.transition} recorded, {learned}.", output)


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
            "Use it before each choice, with exploration_mode as long as it should learn; name the "
            "allowed_actions until it knows each of them.\n"
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
        title="Report what came of it",
        description=(
            "Reports what came of an action: one that was predicted, or one given in full.\n"
            "Use it once after each prediction you followed.\n"
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
)
