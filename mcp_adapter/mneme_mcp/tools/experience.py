"""`experience_record` and `learning_train`: learning from what was seen before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.learned import Value
from mneme_mcp.outputs import SnakeOutput
from mneme_mcp.text import counted
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.learning import IF_MISSING, LearningSessionId


class Step(BaseModel):
    """An action in a state, and what came of it."""

    model_config = ConfigDict(extra="forbid")

    state: Value
    action: Value
    reward: float
    next_state: Value | None = None
    done: bool = False
    truncated: bool = False
    probability: Annotated[
        float | None, Field(gt=0, description="With which the action was chosen, if known.")
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


class RecordArguments(SnakeArguments):
    """What was done."""

    holders = {"steps": "trajectory"}

    session_id: LearningSessionId
    trajectory: Annotated[
        list[Step],
        Field(
            min_length=1,
            max_length=1_000,
            description="The steps of an episode in their order; the next_state of one that is not "
            "the last may be left out, as the state of the step after it.",
        ),
    ]
    trajectory_id: Annotated[
        str, Field(description="Its id: the same again changes nothing. Made if left out.")
    ] = ""


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
        given.session_id,
        [step.request() for step in given.trajectory],
        trajectory_id=given.trajectory_id or None,
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


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="experience_record",
        title="Record experience",
        description=(
            "Records what was done and what came of it, for a session to learn from.\n"
            "Use it for episodes that did not go through learning_predict.\n"
            "Returns the trajectory's id, and how much of the tenant's room is taken.\n"
            'Example: {"session_id": "auth", "trajectory": [{"state": {"task_type": "auth"}, '
            '"action": "oauth2", "reward": 0.9, "done": true}]}.'
        ),
        arguments=RecordArguments,
        output=RecordOutput,
        handler=record,
        if_missing=IF_MISSING,
    ),
)
