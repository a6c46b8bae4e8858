"""`experience_record` and `learning_train`: learning from what was seen before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from mneme_mcp.arguments import Nested, SnakeArguments
from mneme_mcp.learned import Value
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.text import counted
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.learning import IF_MISSING, SESSION

_MS = 1_000


class Step(Nested):
    """An action in a state, and what came of it."""

    state: Value
    action: Value
    reward: float
    next_state: Value | None = None
    done: bool = False
    truncated: bool = False
    probability: Annotated[
        float | None, Field(gt=0, description="The probability of choosing this action, if known.")
    ] = None

    def request(self) -> Any:
        """As the API takes it."""
        return {
            "state": self.state,
            "action": self.action,
            "reward": self.reward,
            "next_state": self.next_state,
            "terminated": self.done,
            "truncated": self.truncated,
            "probability": self.probability,
        }


@offers(
    "record_experience",
    session_id=SESSION,
    trajectory=Offer(
        "The steps of an episode, in order. Leave next_state out where it is the "
        "state of the next step.",
        at="steps",
        kind=list[Step],
    ),
    trajectory_id="Your own id for it: sent again, it changes nothing. Made if left out.",
    metadata='Notes about it, e.g. {"task": "login", "success": true}; nothing is '
    "learned from them.",
)
class RecordArguments(SnakeArguments):
    """What was done."""


class RecordOutput(SnakeOutput):
    """The trajectory is recorded."""

    session_id: str
    trajectory_id: str
    steps_recorded: int
    total_reward: float
    buffer_size: int
    buffer_utilization: float


async def record(call: Call, given: RecordArguments) -> Reply:
    """Answer `experience_record`."""
    answer = await call.client.record_experience(
        **given.request() | {"steps": [step.request() for step in given.trajectory]}
    )
    output = RecordOutput(
        session_id=given.session_id,
        trajectory_id=answer.trajectory_id,
        steps_recorded=answer.steps_recorded,
        total_reward=answer.total_reward,
        buffer_size=answer.transitions,
        buffer_utilization=answer.utilization,
    )
    text = f"{counted(answer.steps_recorded, 'step')} recorded, {answer.transitions} in all."
    if not answer.steps_recorded:
        text = f"{answer.trajectory_id} was recorded before."
    return Reply(text, output)


@offers(
    "train",
    session_id=SESSION,
    num_steps="Learning steps to take.",
    batch_size=...,
)
class TrainArguments(SnakeArguments):
    """How long to learn."""


class TrainMetrics(SnakeOutput):
    """How it went."""

    avg_loss: float | None = None
    avg_q_value: float | None = None
    gradient_norm: float | None = None
    training_time_ms: float


class TrainOutput(SnakeOutput):
    """What was learned."""

    session_id: str
    steps_completed: int
    updates: int
    metrics: TrainMetrics


class _Mean:
    """A mean of means; None as long as there is none."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._weight = 0

    def add(self, mean: float | None, weight: int) -> None:
        """Count a mean of so many."""
        if mean is not None:
            self._sum += mean * weight
            self._weight += weight

    @property
    def value(self) -> float | None:
        """The mean of all."""
        return self._sum / self._weight if self._weight else None


async def train(call: Call, given: TrainArguments) -> Reply:
    """Answer `learning_train`."""
    last = None
    losses, values, norms = _Mean(), _Mean(), _Mean()
    async for message in call.client.train(**given.request()):
        # Its figures are means since the message before.
        fresh = message.updates - (last.updates if last is not None else 0)
        losses.add(message.loss, fresh)
        values.add(message.value_mean, fresh)
        norms.add(message.gradient_norm, fresh)
        last = message
        done = counted(message.steps_completed, "step")
        await call.progress(message.steps_completed, message.num_steps, f"{done} taken")
    if last is None:
        raise RuntimeError("the server ended a training without a word")
    took = last.training_time.total_seconds() if last.training_time else 0.0
    output = TrainOutput(
        session_id=given.session_id,
        steps_completed=last.steps_completed,
        updates=last.updates,
        metrics=TrainMetrics(
            avg_loss=losses.value,
            avg_q_value=values.value,
            gradient_norm=norms.value,
            training_time_ms=took * _MS,
        ),
    )
    taken = counted(last.steps_completed, "step")
    text = f"{taken} taken in {took:.1f} s, {counted(last.updates, 'update')}."
    return Reply(text, output)


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="experience_record",
        title="Record experience",
        description=(
            "Records what was done and what came of it, for a session to learn from.\n"
            "Use it for episodes that did not go through learning_predict.\n"
            "Returns the trajectory's id, and how much of the tenant's space is used.\n"
            'Example: {"session_id": "auth", "trajectory": [{"state": {"task_type": "auth"}, '
            '"action": "oauth2", "reward": 0.9, "done": true}]}.'
        ),
        arguments=RecordArguments,
        output=RecordOutput,
        handler=record,
        if_missing=IF_MISSING,
    ),
    ToolSpec(
        name="learning_train",
        title="Learn again",
        description=(
            "Learns again from what was recorded, step by step; what was learned is saved.\n"
            "Use it after experience_record, or when an algorithm with networks needs more. linucb "
            "and thompson learn everything at once: for them there is nothing to do.\n"
            "Returns the steps taken, and their losses, values and gradients.\n"
            'Example: {"session_id": "auth", "num_steps": 50}.'
        ),
        arguments=TrainArguments,
        output=TrainOutput,
        handler=train,
        if_missing=IF_MISSING,
    ),
)
