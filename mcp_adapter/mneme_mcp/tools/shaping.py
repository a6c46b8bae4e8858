"""`reward_signal` and `learning_explain`: what a step is worth, and why an action is chosen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mneme.visible import visible_line

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.learned import plain
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import Free, SnakeOutput
from mneme_mcp.tool import Call, Reply, ToolSpec
from mneme_mcp.tools.learning import IF_MISSING, SESSION


@offers(
    "shape_reward",
    session_id=SESSION,
    extrinsic_reward=Offer("The reward from the task itself.", required=True),
    state="The state that was reached; with next_state, the one before it.",
    shaping_type="What the bonus is for. curiosity: what could not be predicted. novelty: "
    "rarely seen states. progress: states that promise more than the one before.",
    shaping_weight=...,
    next_state=...,
    action=...,
    done=Offer("Whether the task ended there.", at="terminated"),
    potential_based="Make sure the task's best policy stays the best; not for curiosity.",
)
class RewardArguments(SnakeArguments):
    """A step and its reward."""

    synonyms = {"terminated": "done"}


class Components(SnakeOutput):
    """The bonuses before they are weighted."""

    curiosity_bonus: float
    novelty_bonus: float
    progress_bonus: float


class RewardOutput(SnakeOutput):
    """The shaped reward."""

    session_id: str
    extrinsic_reward: float
    intrinsic_reward: float
    shaped_reward: float
    components: Components
    keeps_best_policy: bool
    why: str


async def reward(call: Call, given: RewardArguments) -> Reply:
    """Answer `reward_signal`."""
    answer = await call.client.shape_reward(**given.request())
    parts = answer.components
    output = RewardOutput(
        session_id=given.session_id,
        extrinsic_reward=answer.extrinsic_reward,
        intrinsic_reward=answer.intrinsic_reward,
        shaped_reward=answer.shaped_reward,
        components=Components(
            curiosity_bonus=parts.curiosity_bonus,
            novelty_bonus=parts.novelty_bonus,
            progress_bonus=parts.progress_bonus,
        ),
        keeps_best_policy=answer.keeps_best_policy,
        why=answer.why,
    )
    sum_ = f"{answer.extrinsic_reward:.4g} + {answer.intrinsic_reward:.4g}"
    text = f"{answer.shaped_reward:.4g} ({sum_} for {given.shaping_type}). {answer.why}"
    return Reply(text.rstrip(), output)


@offers(
    "explain",
    session_id=SESSION,
    state="The situation.",
    action="The action to explain; left out: the chosen one.",
    allowed_actions="Choose among these; left out: among all known actions.",
)
class ExplainArguments(SnakeArguments):
    """What to explain."""


class Counter(SnakeOutput):
    """A state in which another action is chosen."""

    state_change: Free
    predicted_action: Any
    confidence: float


class Explanation(SnakeOutput):
    """Why."""

    method: str
    measure: str
    action: Any
    chosen_action: Any
    confidence: float
    feature_importance: dict[str, float]
    counterfactuals: list[Counter] = []
    decision_path: list[str] = []


class ExplainOutput(SnakeOutput):
    """The explanation."""

    session_id: str
    explanation: Explanation


async def explain(call: Call, given: ExplainArguments) -> Reply:
    """Answer `learning_explain`."""
    answer = await call.client.explain(**given.request())
    found = answer.explanation
    output = ExplainOutput(
        session_id=given.session_id,
        explanation=Explanation(
            method=found.method or "",
            measure=found.measure,
            action=plain(found.action),
            chosen_action=plain(found.chosen_action),
            confidence=found.confidence,
            feature_importance={one.feature: one.importance for one in found.feature_importance},
            counterfactuals=[
                Counter(
                    # None: the state would lack it.
                    state_change={
                        change.feature: json.loads(change.value) if change.value else None
                        for change in one.changes
                    },
                    predicted_action=plain(one.predicted_action),
                    confidence=one.confidence,
                )
                for one in found.counterfactuals
            ],
            decision_path=found.decision_path,
        ),
    )
    return Reply("\n".join(map(visible_line, found.decision_path)), output)


TOOLS: Sequence[ToolSpec] = (
    ToolSpec(
        name="reward_signal",
        title="Shape a reward",
        description=(
            "Adds a bonus to a reward, for what is new, surprising or promising, and remembers the "
            "visit.\n"
            "Use it where rewards are rare: give learning_feedback the shaped reward.\n"
            "Returns the sum and its parts, and whether the task's best policy stays the best.\n"
            'Example: {"session_id": "maze", "extrinsic_reward": 0, "state": {"room": 3}, '
            '"shaping_type": "novelty"}.'
        ),
        arguments=RewardArguments,
        output=RewardOutput,
        handler=reward,
        if_missing=IF_MISSING,
    ),
    ToolSpec(
        name="learning_explain",
        title="Explain a choice",
        description=(
            "Explains what a session chooses in a situation.\n"
            "Use it before you rely on a choice, or when asked why.\n"
            "Returns what each part of the state contributes, the smallest changes that would lead "
            "to another action (each was tried), and both in sentences.\n"
            'Example: {"session_id": "auth", "state": {"task_type": "auth", "complexity": 0.8}}.'
        ),
        arguments=ExplainArguments,
        output=ExplainOutput,
        handler=explain,
        read_only=True,
        if_missing=IF_MISSING,
    ),
)
