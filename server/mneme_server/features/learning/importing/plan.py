"""How records become trajectories, and which do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class RecordKind(IntEnum):
    """What is imported; the numbers are the wire's."""

    SESSIONS = 1
    EPISODES = 2


class ActionSource(IntEnum):
    """What the actions of a record are; the numbers are the wire's."""

    TOOL = 1
    TAG = 2
    FIELD = 3


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records. Empty fields do not filter; given ones must all match."""

    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    start_us: int | None = None
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class StateField:
    """A fact of a state: what it is called there, and where a record has it."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Plan:
    """How records become trajectories.

    Args:
        kind: what is imported.
        selection: which of them.
        fields: what a state is made of, at least one.
        source: what the actions are.
        action_name: how the label begins, or which field it is.
        reward_field: the field with a record's reward; empty: how it ended.
        failed_call_reward: what each call of a tool that failed brings besides.
        dry_run: whether to record nothing.
        examples: how many trajectories to show.
    """

    kind: RecordKind
    selection: Selection
    fields: Sequence[StateField]
    source: ActionSource
    action_name: str = ""
    reward_field: str = ""
    failed_call_reward: float = 0.0
    dry_run: bool = False
    examples: int = 3
