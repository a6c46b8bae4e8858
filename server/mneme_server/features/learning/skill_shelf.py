"""Saves what sessions learned among the skills of their tenant."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from mneme_server.common.canonical import canonical_json
from mneme_server.common.errors import AlreadyExists, NotFound
from mneme_server.features.learning.skills import LearnedSkill
from mneme_server.features.skills.model import Skill
from mneme_server.features.skills.skills import Skills

_TAGS = ("learned",)


class SkillShelf:
    """Implements `SkillMaker`.

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
