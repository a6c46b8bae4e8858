"""What the episodes of a skill say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

from mneme_server.common.canonical import canonical_json
from mneme_server.features.skills.episode_model import CritiquePoint


class Trait(IntEnum):
    """Something that attempts may have. The numbers are those of `mneme.v1.SkillTrait`."""

    TOOL = 1
    TAG = 2
    ERROR = 3


@dataclass(frozen=True, slots=True)
class Way:
    """How successes went: the tools they called, and how many did so."""

    tools: tuple[str, ...]
    successes: int


@dataclass(frozen=True, slots=True)
class Difference:
    """How many successes and failures have a trait; `q_value` is 1 where it was not compared."""

    trait: Trait
    name: str
    successes: int
    failures: int
    q_value: float = 1.0


@dataclass(frozen=True, slots=True)
class Findings:
    """What the episodes of a skill say; see `mneme.v1.SkillFindings`."""

    attempts: int
    successes: int
    example_task: str
    example_output: str
    example_id: str
    ways: tuple[Way, ...] = ()
    shared: tuple[Difference, ...] = ()
    differences: tuple[Difference, ...] = ()
    compared: int = 0
    critiques: tuple[CritiquePoint, ...] = ()

    @property
    def failures(self) -> int:
        """Attempts that were no success."""
        return self.attempts - self.successes

    @property
    def json(self) -> str:
        """It as canonical JSON."""
        return canonical_json(asdict(self))


def findings_of(text: str) -> Findings | None:
    """Return the findings that `Findings.json` wrote; None of an empty object."""
    if text == "{}":
        return None
    said: dict[str, Any] = json.loads(text)
    return Findings(
        **said
        | {
            "ways": tuple(Way(tuple(one["tools"]), one["successes"]) for one in said["ways"]),
            "shared": _differences(said["shared"]),
            "differences": _differences(said["differences"]),
            "critiques": tuple(
                CritiquePoint(**one | {"episode_ids": tuple(one["episode_ids"])})
                for one in said["critiques"]
            ),
        }
    )


def _differences(said: Sequence[Mapping[str, Any]]) -> tuple[Difference, ...]:
    return tuple(Difference(**one | {"trait": Trait(one["trait"])}) for one in map(dict, said))
