"""The mapping of a record to a trajectory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.features.learning.imports.records import (
    MOST_CALLS,
    ActionSource,
    ExperienceRecord,
    ImportPlan,
    RecordKind,
)
from mneme_server.features.learning.model import StepInput, TrajectoryInput
from mneme_server.features.learning.spaces import Dict, OpenObject, Space


class UnfitRecord(Exception):
    """Nothing can be learned of a record; its text says why."""


class Mapper:
    """Makes trajectories of records.

    Args:
        plan: how.
        states: the session's states.
    """

    def __init__(self, plan: ImportPlan, states: Space) -> None:
        self._plan = plan
        self._as_object = isinstance(states, Dict | OpenObject)

    def trajectory(self, record: ExperienceRecord) -> TrajectoryInput:
        """Return a record as a trajectory; it has the same id each time.

        Raises:
            Unfit: it does not say what was done, where, or what came of it.
        """
        reward = self._reward(record)
        steps = list(self._steps(record, reward))
        noted = canonical_json({"record_id": record.id, "reward": reward})
        return TrajectoryInput(trajectory_of(self._plan.kind, record.id), steps, noted)

    def _steps(self, record: ExperienceRecord, reward: float) -> Iterator[StepInput]:
        if self._plan.source is not ActionSource.TOOL:
            state = self._state(record.facts)
            yield StepInput(
                reward=reward, state=state, action=self._action(record), terminated=True
            )
            return
        calls = record.calls
        if not calls:
            raise UnfitRecord("it called no tool")
        if len(calls) > MOST_CALLS:
            raise UnfitRecord(f"it has more than {MOST_CALLS:,} calls of tools")
        for place, call in enumerate(calls):
            last = place == len(calls) - 1
            before = calls[place - 1] if place else None
            facts: dict[str, Json] = {
                **record.facts,
                "step": place,
                "previous_tool": "" if before is None else before.tool,
                "previous_failed": before is not None and before.failed,
            }
            cost = self._plan.failed_call_reward if call.failed else 0.0
            yield StepInput(
                reward=cost + (reward if last else 0.0),
                state=self._state(facts),
                action=call.tool,
                terminated=last,
            )

    def _state(self, facts: Mapping[str, Json]) -> Json:
        values = {one.name: _at(facts, one.path) for one in self._plan.fields}
        known = {name: value for name, value in values.items() if value is not None}
        if not self._as_object:
            if not known:
                raise UnfitRecord(f"it has no {self._plan.fields[0].path}")
            return next(iter(known.values()))
        if not known:
            raise UnfitRecord(f"it has none of {', '.join(one.path for one in self._plan.fields)}")
        return known

    def _action(self, record: ExperienceRecord) -> Json:
        name = self._plan.action_name
        if self._plan.source is ActionSource.FIELD:
            found = _at(record.facts, name)
            if found is None:
                raise UnfitRecord(f"it has no {name}")
            return found
        named = [tag[len(name) :] for tag in record.tags if tag.startswith(name)]
        if not named or not named[0]:
            raise UnfitRecord(f"it has no label that begins with {name!r}")
        if len(named) > 1:
            raise UnfitRecord(f"it has several labels that begin with {name!r}")
        return named[0]

    def _reward(self, record: ExperienceRecord) -> float:
        path = self._plan.reward_field
        if not path:
            if record.reward is None:
                raise UnfitRecord("how it ended is not known")
            return record.reward
        found = _at(record.facts, path)
        if not isinstance(found, int | float) or not math.isfinite(found):
            raise UnfitRecord(f"it has no number in {path}")
        return float(found)


def trajectory_of(kind: RecordKind, record_id: str) -> str:
    """Return the id of the trajectory that a record becomes."""
    return f"{'session' if kind is RecordKind.SESSIONS else 'episode'}:{record_id}"


def _at(facts: Mapping[str, Json], path: str) -> Json:
    """Return what lies at a path; None if nothing does. Keys may hold dots."""
    if path in facts:
        return facts[path]
    first, dot, rest = path.partition(".")
    while dot:
        below = facts.get(first)
        if isinstance(below, Mapping) and (found := _at(below, rest)) is not None:
            return found
        more, dot, rest = rest.partition(".")
        first = f"{first}.{more}"
    return None


def field_names(paths: Sequence[str]) -> list[str]:
    """Return what facts are called whose names were not given: the last part of their path."""
    return [path.rpartition(".")[2] or path for path in paths]
