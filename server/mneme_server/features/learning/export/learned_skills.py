"""Skills that say what was learned: so that agents who never heard of the session find it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.errors import AlreadyExists, NotFound
from mneme_server.features.learning.model import LearningSession
from mneme_server.features.learning.spaces import Box, space_to_json
from mneme_server.features.skills.model import Skill
from mneme_server.features.skills.skills import Skills

_SHOWN = 12
_TAGS = ("learned",)


@dataclass(frozen=True, slots=True)
class LearnedSkill:
    """A skill that says what a session has learned.

    Args:
        id: the same each time the session ends.
        name: what it is called, unless the name is taken.
        description: when it is of use, how it is used, and how well it did.
        inputs: what its states are.
        outputs: what its actions are.
        metadata: where it comes from, in figures.
    """

    id: str
    name: str
    description: str
    inputs: Mapping[str, Json]
    outputs: Mapping[str, Json]
    metadata: Mapping[str, Json]


def skill_id(session_number: int) -> str:
    """Return the id of the skill that is made of a session."""
    return f"learned:{session_number}"


class SkillMaker(Protocol):
    """Where skills are kept."""

    def make(self, tenant_id: str, skill: LearnedSkill) -> bool:
        """Save a skill, or bring one up to date that was made before; tell whether it is new."""
        ...


def skill_of(
    session: LearningSession,
    known: Sequence[Json],
    features: Sequence[str],
    path: str,
    score: float,
) -> LearnedSkill:
    """Return the skill that a session has become.

    Args:
        session: the session, with all counts.
        known: its actions; none if they are a box.
        features: the names of what it knows of states.
        path: of its exported model in the data folder; empty without one.
        score: how settled it is, from 0 to 1.
    """
    definition, counts = session.definition, session.counts
    mean = counts.ended_reward / counts.episodes
    chooses = _choosing(definition.actions, known)
    by = f" by {_listed(features)}" if features else ""
    description = (
        f"Chooses {chooses}{by}: what the learning session {session.id!r} learned from rewards"
        f" ({definition.algorithm}). Mean reward {mean:.3g} over {counts.episodes:,} episodes. To"
        f" use it, ask LearningService.Predict with session_id {session.id!r} and the state; start"
        " the session again if it has ended."
    )
    return LearnedSkill(
        id=skill_id(session.number),
        name=f"choose_{_slug(session.id)}",
        description=description,
        inputs={"state": space_to_json(definition.states), "features": list(features[:100])},
        outputs={"action": space_to_json(definition.actions), "known": list(known[:100])},
        metadata={
            "learning_session_id": session.id,
            "algorithm": definition.algorithm,
            "episodes": counts.episodes,
            "avg_reward": mean,
            "convergence_score": score,
            "model_path": path,
        },
    )


class SkillShelf:
    """Saves what sessions learned among the skills of their tenant: implements `SkillMaker`.

    Args:
        skills: where skills are kept.
    """

    def __init__(self, skills: Skills) -> None:
        self._skills = skills

    def make(self, tenant_id: str, skill: LearnedSkill) -> bool:
        """See `SkillMaker`. The name and the labels of one that was made before are kept."""
        content: dict[str, Any] = {
            "description": skill.description,
            "inputs_json": canonical_json(dict(skill.inputs)),
            "outputs_json": canonical_json(dict(skill.outputs)),
            "metadata_json": canonical_json(dict(skill.metadata)),
        }
        try:
            self._skills.update(tenant_id, skill.id, content)
        except NotFound:
            self._create(
                tenant_id, replace(Skill(id=skill.id, name=skill.name, tags=_TAGS), **content)
            )
            return True
        return False

    def _create(self, tenant_id: str, skill: Skill) -> None:
        """Save a new skill; where its name is taken, with a number behind it."""
        for number in count(2):
            try:
                self._skills.create(tenant_id, skill)
            except AlreadyExists as error:
                if error.field != "name":
                    raise
                skill = replace(skill, name=f"{skill.name.rstrip('0123456789_')}_{number}")
            else:
                return


def _choosing(space: object, known: Sequence[Json]) -> str:
    if isinstance(space, Box):
        return f"{len(space.low)} numbers" if len(space.low) > 1 else "a number"
    names = [one if isinstance(one, str) else canonical_json(one) for one in known]
    return f"among {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(name[:100] for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _slug(text: str) -> str:
    return "".join(one if one.isalnum() else "_" for one in text)[:80].strip("_") or "action"
